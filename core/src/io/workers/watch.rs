//! The thread that looks, once a tick, whether the workers still come back.
//!
//! It sleeps while nothing depends on it, and its ticks grow while all goes well.

use std::sync::Arc;
use std::sync::PoisonError;
use std::thread;
use std::time::Duration;

use super::{Calls, GATHER, Pool, State};

/// The first tick after jobs began to wait, and after a worker was found stuck.
const SHORT_TICK: Duration = Duration::from_micros(200);
/// The longest tick, reached while jobs wait but are taken.
const LONG_TICK: Duration = Duration::from_millis(2);
/// Ticks without a job after which the watch sleeps.
const QUIET_TICKS: u32 = 2;

/// Where the watch is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Watch {
    #[default]
    NotStarted,
    Asleep,
    Awake,
}

impl State {
    /// Has the watch look from now on.
    pub(super) fn arm(&mut self, calls: &mut Calls) {
        calls.new_watch = self.watch == Watch::NotStarted;
        calls.watch = self.watch == Watch::Asleep;
        self.watch = Watch::Awake;
    }
}

impl Pool {
    /// The watch's life.
    pub(super) fn watch(self: &Arc<Self>) {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let (mut tick, mut quiet) = (SHORT_TICK, 0);
        let (mut taken, mut terms) = (0, 0);
        loop {
            thread::sleep(tick);
            let mut calls = Calls::default();
            let mut state = self.lock();
            if state.closed && state.queue.is_empty() {
                return;
            }
            let progress = state.taken - taken;
            let still = progress == 0;
            // The one who led has not come back from a job.
            let unled = state.is_leaderless() && state.terms == terms;
            let waiting = !state.queue.is_empty();
            let stuck = still && waiting;
            (taken, terms) = (state.taken, state.terms);
            // The job that was to be followed by the wake-ups has not come back.
            let late = match still {
                true => std::mem::take(&mut state.put_off),
                false => Vec::new(),
            };
            quiet = if still && !waiting { quiet + 1 } else { 0 };
            if unled {
                state.call_leader(&self.config, &mut calls);
            }
            if stuck {
                let more = state.awake().clamp(1, state.queue.len());
                state.call(more, &self.config, &mut calls);
            } else if waiting && GATHER * u32::try_from(progress).unwrap_or(u32::MAX) < tick {
                // The jobs are long ones: they are worth a core each.
                let more = usize::from(state.awake() < cores);
                state.call(more, &self.config, &mut calls);
            }
            if stuck || unled {
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
                (taken, terms) = (state.taken, state.terms);
            }
            drop(state);
            late.iter().for_each(|wake| wake.wake());
            self.make(calls);
        }
    }
}
