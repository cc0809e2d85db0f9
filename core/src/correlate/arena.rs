//! A table of values, for a single owner, whose keys are never reused.

use super::key::{MAX_GENERATION, MAX_SLOTS, RequestKey};

/// A generational slab without atomics. Grows to the largest number of simultaneous values and
/// allocates nothing after that.
#[derive(Debug)]
pub(super) struct Arena<V> {
    slots: Vec<Slot<V>>,
    /// The slot freed last + 1, or 0.
    free: u32,
    len: usize,
    max: usize,
    /// The first generation of each slot.
    first: u64,
}

#[derive(Debug)]
struct Slot<V> {
    generation: u64,
    /// For a free slot: the slot freed before it + 1, or 0.
    next: u32,
    value: Option<V>,
}

impl<V> Arena<V> {
    pub(super) fn new(max: usize) -> Self {
        let max = max.min(MAX_SLOTS as usize);
        Self {
            slots: Vec::new(),
            free: 0,
            len: 0,
            max,
            first: 0,
        }
    }

    /// Has keys of slots that are not in use yet begin with this generation.
    #[cfg(all(feature = "http", feature = "sealing"))]
    pub(super) fn begin_with(&mut self, generation: u64) {
        self.first = generation.min(MAX_GENERATION);
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn is_full(&self) -> bool {
        self.free == 0 && self.slots.len() >= self.max
    }

    /// Inserts what `value` makes, in its place; `None` if the arena is full.
    #[inline]
    pub(super) fn insert(&mut self, value: impl FnOnce() -> V) -> Option<RequestKey> {
        let index = match self.free.checked_sub(1) {
            Some(index) => index,
            None if self.is_full() => return None,
            None => {
                if self.slots.len() == self.slots.capacity() {
                    // Most connections have one request at a time: `Vec` would allocate four slots.
                    self.slots.reserve_exact(self.slots.len().max(1));
                }
                self.slots.push(Slot {
                    generation: self.first,
                    next: 0,
                    value: None,
                });
                self.slots.len() as u32 - 1
            }
        };
        let slot = &mut self.slots[index as usize];
        self.free = slot.next;
        self.len += 1;
        slot.value = Some(value());
        Some(RequestKey::new(index, slot.generation))
    }

    #[inline]
    pub(super) fn get(&self, key: RequestKey) -> Option<&V> {
        let slot = self.slots.get(key.slot() as usize)?;
        slot.value
            .as_ref()
            .filter(|_| slot.generation == key.generation())
    }

    #[inline]
    pub(super) fn get_mut(&mut self, key: RequestKey) -> Option<&mut V> {
        let slot = self.slots.get_mut(key.slot() as usize)?;
        let live = slot.generation == key.generation();
        slot.value.as_mut().filter(|_| live)
    }

    #[inline]
    pub(super) fn remove(&mut self, key: RequestKey) -> Option<V> {
        let slot = self.slots.get_mut(key.slot() as usize)?;
        if slot.generation != key.generation() || slot.value.is_none() {
            return None;
        }
        self.len -= 1;
        if slot.generation < MAX_GENERATION {
            slot.generation += 1;
            slot.next = self.free;
            self.free = key.slot() + 1;
        }
        // Last, so that a large value is moved once.
        slot.value.take()
    }

    /// The keys and values, in no particular order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (RequestKey, &V)> {
        self.slots.iter().zip(0..).filter_map(|(slot, index)| {
            let value = slot.value.as_ref()?;
            Some((RequestKey::new(index, slot.generation), value))
        })
    }

    /// The values, in no particular order.
    pub(super) fn values_mut(&mut self) -> impl Iterator<Item = &mut V> {
        self.slots.iter_mut().filter_map(|slot| slot.value.as_mut())
    }

    /// Removes the values that are not `kept`.
    pub(super) fn retain(&mut self, kept: impl Fn(&V) -> bool) {
        let removed = self.iter().filter(|(_, value)| !kept(value));
        let removed: Vec<_> = removed.map(|(key, _)| key).collect();
        removed.into_iter().for_each(|key| drop(self.remove(key)));
    }

    /// Removes every value, in no particular order.
    pub(super) fn drain(&mut self) -> impl Iterator<Item = (RequestKey, V)> {
        (0..self.slots.len()).filter_map(|index| {
            let key = RequestKey::new(index as u32, self.slots[index].generation);
            self.remove(key).map(|value| (key, value))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_whose_generations_are_used_up_is_retired() {
        let mut arena = Arena::new(1);
        let first = arena.insert(|| ()).unwrap();
        assert!(arena.remove(first).is_some());
        arena.slots[0].generation = MAX_GENERATION;
        let last = arena.insert(|| ()).unwrap();
        assert_eq!(last, RequestKey::new(0, MAX_GENERATION));
        assert!(arena.remove(last).is_some() && arena.remove(last).is_none());
        assert!(arena.insert(|| ()).is_none());
    }
}
