//! A store in the memory of one process.

mod log;
mod table;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use bytes::Bytes;

use self::log::Log;
use self::table::Table;
use super::bounds::{
    LogBounds, check_keep, check_log, check_name, check_note, check_spend, check_take, check_value,
};
use super::error::{StoreError, StoreFault};
use super::hints::{Hints, Subscription};
use super::verbs::{
    Blob, BlobVersion, Bucket, HolderId, Leased, LogPage, SharedStore, StoreFuture, Taken, When,
};
use crate::limits::Quota;
use crate::sync::lock;

/// A store in the memory of this process, for servers that run in one process, and for tests.
///
/// Its state ends with it. Clones share it, so two servers of a program can. It never waits.
#[derive(Clone)]
pub struct LocalStore(Arc<Shared>);

struct Shared {
    limits: StoreLimits,
    clock: Box<dyn Fn() -> Instant + Send + Sync>,
    state: Mutex<State>,
    hints: Arc<Hints>,
}

/// How much a [`LocalStore`] holds. Beyond that it refuses new state, as [`StoreFault::Full`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoreLimits {
    /// Most blobs, logs, leases, buckets, quotas and marks together; 262,144 by default.
    pub entries: usize,
    /// Most bytes of their names and contents, with about 160 bytes for each; 256 MiB by default.
    pub bytes: usize,
}

impl Default for StoreLimits {
    fn default() -> Self {
        Self {
            entries: 1 << 18,
            bytes: 256 << 20,
        }
    }
}

struct State {
    blobs: Table<Blob>,
    logs: Table<Log>,
    leases: Table<Lease>,
    /// When each bucket will be full.
    buckets: Table<Instant>,
    /// How many calls were counted in each period.
    quotas: Table<u64>,
    marks: Table<()>,
    /// No id, version or token that was given is greater.
    highest: u64,
}

#[derive(Debug)]
struct Lease {
    holder: HolderId,
    note: Bytes,
    token: u64,
}

impl LocalStore {
    /// A store with the default limits.
    pub fn new() -> Self {
        Self::with_limits(StoreLimits::default())
    }

    /// A store with limits of its own.
    pub fn with_limits(limits: StoreLimits) -> Self {
        Self::with_clock(limits, Instant::now)
    }

    /// A store that reads the time from `clock`, which never goes back; for tests.
    pub fn with_clock(
        limits: StoreLimits,
        clock: impl Fn() -> Instant + Send + Sync + 'static,
    ) -> Self {
        // Greater than the ids of a store of this process's predecessor.
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        let highest = since.map_or(0, |since| since.as_micros() as u64);
        Self(Arc::new(Shared {
            limits,
            clock: Box::new(clock),
            state: Mutex::new(State {
                blobs: Table::default(),
                logs: Table::default(),
                leases: Table::default(),
                buckets: Table::default(),
                quotas: Table::default(),
                marks: Table::default(),
                highest,
            }),
            hints: Arc::default(),
        }))
    }

    /// Runs a verb, of which one at a time runs, without what is over by now.
    fn step<T>(
        &self,
        verb: impl FnOnce(&mut State, Instant) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let mut state = lock(&self.0.state);
        // Read under the lock, so that time does not go back from one verb to the next.
        let now = (self.0.clock)();
        state.sweep(now);
        verb(&mut state, now)
    }

    /// Checks that there is room for a value, which may replace one of the same name.
    fn check_room<V>(
        &self,
        state: &State,
        table: fn(&State) -> &Table<V>,
        name: &str,
        len: usize,
    ) -> Result<(), StoreError> {
        let before = table(state).bytes_of(name);
        let entries = state.len() + usize::from(before == 0);
        let bytes = state.bytes() - before + Table::<V>::bytes_for(name, len);
        let limits = &self.0.limits;
        if entries > limits.entries || bytes > limits.bytes {
            let why = format!(
                "the store in memory is full: {} of {} entries, {} of {} bytes",
                state.len(),
                limits.entries,
                state.bytes(),
                limits.bytes
            );
            return Err(StoreError::new(StoreFault::Full, why));
        }
        Ok(())
    }
}

