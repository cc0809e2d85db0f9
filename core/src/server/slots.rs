//! A map from numbers that are never reused to entries; its memory follows the number of entries.
//!
//! Batches carry numbers from one thread to another. When a number arrives, its entry may be
//! removed, but the number never means another entry. So numbers only grow, and entries are a
//! sorted list with gaps.

use crate::connection::Operation;

/// Entries by number, in order of insertion.
#[derive(Clone, Debug)]
pub(super) struct Slots<T> {
    /// Sorted by number.
    entries: Vec<(u32, T)>,
    next: u32,
}

impl<T> Default for Slots<T> {
    fn default() -> Self {
        let (entries, next) = (Vec::new(), 0);
        Self { entries, next }
    }
}

impl<T> Slots<T> {
    /// The number of the next entry; `None` when all are used up.
    pub fn next(&self) -> Option<u32> {
        Some(self.next).filter(|next| *next <= Operation::MAX_NUMBER)
    }

    /// Adds an entry under the [`next`](Self::next) number.
    pub fn push(&mut self, entry: T) {
        self.entries.push((self.next, entry));
        self.next += 1;
    }

    /// Adds an entry with a number larger than all before.
    pub fn insert(&mut self, number: u32, entry: T) {
        debug_assert!(number >= self.next, "numbers only grow");
        self.entries.push((number, entry));
        self.next = number + 1;
    }

    fn place(&self, number: u32) -> Option<usize> {
        let found = self.entries.binary_search_by_key(&number, |(own, _)| *own);
        found.ok()
    }

    /// Returns the entry with this number, if it still exists.
    pub fn get(&self, number: u32) -> Option<&T> {
        // While nothing was removed, a number is an index.
        match self.entries.get(number as usize) {
            Some((own, entry)) if *own == number => Some(entry),
            _ => Some(&self.entries.get(self.place(number)?)?.1),
        }
    }

    /// Removes the entry with this number.
    pub fn remove(&mut self, number: u32) -> Option<T> {
        let place = self.place(number)?;
        let (_, entry) = self.entries.remove(place);
        if self.entries.len() < self.entries.capacity() / 4 {
            self.entries.shrink_to(2 * self.entries.len());
        }
        Some(entry)
    }

    /// Keeps the entries for whose numbers `keep` returns `true`.
    pub fn retain(&mut self, mut keep: impl FnMut(u32) -> bool) {
        self.entries.retain(|(number, _)| keep(*number));
    }

    /// Iterates over numbers and entries, in order of insertion.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        self.entries.iter().map(|(number, entry)| (*number, entry))
    }

    /// Iterates over the entries.
    pub fn values(&self) -> impl Iterator<Item = &T> {
        self.entries.iter().map(|(_, entry)| entry)
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_million_that_come_and_go_leave_no_room_behind_and_no_number_twice() {
        let mut all = Slots::default();
        let mut living = std::collections::VecDeque::new();
        for round in 0..1_000_000_u32 {
            let number = all.next().unwrap();
            assert_eq!(number, round);
            all.push(round);
            living.push_back(number);
            if living.len() > 100 {
                let oldest = living.pop_front().unwrap();
                assert_eq!(all.remove(oldest), Some(oldest));
                assert_eq!(all.get(oldest), None);
                assert_eq!(all.remove(oldest), None);
            }
        }
        assert!(living.iter().all(|number| all.get(*number) == Some(number)));
        assert!(all.iter().map(|(number, _)| number).eq(living));
        assert!(all.entries.capacity() < 1000, "{}", all.entries.capacity());
    }

    #[test]
    fn numbers_end() {
        let mut all = Slots::default();
        all.insert(Operation::MAX_NUMBER, ());
        assert_eq!(all.next(), None);
    }
}
