//! The engine's own threads for handlers.
//!
//! Quick handlers should cost one wake-up per batch, blocking ones should hold up nobody:
//!
//! ```text
//!   spawn ─▶ [ queue ] ─▶ the hot worker, woken once, works the queue off
//!                │
//!                └─ no job taken for a tick? ─▶ the watch wakes as many workers again
//! ```
//!
//! The worker that fell idle last is woken first: its stack is in the cache. A worker that has
//! not come back from its job for a tick is away: it is not counted on, and others are called in
//! its place, twice as many with each tick up to a cap. While the processors are busy with what
//! runs already there is no use in that, so a tick is longer then; jobs that take long have a
//! worker for each core. The watch itself sleeps while nobody waits.
//!
//! Answers leave in batches too: a handler's last act may leave the waking of the loop to its
//! worker, which does so when the queue is empty or [`GATHER`] has passed; the watch does when a
//! job behind it blocks.
//!
//! A pool may also drive a loop of its own, by leader and followers (Schmidt et al., 2000): one
//! worker leads, that is, waits for the wire; the jobs that it brings in it runs itself and then
//! it leads again. When it has not come back within a tick, another worker leads. So quick calls
//! that follow one another cost no wake-up of another thread, and one that blocks costs the
//! others a tick, once.

#[cfg(test)]
mod tests;
mod watch;

use std::collections::VecDeque;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::{self, Thread, ThreadId};
use std::time::{Duration, Instant};

use async_task::Runnable;

use self::watch::Watch;
use super::wake::{WakeUps, gather};
use crate::handler::{Job, Jobs, Spawner};
use crate::limits::later;

/// How long an answer may wait for those that are computed right behind it.
const GATHER: Duration = Duration::from_micros(100);

/// How many threads there may be, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkersConfig {
    /// Most threads, that is, handlers that may block at once; further ones wait. 256 by default.
    pub max_threads: usize,
    /// How long a thread without work is kept. 10 s by default.
    pub keep_alive: Duration,
    /// Stack of each thread, in bytes. 2 MiB by default.
    pub stack_bytes: usize,
}

impl Default for WorkersConfig {
    fn default() -> Self {
        Self {
            max_threads: 256,
            keep_alive: Duration::from_secs(10),
            stack_bytes: 2 << 20,
        }
    }
}

/// A loop that the workers drive, one at a time.
pub(super) trait Lead: Send + Sync {
    /// Drives it until `is_wanted` says that the thread is wanted for jobs, which is asked
    /// before each wait; `true` when the loop is over. What is in `wakes` is to be woken first.
    fn lead(&self, wakes: WakeUps, is_wanted: &dyn Fn() -> bool) -> bool;

    /// The thread that leads has brought in jobs itself. A loop that asks before each wait needs
    /// not be told.
    fn has_jobs(&self) {}

    /// Makes wake-ups of its own tasks from a thread that does not lead.
    fn wake(&self, wakes: WakeUps) {
        wakes.iter().for_each(|wake| wake.wake());
    }
}

/// Threads that run handlers; started as they are needed.
///
/// Dropping it lets the threads finish what is queued and end; it does not wait for them.
#[derive(Debug)]
pub struct Workers {
    pool: Arc<Pool>,
}

struct Pool {
    config: WorkersConfig,
    state: Mutex<State>,
    lead: OnceLock<Arc<dyn Lead>>,
    /// Wakes the watch.
    watch: Condvar,
}

impl std::fmt::Debug for Pool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pool")
            .field("config", &self.config)
            .finish_non_exhaustive()
    }
}

/// Who drives the pool's own loop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Leader {
    /// There is no loop, or not any more.
    #[default]
    NotNeeded,
    /// There is none. Whether a worker was called to it.
    Wanted {
        called: bool,
    },
    Is(ThreadId),
}

/// Something to be run.
enum Work {
    /// A job that was begun and is to go on.
    Again(Runnable),
    /// Jobs that are made as they are taken; never none.
    New(Jobs),
}

impl std::fmt::Debug for Work {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} jobs", self.len())
    }
}

impl Work {
    /// How many jobs, at most.
    fn len(&self) -> usize {
        match self {
            Self::Again(_) => 1,
            Self::New(jobs) => jobs.size_hint().1.unwrap_or(usize::MAX),
        }
    }
}

