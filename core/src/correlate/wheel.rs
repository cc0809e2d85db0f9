//! Deadlines: a hierarchical timing wheel (Varghese and Lauck, SOSP 1987, scheme 6).
//!
//! ```text
//!   level 0   64 slots of 1 tick       what is due within 64 ticks
//!   level 1   64 slots of 64 ticks     … within 4,096
//!   …
//!   level 6   64 slots of 2^36 ticks   … within 2^42 ticks: 139 years of milliseconds
//! ```
//!
//! A timer lies in the lowest level whose slot tells it apart from now, and moves down when its
//! slot begins: at most once per level. Each slot is a ring through `links`; the first nodes of
//! `links` are the rings' heads, so a timer leaves its ring in O(1) without knowing which it is.

use std::time::{Duration, Instant};

const LEVEL_BITS: u32 = 6;
const SLOTS: u32 = 1 << LEVEL_BITS;
const LEVELS: u32 = 7;
/// Head of the ring of timers that are due.
const DUE: u32 = SLOTS * LEVELS;
/// Heads, then timers.
const HEADS: u32 = DUE + 1;
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
    /// Per level, which slots hold a timer.
    occupied: [u64; LEVELS as usize],
    links: Vec<Link>,
    timers: Vec<Timer<K>>,
    /// Freed timer's node, or 0.
    free: u32,
    len: usize,
}

#[derive(Clone, Copy, Debug)]
struct Link {
    next: u32,
    previous: u32,
}

#[derive(Debug)]
struct Timer<K> {
    at: u64,
    generation: u64,
    key: Option<K>,
}

