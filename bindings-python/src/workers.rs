//! The queue that worker threads pull calls of plain functions from, and the rules by which they wake.
//!
//! Handing the GIL from thread to thread costs more than most calls, so one worker stays hot: it pulls
//! until the queue is empty. A second one, if needed, only keeps watch, without the GIL. If nothing was
//! taken for a whole [`TICK`] although work waits, and none of the workers at work is running, then they
//! are blocked in their calls (sleeping, reading), and more workers are let in: twice as many at each
//! tick.
//!
//! ```text
//!   push ─▶ queue ─▶ at work (≤ limit)      idle ◀──▶ on watch (≤ 1)
//!                      │  ▲──────── let in after a tick ────┘
//!                      ╰──▶ aside: waits for a client; another worker takes its place
//! ```
//!
//! If engine threads drive the network, the thread that has read the work is invited as a guest once it
//! has read all input. It is then the hot worker until the queue is empty: no thread has to be woken, and
//! the answers leave on the same thread.
//!
//! The last quarter of the threads is for sources (principals or addresses) that occupy none
//! ([`may_have_more`]). The further work of others is held: to workers that look for work, and to the
//! watch, the queue is empty if it holds nothing else. The work is taken, in order of arrival, when calls
//! end.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher, Hash, RandomState};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, Thread, park, park_timeout};
use std::time::{Duration, Instant};

use mcpbolt::limits::may_have_more;
use rustix::process::Pid;
use rustix::thread::gettid;

/// How long calls may block the queue before more workers are let in. It grows to [`LONG_TICK`], step by
/// step, while work is taken continuously.
const TICK: Duration = Duration::from_micros(500);
const LONG_TICK: Duration = Duration::from_millis(2);
/// The number of ticks without work after which the watch ends.
const QUIET_TICKS: u32 = 4;
/// How long calls may block the queue while one worker runs or is runnable: more workers would only
/// compete with it.
const PATIENCE: Duration = Duration::from_millis(10);
/// The most threads, not counting those aside.
const MAX_WORKERS: usize = 40;
/// The most threads for the calls of one source, by [`may_have_more`]: three quarters of all threads. A
/// source exceeds it only by calls that come back from waiting for a client.
const SHARE: usize = MAX_WORKERS - MAX_WORKERS / 4;
/// The most threads aside; further ones keep their place.
const MAX_ASIDE: usize = 1000;

/// Identifies the source of work; [`NOBODY`] if the source is not known.
pub type Tag = u64;

/// No known source: such work may use all threads.
pub const NOBODY: Tag = 0;

/// The source of verifications, whose senders are not known yet: together they leave threads to others.
pub const VERIFIERS: Tag = 1;

/// Whether a thread runs or is runnable, rather than waiting.
fn runs(thread: Pid) -> bool {
    let path = format!("/proc/self/task/{}/stat", thread.as_raw_nonzero());
    let state = std::fs::read_to_string(path);
    // The state follows the name, which is in parentheses and may itself contain parentheses.
    state.is_ok_and(|it| it.rsplit(')').next().is_some_and(|it| it.starts_with(" R")))
}

/// A queue and its workers.
#[derive(Debug)]
pub struct Workers<T> {
    state: Mutex<State<T>>,
    ended: Condvar,
    /// Hashes sources to tags.
    tags: RandomState,
}

/// Work in order of arrival, each item with the tag of its source.
#[derive(Debug)]
struct Queue<T> {
    line: VecDeque<(Tag, T)>,
    /// Work of sources that had their share of the threads when it was looked at; never empty. It is older
    /// than the work of the same source in `line`.
    held: HashMap<Tag, VecDeque<T>>,
}

impl<T> Default for Queue<T> {
    fn default() -> Self {
        Self {
            line: VecDeque::new(),
            held: HashMap::new(),
        }
    }
}

impl<T> Queue<T> {
    fn is_empty(&self) -> bool {
        self.line.is_empty() && self.held.is_empty()
    }

    /// Whether there is work of a source that may have one more thread. Work of others is held.
    fn is_ready(&mut self, shares: &Shares) -> bool {
        if self.held.keys().any(|of| shares.may(*of)) {
            return true;
        }
        while let Some((of, work)) = self.line.pop_front() {
            if of == NOBODY || !self.held.contains_key(&of) && shares.may(of) {
                self.line.push_front((of, work));
                return true;
            }
            self.held.entry(of).or_default().push_back(work);
        }
        false
    }

    fn take(&mut self, shares: &Shares) -> Option<(Tag, T)> {
        if !self.is_ready(shares) {
            return None;
        }
        let Some(&of) = self.held.keys().find(|of| shares.may(**of)) else {
            return self.line.pop_front();
        };
        let held = self.held.get_mut(&of)?;
        let work = held.pop_front();
        if held.is_empty() {
            self.held.remove(&of);
        }
        Some((of, work?))
    }
}

