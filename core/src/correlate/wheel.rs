//! Deadlines: a hierarchical timing wheel (Varghese and Lauck, SOSP 1987, scheme 6).
//!
//! ```text
//!   level 0   256 slots of 1 tick       deadlines within 256 ticks
//!   level 1   256 slots of 256 ticks    … within 65,536: a minute of milliseconds
//!   …
//!   level 4   256 slots of 2^32 ticks   … within 2^40 ticks: 34 years of milliseconds
//! ```
//!
//! A timer lies in the lowest level whose slot distinguishes its tick from now, and moves to a
//! lower level when its slot begins: at most once per level.
//!
//! With many timers, cache misses dominate the cost. A timer is therefore stored in the list of its
//! slot (`chunks`) rather than at a fixed place: inserting one writes next to the one inserted
//! before, and timers that move or fire together are adjacent. Levels are wide, so that a typical
//! timeout moves once before it fires. A table of four-byte places finds a timer again; a place is
//! written when the timer moves, and read only to cancel it. The timer itself holds its name and
//! its deadline, which determines its slot, so nothing else is stored. When a timer is removed
//! early, the last one of its slot takes its place.

use std::time::{Duration, Instant};

use super::chunks::{Chunks, List};

const LEVEL_BITS: u32 = 8;
const SLOTS: u32 = 1 << LEVEL_BITS;
const LEVELS: u32 = 5;
/// The slot of timers that are due.
const DUE: u32 = SLOTS * LEVELS;
/// The last tick; later deadlines are moved to it.
const LAST_TICK: u64 = (1 << (LEVEL_BITS * LEVELS)) - 1;
/// The unit that deadlines are rounded up to, in nanoseconds.
const TICK_NANOS: u32 = 1_000_000;
/// The last generation of a number; the number is then not used again.
const LAST_GENERATION: u32 = u32::MAX;

/// Identifies one timer for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TimerKey {
    number: u32,
    generation: u32,
}

/// Timers with a key of type `K` each. The time is passed as an argument and must not go back.
///
/// Inserting, cancelling and firing are O(1). A timer fires at the first whole millisecond (since
/// the wheel was created) at or after its deadline, never before it. Memory grows to the largest
/// number of simultaneous timers and is kept.
#[derive(Debug)]
pub struct TimerWheel<K> {
    start: Instant,
    /// The ticks that have passed and been processed.
    elapsed: u64,
    levels: [Option<Box<Level>>; LEVELS as usize],
    due: List,
    timers: Chunks<Timer<K>>,
    /// The place of each number's current or last timer.
    places: Vec<u32>,
    /// Free numbers, each with its next generation.
    free: Vec<TimerKey>,
    len: usize,
}

#[derive(Debug)]
struct Level {
    /// A bit for each slot that holds a timer.
    occupied: [u64; SLOTS as usize / 64],
    lists: [List; SLOTS as usize],
}

#[derive(Debug)]
struct Timer<K> {
    at: u64,
    name: TimerKey,
    key: K,
}

impl Level {
    fn new() -> Box<Self> {
        Box::new(Self {
            occupied: [0; SLOTS as usize / 64],
            lists: [List::EMPTY; SLOTS as usize],
        })
    }

    /// The first occupied slot at or after `slot`.
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
    /// An empty wheel that starts at `now`.
    pub fn new(now: Instant) -> Self {
        Self {
            start: now,
            elapsed: 0,
            levels: [const { None }; LEVELS as usize],
            due: List::EMPTY,
            timers: Chunks::new(),
            places: Vec::new(),
            free: Vec::new(),
            len: 0,
        }
    }

    /// The number of timers that have neither fired nor been cancelled.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no timers.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Starts a timer. A timer whose deadline has passed fires at the next [`poll`](Self::poll).
    ///
    /// # Panics
    ///
    /// If there are 2^28 timers already.
    #[inline]
    pub fn insert(&mut self, deadline: Instant, key: K) -> TimerKey {
        let at = self.tick_at_or_after(deadline);
        let name = self.take_name();
        self.len += 1;
        self.place(Timer { at, name, key });
        name
    }

    /// Stops a timer and returns its key; `None` if it has fired or was cancelled.
    #[inline]
    pub fn cancel(&mut self, timer: TimerKey) -> Option<K> {
        let Timer { name, key, .. } = self.unlink(timer)?;
        self.release(name);
        Some(key)
    }

    /// Moves a timer to another deadline; `false` if it has fired or was cancelled.
    #[inline]
    pub fn reset(&mut self, timer: TimerKey, deadline: Instant) -> bool {
        let at = self.tick_at_or_after(deadline);
        let Some(timer) = self.unlink(timer) else {
            return false;
        };
        self.place(Timer { at, ..timer });
        true
    }

    /// Fires one timer that is due at `now`, in no particular order; call this until it returns
    /// `None`. Timers may be inserted and cancelled between the calls.
    #[inline]
    pub fn poll(&mut self, now: Instant) -> Option<K> {
        if self.due.is_empty() {
            self.advance(self.tick_before(now));
        }
        let Timer { name, key, .. } = self.timers.pop(&mut self.due)?;
        self.release(name);
        Some(key)
    }

