//! The verbs of a store, their arguments and what they return.

use std::fmt::Debug;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use bytes::Bytes;

use super::bounds::{LogBounds, MAX_KEEP};
use super::error::StoreError;
use super::hints::Subscription;
use crate::limits::{Quota, Rate};

/// What a verb of a store returns. Nothing happens before it is polled; once it has been, dropping it may or may
/// not stop the verb.
pub type StoreFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'a>>;

/// State that processes share. The [module](super) describes the verbs, their bounds and their order.
///
/// # Errors
/// Each verb fails as [`StoreFault`](super::StoreFault) says, within the time-out of the store. An argument beyond
/// its bounds is [`Misuse`](super::StoreFault::Misuse).
pub trait SharedStore: Debug + Send + Sync + 'static {
    /// Returns a blob; `None` if there is none.
    fn get<'a>(&'a self, name: &'a str) -> StoreFuture<'a, Option<Blob>>;

    /// Writes a blob, kept for `keep` from now on, if the condition holds. Returns its new version; `None` if
    /// the condition does not hold.
    fn put<'a>(
        &'a self,
        name: &'a str,
        value: &'a [u8],
        keep: Duration,
        when: When,
    ) -> StoreFuture<'a, Option<BlobVersion>>;

    /// Removes a blob if the condition holds. Returns whether there was one and it held.
    fn remove<'a>(&'a self, name: &'a str, when: When) -> StoreFuture<'a, bool>;

    /// Appends an entry to a log, and [publishes](Self::publish) the log's name. The oldest entries go, as far as
    /// the bounds require it; the whole log goes when nothing was appended for `bounds.keep`.
    ///
    /// Returns the id of the entry: one more than that of the entry before. The first id of a log that
    /// begins, or begins again, is greater than all that a log of this name has had. `None` if the log has seen a
    /// higher `fence`: the [token](Leased::Held) of the lease under which the caller writes, or 0.
    fn append<'a>(
        &'a self,
        log: &'a str,
        entry: &'a [u8],
        bounds: LogBounds,
        fence: u64,
    ) -> StoreFuture<'a, Option<u64>>;

    /// Reads the entries of a log with greater ids than `after`, oldest first: at most `most`, and at most
    /// [`MAX_PAGE_BYTES`](super::MAX_PAGE_BYTES) unless the first alone is longer. `None` reads from the oldest kept.
    fn read<'a>(
        &'a self,
        log: &'a str,
        after: Option<u64>,
        most: usize,
    ) -> StoreFuture<'a, LogPage>;

    /// Wakes the subscriptions to a topic, in all processes.
    fn publish<'a>(&'a self, topic: &'a str) -> StoreFuture<'a, ()>;

    /// Subscribes to a topic. What is published after this has completed wakes the subscription. Appending to a
    /// log publishes the topic of the same name.
    fn subscribe<'a>(&'a self, topic: &'a str) -> StoreFuture<'a, Subscription>;

    /// Takes a lease for `keep` from now on, or renews it if `holder` has it. The others see `note` until the lease
    /// ends, such as the address of the holder.
    fn lease<'a>(
        &'a self,
        name: &'a str,
        holder: HolderId,
        note: &'a [u8],
        keep: Duration,
    ) -> StoreFuture<'a, Leased>;

    /// Ends a lease before its time. Returns whether `holder` had it.
    fn release<'a>(&'a self, name: &'a str, holder: HolderId) -> StoreFuture<'a, bool>;

    /// Takes tokens from a bucket, which is full at first, if it has as many (the generic cell rate algorithm, GCRA).
    /// It misses no more than `bucket` holds, whatever bucket was named before, and however the clock of the store has been set.
    fn take<'a>(&'a self, name: &'a str, bucket: Bucket, tokens: u32) -> StoreFuture<'a, Taken>;

    /// Counts calls against a quota, whose period begins with the first one, if it has as many left. The period
    /// ends no later than `quota` says, whatever quota was named before.
    fn spend<'a>(&'a self, name: &'a str, quota: Quota, calls: u64) -> StoreFuture<'a, Taken>;

    /// Makes a mark that is kept for `keep`. Returns whether there was none.
    fn once<'a>(&'a self, name: &'a str, keep: Duration) -> StoreFuture<'a, bool>;
}

/// A value and its version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blob {
    /// The value.
    pub bytes: Bytes,
    /// Changes whenever the value is written.
    pub version: BlobVersion,
}

/// The version of a blob. No two writes of a name have the same one; its order means nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlobVersion(pub u64);

/// The condition of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// In any case.
    Always,
    /// If there is no blob.
    Absent,
    /// If the blob has this version.
    Is(BlobVersion),
}

/// An entry of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogEntry {
    /// Its id.
    pub id: u64,
    /// Its content.
    pub bytes: Bytes,
}

/// What was read of a log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogPage {
    /// The entries, oldest first.
    pub entries: Vec<LogEntry>,
    /// The greatest id in the log; 0 if there is no log.
    pub last: u64,
    /// Entries after the given id may be missing: the log has dropped them, or knows of no such id.
    pub has_gap: bool,
}

/// Tells one holder of leases from another: 128 random bits, new for each process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HolderId([u8; 16]);

impl HolderId {
    /// An id that nobody else has; `None` when the system provides no randomness.
    pub fn random() -> Option<Self> {
        let mut id = [0; 16];
        getrandom::fill(&mut id).ok()?;
        Some(Self(id))
    }

    /// The bits.
    pub fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

/// The state of a lease after one asked for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Leased {
    /// The caller has it.
    Held {
        /// The fencing token: greater than that of every earlier holder, and the same while this holder renews the
        /// lease.
        token: u64,
    },
    /// Another one has it.
    Busy {
        /// The note of the holder.
        note: Bytes,
        /// When it ends unless it is renewed.
        remaining: Duration,
    },
}

/// A bucket of tokens. It holds up to `burst`, and gains one in each `interval`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bucket {
    /// Most tokens; at least one.
    pub burst: u32,
    /// The time in which a token comes, in whole nanoseconds; at least one microsecond.
    pub interval: Duration,
}

impl From<Rate> for Bucket {
    /// A rate of more than a million per second counts as a million. A bucket is full after [`MAX_KEEP`] at the latest.
    fn from(rate: Rate) -> Self {
        let burst = rate.burst.max(1);
        let slowest = MAX_KEEP / burst;
        let per_second = rate.per_second.min(1_000_000);
        let interval = Duration::from_secs(1).checked_div(per_second);
        Self {
            burst,
            interval: interval.map_or(slowest, |interval| interval.min(slowest)),
        }
    }
}

/// Whether a bucket had the tokens, or a quota the calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// They were taken.
    Now,
    /// There were too few, and none was taken. After this time there are enough, unless others take them.
    After(Duration),
}