/// How many threads carry out calls, of each known source and in all, not counting those of a source
/// beyond [`SHARE`].
#[derive(Debug)]
struct Shares {
    threads: HashMap<Tag, usize>,
    taken: usize,
}

impl Shares {
    /// Whether this source may have one more thread.
    fn may(&self, of: Tag) -> bool {
        let own = self.threads.get(&of).copied().unwrap_or(0);
        of == NOBODY || may_have_more(own, self.taken, MAX_WORKERS)
    }
}

/// A thread that carries out a call.
#[derive(Debug)]
struct AtWork {
    thread: Pid,
    /// The source of the call; [`NOBODY`] between two calls.
    of: Tag,
}

#[derive(Debug)]
struct State<T> {
    queue: Queue<T>,
    /// The number of threads, not counting those aside.
    threads: usize,
    /// The number of threads whose calls wait for an answer of a client.
    aside: usize,
    /// The threads that carry out calls.
    at_work: Vec<AtWork>,
    /// How many threads may be at work, not counting those of a source beyond its share.
    limit: usize,
    /// Whether a guest is going to look at the queue.
    is_invited: bool,
    /// Sleeping threads; the one that worked last is woken first, since its caches are warm.
    asleep: Vec<Thread>,
    /// The thread on watch.
    watch: Option<Thread>,
    /// The number of calls taken since the start, not counting those that only keep a source at its
    /// share: they bring the work of other sources no nearer.
    taken: u64,
    closed: bool,
}

impl<T> Default for Workers<T> {
    fn default() -> Self {
        let state = State {
            queue: Queue::default(),
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
            tags: RandomState::new(),
        }
    }
}

impl<T> State<T> {
    /// Whether one more thread is needed, for work or for the watch. Work that is passed over needs a
    /// watch, too: a worker that takes it may gather answers, which the watch hands over.
    fn lacks_threads(&mut self) -> bool {
        let lacks_watch = self.watch.is_none() && !self.queue.is_empty();
        lacks_watch || self.occupied() < self.limit && self.has_work()
    }

    /// Whether there is work that may be taken.
    fn has_work(&mut self) -> bool {
        let shares = self.shares();
        self.queue.is_ready(&shares)
    }

    /// The oldest work that may be taken, and the tag of its source.
    fn take(&mut self) -> Option<(Tag, T)> {
        let shares = self.shares();
        self.queue.take(&shares)
    }

    /// Counts a call of this source that a thread at work begins.
    fn count(&mut self, of: Tag) {
        let keeps_share = !self.shares().may(of);
        self.taken += u64::from(!keeps_share);
    }

    /// The number of threads at work, not counting those of a source beyond its share.
    fn occupied(&self) -> usize {
        self.shares().taken
    }

    /// How many threads sources occupy beyond [`SHARE`].
    fn surplus(&self) -> usize {
        self.at_work.len() - self.occupied()
    }

    fn shares(&self) -> Shares {
        let mut shares = Shares {
            threads: HashMap::new(),
            taken: self.at_work.len(),
        };
        // Sources matter only once the last quarter of the threads begins.
        if shares.taken >= SHARE {
            self.count_threads(&mut shares.threads);
            let beyond = |threads: &usize| threads.saturating_sub(SHARE);
            shares.taken -= shares.threads.values().map(beyond).sum::<usize>();
        }
        shares
    }

    #[cold]
    fn count_threads(&self, threads: &mut HashMap<Tag, usize>) {
        for one in self.at_work.iter().filter(|one| one.of != NOBODY) {
            *threads.entry(one.of).or_default() += 1;
        }
    }
}

impl<T> Workers<T> {
    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The tag of a source, for [`push`](Self::push). Sources with equal hashes share one limit.
    pub fn tag(&self, source: &impl Hash) -> Tag {
        self.tags.hash_one(source).max(VERIFIERS + 1)
    }