    /// The time of the next [`poll`](Self::poll); `None` without timers. Never later than the tick
    /// of the first deadline. It may be earlier: nothing fires then, but timers move to a lower
    /// level, and the next result is closer. This happens at most once per level and timer.
    pub fn next_deadline(&self) -> Option<Instant> {
        let tick = match self.due.is_empty() {
            true => self.next_slot()?.2,
            false => self.elapsed,
        };
        self.start.checked_add(Duration::from_millis(tick))
    }

    /// The first occupied slot: its level, the slot, and the tick at which it begins.
    #[inline]
    fn next_slot(&self) -> Option<(u32, u32, u64)> {
        if self.len == 0 {
            return None;
        }
        (0..).zip(&self.levels).find_map(|(level, slots)| {
            let shift = level * LEVEL_BITS;
            // A level holds only slots of the current turn after the current slot (in level 0, also
            // the current slot): later timers differ in a higher level.
            let current = (self.elapsed >> shift) as u32 % SLOTS;
            let slot = slots.as_ref()?.first_from(current)?;
            let turn = self.elapsed >> (shift + LEVEL_BITS) << (shift + LEVEL_BITS);
            Some((level, slot, turn | u64::from(slot) << shift))
        })
    }

    /// Advances the time to `tick`, or until a timer is due.
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
                self.due = list;
                return;
            }
            while let Some(timer) = self.timers.pop(&mut list) {
                self.place(timer);
            }
        }
    }

    /// Stores a timer in the slot of its tick.
    #[inline]
    fn place(&mut self, timer: Timer<K>) {
        let number = timer.name.number as usize;
        let slot = self.slot(timer.at);
        let list = list(&mut self.levels, &mut self.due, slot);
        let was_empty = list.is_empty();
        self.places[number] = self.timers.push(list, timer);
        if was_empty {
            self.set_occupied(slot, true);
        }
    }

    /// The slot of a timer. It does not change between the insertion of the timer and the beginning
    /// of its slot: until then, the timer's tick and the current tick first differ in the same
    /// digit.
    #[inline]
    fn slot(&self, at: u64) -> u32 {
        // A timer whose tick has begun fires in that tick.
        match (at ^ self.elapsed).checked_ilog2() {
            Some(bit) if at > self.elapsed => {
                let level = bit / LEVEL_BITS;
                level * SLOTS + (at >> (level * LEVEL_BITS)) as u32 % SLOTS
            }
            _ => DUE,
        }
    }

    /// Takes a timer out of its slot, if it is still there.
    #[inline]
    fn unlink(&mut self, timer: TimerKey) -> Option<Timer<K>> {
        let place = *self.places.get(timer.number as usize)?;
        let held = self.timers.get(place).filter(|held| held.name == timer)?;
        let slot = self.slot(held.at);
        let list = list(&mut self.levels, &mut self.due, slot);
        let (timer, moved) = self.timers.remove(list, place);
        if let Some(moved) = moved {
            self.places[moved.name.number as usize] = place;
        }
        if list.is_empty() {
            self.set_occupied(slot, false);
        }
        timer
    }

    #[inline]
    fn set_occupied(&mut self, slot: u32, occupied: bool) {
        if slot != DUE
            && let Some(level) = &mut self.levels[(slot / SLOTS) as usize]
        {
            level.set_occupied(slot % SLOTS, occupied);
        }
    }

    /// A key that no timer has had before.
    #[inline]
    fn take_name(&mut self) -> TimerKey {
        if let Some(name) = self.free.pop() {
            return name;
        }
        let number = self.places.len() as u32;
        // Keeps places within 32 bits.
        assert!(number < 1 << 28, "more timers than the wheel can name");
        self.places.push(0);
        // Reserves room to free all numbers, so that freeing does not allocate.
        self.free.reserve(self.places.len());
        TimerKey {
            number,
            generation: 0,
        }
    }

    /// Invalidates the key of a timer that has left its slot.
    #[inline]
    fn release(&mut self, TimerKey { number, generation }: TimerKey) {
        self.len -= 1;
        if generation < LAST_GENERATION {
            self.free.push(TimerKey {
                number,
                generation: generation + 1,
            });
        }
    }

    /// The first tick that begins at or after an instant.
    #[inline]
    fn tick_at_or_after(&self, instant: Instant) -> u64 {
        let passed = instant.saturating_duration_since(self.start);
        let begun = passed.subsec_nanos().div_ceil(TICK_NANOS);
        ticks(passed.as_secs(), begun)
    }

    /// The last tick that has begun at an instant.
    #[inline]
    fn tick_before(&self, instant: Instant) -> u64 {
        let passed = instant.saturating_duration_since(self.start);
        ticks(passed.as_secs(), passed.subsec_nanos() / TICK_NANOS)
    }
}

/// The ticks of whole seconds and of the remaining ticks, up to the last tick.
#[inline]
fn ticks(secs: u64, rest: u32) -> u64 {
    let ticks = secs.saturating_mul(1000).saturating_add(u64::from(rest));
    ticks.min(LAST_TICK)
}

/// The list of a slot; creates the slot's level if needed.
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
