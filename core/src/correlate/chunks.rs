//! Lists of numbers in chunks of one cache line, from one pool.
//!
//! ```text
//!   list ─▶ [ a b c . . ] ─▶ [ d e f g h ] ─▶ [ i j k l m ]      only the first is not full
//! ```

/// Numbers of a chunk: with its other fields, 64 bytes.
const CHUNK: usize = 13;
/// No chunk, and no number.
const NONE: u32 = u32::MAX;

/// All chunks; memory grows to the largest number in use and is kept.
#[derive(Debug, Default)]
pub(super) struct Chunks {
    chunks: Vec<Chunk>,
    /// The chunk that was freed last + 1, or 0.
    free: u32,
}

#[derive(Debug)]
#[repr(align(64))]
struct Chunk {
    numbers: [u32; CHUNK],
    next: u32,
    slot: u32,
    len: u32,
}

/// A list: its first chunk + 1, or 0.
#[derive(Debug, Default)]
pub(super) struct List(u32);

/// Where a number is: chunk and offset.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Place {
    chunk: u32,
    offset: u32,
}

impl List {
    pub(super) const EMPTY: Self = Self(0);

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.0 == 0
    }
}

impl Chunks {
    /// Adds a number to a list of that slot; where it is.
    #[inline]
    pub(super) fn push(&mut self, list: &mut List, slot: u32, number: u32) -> Place {
        let full = match self.first(list) {
            Some(chunk) => chunk.len as usize == CHUNK,
            None => true,
        };
        if full {
            list.0 = self.make(list.0, slot) + 1;
        }
        let chunk = &mut self.chunks[list.0 as usize - 1];
        let offset = chunk.len;
        chunk.numbers[offset as usize] = number;
        chunk.len += 1;
        Place {
            chunk: list.0 - 1,
            offset,
        }
    }

    /// Takes a number off a list.
    #[inline]
    pub(super) fn pop(&mut self, list: &mut List) -> Option<u32> {
        let chunk = self.first(list)?;
        chunk.len -= 1;
        let number = std::mem::replace(&mut chunk.numbers[chunk.len as usize], NONE);
        if chunk.len == 0 {
            self.drop_first(list);
        }
        Some(number)
    }

    /// Takes the first chunk off a list; its empty places are `u32::MAX`.
    #[inline]
    pub(super) fn pop_chunk(&mut self, list: &mut List) -> Option<[u32; CHUNK]> {
        let chunk = self.first(list)?;
        let numbers = std::mem::replace(&mut chunk.numbers, [NONE; CHUNK]);
        chunk.len = 0;
        self.drop_first(list);
        Some(numbers)
    }

    /// Takes the number at a place of `list` out; the number that is there now, if any.
    #[inline]
    pub(super) fn remove(&mut self, list: &mut List, place: Place) -> Option<u32> {
        let gone = self.chunks[place.chunk as usize].numbers[place.offset as usize];
        let last = self.pop(list)?;
        if last == gone {
            return None;
        }
        self.chunks[place.chunk as usize].numbers[place.offset as usize] = last;
        Some(last)
    }

    /// The slot whose list has that place.
    #[inline]
    pub(super) fn slot(&self, place: Place) -> u32 {
        self.chunks[place.chunk as usize].slot
    }

    /// Makes a list that of another slot.
    pub(super) fn rename(&mut self, list: &List, slot: u32) {
        let mut next = list.0;
        while let Some(chunk) = next.checked_sub(1) {
            let chunk = &mut self.chunks[chunk as usize];
            chunk.slot = slot;
            next = chunk.next;
        }
    }

    #[inline]
    fn first(&mut self, list: &List) -> Option<&mut Chunk> {
        self.chunks.get_mut(list.0.checked_sub(1)? as usize)
    }

    fn drop_first(&mut self, list: &mut List) {
        let freed = list.0;
        let chunk = &mut self.chunks[freed as usize - 1];
        list.0 = chunk.next;
        chunk.next = self.free;
        self.free = freed;
    }

    fn make(&mut self, next: u32, slot: u32) -> u32 {
        let chunk = Chunk {
            numbers: [NONE; CHUNK],
            next,
            slot,
            len: 0,
        };
        match self.free.checked_sub(1) {
            Some(index) => {
                self.free = self.chunks[index as usize].next;
                self.chunks[index as usize] = chunk;
                index
            }
            None => {
                self.chunks.push(chunk);
                self.chunks.len() as u32 - 1
            }
        }
    }
}
