//! Lists that servers allow to be kept: for how long, for whom, and until which change (R-CCH-03 to R-CCH-07, R-CHN-16).

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::json::{number, reader};
use crate::mcp::{Method, Revision};
use crate::sync::lock;

/// The most bytes that the kept lists of one front have, unless [`Front::list_cache`](super::Front::list_cache) says otherwise.
pub(super) const MAX_CACHE_BYTES: usize = 16 << 20;

/// The longest time that a list is kept, whatever its server allows.
const MAX_TTL: Duration = Duration::from_secs(24 * 3600);

/// A kept list is written anew this often in its time, because `ttlMs` becomes less.
const STEPS: u32 = 16;

/// What an entry takes besides its texts.
const OVERHEAD: usize = 256;

/// How long a list may be kept, and for whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Freshness {
    pub until: Instant,
    /// Whether all clients may have it.
    pub is_public: bool,
}

impl Freshness {
    /// What a result of the stateless era says, received now.
    pub fn of(result: &str, now: Instant) -> Self {
        let ttl = reader::find(result, "ttlMs").and_then(number::as_u64);
        let ttl = Duration::from_millis(ttl.unwrap_or(0)).min(MAX_TTL);
        Self {
            until: now + ttl,
            is_public: reader::find(result, "cacheScope") == Some("\"public\""),
        }
    }

    /// As long as both, and for those who may have both.
    pub fn and(self, other: Self) -> Self {
        Self {
            until: self.until.min(other.until),
            is_public: self.is_public && other.is_public,
        }
    }

    /// The `ttlMs` of a result with this freshness.
    pub fn ttl_ms(&self, now: Instant) -> u64 {
        let left = self.until.saturating_duration_since(now).as_millis();
        u64::try_from(left).unwrap_or(u64::MAX)
    }
}

/// The clients that a private list is kept for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Scope {
    /// Everybody: the list is public.
    Public,
    /// A verified client.
    Principal(Box<str>),
    /// The client of a connection, by the number of the connection.
    Connection(u64),
}

/// What a list depends on.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct ListKey {
    /// The index of its server; `None` for the list of all servers.
    pub of: Option<usize>,
    pub method: Method,
    /// Raw JSON.
    pub cursor: Option<Box<str>>,
    /// The revision of the client.
    pub revision: Revision,
    /// What the client declares.
    pub capabilities: Box<str>,
    pub scope: Scope,
}

/// The notification that a list may be another one; `None` if there is none.
pub(super) fn change_of_list(list: Method) -> Option<Method> {
    change_of(list).map(|change| CHANGES[change])
}

/// The notifications that make lists stale.
const CHANGES: [Method; 3] = [
    Method::ToolsChanged,
    Method::PromptsChanged,
    Method::ResourcesChanged,
];

/// The index among [`CHANGES`] of the one that a list is subject to; `None` for lists that are not kept.
fn change_of(list: Method) -> Option<usize> {
    match list {
        Method::ListTools => Some(0),
        Method::ListPrompts => Some(1),
        Method::ListResources | Method::ListResourceTemplates => Some(2),
        _ => None,
    }
}

/// Whether a list may be kept if its server allows it.
pub(super) fn is_kept(method: Option<Method>) -> bool {
    method.and_then(change_of).is_some()
}

/// The kept lists of a front.
pub(super) struct ListCache {
    max_bytes: usize,
    store: Mutex<Store>,
}

#[derive(Default)]
struct Store {
    entries: HashMap<ListKey, Entry>,
    bytes: usize,
    /// How often each of the lists has changed at any server.
    changes: [u64; CHANGES.len()],
    /// Counts uses.
    clock: u64,
}

struct Entry {
    text: Arc<str>,
    /// Where its `ttlMs` stands, if it has one.
    ttl: Option<(usize, usize)>,
    received: Instant,
    freshness: Freshness,
    /// The part of its time for which it was last written.
    step: Option<u32>,
    used: u64,
}

/// What was known of changes when a list was asked for.
#[derive(Clone, Copy)]
pub(super) struct Asked(u64);

impl ListCache {
    pub fn new(max_bytes: usize) -> Self {
        Self {
            max_bytes,
            store: Mutex::default(),
        }
    }

    /// Whether nothing is kept.
    pub fn is_off(&self) -> bool {
        self.max_bytes == 0
    }

    /// Notes that a list is asked for, before it is.
    pub fn ask(&self, method: Method) -> Asked {
        let change = change_of(method).unwrap_or_default();
        Asked(lock(&self.store).changes[change])
    }

    /// A kept list, if it is fresh: its `ttlMs` is at most the time that is left.
    pub fn find(&self, key: &ListKey, now: Instant) -> Option<(Arc<str>, Freshness)> {
        let mut store = lock(&self.store);
        store.clock += 1;
        let used = store.clock;
        let entry = store.entries.get_mut(key)?;
        if now >= entry.freshness.until {
            store.remove(key);
            return None;
        }
        entry.used = used;
        let before = entry.text.len();
        entry.rewrite(now);
        let after = entry.text.len();
        let found = (entry.text.clone(), entry.freshness);
        store.bytes = store.bytes + after - before;
        Some(found)
    }

