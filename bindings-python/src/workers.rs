//! The queue that worker threads pull plain functions from, and who of them wakes when.
//!
//! Handing the interpreter's lock from thread to thread costs more than most calls, so one
//! worker stays hot: it pulls until the queue is empty. Another, if there is need, only keeps
//! watch, without the lock. When nothing was taken for a whole [`TICK`] although something
//! waits and no worker at work runs, they are held up in their calls (sleeping, reading), and more
//! are let in: twice as many at each tick.
//!
//! ```text
//!   push ─▶ queue ─▶ at work (≤ limit)      idle ◀──▶ on watch (≤ 1)
//!                      │  ▲──────── let in after a tick ────┘
//!                      ╰──▶ aside: waits for a client, and somebody else has its place
//! ```
//!
//! Where the network is on threads of the engine's, the one that has brought work in is invited
//! as soon as it has all that there was, and is the hot worker until the queue is empty: nobody
//! is woken for it, and its answers leave on the same thread.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, Thread, park, park_timeout};
use std::time::{Duration, Instant};

use rustix::process::Pid;
use rustix::thread::gettid;

/// How long calls may keep the queue waiting before more workers are let in; longer, step by
/// step, while work is taken all the time.
const TICK: Duration = Duration::from_micros(500);
const LONG_TICK: Duration = Duration::from_millis(2);
/// Ticks without work after which the watch ends.
const QUIET_TICKS: u32 = 4;
/// How long that may be while one of them runs, or would if a processor were free: more of them
/// would only be in its way.
const PATIENCE: Duration = Duration::from_millis(10);
/// Threads at most, besides those aside.
const MAX_WORKERS: usize = 40;
/// Threads aside at most: further ones keep their place.
const MAX_ASIDE: usize = 1000;

/// Whether a thread runs, or would if a processor were free, rather than waits.
fn runs(thread: Pid) -> bool {
    let path = format!("/proc/self/task/{}/stat", thread.as_raw_nonzero());
    let state = std::fs::read_to_string(path);
    // Behind its name, which is in parentheses and may hold any.
    state.is_ok_and(|it| it.rsplit(')').next().is_some_and(|it| it.starts_with(" R")))
}

/// A queue and its workers.
#[derive(Debug)]
pub struct Workers<T> {
    state: Mutex<State<T>>,
    ended: Condvar,
}

#[derive(Debug)]
struct State<T> {
    queue: VecDeque<T>,
    /// Threads there are, besides those aside.
    threads: usize,
    /// Threads whose calls wait for what a client answers.
    aside: usize,
    /// Threads inside a call.
    at_work: Vec<Pid>,
    /// Threads that may be.
    limit: usize,
    /// A guest is going to look at the queue.
    is_invited: bool,
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
            aside: 0,
            at_work: Vec::new(),
            limit: 1,
            is_invited: false,
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
        self.at_work.len() < self.limit || self.watch.is_none()
    }
}

impl<T> Workers<T> {
    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds work. `invite` has a guest come soon, that is, call [`enter`](Self::enter), where there
    /// are guests; `spawn` starts a thread that calls [`wait`](Self::wait), if it can.
    pub fn push(
        &self,
        work: impl IntoIterator<Item = T>,
        invite: Option<impl FnOnce()>,
        spawn: impl FnOnce() -> bool,
    ) {
        let mut state = self.lock();
        if state.closed {
            drop(state);
            // What is dropped may push in its turn.
            return work.into_iter().for_each(drop);
        }
        state.queue.extend(work);
        match invite.filter(|_| state.at_work.is_empty()) {
            Some(invite) => {
                let is_invited = std::mem::replace(&mut state.is_invited, true);
                drop(state);
                if !is_invited {
                    invite();
                }
            }
            None => self.rouse_if_needed(&mut state, spawn),
        }
    }

    /// Another thread comes to work the queue off, unless somebody else does. It goes by
    /// [`leave`](Self::leave).
    pub fn enter(&self, spawn: impl FnOnce() -> bool) -> Option<T> {
        let mut state = self.lock();
        state.is_invited = false;
        if state.closed || state.at_work.len() >= state.limit {
            return None;
        }
        let work = state.queue.pop_front()?;
        state.taken += 1;
        state.threads += 1;
        state.at_work.push(gettid());
        if state.watch.is_none() {
            self.rouse(&mut state, spawn);
        }
        Some(work)
    }

