//! Values that outlive a call, such as tasks, cached results and used states: the interface of a
//! store, and the store in memory.

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use crate::connection::{Budget, Held};

/// Keeps values by key, each until its time is over.
pub(super) trait Store<V>: fmt::Debug + Send + Sync {
    /// Returns the value of a key.
    fn get(&self, key: &str) -> Option<V>;

    /// Stores a value.
    fn put(&self, key: &str, value: V, entry: Keep) -> Put<V>;

    /// Removes the value of a key.
    fn remove(&self, key: &str) -> Option<V>;

    /// Removes the values for which `keep` returns `false`, also those whose time is over.
    fn retain(&self, keep: &mut dyn FnMut(&str, &V) -> bool);

    /// Counts the bytes of all values in the budget of a server. Only the first call has an effect.
    fn count_in(&self, budget: &Arc<Budget>);
}

/// How a value is stored.
#[derive(Clone, Copy, Debug)]
pub(super) struct Keep {
    /// When its time is over.
    pub until: Instant,
    /// Its size in bytes, without the key.
    pub bytes: usize,
    /// Whether it may replace a value with the same key.
    pub replaces: bool,
}

/// The effect of [`Store::put`].
#[derive(Debug)]
pub(super) struct Put<V> {
    /// Whether the value was stored.
    pub stored: bool,
    /// The values that were removed: their time was over, or the new value needed their room.
    pub removed: Vec<V>,
}

/// The bounds of a store in memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    /// Most values.
    pub values: usize,
    /// Most bytes of all values and their keys.
    pub bytes: usize,
    /// Whether values make room for new ones, beginning with those whose time is over first. Else
    /// a full store refuses new values.
    pub evicts: bool,
}

/// A [`Store`] in the memory of this process.
pub(super) struct MemoryStore<V> {
    bounds: Bounds,
    entries: Mutex<Entries<V>>,
}

struct Entries<V> {
    values: HashMap<Arc<str>, Entry<V>>,
    /// The keys in the order in which their time is over.
    order: BTreeSet<(Instant, Arc<str>)>,
    bytes: usize,
    /// Counts `bytes` in the budget of a server, once that is known.
    held: Option<Held>,
}

struct Entry<V> {
    value: V,
    until: Instant,
    bytes: usize,
}

impl<V> MemoryStore<V> {
    pub fn new(bounds: Bounds) -> Self {
        Self {
            bounds,
            entries: Mutex::new(Entries {
                values: HashMap::new(),
                order: BTreeSet::new(),
                bytes: 0,
                held: None,
            }),
        }
    }

    fn entries(&self) -> MutexGuard<'_, Entries<V>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<V> Entries<V> {
    fn remove(&mut self, key: &str) -> Option<V> {
        let (key, entry) = self.values.remove_entry(key)?;
        self.order.remove(&(entry.until, key));
        self.bytes -= entry.bytes;
        if let Some(held) = &mut self.held {
            held.keep(self.bytes);
        }
        Some(entry.value)
    }

    fn remove_first(&mut self) -> Option<V> {
        let (_, key) = self.order.first()?.clone();
        self.remove(&key)
    }

    fn has_room(&mut self, bytes: usize, bounds: Bounds) -> bool {
        let all = self.bytes + bytes;
        self.values.len() < bounds.values
            && all <= bounds.bytes
            && self.held.as_mut().is_none_or(|held| held.try_keep(all))
    }
}

impl<V: Clone + Send> Store<V> for MemoryStore<V> {
    fn get(&self, key: &str) -> Option<V> {
        let entries = self.entries();
        let entry = entries.values.get(key)?;
        (entry.until > Instant::now()).then(|| entry.value.clone())
    }