impl<K> TimerWheel<K> {
    /// An empty wheel that begins now.
    pub fn new(now: Instant) -> Self {
        let ring = |node| Link {
            next: node,
            previous: node,
        };
        Self {
            start: now,
            elapsed: 0,
            occupied: [0; LEVELS as usize],
            links: (0..HEADS).map(ring).collect(),
            timers: Vec::new(),
            free: 0,
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
    /// With more than 2^32 − 512 timers.
    #[inline]
    pub fn insert(&mut self, deadline: Instant, key: K) -> TimerKey {
        let at = self.tick_at_or_after(deadline);
        let node = self.take_node();
        let timer = &mut self.timers[(node - HEADS) as usize];
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
        let entry = self.timers.get((timer.node - HEADS) as usize)?;
        if entry.generation != timer.generation || entry.key.is_none() {
            return None;
        }
        let neighbour = self.unlink(timer.node);
        self.note_if_empty(neighbour);
        self.release(timer.node)
    }

    /// Moves a timer to another deadline; `false` when it has fired or was cancelled.
    #[inline]
    pub fn reset(&mut self, timer: TimerKey, deadline: Instant) -> bool {
        let at = self.tick_at_or_after(deadline);
        match self.timers.get_mut((timer.node - HEADS) as usize) {
            Some(entry) if entry.generation == timer.generation && entry.key.is_some() => {
                entry.at = at;
            }
            _ => return false,
        }
        let neighbour = self.unlink(timer.node);
        self.note_if_empty(neighbour);
        self.place(timer.node, at);
        true
    }

    /// One timer that is due at `now`; call it until there is none. Between the calls timers may
    /// be inserted and cancelled.
    #[inline]
    pub fn poll(&mut self, now: Instant) -> Option<K> {
        let node = match self.links[DUE as usize].next {
            DUE => {
                self.advance(self.tick_before(now));
                match self.links[DUE as usize].next {
                    DUE => return None,
                    node => node,
                }
            }
            node => node,
        };
        self.unlink(node);
        self.release(node)
    }

    /// When to [`poll`](Self::poll) next; `None` without timers. Never later than the first
    /// deadline's tick. It may be earlier: then nothing fires, timers move to a lower level, and
    /// the answer after that is nearer. That happens at most once per level and timer.
    pub fn next_deadline(&self) -> Option<Instant> {
        let tick = match self.links[DUE as usize].next {
            DUE => self.next_slot()?.2,
            _ => self.elapsed,
        };
        self.start.checked_add(Duration::from_millis(tick))
    }

    /// The first occupied slot: level, slot, and the tick at which it begins.
    #[inline]
    fn next_slot(&self) -> Option<(u32, u32, u64)> {
        (0..LEVELS).find_map(|level| {
            let shift = level * LEVEL_BITS;
            let current = (self.elapsed >> shift) as u32 % SLOTS;
            // A level holds only slots of the current turn after the current one (or the
            // current one of level 0): what lies further ahead differs in a higher level.
            let ahead = self.occupied[level as usize] >> current;
            if ahead == 0 {
                return None;
            }
            let slot = current + ahead.trailing_zeros();
            let turn = self.elapsed >> (shift + LEVEL_BITS) << (shift + LEVEL_BITS);
            Some((level, slot, turn | u64::from(slot) << shift))
        })
    }

    /// Lets time pass until `tick`, or until something is due.
    fn advance(&mut self, tick: u64) {
        while self.links[DUE as usize].next == DUE {
            let Some((level, slot, begins)) = self.next_slot().filter(|next| next.2 <= tick) else {
                self.elapsed = self.elapsed.max(tick);
                return;
            };
            self.elapsed = self.elapsed.max(begins);
            self.occupied[level as usize] &= !(1 << slot);
            let head = level * SLOTS + slot;
            if level == 0 {
                self.splice(head);
                continue;
            }
            let mut node = self.links[head as usize].next;
            self.links[head as usize] = Link {
                next: head,
                previous: head,
            };
            while node != head {
                let next = self.links[node as usize].next;
                self.place(node, self.timers[(node - HEADS) as usize].at);
                node = next;
            }
        }
    }

    /// Puts an unlinked timer where its tick belongs.
    #[inline]
    fn place(&mut self, node: u32, at: u64) {
        let head = match (at ^ self.elapsed).checked_ilog2() {
            _ if at < self.elapsed => DUE,
            // A tick that has begun still fires in it.
            None => DUE,
            Some(bit) => {
                let level = bit / LEVEL_BITS;
                let slot = (at >> (level * LEVEL_BITS)) as u32 % SLOTS;
                self.occupied[level as usize] |= 1 << slot;
                level * SLOTS + slot
            }
        };
        let last = self.links[head as usize].previous;
        self.links[node as usize] = Link {
            next: head,
            previous: last,
        };
        self.links[last as usize].next = node;
        self.links[head as usize].previous = node;
    }

    /// Moves a whole ring behind the timers that are due.
    fn splice(&mut self, head: u32) {
        let Link {
            next: first,
            previous: last,
        } = self.links[head as usize];
        if first == head {
            return;
        }
        self.links[head as usize] = Link {
            next: head,
            previous: head,
        };
        let due = self.links[DUE as usize].previous;
        self.links[due as usize].next = first;
        self.links[first as usize].previous = due;
        self.links[last as usize].next = DUE;
        self.links[DUE as usize].previous = last;
    }

    /// Takes a node out of its ring; its neighbour there.
    #[inline]
    fn unlink(&mut self, node: u32) -> u32 {
        let Link { next, previous } = self.links[node as usize];
        self.links[previous as usize].next = next;
        self.links[next as usize].previous = previous;
        next
    }

    /// Marks a slot free when only its head is left.
    #[inline]
    fn note_if_empty(&mut self, node: u32) {
        if node < DUE && self.links[node as usize].next == node {
            self.occupied[(node / SLOTS) as usize] &= !(1 << (node % SLOTS));
        }
    }

    fn take_node(&mut self) -> u32 {
        if self.free != 0 {
            let node = self.free;
            self.free = self.links[node as usize].next;
            return node;
        }
        let node = u32::try_from(self.links.len()).unwrap_or(u32::MAX);
        assert!(node < u32::MAX, "more timers than the wheel can name");
        self.links.push(Link {
            next: node,
            previous: node,
        });
        self.timers.push(Timer {
            at: 0,
            generation: 0,
            key: None,
        });
        node
    }

    #[inline]
    fn release(&mut self, node: u32) -> Option<K> {
        let timer = &mut self.timers[(node - HEADS) as usize];
        timer.generation = timer.generation.wrapping_add(1);
        self.len -= 1;
        self.links[node as usize].next = self.free;
        self.free = node;
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