impl Default for LocalStore {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for LocalStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = lock(&self.0.state);
        f.debug_struct("LocalStore")
            .field("limits", &self.0.limits)
            .field("entries", &state.len())
            .field("bytes", &state.bytes())
            .finish()
    }
}

impl State {
    fn sweep(&mut self, now: Instant) {
        self.blobs.sweep(now);
        self.logs.sweep(now);
        self.leases.sweep(now);
        self.buckets.sweep(now);
        self.quotas.sweep(now);
        self.marks.sweep(now);
    }

    fn len(&self) -> usize {
        self.blobs.len()
            + self.logs.len()
            + self.leases.len()
            + self.buckets.len()
            + self.quotas.len()
            + self.marks.len()
    }

    fn bytes(&self) -> usize {
        self.blobs.bytes()
            + self.logs.bytes()
            + self.leases.bytes()
            + self.buckets.bytes()
            + self.quotas.bytes()
            + self.marks.bytes()
    }

    fn is_met(&self, name: &str, when: When) -> bool {
        match (when, self.blobs.get(name)) {
            (When::Always, _) => true,
            (When::Absent, blob) => blob.is_none(),
            (When::Is(version), blob) => blob.is_some_and(|blob| blob.version == version),
        }
    }

    fn next(&mut self) -> u64 {
        self.highest += 1;
        self.highest
    }
}

