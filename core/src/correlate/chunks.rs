//! Linked lists of chunks of values, allocated from one pool.
//!
//! ```text
//!   list ─▶ [ a b c . . . ] ─▶ [ d e f g h i ] ─▶ [ j k l m n o ]      only the first is not full
//! ```
//!
//! Values are contiguous within a chunk; the links between chunks are stored separately and are
//! small.

/// Number of values in a chunk.
const CHUNK: u32 = 32;

/// The values of all lists. Memory grows to the largest number of chunks in use and is kept.
#[derive(Debug)]
pub(super) struct Chunks<V> {
    values: Vec<Option<V>>,
    heads: Vec<Head>,
    /// The chunk that was freed last + 1, or 0.
    free: u32,
}

/// The metadata of a chunk.
#[derive(Debug)]
struct Head {
    /// The next chunk of its list, or of the free list, + 1; or 0.
    next: u32,
    len: u32,
}

/// A list: its first chunk + 1, or 0.
#[derive(Debug, Default)]
pub(super) struct List(u32);

impl List {
    pub(super) const EMPTY: Self = Self(0);

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.0 == 0
    }
}

impl<V> Chunks<V> {
    pub(super) fn new() -> Self {
        Self {
            values: Vec::new(),
            heads: Vec::new(),
            free: 0,
        }
    }

    /// Adds a value to a list; returns its place.
    #[inline]
    pub(super) fn push(&mut self, list: &mut List, value: V) -> u32 {
        let full = match list.0.checked_sub(1) {
            Some(chunk) => self.heads[chunk as usize].len == CHUNK,
            None => true,
        };
        if full {
            list.0 = self.make(list.0) + 1;
        }
        let chunk = list.0 - 1;
        let head = &mut self.heads[chunk as usize];
        let place = chunk * CHUNK + head.len;
        head.len += 1;
        self.values[place as usize] = Some(value);
        place
    }

    /// Removes and returns a value of a list.
    #[inline]
    pub(super) fn pop(&mut self, list: &mut List) -> Option<V> {
        let chunk = list.0.checked_sub(1)?;
        let head = &mut self.heads[chunk as usize];
        head.len -= 1;
        let value = self.values[(chunk * CHUNK + head.len) as usize].take();
        if head.len == 0 {
            let next = std::mem::replace(&mut head.next, self.free);
            self.free = std::mem::replace(&mut list.0, next);
        }
        value
    }

    /// Removes the value at a place of `list`. Returns it, and the value moved to its place, if
    /// any.
    #[inline]
    pub(super) fn remove(&mut self, list: &mut List, place: u32) -> (Option<V>, Option<&V>) {
        let last = self.pop(list);
        let hole = &mut self.values[place as usize];
        if hole.is_none() {
            return (last, None);
        }
        (std::mem::replace(hole, last), hole.as_ref())
    }

    /// The value at a place, if there is one.
    #[inline]
    pub(super) fn get(&self, place: u32) -> Option<&V> {
        self.values.get(place as usize)?.as_ref()
    }

    /// An empty chunk linked to `next`.
    fn make(&mut self, next: u32) -> u32 {
        let head = Head { next, len: 0 };
        match self.free.checked_sub(1) {
            Some(chunk) => {
                let old = std::mem::replace(&mut self.heads[chunk as usize], head);
                self.free = old.next;
                chunk
            }
            None => {
                self.heads.push(head);
                let len = self.heads.len() * CHUNK as usize;
                self.values.resize_with(len, || None);
                self.heads.len() as u32 - 1
            }
        }
    }
}
