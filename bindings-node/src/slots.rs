//! Values with a key and a number, of which the last freed one is taken first, so that JavaScript identifies
//! calls by small numbers.

use std::hash::Hash;

use hashbrown::HashMap;

/// Values by number, and numbers by key.
#[derive(Debug)]
pub struct Slots<K, T> {
    values: Vec<Option<(K, T)>>,
    free: Vec<u32>,
    numbers: HashMap<K, u32>,
}

impl<K, T> Default for Slots<K, T> {
    fn default() -> Self {
        Self {
            values: Vec::new(),
            free: Vec::new(),
            numbers: HashMap::new(),
        }
    }
}

impl<K: Copy + Eq + Hash, T> Slots<K, T> {
    /// The number that the next value gets.
    pub fn vacant(&self) -> u32 {
        let free = self.free.last().copied();
        free.unwrap_or(self.values.len() as u32)
    }

    /// Stores a value; returns its number.
    pub fn insert(&mut self, key: K, value: T) -> u32 {
        let number = self.vacant();
        self.numbers.insert(key, number);
        match self.free.pop() {
            None => self.values.push(Some((key, value))),
            Some(free) => {
                if let Some(slot) = self.values.get_mut(free as usize) {
                    *slot = Some((key, value));
                }
            }
        }
        number
    }

    /// The number of the value with that key.
    pub fn number(&self, key: K) -> Option<u32> {
        self.numbers.get(&key).copied()
    }

    pub fn get(&self, number: u32) -> Option<&T> {
        let slot = self.values.get(number as usize)?.as_ref();
        slot.map(|(_, value)| value)
    }

    pub fn get_mut(&mut self, number: u32) -> Option<&mut T> {
        let slot = self.values.get_mut(number as usize)?.as_mut();
        slot.map(|(_, value)| value)
    }

    /// Removes a value; its number is free again.
    pub fn remove(&mut self, number: u32) -> Option<T> {
        let (key, value) = self.values.get_mut(number as usize)?.take()?;
        self.free.push(number);
        self.numbers.remove(&key);
        Some(value)
    }
}
