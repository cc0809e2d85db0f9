//! A growable run of bytes: on the heap if short, in an anonymous memory map if long.
//!
//! An allocator keeps the memory of long blocks that were freed, and short blocks between them keep
//! it from the system. A map returns to the system when it is dropped, whatever the allocator. Its
//! pages take no memory until they are written, so maps are made longer than needed and bytes
//! seldom move. A process keeps one map for its next block, whose pages then need not be faulted in
//! again.

use std::ops::{Deref, DerefMut};
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
#[cfg(feature = "maps")]
use memmap2::MmapMut;

/// Capacity from which on a block is a map, in bytes.
const MAPPED_BYTES: usize = 128 << 10;

/// Shortest map, in bytes; only maps of this length are kept for reuse.
const MAP_BYTES: usize = 16 << 20;

/// The map kept for reuse, and the number of its bytes that have been written.
static SPARE: Mutex<Option<(MmapMut, usize)>> = Mutex::new(None);

/// A memory map; may be kept for reuse when it is dropped.
#[derive(Debug)]
pub struct Map {
    pages: Option<MmapMut>,
    /// The number of bytes in use.
    len: usize,
    /// The most bytes ever in use: their pages take memory.
    touched: usize,
}

impl Map {
    /// An empty map with room for at least `room` bytes; `None` if the system gives none.
    fn new(room: usize) -> Option<Self> {
        let kept = match room <= MAP_BYTES {
            true => spare().take(),
            false => None,
        };
        match kept {
            Some((pages, touched)) => Some(Self {
                pages: Some(pages),
                len: 0,
                touched,
            }),
            None => Self::untouched(room),
        }
    }

    /// An empty map whose pages take no memory yet.
    fn untouched(room: usize) -> Option<Self> {
        let pages = map(room.max(MAP_BYTES))?;
        Some(Self {
            pages: Some(pages),
            len: 0,
            touched: 0,
        })
    }

    fn room(&self) -> usize {
        self.pages.as_deref().map_or(0, <[u8]>::len)
    }

    fn resize(&mut self, bytes: usize) {
        self.len = bytes;
        self.touched = self.touched.max(bytes);
    }

    /// Cold, because most blocks are short and on the heap.
    #[cold]
    fn bytes(&self) -> &[u8] {
        &self.pages.as_deref().unwrap_or_default()[..self.len]
    }

    #[cold]
    fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.pages.as_deref_mut().unwrap_or_default()[..self.len]
    }
}

#[cfg(feature = "maps")]
fn map(bytes: usize) -> Option<MmapMut> {
    MmapMut::map_anon(bytes).ok()
}

/// A placeholder: without I/O, the engine asks the system for nothing and makes no maps.
#[cfg(not(feature = "maps"))]
type MmapMut = Vec<u8>;

#[cfg(not(feature = "maps"))]
fn map(_: usize) -> Option<MmapMut> {
    None
}

fn spare() -> MutexGuard<'static, Option<(MmapMut, usize)>> {
    SPARE.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Drop for Map {
    fn drop(&mut self) {
        let pages = self.pages.take().filter(|pages| pages.len() == MAP_BYTES);
        if let Some(pages) = pages {
            spare().get_or_insert((pages, self.touched));
        }
    }
}

/// A growable byte buffer. If the system gives no map, long blocks are on the heap too.
#[derive(Debug, Default)]
pub struct Block {
    /// Less than 128 KiB.
    heap: Vec<u8>,
    /// In place of `heap`: a block that has reached 128 KiB, even if it was shortened since.
    map: Option<Box<Map>>,
}

impl Block {
    /// An empty block with room for `bytes` bytes.
    pub fn with_capacity(bytes: usize) -> Self {
        let mut block = Self::default();
        block.reserve(bytes);
        block
    }

    /// The number of bytes there is room for.
    #[inline]
    pub fn capacity(&self) -> usize {
        match &self.map {
            None => self.heap.capacity(),
            Some(map) => map.room(),
        }
    }

    /// The memory that the block takes, in bytes.
    #[inline]
    pub fn held(&self) -> usize {
        match &self.map {
            None => self.heap.capacity(),
            Some(map) => map.touched,
        }
    }

