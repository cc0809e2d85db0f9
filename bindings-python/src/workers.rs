//! The queue that worker threads pull plain functions from, and who of them wakes when.
//!
//! Handing the interpreter's lock from thread to thread costs more than most calls, so one
//! worker stays hot: it pulls until the queue is empty. Another, if there is need, only keeps
//! watch, without the lock. When nothing was taken for a whole [`TICK`] although something
//! waits, the workers at work are held up in their calls (sleeping, reading, computing), and
//! more are let in: twice as many at each tick.
//!
//! ```text
//!   push ─▶ queue ─▶ at work (≤ limit)      idle ◀──▶ on watch (≤ 1)
//!                         ▲──────── let in after a tick ────┘
//! ```

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, Thread, park, park_timeout};
use std::time::Duration;

/// How long calls may keep the queue waiting before more workers are let in.
const TICK: Duration = Duration::from_micros(500);
/// Ticks without work after which the watch ends.
const QUIET_TICKS: u32 = 4;
/// Threads at most.
const MAX_WORKERS: usize = 40;

/// A queue and its workers.
#[derive(Debug)]
pub struct Workers<T> {
    state: Mutex<State<T>>,
    ended: Condvar,
}

#[derive(Debug)]
struct State<T> {
    queue: VecDeque<T>,
    /// Threads there are.
    threads: usize,
    /// Threads inside a call.
    at_work: usize,
    /// Threads that may be.
    limit: usize,
    /// Threads that sleep; the one that worked last is roused first, its memory being warm.
    asleep: Vec<Thread>,
    /// The thread on watch.
    watch: Option<Thread>,
    /// Calls taken since the start.
    taken: u64,
    closed: bool,
}

impl<T> Default for Workers<T> {
    fn default() -> Self {
        let state = State {
            queue: VecDeque::new(),
            threads: 0,
            at_work: 0,
            limit: 1,
            asleep: Vec::new(),
            watch: None,
            taken: 0,
            closed: false,
        };
        Self {
            state: Mutex::new(state),
            ended: Condvar::new(),
        }
    }
}

impl<T> State<T> {
    /// Whether one more thread is needed, for work or for the watch.
    fn lacks_threads(&self) -> bool {
        self.at_work < self.limit || self.watch.is_none()
    }
}

impl<T> Workers<T> {
    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds work; `spawn` starts a thread that calls [`run`](Self::run).
    pub fn push(&self, work: impl IntoIterator<Item = T>, spawn: impl FnOnce()) {
        let mut state = self.lock();
        state.queue.extend(work);
        let needed = !state.queue.is_empty() && state.lacks_threads();
        if needed && !state.closed {
            self.rouse(&mut state, spawn);
        }
    }

    /// One more thread looks at the queue.
    fn rouse(&self, state: &mut State<T>, spawn: impl FnOnce()) {
        if let Some(watch) = state.watch.as_ref().filter(|_| state.at_work == 0) {
            watch.unpark();
        } else if let Some(thread) = state.asleep.pop() {
            thread.unpark();
        } else if state.threads < MAX_WORKERS {
            state.threads += 1;
            spawn();
        }
    }

    /// Work that is there at once, for a worker that is at work already.
    pub fn next(&self) -> Option<T> {
        let mut state = self.lock();
        if state.closed {
            return None;
        }
        let work = state.queue.pop_front()?;
        state.taken += 1;
        Some(work)
    }

    /// The worker has come to the end of the queue: sleeps until there is work for it. `None`
    /// when it is to end. `held_up` is called after each tick on watch.
    pub fn wait(&self, begin: bool, spawn: &dyn Fn(), held_up: &dyn Fn()) -> Option<T> {
        let mut state = self.lock();
        if !begin {
            state.at_work -= 1;
        }
        loop {
            if state.closed {
                state.threads -= 1;
                self.ended.notify_all();
                return None;
            }
            if state.queue.is_empty() {
                state.limit = 1;
            } else if state.at_work < state.limit {
                state.at_work += 1;
                state.taken += 1;
                let work = state.queue.pop_front();
                if !state.queue.is_empty() && state.lacks_threads() {
                    self.rouse(&mut state, spawn);
                }
                return work;
            }
            state = match state.watch.is_some() || state.at_work == 0 {
                true => self.sleep(state),
                false => self.watch(state, held_up),
            };
        }
    }

    fn sleep<'a>(&'a self, mut state: MutexGuard<'a, State<T>>) -> MutexGuard<'a, State<T>> {
        let here = thread::current();
        let id = here.id();
        state.asleep.push(here);
        drop(state);
        park();
        let mut state = self.lock();
        // Who rouses takes the thread from the list; a stray wake-up does not.
        state.asleep.retain(|thread| thread.id() != id);
        state
    }

    /// Looks after the workers at work until this thread is needed for work, or nobody works.
    fn watch<'a>(
        &'a self,
        mut state: MutexGuard<'a, State<T>>,
        held_up: &dyn Fn(),
    ) -> MutexGuard<'a, State<T>> {
        state.watch = Some(thread::current());
        let mut quiet = 0;
        while quiet < QUIET_TICKS {
            let before = state.taken;
            drop(state);
            park_timeout(TICK);
            state = self.lock();
            if state.closed || (!state.queue.is_empty() && state.at_work < state.limit) {
                break;
            }
            if state.taken != before {
                quiet = 0;
                continue;
            }
            quiet += 1;
            if state.at_work > 0 {
                drop(state);
                held_up();
                state = self.lock();
            }
            if state.taken == before && !state.queue.is_empty() {
                state.limit = (state.at_work * 2).min(MAX_WORKERS);
                break;
            }
        }
        state.watch = None;
        state
    }

    /// No more work is handed out. Waits, at most for `patience`, until the threads have ended.
    pub fn close(&self, patience: Duration) {
        let mut state = self.lock();
        state.closed = true;
        state.queue.clear();
        state.asleep.drain(..).for_each(|thread| thread.unpark());
        if let Some(watch) = &state.watch {
            watch.unpark();
        }
        let ended = self
            .ended
            .wait_timeout_while(state, patience, |state| state.threads > 0);
        drop(ended);
    }
}