    /// Adds work of one source. `invite` has a guest call [`enter`](Self::enter) soon, if there are guests;
    /// `spawn` starts a thread that calls [`wait`](Self::wait), and returns whether it could.
    pub fn push(
        &self,
        of: Tag,
        work: impl IntoIterator<Item = T>,
        invite: Option<impl FnOnce()>,
        spawn: impl FnOnce() -> bool,
    ) {
        let mut state = self.lock();
        if state.closed {
            drop(state);
            // Dropping work may push again, so the lock must be free.
            return work.into_iter().for_each(drop);
        }
        let work = work.into_iter().map(|one| (of, one));
        state.queue.line.extend(work);
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

    /// Lets a guest thread, `here`, work on the queue, unless enough workers do; returns its first work
    /// item. The guest ends with [`leave`](Self::leave).
    pub fn enter(&self, here: Pid, spawn: impl FnOnce() -> bool) -> Option<T> {
        let mut state = self.lock();
        state.is_invited = false;
        if state.closed || state.occupied() >= state.limit {
            return None;
        }
        let (of, work) = state.take()?;
        state.threads += 1;
        state.at_work.push(AtWork { thread: here, of });
        state.count(of);
        if state.watch.is_none() {
            self.rouse(&mut state, spawn);
        }
        Some(work)
    }

    /// Ends the visit of a guest. Returns whether work is left and the guest is invited again.
    pub fn leave(&self, here: Pid) -> bool {
        let mut state = self.lock();
        state.at_work.retain(|one| one.thread != here);
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
        if state.lacks_threads() {
            self.rouse(state, spawn);
        }
    }

    /// Wakes or starts one more thread to look at the queue.
    fn rouse(&self, state: &mut State<T>, spawn: impl FnOnce() -> bool) {
        if let Some(watch) = state.watch.as_ref().filter(|_| state.at_work.is_empty()) {
            watch.unpark();
        } else if let Some(thread) = state.asleep.pop() {
            thread.unpark();
        } else if state.threads - state.surplus() < MAX_WORKERS && spawn() {
            // The new thread cannot read `threads` before the lock is released.
            state.threads += 1;
        }
    }

    /// Runs `wait`, which waits for an answer of a client. If a worker calls this, another worker takes
    /// its place meanwhile.
    pub fn aside<R>(&self, spawn: impl FnOnce() -> bool, wait: impl FnOnce() -> R) -> R {
        let place = self.step_aside(spawn);
        let waited = wait();
        if let Some(place) = place {
            let mut state = self.lock();
            state.aside -= 1;
            state.threads += 1;
            state.at_work.push(place);
        }
        waited
    }

    /// Frees the place of the calling thread and returns it, if the thread is a worker.
    fn step_aside(&self, spawn: impl FnOnce() -> bool) -> Option<AtWork> {
        let here = gettid();
        let mut state = self.lock();
        let index = state.at_work.iter().position(|one| one.thread == here);
        let index = index.filter(|_| state.aside < MAX_ASIDE)?;
        let place = state.at_work.swap_remove(index);
        state.threads -= 1;
        state.aside += 1;
        self.rouse_if_needed(&mut state, spawn);
        Some(place)
    }

    /// The next work item, without waiting, for a worker that is at work already: the thread `here`, whose
    /// last call has ended.
    pub fn next(&self, here: Pid) -> Option<T> {
        let mut state = self.lock();
        if state.closed {
            return None;
        }
        state.at_work.retain(|one| one.thread != here);
        let taken = state.take();
        let of = taken.as_ref().map_or(NOBODY, |(of, _)| *of);
        state.at_work.push(AtWork { thread: here, of });
        let (of, work) = taken?;
        state.count(of);
        Some(work)
    }

    /// Sleeps or keeps watch until there is work for this worker, the thread `here`; `None` if the thread
    /// must end. A worker calls it with `begin` when it starts, and without at the end of the queue.
    /// `held_up` is called after each tick on watch without new work.
    pub fn wait(
        &self,
        here: Pid,
        begin: bool,
        spawn: &dyn Fn() -> bool,
        held_up: &dyn Fn(),
    ) -> Option<T> {
        let mut state = self.lock();
        if !begin {
            state.at_work.retain(|one| one.thread != here);
        }
        loop {
            let has_work = state.has_work();
            let is_spare = !has_work && state.threads - state.surplus() > MAX_WORKERS;
            if state.closed || is_spare {
                state.threads -= 1;
                self.ended.notify_all();
                return None;
            }
            if !has_work {
                state.limit = 1;
            } else if state.occupied() < state.limit
                && let Some((of, work)) = state.take()
            {
                state.at_work.push(AtWork { thread: here, of });
                state.count(of);
                self.rouse_if_needed(&mut state, spawn);
                return Some(work);
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
        // A waking thread removes this one from the list; a spurious wakeup does not.
        state.asleep.retain(|thread| thread.id() != id);
        state
    }

    /// Watches the workers at work until this thread is needed for work, or no work was done for some ticks.
    fn watch<'a>(
        &'a self,
        mut state: MutexGuard<'a, State<T>>,
        held_up: &dyn Fn(),
    ) -> MutexGuard<'a, State<T>> {
        state.watch = Some(thread::current());
        let (mut tick, mut quiet, mut since) = (TICK, 0, Instant::now());
        while quiet < QUIET_TICKS || state.has_work() {
            let before = state.taken;
            drop(state);
            park_timeout(tick);
            state = self.lock();
            let has_place = state.occupied() < state.limit && !state.is_invited;
            if state.closed || has_place && state.has_work() {
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
            if state.taken != before || state.at_work.is_empty() || !state.has_work() {
                continue;
            }
            if since.elapsed() > PATIENCE || !state.at_work.iter().any(|one| runs(one.thread)) {
                state.limit = (state.at_work.len() * 2).min(MAX_WORKERS);
                break;
            }
        }
        state.watch = None;
        state
    }

    /// Stops handing out work and drops what is queued. Waits at most for `patience` until the threads have
    /// ended.
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
