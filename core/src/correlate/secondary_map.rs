//! A side table of an [`PendingRequests`](super::PendingRequests), for a single owner.

use super::key::RequestKey;

/// A value for each of some requests, found by the slot of the request's key: an index and a
/// comparison. Grows to the largest number of simultaneous requests and allocates nothing after
/// that.
#[derive(Debug)]
pub struct SecondaryMap<V> {
    slots: Vec<Option<(RequestKey, V)>>,
    len: usize,
}

impl<V> Default for SecondaryMap<V> {
    fn default() -> Self {
        Self {
            slots: Vec::new(),
            len: 0,
        }
    }
}

impl<V> SecondaryMap<V> {
    /// Stores a value for a request; replaces a value left from an earlier use of the slot.
    #[inline]
    pub fn insert(&mut self, key: RequestKey, value: V) {
        let index = key.slot() as usize;
        if index >= self.slots.len() {
            if index >= self.slots.capacity() {
                // As the arena of the requests grows.
                let room = (index + 1).max(2 * self.slots.len());
                self.slots.reserve_exact(room - self.slots.len());
            }
            self.slots.resize_with(index + 1, || None);
        }
        let slot = &mut self.slots[index];
        self.len += usize::from(slot.is_none());
        *slot = Some((key, value));
    }

    /// Whether the request has a value.
    #[inline]
    pub fn contains(&self, key: RequestKey) -> bool {
        let slot = self.slots.get(key.slot() as usize);
        slot.is_some_and(|slot| slot.as_ref().is_some_and(|(of, _)| *of == key))
    }

    /// The value of a request.
    #[inline]
    pub fn get_mut(&mut self, key: RequestKey) -> Option<&mut V> {
        match self.slots.get_mut(key.slot() as usize)? {
            Some((of, value)) if *of == key => Some(value),
            _ => None,
        }
    }

    /// Removes the value of a request, of which `take` takes what is needed: the whole value would be copied.
    #[inline]
    pub fn remove<R>(&mut self, key: RequestKey, take: impl FnOnce(&mut V) -> R) -> Option<R> {
        let slot = self.slots.get_mut(key.slot() as usize)?;
        let (_, value) = slot.as_mut().filter(|(of, _)| *of == key)?;
        let taken = take(value);
        self.len -= 1;
        *slot = None;
        Some(taken)
    }

    /// The only request that has a value; `None` if there are none or several.
    pub fn only(&self) -> Option<RequestKey> {
        let mut all = self.slots.iter().flatten().map(|(key, _)| *key);
        all.next().filter(|_| self.len == 1)
    }

    /// The number of values.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no values.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_belongs_to_one_use_of_a_slot() {
        let (old, new) = (RequestKey::new(3, 0), RequestKey::new(3, 1));
        let mut beside = SecondaryMap::default();
        beside.insert(old, "old");
        assert_eq!(beside.get_mut(new), None);
        assert_eq!(beside.remove(new, |it| *it), None);
        beside.insert(new, "new");
        assert_eq!(beside.only(), Some(new));
        assert_eq!((beside.remove(old, |it| *it), beside.len()), (None, 1));
        assert_eq!(beside.remove(new, |it| *it), Some("new"));
        assert_eq!(
            (beside.remove(new, |it| *it), beside.is_empty()),
            (None, true)
        );
        assert_eq!(beside.get_mut(RequestKey::new(900, 0)), None);
    }
}