/// What a worker took.
enum Taken {
    Again(Runnable),
    New(Job),
}

#[derive(Default)]
struct State {
    queue: VecDeque<Work>,
    /// Who is to be woken once the jobs at hand have run.
    put_off: WakeUps,
    /// Jobs taken so far.
    taken: u64,
    /// All that have begun.
    workers: Vec<Arc<Worker>>,
    /// Those that are parked; the last one is the warmest.
    idle: Vec<Arc<Worker>>,
    /// Workers, and those on the way to be.
    threads: usize,
    /// Those that the watch found in the same job twice: they are not counted on.
    away: usize,
    leader: Leader,
    /// Times that somebody began to lead.
    terms: u64,
    watch: Watch,
    closed: bool,
}

/// What the others know of a worker. Changed under the lock only.
#[derive(Debug)]
struct Worker {
    thread: Thread,
    /// Not in [`State::idle`].
    woken: AtomicBool,
    /// The number of the job at hand, or 0.
    job: AtomicU64,
    /// Counted in [`State::away`].
    away: AtomicBool,
}

/// Who is to be woken once the lock is released.
#[derive(Default)]
struct Calls {
    workers: Vec<Arc<Worker>>,
    new_workers: usize,
    watch: bool,
    new_watch: bool,
}

impl Workers {
    /// A pool without threads.
    pub fn new(config: WorkersConfig) -> Self {
        let config = WorkersConfig {
            max_threads: config.max_threads.max(1),
            ..config
        };
        Self {
            pool: Arc::new(Pool {
                config,
                state: Mutex::default(),
                lead: OnceLock::new(),
                watch: Condvar::new(),
            }),
        }
    }

    /// Has the pool drive a loop, from now until it is over. A pool drives one at most.
    ///
    /// # Errors
    /// When it drives one already, and when no thread can be started.
    pub(super) fn drive(&self, lead: Arc<dyn Lead>) -> std::io::Result<()> {
        if self.pool.lead.set(lead).is_err() {
            let why = "these workers drive another connection already";
            return Err(std::io::Error::other(why));
        }
        let mut calls = Calls::default();
        let mut state = self.pool.lock();
        state.leader = Leader::Wanted { called: false };
        state.call_leader(&self.pool.config, &mut calls);
        drop(state);
        self.pool.make(calls);
        match self.thread_count() {
            0 => Err(std::io::Error::other("no thread can be started")),
            _ => Ok(()),
        }
    }

    /// Runs a future to its end on the pool.
    pub fn spawn(&self, future: impl Future<Output = ()> + Send + 'static) {
        self.spawn_batch(std::iter::once(future));
    }

    /// Runs futures to their ends on the pool: one hand-over, at most one wake-up.
    pub fn spawn_batch<F>(&self, futures: impl Iterator<Item = F>)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let begun = futures.map(|future| Work::Again(self.pool.runnable(future)));
        let begun: Vec<Work> = begun.collect();
        self.pool.push(begun);
    }

    /// Threads that exist now.
    pub fn thread_count(&self) -> usize {
        self.pool.lock().threads
    }
}

impl Spawner for Workers {
    fn spawn(&self, job: Job) {
        Self::spawn(self, job);
    }

    fn spawn_batch(&self, jobs: Jobs) {
        self.pool.push([Work::New(jobs)]);
    }

    fn together(&self, run: &mut dyn FnMut()) {
        let mut wakes = WakeUps::new();
        gather(&mut wakes, run);
        self.pool.wake(wakes);
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        let mut state = self.pool.lock();
        state.closed = true;
        let mut calls = Calls::default();
        let idle = state.idle.len();
        state.call(idle, &self.pool.config, &mut calls);
        drop(state);
        self.pool.make(calls);
        self.pool.watch.notify_all();
    }
}

