//! Deadlines: a hierarchical timing wheel (Varghese and Lauck, SOSP 1987, scheme 6).
//!
//! ```text
//!   level 0   256 slots of 1 tick       what is due within 256 ticks
//!   level 1   256 slots of 256 ticks    … within 65,536: a minute of milliseconds
//!   …
//!   level 4   256 slots of 2^32 ticks   … within 2^40 ticks: 34 years of milliseconds
//! ```
//!
//! A timer lies in the lowest level whose slot tells it apart from now, and moves down when its
//! slot begins: at most once per level. A slot is a list of chunks (`chunks`), each a cache line
//! that names thirteen timers; a timer knows its chunk and leaves in O(1), the slot's last one
//! takes its place.
//!
//! With many timers alive, what costs is memory that is not in the cache, and most of all a chain
//! of it, where each address is found in what was just fetched. So levels are wide, which lets
//! the usual timeout move once before it fires; and the timers to be touched next are read from
//! a chunk, so that the processor can fetch them side by side.

use std::time::{Duration, Instant};

use super::chunks::{Chunks, List, Place};

const LEVEL_BITS: u32 = 8;
const SLOTS: u32 = 1 << LEVEL_BITS;
const LEVELS: u32 = 5;
/// The slot of timers that are due.
const DUE: u32 = SLOTS * LEVELS;
/// Last tick. Later deadlines are put here.
const LAST_TICK: u64 = (1 << (LEVEL_BITS * LEVELS)) - 1;
/// What a deadline is rounded up to.
const TICK: Duration = Duration::from_millis(1);

/// Names one timer for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TimerKey {
    node: u32,
    generation: u64,
}

/// Deadlines of type `K`, sorted just enough. Time is an argument and never goes back.
///
/// Inserting, cancelling and firing are O(1). A timer fires at the first whole millisecond (since
/// the wheel began) at or after its deadline, never before. Memory grows to the largest number
/// of simultaneous timers and is kept.
#[derive(Debug)]
pub struct TimerWheel<K> {
    start: Instant,
    /// Ticks that have passed and been dealt with.
    elapsed: u64,
    levels: [Option<Box<Level>>; LEVELS as usize],
    due: List,
    chunks: Chunks,
    nodes: Vec<Node<K>>,
    /// Nodes that were freed.
    free: Vec<u32>,
    len: usize,
}

#[derive(Debug)]
struct Level {
    /// Which slots hold a timer.
    occupied: [u64; SLOTS as usize / 64],
    lists: [List; SLOTS as usize],
}

#[derive(Debug)]
struct Node<K> {
    at: u64,
    generation: u64,
    place: Place,
    key: Option<K>,
}

impl Level {
    fn new() -> Box<Self> {
        Box::new(Self {
            occupied: [0; SLOTS as usize / 64],
            lists: [List::EMPTY; SLOTS as usize],
        })
    }

    /// The first occupied slot at or after one.
    #[inline]
    fn first_from(&self, slot: u32) -> Option<u32> {
        let word = (slot / 64) as usize;
        let rest = self.occupied[word] & (u64::MAX << (slot % 64));
        if rest != 0 {
            return Some(word as u32 * 64 + rest.trailing_zeros());
        }
        let later = &self.occupied[word + 1..];
        let (skipped, bits) = (1..).zip(later).find(|(_, bits)| **bits != 0)?;
        Some((word as u32 + skipped) * 64 + bits.trailing_zeros())
    }

    #[inline]
    fn set_occupied(&mut self, slot: u32, occupied: bool) {
        let (word, bit) = ((slot / 64) as usize, 1 << (slot % 64));
        match occupied {
            true => self.occupied[word] |= bit,
            false => self.occupied[word] &= !bit,
        }
    }
}

impl<K> TimerWheel<K> {
    /// An empty wheel that begins now.
    pub fn new(now: Instant) -> Self {
        Self {
            start: now,
            elapsed: 0,
            levels: [const { None }; LEVELS as usize],
            due: List::EMPTY,
            chunks: Chunks::default(),
            nodes: Vec::new(),
            free: Vec::new(),
            len: 0,
        }
    }

