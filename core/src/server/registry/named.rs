//! Entries with a unique name and a number that is never reused.

use hashbrown::HashMap;
use hashbrown::hash_map::Entry;

use super::error::RegistryError;
use crate::server::slots::Slots;

/// Entries by name and by number, in order of registration.
#[derive(Clone, Debug)]
pub(super) struct Named<T> {
    entries: Slots<T>,
    numbers: HashMap<String, u32>,
}

impl<T> Default for Named<T> {
    fn default() -> Self {
        Self {
            entries: Slots::default(),
            numbers: HashMap::new(),
        }
    }
}

impl<T> Named<T> {
    /// Adds an entry and returns its number.
    ///
    /// # Errors
    /// When the name is taken or empty, or all numbers are used up.
    pub fn add(&mut self, name: &str, entry: T) -> Result<u32, RegistryError> {
        if name.is_empty() {
            return Err(RegistryError::EmptyName);
        }
        let number = self.entries.next().ok_or(RegistryError::Exhausted)?;
        match self.numbers.entry(name.to_owned()) {
            Entry::Occupied(_) => return Err(RegistryError::Duplicate(name.to_owned())),
            Entry::Vacant(place) => drop(place.insert(number)),
        }
        self.entries.push(entry);
        Ok(number)
    }

    /// Removes an entry and returns whether it existed.
    pub fn remove(&mut self, name: &str) -> bool {
        let number = self.numbers.remove(name);
        number.is_some_and(|number| self.entries.remove(number).is_some())
    }

    pub fn number(&self, name: &str) -> Option<u32> {
        self.numbers.get(name).copied()
    }

    pub fn get(&self, number: u32) -> Option<&T> {
        self.entries.get(number)
    }

    pub fn values(&self) -> impl Iterator<Item = &T> {
        self.entries.values()
    }

    pub fn is_empty(&self) -> bool {
        self.numbers.is_empty()
    }
}