impl Pool {
    fn lock(&self) -> MutexGuard<'_, State> {
        // Jobs run outside the lock, so nothing of theirs can have poisoned it.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn runnable(self: &Arc<Self>, future: impl Future<Output = ()> + Send + 'static) -> Runnable {
        let pool = self.clone();
        let again = move |again| pool.push([Work::Again(again)]);
        let (runnable, task) = async_task::spawn(future, again);
        task.detach();
        runnable
    }

    fn push(self: &Arc<Self>, work: impl IntoIterator<Item = Work>) {
        let mut calls = Calls::default();
        let mut state = self.lock();
        let work = work.into_iter().filter(|work| work.len() > 0);
        state.queue.extend(work);
        if state.queue.is_empty() {
            return;
        }
        let awake = state.awake();
        // A leader runs what it brings in itself.
        let is_mine = state.is_led_by_me();
        if awake == 0 && !is_mine {
            state.call(1, &self.config, &mut calls);
        }
        // Somebody waits behind somebody else.
        if (awake > 0 || state.is_line()) && state.watch != Watch::Awake {
            state.arm(&mut calls);
        }
        drop(state);
        if is_mine && let Some(lead) = self.lead.get() {
            lead.has_jobs();
        }
        self.make(calls);
    }

    fn make(self: &Arc<Self>, calls: Calls) {
        calls
            .workers
            .iter()
            .for_each(|worker| worker.thread.unpark());
        if calls.watch {
            self.watch.notify_one();
        }
        if calls.new_watch {
            let pool = self.clone();
            let watch = self.start("mcpbolt-watch", 64 << 10, move || pool.watch());
            if watch.is_err() {
                self.lock().watch = Watch::NotStarted;
            }
        }
        for _ in 0..calls.new_workers {
            let pool = self.clone();
            let worker = move || pool.work();
            if self
                .start("mcpbolt-worker", self.config.stack_bytes, worker)
                .is_err()
            {
                // The next job, or the next tick, tries again.
                let mut state = self.lock();
                state.threads -= 1;
                if state.is_leaderless() {
                    state.leader = Leader::Wanted { called: false };
                }
            }
        }
    }

    fn start(
        &self,
        name: &str,
        stack_bytes: usize,
        run: impl FnOnce() + Send + 'static,
    ) -> std::io::Result<()> {
        let thread = thread::Builder::new().name(name.to_owned());
        thread.stack_size(stack_bytes).spawn(run).map(drop)
    }

    /// A worker's life.
    fn work(self: &Arc<Self>) {
        let me = Arc::new(Worker {
            thread: thread::current(),
            woken: AtomicBool::new(true),
            job: AtomicU64::new(0),
            away: AtomicBool::new(false),
        });
        let mut state = self.lock();
        state.workers.push(me.clone());
        loop {
            state = self.lead(state);
            state = self.run_queue(&me, state);
            if state.closed && state.queue.is_empty() {
                break;
            }
            if state.is_leaderless() || !state.queue.is_empty() {
                continue;
            }
            me.woken.store(false, Ordering::Relaxed);
            state.idle.push(me.clone());
            drop(state);
            self.park(&me);
            state = self.lock();
            if !me.woken.load(Ordering::Acquire) {
                state.idle.retain(|other| !Arc::ptr_eq(other, &me));
                if state.queue.is_empty() {
                    break;
                }
            }
        }
        state.workers.retain(|other| !Arc::ptr_eq(other, &me));
        state.threads -= 1;
    }

    /// Drives the loop if nobody does, until this thread is wanted for jobs.
    fn lead<'a>(self: &'a Arc<Self>, mut state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        let Some(lead) = self.lead.get().filter(|_| state.is_leaderless()) else {
            return state;
        };
        state.leader = Leader::Is(thread::current().id());
        state.terms += 1;
        let wakes = std::mem::take(&mut state.put_off);
        drop(state);
        // While others work the queue off, they need no help; when all that may run jobs are away,
        // somebody must still be there for the wire.
        let is_wanted = || {
            let state = self.lock();
            !state.queue.is_empty() && state.awake() == 0 && state.away < self.config.max_threads
        };
        let over = lead.lead(wakes, &is_wanted);
        let mut calls = Calls::default();
        let mut state = self.lock();
        state.leader = match over {
            true => Leader::NotNeeded,
            false => Leader::Wanted { called: false },
        };
        if !over && state.watch != Watch::Awake {
            state.arm(&mut calls);
            drop(state);
            self.make(calls);
            state = self.lock();
        }
        state
    }

    /// Runs jobs until none is queued, or the loop has waited long enough for somebody to lead.
    /// Wake-ups that were put off are left to be made only when it leads next.
    fn run_queue<'a>(
        self: &'a Arc<Self>,
        me: &Worker,
        mut state: MutexGuard<'a, State>,
    ) -> MutexGuard<'a, State> {
        let mut wakes = WakeUps::new();
        let mut since: Option<Instant> = None;
        loop {
            let due = since.is_some_and(|since| since.elapsed() >= GATHER);
            let next = match due && state.is_leaderless() {
                true => None,
                false => state.take(),
            };
            // Who leads next wakes them on the loop itself, where that costs least.
            let leads_next = next.is_none() && state.is_leaderless();
            if (due || next.is_none()) && !leads_next {
                wakes = std::mem::take(&mut state.put_off);
                since = None;
            }
            let Some(taken) = next else {
                if leads_next {
                    return state;
                }
                drop(state);
                self.wake(wakes);
                return self.lock();
            };
            state.taken += 1;
            me.job.store(state.taken, Ordering::Relaxed);
            drop(state);
            self.wake(std::mem::take(&mut wakes));
            let run = || match taken {
                Taken::Again(runnable) => runnable.run(),
                Taken::New(job) => self.runnable(job).run(),
            };
            // A handler's panic is the handler's; the thread serves on.
            let job = || drop(catch_unwind(AssertUnwindSafe(run)));
            gather(&mut wakes, job);
            since = since.or_else(|| Some(Instant::now()));
            state = self.lock();
            state.put_off.append(&mut wakes);
            me.job.store(0, Ordering::Relaxed);
            state.away -= usize::from(me.away.swap(false, Ordering::Relaxed));
        }
    }

    /// Makes wake-ups that were put off.
    fn wake(&self, wakes: WakeUps) {
        match self.lead.get() {
            _ if wakes.is_empty() => {}
            Some(lead) => lead.wake(wakes),
            None => wakes.iter().for_each(|wake| wake.wake()),
        }
    }

    /// Sleeps until woken or for as long as a thread without work is kept.
    fn park(&self, me: &Worker) {
        let until = later(Instant::now(), self.config.keep_alive);
        while !me.woken.load(Ordering::Acquire) {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            thread::park_timeout(left);
        }
    }
}