    /// Frees memory that an earlier use of the block's map has left, if that is most of it.
    pub fn give_back(&mut self) {
        let Some(used) = &mut self.map else { return };
        if used.touched / 2 > used.len.max(MAPPED_BYTES)
            && let Some(mut map) = Map::untouched(used.room())
        {
            map.resize(used.len);
            map.bytes_mut().copy_from_slice(used.bytes());
            **used = map;
        }
    }

    /// Makes room for `bytes` bytes in all; exactly as many if the block is on the heap.
    pub fn reserve(&mut self, bytes: usize) {
        if bytes <= self.capacity() {
            return;
        }
        let map = match bytes >= MAPPED_BYTES {
            true => Map::new(bytes),
            false => None,
        };
        if let Some(mut map) = map {
            map.resize(self.len());
            map.bytes_mut().copy_from_slice(self);
            *self = Self {
                heap: Vec::new(),
                map: Some(Box::new(map)),
            };
        } else if let Some(map) = self.map.take() {
            // The system gives no further map.
            self.heap.reserve_exact(bytes);
            self.heap.extend_from_slice(map.bytes());
        } else {
            self.heap.reserve_exact(bytes - self.heap.len());
        }
    }

    /// Makes room for `bytes` bytes in all, and at least doubles the capacity if it grows, so that
    /// bytes that arrive one by one seldom move.
    fn grow(&mut self, bytes: usize) {
        if bytes > self.capacity() {
            self.reserve(bytes.max(self.capacity().saturating_mul(2)));
        }
    }

    /// Sets the number of bytes in use. Added bytes are initialised, with any values.
    pub fn resize(&mut self, bytes: usize) {
        self.grow(bytes);
        match &mut self.map {
            None => self.heap.resize(bytes, 0),
            Some(map) => map.resize(bytes),
        }
    }

    /// Appends a copy of `bytes`.
    pub fn extend_from_slice(&mut self, bytes: &[u8]) {
        let from = self.len();
        self.grow(from + bytes.len());
        match &mut self.map {
            None => self.heap.extend_from_slice(bytes),
            Some(map) => {
                map.resize(from + bytes.len());
                map.bytes_mut()[from..].copy_from_slice(bytes);
            }
        }
    }
}

impl Deref for Block {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        match &self.map {
            None => &self.heap,
            Some(map) => map.bytes(),
        }
    }
}

impl DerefMut for Block {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        match &mut self.map {
            None => &mut self.heap,
            Some(map) => map.bytes_mut(),
        }
    }
}

/// Converts the block without a copy.
impl From<Block> for Bytes {
    fn from(block: Block) -> Self {
        match block.map {
            None => Self::from(block.heap),
            Some(map) => Self::from_owner(*map),
        }
    }
}

impl AsRef<[u8]> for Map {
    fn as_ref(&self) -> &[u8] {
        self.bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_stay_what_they_are_when_they_move_to_a_map() {
        let mut block = Block::default();
        let mut all = Vec::new();
        for part in 0..40_u8 {
            let part = vec![part; 100_000];
            block.extend_from_slice(&part);
            all.extend_from_slice(&part);
            assert!(block[..] == all[..]);
            let long = cfg!(feature = "maps") && block.capacity() >= MAPPED_BYTES;
            assert_eq!(block.map.is_some(), long);
        }
        block[0] = 7;
        block.resize(10);
        block.resize(2_000_000);
        assert_eq!((block[0], block.len()), (7, 2_000_000));
        let bytes = Bytes::from(block);
        assert_eq!((bytes[0], bytes.len()), (7, 2_000_000));
    }

    #[cfg(feature = "maps")]
    #[test]
    fn pages_count_once_they_were_written_to() {
        let mut block = Block {
            heap: Vec::new(),
            map: Some(Box::new(Map {
                pages: map(MAP_BYTES),
                len: 0,
                touched: 0,
            })),
        };
        for (bytes, held) in [(200_000, 200_000), (5 << 20, 5 << 20), (1000, 5 << 20)] {
            block.resize(bytes);
            assert_eq!((block.len(), block.held()), (bytes, held));
        }
    }

    #[test]
    fn room_is_made_once() {
        let mut block = Block::with_capacity(3 << 20);
        assert!(block.is_empty() && block.capacity() >= 3 << 20);
        let at = block.as_ptr();
        block.extend_from_slice(&vec![1; 3 << 20]);
        assert_eq!((block.as_ptr(), block.len()), (at, 3 << 20));
    }
}