    fn put(&self, key: &str, value: V, keep: Keep) -> Put<V> {
        let bytes = key.len() + keep.bytes;
        let mut put = Put {
            stored: false,
            removed: Vec::new(),
        };
        let (mut entries, now) = (self.entries(), Instant::now());
        while entries
            .order
            .first()
            .is_some_and(|(until, _)| *until <= now)
        {
            put.removed.extend(entries.remove_first());
        }
        let is_taken = !keep.replaces && entries.values.contains_key(key);
        if is_taken || bytes > self.bounds.bytes {
            return put;
        }
        entries.remove(key);
        while !entries.has_room(bytes, self.bounds) {
            let first = self.bounds.evicts.then(|| entries.remove_first()).flatten();
            match first {
                Some(first) => put.removed.push(first),
                None => return put,
            }
        }
        let key: Arc<str> = key.into();
        entries.bytes += bytes;
        entries.order.insert((keep.until, key.clone()));
        let entry = Entry {
            value,
            until: keep.until,
            bytes,
        };
        entries.values.insert(key, entry);
        put.stored = true;
        put
    }

    fn remove(&self, key: &str) -> Option<V> {
        self.entries().remove(key)
    }

    fn retain(&self, keep: &mut dyn FnMut(&str, &V) -> bool) {
        let mut entries = self.entries();
        let all = entries.values.iter();
        let gone = all.filter(|(key, entry)| !keep(key, &entry.value));
        let gone: Vec<_> = gone.map(|(key, _)| key.clone()).collect();
        for key in gone {
            entries.remove(&key);
        }
    }

    fn count_in(&self, budget: &Arc<Budget>) {
        let entries = &mut *self.entries();
        if entries.held.is_none() {
            let mut held = Held::of(budget);
            held.keep(entries.bytes);
            entries.held = Some(held);
        }
    }
}

impl<V> fmt::Debug for MemoryStore<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryStore")
            .field("bounds", &self.bounds)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn store(values: usize, bytes: usize, evicts: bool) -> MemoryStore<&'static str> {
        MemoryStore::new(Bounds {
            values,
            bytes,
            evicts,
        })
    }

    fn keep(seconds: u64, bytes: usize) -> Keep {
        Keep {
            until: Instant::now() + Duration::from_secs(seconds),
            bytes,
            replaces: true,
        }
    }

    #[test]
    fn values_are_found_until_their_time_is_over() {
        let store = store(9, 99, true);
        assert!(store.put("a", "1", keep(5, 1)).stored);
        assert_eq!((store.get("a"), store.get("b")), (Some("1"), None));
        assert!(store.put("a", "2", keep(0, 1)).stored);
        assert_eq!(store.get("a"), None);
        let put = store.put("b", "3", keep(5, 1));
        assert_eq!((put.stored, put.removed), (true, vec!["2"]));
        assert_eq!(store.remove("b"), Some("3"));
        assert_eq!(store.entries().bytes, 0);
    }

    #[test]
    fn a_full_store_evicts_or_refuses() {
        for evicts in [true, false] {
            let store = store(2, 99, evicts);
            store.put("a", "a", keep(5, 0));
            store.put("b", "b", keep(6, 0));
            // A value that replaces another one takes its place.
            assert!(store.put("b", "b", keep(7, 0)).stored);
            let put = store.put("c", "c", keep(8, 0));
            assert_eq!(put.stored, evicts);
            assert_eq!(put.removed, if evicts { vec!["a"] } else { vec![] });
            let first = Keep {
                replaces: false,
                ..keep(9, 0)
            };
            assert!(!store.put("b", "x", first).stored);
            assert_eq!(store.get("b"), Some("b"));
        }
    }

    #[test]
    fn values_take_no_more_bytes_than_they_may() {
        let store = store(100, 40, true);
        assert!(!store.put("h", "huge", keep(5, 40)).stored);
        for (n, key) in ["0", "1", "2", "3", "4", "5"].into_iter().enumerate() {
            assert!(store.put(key, "", keep(10 + n as u64, 9)).stored);
            assert!(store.entries().bytes <= 40);
        }
        assert!(store.get("5").is_some() && store.get("1").is_none());
        store.put("5", "small", keep(20, 0));
        assert_eq!(store.entries().bytes, 31);
        store.retain(&mut |key, _| key == "5");
        assert_eq!(store.entries().bytes, 1);
        assert_eq!(store.entries().order.len(), 1);
    }
}