    /// Keeps a list, unless it is stale already or has changed since it was asked for.
    pub fn keep(
        &self,
        key: ListKey,
        asked: Asked,
        text: &Arc<str>,
        freshness: Freshness,
        now: Instant,
    ) {
        let Some(change) = change_of(key.method) else {
            return;
        };
        let bytes = key.bytes() + text.len();
        if now >= freshness.until || bytes > self.max_bytes / 4 {
            return;
        }
        let ttl = reader::find(text, "ttlMs").map(|value| {
            // A slice of the text.
            let at = value.as_ptr() as usize - text.as_ptr() as usize;
            (at, at + value.len())
        });
        let mut store = lock(&self.store);
        if store.changes[change] != asked.0 {
            return;
        }
        store.remove(&key);
        store.clock += 1;
        let entry = Entry {
            text: text.clone(),
            ttl,
            received: now,
            freshness,
            step: None,
            used: store.clock,
        };
        store.bytes += bytes;
        store.entries.insert(key, entry);
        if store.bytes > self.max_bytes {
            store.make_room(self.max_bytes, now);
        }
    }

    /// A server has told of a change (R-CCH-07): its list, and that of all servers, are asked for again.
    pub fn changed(&self, server: usize, method: Method) {
        let Some(change) = CHANGES.iter().position(|one| *one == method) else {
            return;
        };
        let mut store = lock(&self.store);
        store.changes[change] += 1;
        store.retain(|key, _| {
            change_of(key.method) != Some(change) || key.of.is_some_and(|of| of != server)
        });
    }

    /// A connection to a server was lost: it may be another server when it comes back.
    pub fn lost(&self, server: usize) {
        for method in CHANGES {
            self.changed(server, method);
        }
    }
}

impl ListKey {
    fn bytes(&self) -> usize {
        let scope = match &self.scope {
            Scope::Principal(name) => name.len(),
            Scope::Public | Scope::Connection(_) => 0,
        };
        let cursor = self.cursor.as_ref().map_or(0, |cursor| cursor.len());
        OVERHEAD + scope + cursor + self.capabilities.len()
    }
}

impl Entry {
    /// Writes what is left of the time, rounded down, unless that was done in this part of the time.
    fn rewrite(&mut self, now: Instant) {
        let Some((from, to)) = self.ttl else { return };
        let total = self.freshness.until - self.received;
        let part = (total / STEPS).max(Duration::from_millis(1));
        let gone = now.saturating_duration_since(self.received);
        let step = u32::try_from(gone.as_nanos() / part.as_nanos()).unwrap_or(u32::MAX);
        if self.step == Some(step) {
            return;
        }
        self.step = Some(step);
        let left = total.saturating_sub(part * step.saturating_add(1));
        let left = itoa::Buffer::new().format(left.as_millis()).to_owned();
        let (before, after) = (self.text.get(..from), self.text.get(to..));
        let text = [before.unwrap_or_default(), &left, after.unwrap_or_default()];
        self.text = text.concat().into();
        self.ttl = Some((from, from + left.len()));
    }
}

impl Store {
    fn remove(&mut self, key: &ListKey) {
        if let Some(entry) = self.entries.remove(key) {
            self.bytes -= key.bytes() + entry.text.len();
        }
    }

    fn retain(&mut self, is_kept: impl Fn(&ListKey, &Entry) -> bool) {
        let mut bytes = self.bytes;
        self.entries.retain(|key, entry| {
            let stays = is_kept(key, entry);
            if !stays {
                bytes -= key.bytes() + entry.text.len();
            }
            stays
        });
        self.bytes = bytes;
    }

