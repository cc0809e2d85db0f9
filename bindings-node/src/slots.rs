//! Numbered places, of which the last freed one is taken first, so that JavaScript identifies calls by small
//! numbers.

/// Values by number.
#[derive(Debug)]
pub struct Slots<T> {
    values: Vec<Option<T>>,
    free: Vec<u32>,
}

impl<T> Default for Slots<T> {
    fn default() -> Self {
        Self {
            values: Vec::new(),
            free: Vec::new(),
        }
    }
}

impl<T> Slots<T> {
    /// The number that the next value gets.
    pub fn vacant(&self) -> u32 {
        let free = self.free.last().copied();
        free.unwrap_or(self.values.len() as u32)
    }

    /// Stores a value; returns its number.
    pub fn insert(&mut self, value: T) -> u32 {
        if let Some(number) = self.free.pop()
            && let Some(slot) = self.values.get_mut(number as usize)
        {
            *slot = Some(value);
            return number;
        }
        self.values.push(Some(value));
        self.values.len() as u32 - 1
    }

    pub fn get(&self, number: u32) -> Option<&T> {
        self.values.get(number as usize)?.as_ref()
    }

    pub fn get_mut(&mut self, number: u32) -> Option<&mut T> {
        self.values.get_mut(number as usize)?.as_mut()
    }

    /// Removes a value; its number is free again.
    pub fn remove(&mut self, number: u32) -> Option<T> {
        let value = self.values.get_mut(number as usize)?.take()?;
        self.free.push(number);
        Some(value)
    }
}
