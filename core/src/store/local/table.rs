//! Values by name, each until its time is over.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Instant;

/// The memory that an entry takes beside its name and its value, approximately, in bytes.
const ENTRY_BYTES: usize = 160;

#[derive(Debug)]
pub struct Table<V> {
    entries: HashMap<Arc<str>, Entry<V>>,
    /// The names in the order in which their time is over.
    order: BTreeSet<(Instant, Arc<str>)>,
    bytes: usize,
}

#[derive(Debug)]
struct Entry<V> {
    value: V,
    until: Instant,
    bytes: usize,
}

impl<V> Default for Table<V> {
    fn default() -> Self {
        Self {
            entries: HashMap::new(),
            order: BTreeSet::new(),
            bytes: 0,
        }
    }
}

impl<V> Table<V> {
    /// Removes the values whose time is over at `now`. The other functions take all that are there for present.
    pub fn sweep(&mut self, now: Instant) {
        while let Some((until, name)) = self.order.first()
            && *until <= now
        {
            let name = name.clone();
            self.remove(&name);
        }
    }

    pub fn get(&self, name: &str) -> Option<&V> {
        self.entries.get(name).map(|entry| &entry.value)
    }

    /// When the time of a value is over.
    pub fn end(&self, name: &str) -> Option<Instant> {
        self.entries.get(name).map(|entry| entry.until)
    }

    /// The bytes that the value of a name takes; 0 if there is none.
    pub fn bytes_of(&self, name: &str) -> usize {
        self.entries.get(name).map_or(0, |entry| entry.bytes)
    }

    /// The bytes that a value of `len` bytes takes under a name.
    pub fn bytes_for(name: &str, len: usize) -> usize {
        ENTRY_BYTES + name.len() + len
    }

    /// Inserts a value of `len` bytes, in the place of the one of the same name.
    pub fn set(&mut self, name: &str, value: V, len: usize, until: Instant) {
        let name = match self.entries.remove_entry(name) {
            Some((name, old)) => {
                self.order.remove(&(old.until, name.clone()));
                self.bytes -= old.bytes;
                name
            }
            None => name.into(),
        };
        let bytes = Self::bytes_for(&name, len);
        self.bytes += bytes;
        self.order.insert((until, name.clone()));
        let entry = Entry {
            value,
            until,
            bytes,
        };
        self.entries.insert(name, entry);
    }

    pub fn remove(&mut self, name: &str) -> Option<V> {
        let (name, entry) = self.entries.remove_entry(name)?;
        self.bytes -= entry.bytes;
        self.order.remove(&(entry.until, name));
        Some(entry.value)
    }

    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// The bytes of all values, names included.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}