    /// Timers that have neither fired nor been cancelled.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Is there no timer?
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Starts a timer. One whose deadline has passed fires at the next [`poll`](Self::poll).
    ///
    /// # Panics
    ///
    /// With 2^32 − 1 timers.
    #[inline]
    pub fn insert(&mut self, deadline: Instant, key: K) -> TimerKey {
        let at = self.tick_at_or_after(deadline);
        let node = self.take_node();
        let timer = &mut self.nodes[node as usize];
        timer.at = at;
        timer.key = Some(key);
        let generation = timer.generation;
        self.len += 1;
        self.place(node, at);
        TimerKey { node, generation }
    }

    /// Stops a timer; its key, or `None` when it has fired or was cancelled.
    #[inline]
    pub fn cancel(&mut self, timer: TimerKey) -> Option<K> {
        self.live(timer)?;
        self.unlink(timer.node);
        self.release(timer.node)
    }

    /// Moves a timer to another deadline; `false` when it has fired or was cancelled.
    #[inline]
    pub fn reset(&mut self, timer: TimerKey, deadline: Instant) -> bool {
        let at = self.tick_at_or_after(deadline);
        let Some(node) = self.live(timer) else {
            return false;
        };
        node.at = at;
        self.unlink(timer.node);
        self.place(timer.node, at);
        true
    }

    #[inline]
    fn live(&mut self, timer: TimerKey) -> Option<&mut Node<K>> {
        let node = self.nodes.get_mut(timer.node as usize)?;
        (node.generation == timer.generation && node.key.is_some()).then_some(node)
    }

    /// One timer that is due at `now`, in no particular order; call it until there is none. Between the calls timers may
    /// be inserted and cancelled.
    #[inline]
    pub fn poll(&mut self, now: Instant) -> Option<K> {
        if self.due.is_empty() {
            self.advance(self.tick_before(now));
        }
        let node = self.chunks.pop(&mut self.due)?;
        self.release(node)
    }

    /// When to [`poll`](Self::poll) next; `None` without timers. Never later than the first
    /// deadline's tick. It may be earlier: then nothing fires, timers move to a lower level, and
    /// the answer after that is nearer. That happens at most once per level and timer.
    pub fn next_deadline(&self) -> Option<Instant> {
        let tick = match self.due.is_empty() {
            true => self.next_slot()?.2,
            false => self.elapsed,
        };
        self.start.checked_add(Duration::from_millis(tick))
    }

    /// The first occupied slot: level, slot, and the tick at which it begins.
    #[inline]
    fn next_slot(&self) -> Option<(u32, u32, u64)> {
        if self.len == 0 {
            return None;
        }
        (0..).zip(&self.levels).find_map(|(level, slots)| {
            let shift = level * LEVEL_BITS;
            // A level holds only slots of the current turn after the current one (or the
            // current one of level 0): what lies further ahead differs in a higher level.
            let current = (self.elapsed >> shift) as u32 % SLOTS;
            let slot = slots.as_ref()?.first_from(current)?;
            let turn = self.elapsed >> (shift + LEVEL_BITS) << (shift + LEVEL_BITS);
            Some((level, slot, turn | u64::from(slot) << shift))
        })
    }

    /// Lets time pass until `tick`, or until something is due.
    fn advance(&mut self, tick: u64) {
        while self.due.is_empty() {
            let Some((level, slot, begins)) = self.next_slot().filter(|next| next.2 <= tick) else {
                self.elapsed = self.elapsed.max(tick);
                return;
            };
            self.elapsed = self.elapsed.max(begins);
            let Some(slots) = &mut self.levels[level as usize] else {
                return;
            };
            slots.set_occupied(slot, false);
            let mut list = std::mem::take(&mut slots.lists[slot as usize]);
            if level == 0 {
                self.chunks.rename(&list, DUE);
                self.due = list;
                return;
            }
            while let Some(chunk) = self.chunks.pop_chunk(&mut list) {
                // All first, so that they are fetched side by side.
                let timers = chunk.map(|node| self.nodes.get(node as usize).map(|timer| timer.at));
                for (node, at) in chunk.into_iter().zip(timers) {
                    if let Some(at) = at {
                        self.place(node, at);
                    }
                }
            }
        }
    }