/// A verb that runs when it is polled.
fn verb<'a, T: 'a>(run: impl FnOnce() -> Result<T, StoreError> + Send + 'a) -> StoreFuture<'a, T> {
    Box::pin(async move { run() })
}

impl SharedStore for LocalStore {
    fn get<'a>(&'a self, name: &'a str) -> StoreFuture<'a, Option<Blob>> {
        verb(move || {
            check_name(name)?;
            self.step(|state, _| Ok(state.blobs.get(name).cloned()))
        })
    }

    fn put<'a>(
        &'a self,
        name: &'a str,
        value: &'a [u8],
        keep: Duration,
        when: When,
    ) -> StoreFuture<'a, Option<BlobVersion>> {
        verb(move || {
            check_name(name)?;
            check_value(value)?;
            check_keep(keep)?;
            self.step(|state, now| {
                if !state.is_met(name, when) {
                    return Ok(None);
                }
                self.check_room(state, |state| &state.blobs, name, value.len())?;
                let version = BlobVersion(state.next());
                let bytes = Bytes::copy_from_slice(value);
                let blob = Blob { bytes, version };
                state.blobs.set(name, blob, value.len(), now + keep);
                Ok(Some(version))
            })
        })
    }

    fn remove<'a>(&'a self, name: &'a str, when: When) -> StoreFuture<'a, bool> {
        verb(move || {
            check_name(name)?;
            self.step(|state, _| Ok(state.is_met(name, when) && state.blobs.remove(name).is_some()))
        })
    }

    fn append<'a>(
        &'a self,
        name: &'a str,
        entry: &'a [u8],
        bounds: LogBounds,
        fence: u64,
    ) -> StoreFuture<'a, Option<u64>> {
        verb(move || {
            check_name(name)?;
            check_log(entry, bounds)?;
            let id = self.step(|state, now| {
                let log = state.logs.get(name);
                if log.is_some_and(|log| log.fence() > fence) {
                    return Ok(None);
                }
                let len = log.map_or(0, Log::bytes) + Log::bytes_for(entry);
                self.check_room(state, |state| &state.logs, name, len)?;
                let before = state.highest;
                let log = state.logs.remove(name);
                let mut log = log.unwrap_or_else(|| Log::after(before));
                let id = log.append(Bytes::copy_from_slice(entry), bounds, fence);
                let len = log.bytes();
                state.logs.set(name, log, len, now + bounds.keep);
                state.highest = before.max(id);
                Ok(Some(id))
            })?;
            if id.is_some() {
                self.0.hints.publish(name);
            }
            Ok(id)
        })
    }

    fn read<'a>(
        &'a self,
        name: &'a str,
        after: Option<u64>,
        most: usize,
    ) -> StoreFuture<'a, LogPage> {
        verb(move || {
            check_name(name)?;
            self.step(|state, _| {
                let none = || LogPage {
                    has_gap: after.is_some(),
                    ..LogPage::default()
                };
                let log = state.logs.get(name);
                Ok(log.map_or_else(none, |log| log.read(after, most)))
            })
        })
    }

    fn publish<'a>(&'a self, topic: &'a str) -> StoreFuture<'a, ()> {
        verb(move || {
            check_name(topic)?;
            self.0.hints.publish(topic);
            Ok(())
        })
    }

    fn subscribe<'a>(&'a self, topic: &'a str) -> StoreFuture<'a, Subscription> {
        verb(move || {
            check_name(topic)?;
            Ok(self.0.hints.subscribe(topic))
        })
    }

    fn lease<'a>(
        &'a self,
        name: &'a str,
        holder: HolderId,
        note: &'a [u8],
        keep: Duration,
    ) -> StoreFuture<'a, Leased> {
        verb(move || {
            check_name(name)?;
            check_note(note)?;
            check_keep(keep)?;
            self.step(|state, now| {
                let held = state.leases.get(name);
                if let Some(other) = held.filter(|lease| lease.holder != holder) {
                    let end = state.leases.end(name).unwrap_or(now);
                    return Ok(Leased::Busy {
                        note: other.note.clone(),
                        remaining: end.saturating_duration_since(now),
                    });
                }
                let own = held.map(|lease| lease.token);
                self.check_room(state, |state| &state.leases, name, note.len())?;
                let token = own.unwrap_or_else(|| state.next());
                let lease = Lease {
                    holder,
                    note: Bytes::copy_from_slice(note),
                    token,
                };
                state.leases.set(name, lease, note.len(), now + keep);
                Ok(Leased::Held { token })
            })
        })
    }

    fn release<'a>(&'a self, name: &'a str, holder: HolderId) -> StoreFuture<'a, bool> {
        verb(move || {
            check_name(name)?;
            self.step(|state, _| {
                let held = state.leases.get(name);
                let is_own = held.is_some_and(|lease| lease.holder == holder);
                if is_own {
                    state.leases.remove(name);
                }
                Ok(is_own)
            })
        })
    }

    fn take<'a>(&'a self, name: &'a str, bucket: Bucket, tokens: u32) -> StoreFuture<'a, Taken> {
        verb(move || {
            check_name(name)?;
            check_take(bucket, tokens)?;
            self.step(|state, now| {
                let room = bucket.interval * bucket.burst;
                let empty = now + room;
                let kept = state.buckets.get(name).copied().unwrap_or(now);
                let then = kept.min(empty) + bucket.interval * tokens;
                let missing = then.saturating_duration_since(empty);
                if !missing.is_zero() {
                    if kept > empty {
                        state.buckets.set(name, empty, 0, empty);
                    }
                    return Ok(Taken::After(missing));
                }
                if tokens > 0 {
                    self.check_room(state, |state| &state.buckets, name, 0)?;
                    state.buckets.set(name, then, 0, then);
                }
                Ok(Taken::Now)
            })
        })
    }

    fn spend<'a>(&'a self, name: &'a str, quota: Quota, calls: u64) -> StoreFuture<'a, Taken> {
        verb(move || {
            check_name(name)?;
            check_spend(quota, calls)?;
            self.step(|state, now| {
                let spent = state.quotas.get(name).copied().unwrap_or(0);
                let next = now + quota.period;
                let kept = state.quotas.end(name).unwrap_or(next);
                let end = kept.min(next);
                if spent + calls > quota.calls {
                    if kept > next {
                        state.quotas.set(name, spent, 0, end);
                    }
                    return Ok(Taken::After(end.saturating_duration_since(now)));
                }
                if calls > 0 {
                    self.check_room(state, |state| &state.quotas, name, 0)?;
                    state.quotas.set(name, spent + calls, 0, end);
                }
                Ok(Taken::Now)
            })
        })
    }

    fn once<'a>(&'a self, name: &'a str, keep: Duration) -> StoreFuture<'a, bool> {
        verb(move || {
            check_name(name)?;
            check_keep(keep)?;
            self.step(|state, now| {
                if state.marks.get(name).is_some() {
                    return Ok(false);
                }
                self.check_room(state, |state| &state.marks, name, 0)?;
                state.marks.set(name, (), 0, now + keep);
                Ok(true)
            })
        })
    }
}