    /// A guest goes. Whether it has left work and is invited again.
    pub fn leave(&self) -> bool {
        let here = gettid();
        let mut state = self.lock();
        state.at_work.retain(|one| *one != here);
        state.threads -= 1;
        if state.at_work.is_empty() {
            state.limit = 1;
        }
        state.is_invited = !state.queue.is_empty() && state.at_work.is_empty();
        if state.closed {
            self.ended.notify_all();
        }
        state.is_invited
    }

    fn rouse_if_needed(&self, state: &mut State<T>, spawn: impl FnOnce() -> bool) {
        if !state.queue.is_empty() && state.lacks_threads() {
            self.rouse(state, spawn);
        }
    }

    /// One more thread looks at the queue.
    fn rouse(&self, state: &mut State<T>, spawn: impl FnOnce() -> bool) {
        if let Some(watch) = state.watch.as_ref().filter(|_| state.at_work.is_empty()) {
            watch.unpark();
        } else if let Some(thread) = state.asleep.pop() {
            thread.unpark();
        } else if state.threads < MAX_WORKERS && spawn() {
            // It cannot look before the lock is released.
            state.threads += 1;
        }
    }

    /// Waits for what a client answers: when a worker does, another has its place meanwhile.
    pub fn aside<R>(&self, spawn: impl FnOnce() -> bool, wait: impl FnOnce() -> R) -> R {
        let is_aside = self.step_aside(spawn);
        let waited = wait();
        if is_aside {
            let mut state = self.lock();
            state.aside -= 1;
            state.threads += 1;
            state.at_work.push(gettid());
        }
        waited
    }

    fn step_aside(&self, spawn: impl FnOnce() -> bool) -> bool {
        let here = gettid();
        let mut state = self.lock();
        let place = state.at_work.iter().position(|one| *one == here);
        let Some(place) = place.filter(|_| state.aside < MAX_ASIDE) else {
            return false;
        };
        state.at_work.swap_remove(place);
        state.threads -= 1;
        state.aside += 1;
        self.rouse_if_needed(&mut state, spawn);
        true
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
    pub fn wait(&self, begin: bool, spawn: &dyn Fn() -> bool, held_up: &dyn Fn()) -> Option<T> {
        let here = gettid();
        let mut state = self.lock();
        if !begin {
            state.at_work.retain(|one| *one != here);
        }
        loop {
            let is_spare = state.queue.is_empty() && state.threads > MAX_WORKERS;
            if state.closed || is_spare {
                state.threads -= 1;
                self.ended.notify_all();
                return None;
            }
            if state.queue.is_empty() {
                state.limit = 1;
            } else if state.at_work.len() < state.limit {
                state.at_work.push(here);
                state.taken += 1;
                let work = state.queue.pop_front();
                self.rouse_if_needed(&mut state, spawn);
                return work;
            }
            state = match state.watch.is_some() || state.at_work.is_empty() {
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
        let (mut tick, mut quiet, mut since) = (TICK, 0, Instant::now());
        while quiet < QUIET_TICKS || !state.queue.is_empty() {
            let before = state.taken;
            drop(state);
            park_timeout(tick);
            state = self.lock();
            let has_place = state.at_work.len() < state.limit && !state.is_invited;
            if state.closed || has_place && !state.queue.is_empty() {
                break;
            }
            if state.taken != before {
                (tick, quiet, since) = ((tick * 2).min(LONG_TICK), 0, Instant::now());
                continue;
            }
            quiet += 1;
            tick = TICK;
            if !state.at_work.is_empty() {
                drop(state);
                held_up();
                state = self.lock();
            }
            let at_work = &state.at_work;
            let held_up = since.elapsed() > PATIENCE || !at_work.iter().any(|one| runs(*one));
            if state.taken == before && !state.queue.is_empty() && held_up && !at_work.is_empty() {
                state.limit = (state.at_work.len() * 2).min(MAX_WORKERS);
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
        let left = std::mem::take(&mut state.queue);
        state.asleep.drain(..).for_each(|thread| thread.unpark());
        if let Some(watch) = &state.watch {
            watch.unpark();
        }
        let ended = self
            .ended
            .wait_timeout_while(state, patience, |state| state.threads > 0);
        drop(ended);
        drop(left);
    }
}