    /// Drops what is stale, and then what was not used for longest, down to three quarters: rarely, so that it costs little.
    fn make_room(&mut self, max_bytes: usize, now: Instant) {
        self.retain(|_, entry| now < entry.freshness.until);
        if self.bytes <= max_bytes {
            return;
        }
        let entries = self.entries.iter();
        let mut uses: Vec<_> = entries
            .map(|(key, entry)| (entry.used, key.bytes() + entry.text.len()))
            .collect();
        uses.sort_unstable();
        let (mut left, mut last) = (self.bytes, 0);
        for (used, bytes) in uses {
            if left <= max_bytes / 4 * 3 {
                break;
            }
            (left, last) = (left - bytes, used);
        }
        self.retain(|_, entry| entry.used > last);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(of: Option<usize>, method: Method, scope: Scope) -> ListKey {
        ListKey {
            of,
            method,
            cursor: None,
            revision: Revision::NEWEST,
            capabilities: "{}".into(),
            scope,
        }
    }

    fn page(ttl: u64) -> Arc<str> {
        format!("{{\"tools\":[],\"ttlMs\":{ttl},\"cacheScope\":\"public\"}}").into()
    }

    fn keep(cache: &ListCache, key: &ListKey, text: &Arc<str>, now: Instant) {
        let freshness = Freshness::of(text, now);
        cache.keep(key.clone(), cache.ask(key.method), text, freshness, now);
    }

    /// R-CCH-04: at any time the text says no more than what is left, and not much less; and after that there is none.
    #[test]
    fn a_list_is_kept_for_its_time_and_says_what_is_left_of_it() {
        let (cache, begun) = (ListCache::new(MAX_CACHE_BYTES), Instant::now());
        let key = key(Some(0), Method::ListTools, Scope::Public);
        for ttl in [1, 7, 1000, 60_000, 3_600_000] {
            keep(&cache, &key, &page(ttl), begun);
            for part in 0..200 {
                let gone = Duration::from_micros(ttl * 1000 * part / 200);
                let (text, freshness) = cache.find(&key, begun + gone).unwrap();
                let told = reader::find(&text, "ttlMs")
                    .and_then(number::as_u64)
                    .unwrap();
                let left = freshness.ttl_ms(begun + gone);
                assert!(
                    told <= left && left - told <= ttl / 8 + 2,
                    "{told} of {left}"
                );
                assert!(text.ends_with(",\"cacheScope\":\"public\"}"), "{text}");
            }
            let over = begun + Duration::from_millis(ttl);
            assert_eq!(cache.find(&key, over), None);
            assert_eq!(lock(&cache.store).bytes, 0);
        }
        for stale in ["{}", "{\"ttlMs\":0}", "{\"ttlMs\":-5}", "{\"ttlMs\":\"9\"}"] {
            keep(&cache, &key, &stale.into(), begun);
            assert_eq!(cache.find(&key, begun), None, "{stale}");
        }
        keep(&cache, &key, &page(u64::MAX), begun);
        assert_eq!(cache.find(&key, begun + MAX_TTL), None);
    }

    /// R-CCH-05, R-CHN-16
    #[test]
    fn a_private_list_is_for_one_client() {
        let (cache, now) = (ListCache::new(MAX_CACHE_BYTES), Instant::now());
        let of = |scope| key(Some(0), Method::ListTools, scope);
        keep(&cache, &of(Scope::Principal("ada".into())), &page(9), now);
        keep(&cache, &of(Scope::Connection(1)), &page(9), now);
        for (scope, has) in [
            (Scope::Principal("ada".into()), true),
            (Scope::Principal("bob".into()), false),
            (Scope::Connection(1), true),
            (Scope::Connection(2), false),
            (Scope::Public, false),
        ] {
            assert_eq!(
                cache.find(&of(scope.clone()), now).is_some(),
                has,
                "{scope:?}"
            );
        }
    }

    /// R-CCH-07: also if the change overtakes the list.
    #[test]
    fn a_change_drops_the_lists_of_its_server_and_those_of_all() {
        let (cache, now) = (ListCache::new(MAX_CACHE_BYTES), Instant::now());
        let tools = |of| key(of, Method::ListTools, Scope::Public);
        let templates = key(Some(0), Method::ListResourceTemplates, Scope::Public);
        let all = [
            tools(None),
            tools(Some(0)),
            tools(Some(1)),
            templates.clone(),
        ];
        let has = |key: &ListKey| cache.find(key, now).is_some();
        for (method, server, left) in [
            (Method::ToolsChanged, 0, [false, false, true, true]),
            (Method::ResourcesChanged, 0, [true, true, true, false]),
            (Method::PromptsChanged, 0, [true; 4]),
        ] {
            all.iter().for_each(|key| keep(&cache, key, &page(9), now));
            cache.changed(server, method);
            assert_eq!([0, 1, 2, 3].map(|at| has(&all[at])), left, "{method:?}");
        }
        all.iter().for_each(|key| keep(&cache, key, &page(9), now));
        cache.lost(1);
        assert_eq!(
            [0, 1, 2, 3].map(|at| has(&all[at])),
            [false, true, false, true]
        );
        let asked = cache.ask(Method::ListTools);
        cache.changed(1, Method::ToolsChanged);
        let text = page(9);
        cache.keep(tools(None), asked, &text, Freshness::of(&text, now), now);
        assert!(!has(&all[0]), "the list is older than the change");
    }

    #[test]
    fn kept_lists_have_no_more_bytes_than_they_may() {
        let (cache, now) = (ListCache::new(100_000), Instant::now());
        let text = page(9);
        let of = |number: usize| key(None, Method::ListTools, Scope::Connection(number as u64));
        for number in 0..2000 {
            keep(&cache, &of(number), &text, now);
            assert!(lock(&cache.store).bytes <= 100_000);
            // One that is used stays.
            assert!(cache.find(&of(0), now).is_some(), "{number}");
        }
        assert!(cache.find(&of(1), now).is_none());
        assert!(cache.find(&of(1999), now).is_some());
        let large: Arc<str> = format!("{{\"ttlMs\":9,\"a\":\"{}\"}}", "a".repeat(30_000)).into();
        keep(&cache, &of(1), &large, now);
        assert!(
            cache.find(&of(1), now).is_none(),
            "a quarter at most is for one"
        );
        let off = ListCache::new(0);
        keep(&off, &of(1), &text, now);
        assert!(off.is_off() && off.find(&of(1), now).is_none());
    }
}
