//! The thread that checks, once per tick, whether workers come back from their jobs.
//!
//! It sleeps while nothing depends on it, and its ticks grow longer while all goes well.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::PoisonError;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;
use std::time::{Duration, Instant};

use super::{Calls, GATHER, Leader, Pool, State};
use crate::io::platform::processor_time;
use crate::io::wake::WakeUps;

/// The first tick after jobs began to wait, and after a worker was found away.
const SHORT_TICK: Duration = Duration::from_micros(200);
/// The longest tick, reached while jobs wait but are taken.
const LONG_TICK: Duration = Duration::from_millis(2);
/// How long a job may occupy its worker while the processors are busy.
const PATIENCE: Duration = Duration::from_millis(10);
/// Ticks without a job after which the watch sleeps.
const QUIET_TICKS: u32 = 2;

/// The state of the watch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Watch {
    #[default]
    NotStarted,
    Asleep,
    Awake,
}

impl State {
    /// Starts or wakes the watch.
    pub(super) fn arm(&mut self, calls: &mut Calls) {
        calls.new_watch = self.watch == Watch::NotStarted;
        calls.watch = self.watch == Watch::Asleep;
        self.watch = Watch::Awake;
    }
}

/// The state of the pool at the last tick.
struct Seen {
    at: Instant,
    processor: Duration,
    taken: u64,
    terms: u64,
    /// The running jobs, and when each was first seen.
    jobs: HashMap<u64, Instant>,
}

impl Seen {
    fn now(state: &State) -> Self {
        let mut seen = Self {
            at: Instant::now(),
            processor: processor_time(),
            taken: state.taken,
            terms: state.terms,
            jobs: HashMap::new(),
        };
        seen.note_jobs(state);
        seen
    }

    fn note_jobs(&mut self, state: &State) {
        let before = std::mem::take(&mut self.jobs);
        let under_way = state.workers.iter().map(|worker| worker.job.load(Relaxed));
        let entry = |job| (job, before.get(&job).copied().unwrap_or(self.at));
        self.jobs = under_way.filter(|job| *job != 0).map(entry).collect();
    }
}

impl State {
    /// Marks workers as away that have been in one job for `limit`, according to `seen`.
    fn find_away(&mut self, seen: &Seen, limit: Duration) {
        for worker in &self.workers {
            let since = seen.jobs.get(&worker.job.load(Relaxed));
            if since.is_some_and(|since| since.elapsed() >= limit) {
                self.away += usize::from(!worker.away.swap(true, Relaxed));
            }
        }
    }
}

/// A turn of the loop that has brought in jobs; the leader runs them after the turn.
#[derive(Clone, Copy)]
struct Turn {
    term: u64,
    since: Instant,
}

impl State {
    /// The current turn, if jobs wait for its end; `before` is the one at the last tick.
    fn turn(&self, before: Option<Turn>) -> Option<Turn> {
        let leads = matches!(self.leader, Leader::Is(_));
        let begun = Turn {
            term: self.terms,
            since: Instant::now(),
        };
        let waits = leads && !self.queue.is_empty() && self.awake() == 0;
        waits.then(|| {
            before
                .filter(|turn| turn.term == begun.term)
                .unwrap_or(begun)
        })
    }
}

impl Pool {
    /// The main function of the watch.
    pub(super) fn watch(self: &Arc<Self>) {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let (mut tick, mut quiet, mut burst) = (SHORT_TICK, 0, 1);
        let mut seen = Seen::now(&self.lock());
        let mut turn = None;
        loop {
            thread::sleep(tick);
            let processor = processor_time();
            let mut calls = Calls::default();
            let mut state = self.lock();
            if state.closed && state.queue.is_empty() {
                return;
            }
            let passed = seen.at.elapsed();
            let spent = processor.saturating_sub(seen.processor);
            let busy = spent * 2 >= passed * u32::try_from(cores).unwrap_or(u32::MAX);
            state.find_away(&seen, if busy { PATIENCE } else { Duration::ZERO });
            let progress = state.taken - seen.taken;
            let still = progress == 0;
            let waiting = !state.queue.is_empty();
            // The worker that should perform these wake-ups after its job has not come back.
            let late = match still {
                true => std::mem::take(&mut state.put_off),
                false => WakeUps::new(),
            };
            // The former leader has not come back from a job, and no other was called.
            let unled = still
                && state.leader == Leader::Wanted { called: false }
                && state.terms == seen.terms;
            if unled {
                state.call_leader(&self.config, &mut calls);
            }
            turn = state.turn(turn);
            let held_up = waiting
                && state.awake() == 0
                && turn.is_none_or(|turn| turn.since.elapsed() >= PATIENCE);
            if held_up {
                let more = burst.min(state.queue.waiting());
                state.call(more, &self.config, &mut calls);
                burst = burst.saturating_mul(2);
            } else {
                burst = 1;
                let brief = GATHER * u32::try_from(progress).unwrap_or(u32::MAX) >= passed;
                if waiting && !brief && turn.is_none() && state.awake() < cores {
                    state.call(1, &self.config, &mut calls);
                }
            }
            quiet = if still && !waiting { quiet + 1 } else { 0 };
            if held_up || unled {
                tick = SHORT_TICK;
            } else if quiet < QUIET_TICKS || !late.is_empty() || state.is_leaderless() {
                tick = (tick * 2).min(LONG_TICK);
            } else {
                state.watch = Watch::Asleep;
                while state.watch == Watch::Asleep && !state.closed {
                    state = self
                        .watch
                        .wait(state)
                        .unwrap_or_else(PoisonError::into_inner);
                }
                (tick, quiet) = (SHORT_TICK, 0);
            }
            seen.at = Instant::now();
            (seen.taken, seen.terms) = (state.taken, state.terms);
            seen.note_jobs(&state);
            drop(state);
            seen.processor = processor_time();
            self.wake(late);
            self.make(calls);
        }
    }
}