    fn list(&mut self, slot: u32) -> &mut List {
        list(&mut self.levels, &mut self.due, slot)
    }

    /// Puts an unlinked timer where its tick belongs.
    #[inline]
    fn place(&mut self, node: u32, at: u64) {
        let slot = match (at ^ self.elapsed).checked_ilog2() {
            _ if at < self.elapsed => DUE,
            // A tick that has begun still fires in it.
            None => DUE,
            Some(bit) => {
                let level = bit / LEVEL_BITS;
                level * SLOTS + (at >> (level * LEVEL_BITS)) as u32 % SLOTS
            }
        };
        let list = list(&mut self.levels, &mut self.due, slot);
        let was_empty = list.is_empty();
        self.nodes[node as usize].place = self.chunks.push(list, slot, node);
        if was_empty {
            self.set_occupied(slot, true);
        }
    }

    /// Takes a timer out of its slot.
    #[inline]
    fn unlink(&mut self, node: u32) {
        let place = self.nodes[node as usize].place;
        let slot = self.chunks.slot(place);
        let list = list(&mut self.levels, &mut self.due, slot);
        if let Some(moved) = self.chunks.remove(list, place) {
            self.nodes[moved as usize].place = place;
        }
        if self.list(slot).is_empty() {
            self.set_occupied(slot, false);
        }
    }

    #[inline]
    fn set_occupied(&mut self, slot: u32, occupied: bool) {
        if slot != DUE
            && let Some(level) = &mut self.levels[(slot / SLOTS) as usize]
        {
            level.set_occupied(slot % SLOTS, occupied);
        }
    }

    #[inline]
    fn take_node(&mut self) -> u32 {
        if let Some(node) = self.free.pop() {
            return node;
        }
        let node = u32::try_from(self.nodes.len()).unwrap_or(u32::MAX);
        // One number is no timer's: it fills the empty places of a chunk.
        assert!(node < u32::MAX, "more timers than the wheel can name");
        self.nodes.push(Node {
            at: 0,
            generation: 0,
            place: Place::default(),
            key: None,
        });
        // Room to free all of them, so that freeing allocates nothing.
        self.free.reserve(self.nodes.len());
        node
    }

    #[inline]
    fn release(&mut self, node: u32) -> Option<K> {
        let timer = &mut self.nodes[node as usize];
        timer.generation = timer.generation.wrapping_add(1);
        self.len -= 1;
        self.free.push(node);
        timer.key.take()
    }

    /// The first tick that begins at or after an instant.
    #[inline]
    fn tick_at_or_after(&self, instant: Instant) -> u64 {
        let passed = instant.saturating_duration_since(self.start);
        ticks(passed.saturating_add(TICK - Duration::from_nanos(1)))
    }

    /// The last tick that has begun at an instant.
    #[inline]
    fn tick_before(&self, instant: Instant) -> u64 {
        ticks(instant.saturating_duration_since(self.start))
    }
}

/// Whole ticks in a duration.
#[inline]
fn ticks(passed: Duration) -> u64 {
    let millis = passed.as_secs().saturating_mul(1000);
    millis
        .saturating_add(u64::from(passed.subsec_millis()))
        .min(LAST_TICK)
}

/// The list of a slot; makes its level.
#[inline]
fn list<'a>(
    levels: &'a mut [Option<Box<Level>>; LEVELS as usize],
    due: &'a mut List,
    slot: u32,
) -> &'a mut List {
    match slot {
        DUE => due,
        _ => {
            let level = levels[(slot / SLOTS) as usize].get_or_insert_with(Level::new);
            &mut level.lists[(slot % SLOTS) as usize]
        }
    }
}