impl State {
    /// Whether more than one job waits, perhaps.
    fn is_line(&self) -> bool {
        self.queue.len() > 1 || self.queue.front().is_some_and(|work| work.len() > 1)
    }

    /// Jobs that wait, at most.
    fn waiting(&self) -> usize {
        self.queue
            .iter()
            .map(Work::len)
            .fold(0, usize::saturating_add)
    }

    /// The next job.
    fn take(&mut self) -> Option<Taken> {
        while let Some(work) = self.queue.pop_front() {
            match work {
                Work::Again(runnable) => return Some(Taken::Again(runnable)),
                Work::New(mut jobs) => {
                    let Some(job) = jobs.next() else { continue };
                    let rest = Work::New(jobs);
                    if rest.len() > 0 {
                        self.queue.push_front(rest);
                    }
                    return Some(Taken::New(job));
                }
            }
        }
        None
    }

    /// Workers that come back for jobs soon, or are on the way to them.
    fn awake(&self) -> usize {
        let leading = usize::from(matches!(self.leader, Leader::Is(_)));
        self.threads - self.idle.len() - self.away - leading
    }

    fn is_leaderless(&self) -> bool {
        matches!(self.leader, Leader::Wanted { .. })
    }

    fn is_led_by_me(&self) -> bool {
        self.leader == Leader::Is(thread::current().id())
    }

    /// Calls so many more workers to the queue, the warmest first.
    fn call(&mut self, count: usize, config: &WorkersConfig, calls: &mut Calls) {
        (0..count).for_each(|_| {
            self.call_one(config.max_threads, calls);
        });
    }

    /// Calls a worker to lead; there is one for it even when all that may run jobs are blocked.
    fn call_leader(&mut self, config: &WorkersConfig, calls: &mut Calls) {
        self.leader = Leader::Wanted {
            called: self.call_one(config.max_threads + 1, calls),
        };
    }

    fn call_one(&mut self, max_threads: usize, calls: &mut Calls) -> bool {
        if let Some(worker) = self.idle.pop() {
            worker.woken.store(true, Ordering::Release);
            calls.workers.push(worker);
        } else if self.threads < max_threads {
            self.threads += 1;
            calls.new_workers += 1;
        } else {
            return false;
        }
        true
    }
}
