//! Entries under numbers that are never given twice, in memory that follows how many there are.
//!
//! A number is an address that a batch carries from one thread to another; what it stood for may
//! be gone when it arrives, but never is it something else. So numbers only grow, and what is
//! found by them is a sorted list with gaps.

use crate::handler::Operation;

/// Entries by number, in the order in which they came.
#[derive(Clone, Debug)]
pub(super) struct Numbered<T> {
    /// Sorted by number.
    entries: Vec<(u32, T)>,
    next: u32,
}

impl<T> Default for Numbered<T> {
    fn default() -> Self {
        let (entries, next) = (Vec::new(), 0);
        Self { entries, next }
    }
}

impl<T> Numbered<T> {
    /// The number that the next entry gets; `None` when all have been given.
    pub fn next(&self) -> Option<u32> {
        Some(self.next).filter(|next| *next <= Operation::MAX_NUMBER)
    }

    /// Adds an entry under the [`next`](Self::next) number.
    pub fn push(&mut self, entry: T) {
        self.entries.push((self.next, entry));
        self.next += 1;
    }

    /// Adds an entry under a number that is greater than all before.
    pub fn insert(&mut self, number: u32, entry: T) {
        debug_assert!(number >= self.next, "numbers only grow");
        self.entries.push((number, entry));
        self.next = number + 1;
    }

    fn place(&self, number: u32) -> Option<usize> {
        let found = self.entries.binary_search_by_key(&number, |(own, _)| *own);
        found.ok()
    }

    /// The entry of that number, if it is still there.
    pub fn get(&self, number: u32) -> Option<&T> {
        // Where nothing was removed, a number is a place.
        match self.entries.get(number as usize) {
            Some((own, entry)) if *own == number => Some(entry),
            _ => Some(&self.entries.get(self.place(number)?)?.1),
        }
    }

    /// Takes the entry of that number away.
    pub fn remove(&mut self, number: u32) -> Option<T> {
        let place = self.place(number)?;
        let (_, entry) = self.entries.remove(place);
        if self.entries.len() < self.entries.capacity() / 4 {
            self.entries.shrink_to(2 * self.entries.len());
        }
        Some(entry)
    }

    /// Keeps those for whose numbers `keep` says so.
    pub fn retain(&mut self, mut keep: impl FnMut(u32) -> bool) {
        self.entries.retain(|(number, _)| keep(*number));
    }

    /// All of them, with their numbers, in the order in which they came.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        self.entries.iter().map(|(number, entry)| (*number, entry))
    }

    /// The entries alone.
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
        let mut all = Numbered::default();
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
    fn numbers_end_where_operations_have_no_room_for_them() {
        let mut all = Numbered::default();
        all.insert(Operation::MAX_NUMBER, ());
        assert_eq!(all.next(), None);
        let last = Operation::CallTool(Operation::MAX_NUMBER);
        assert_eq!(Operation::from_target(last.to_target()), last);
    }
}
