//! The engine's threads for handlers.
//!
//! Quick handlers should cost one wake-up per batch, and blocking handlers should delay no others:
//!
//! ```text
//!   spawn ─▶ [ queue ] ─▶ one worker, woken once, empties the queue
//!                │
//!                └─ no job taken for a tick? ─▶ the watch wakes twice as many workers
//! ```
//!
//! The worker that became idle last is woken first: its stack is in the CPU cache. A worker that has
//! not finished its job within a tick counts as away, and others are called in its place, twice as many
//! with each tick up to a cap. While the processors are busy, more threads do not help, so a job may
//! then take longer before its worker counts as away; long jobs get one worker per core. The watch
//! thread sleeps while no jobs wait.
//!
//! Answers leave in batches too. A job may leave the waking of the loop to its worker, which does so
//! when the queue is empty or [`GATHER`] has passed; if a later job blocks, the watch does so.
//!
//! A pool may also drive an event loop, of stdio or of sockets, by the leader/followers pattern (Schmidt et
//! al., 2000): one worker leads, which means that it waits for the wire, runs the jobs that arrive itself,
//! and then leads again. If it has not come back within a tick, another worker leads. So a sequence of
//! quick calls costs no wake-up of another thread, and a call that blocks delays the others by one tick,
//! once. [`Workers::drive`] is all that an event loop needs of this.

mod lead;
mod queue;
#[cfg(test)]
mod tests;
mod watch;

use std::collections::HashMap;
use std::future::Future;
use std::hash::BuildHasher;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock};
use std::thread::{self, Thread, ThreadId};
use std::time::{Duration, Instant};

use async_task::Runnable;
use hashbrown::DefaultHashBuilder;

use self::lead::Lead;
#[cfg(feature = "http")]
pub(super) use self::lead::Mailbox;
use self::queue::{JobQueue, NOBODY, Tag, Taken, Work};
use self::watch::Watch;
use super::wake::{WakeUps, gather};
use crate::connection::RequestSource;
use crate::handler::{Job, Jobs, Spawner};
use crate::limits::{later, may_have_more};
use crate::panics::discard;
use crate::sync::lock;

/// How long an answer may wait for answers that are computed directly after it.
const GATHER: Duration = Duration::from_micros(100);

/// Limits of a pool of threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkersConfig {
    /// Maximum number of threads, which is the number of handlers that may block at once; further
    /// handlers wait. 256 by default. The last quarter is for clients whose handlers use less than a
    /// hundredth.
    pub max_threads: usize,
    /// How long an idle thread is kept. 10 s by default.
    pub keep_alive: Duration,
    /// Stack size of each thread, in bytes. 2 MiB by default.
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

/// Threads that run handlers; started on demand.
///
/// If the pool is created within a tokio runtime, handlers run in the context of that runtime: they may
/// use its timers and sockets, and spawn tasks on it. A handler that blocks still holds up only its own
/// thread.
///
/// Dropping it lets the threads finish the queued jobs and end; it does not wait for them.
#[derive(Debug)]
pub struct Workers {
    pool: Arc<Pool>,
}

struct Pool {
    config: WorkersConfig,
    state: Mutex<State>,
    /// The event loop, if there is one.
    lead: OnceLock<Lead>,
    /// Wakes the watch.
    watch: Condvar,
    /// Hashes sources to tags.
    tags: DefaultHashBuilder,
    /// The runtime in whose context jobs run.
    #[cfg(feature = "tokio")]
    runtime: Option<tokio::runtime::Handle>,
    /// Whether a job that waits becomes a task of the runtime, if there is one.
    #[cfg_attr(
        not(feature = "tokio"),
        expect(dead_code, reason = "there is no runtime")
    )]
    only_begins: bool,
}

impl std::fmt::Debug for Pool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pool")
            .field("config", &self.config)
            .finish_non_exhaustive()
    }
}

/// The thread that drives the pool's event loop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Leader {
    /// There is no loop, or it is over.
    #[default]
    NotNeeded,
    /// Nobody leads. `called`: whether a worker was called to lead.
    Wanted {
        called: bool,
    },
    Is(ThreadId),
}

#[derive(Default)]
struct State {
    queue: JobQueue,
    /// Wake-ups to perform after the current jobs have run.
    put_off: WakeUps,
    /// Number of jobs taken so far.
    taken: u64,
    /// All workers that have started.
    workers: Vec<Arc<Worker>>,
    /// Parked workers; the one that was parked last is last.
    idle: Vec<Arc<Worker>>,
    /// Number of workers, including those being started.
    threads: usize,
    /// Workers that the watch found in the same job twice; they are not expected back soon.
    away: usize,
    leader: Leader,
    /// How often a worker began to lead.
    terms: u64,
    watch: Watch,
    closed: bool,
}

/// The state of a worker that others see. Changed only under the lock.
#[derive(Debug)]
struct Worker {
    thread: Thread,
    /// Not in [`State::idle`].
    woken: AtomicBool,
    /// The number of the current job, or 0.
    job: AtomicU64,
    /// The tag of the current job's source.
    of: AtomicU64,
    /// Counted in [`State::away`].
    away: AtomicBool,
}

/// Threads to wake or start once the lock is released.
#[derive(Default)]
struct Calls {
    workers: Vec<Arc<Worker>>,
    new_workers: usize,
    watch: bool,
    new_watch: bool,
}

impl Workers {
    /// Creates a pool without threads.
    pub fn new(config: WorkersConfig) -> Self {
        Self::created(config, false)
    }

    /// Creates a pool whose threads begin jobs for the current tokio runtime: a job that waits becomes a task
    /// of the runtime, and one that is done at once costs no wake-up of another thread. Outside of a runtime
    /// as [`new`](Self::new).
    #[cfg(feature = "server")]
    pub(super) fn beginning_tasks() -> Self {
        Self::created(WorkersConfig::default(), true)
    }

    fn created(config: WorkersConfig, only_begins: bool) -> Self {
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
                tags: DefaultHashBuilder::default(),
                #[cfg(feature = "tokio")]
                runtime: tokio::runtime::Handle::try_current().ok(),
                only_begins,
            }),
        }
    }

    /// Number of threads that exist now.
    pub fn thread_count(&self) -> usize {
        self.pool.lock().threads
    }
}

impl Spawner for Workers {
    fn spawn(&self, job: Job) {
        self.spawn_batch(Box::new(std::iter::once(job)));
    }

    fn spawn_batch(&self, jobs: Jobs) {
        self.pool.push(NOBODY, Work::New(jobs));
    }

    fn spawn_batch_of(&self, source: &RequestSource, jobs: Jobs) {
        let of = match source {
            RequestSource::Unknown => NOBODY,
            // Sources with equal hashes share one limit.
            source => self.pool.tags.hash_one(source).max(NOBODY + 1),
        };
        self.pool.push(of, Work::New(jobs));
    }

    fn spawn_blocking(&self, job: Job) {
        #[cfg(feature = "tokio")]
        if let Some(runtime) = self.pool.tasks_of() {
            return Spawner::spawn_blocking(runtime, job);
        }
        self.spawn(job);
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
        lock(&self.state)
    }

    /// The runtime whose tasks waiting jobs become, if they do.
    #[cfg(feature = "tokio")]
    fn tasks_of(&self) -> Option<&tokio::runtime::Handle> {
        self.runtime.as_ref().filter(|_| self.only_begins)
    }

    /// Polls a new job once. If it waits, this pool goes on with it when it is woken, or the runtime does.
    fn begin(self: &Arc<Self>, of: Tag, job: Job) {
        #[cfg(feature = "tokio")]
        if let Some(runtime) = self.tasks_of() {
            return super::tokio_spawner::begin(runtime, job);
        }
        self.runnable(of, job).run();
    }

    fn runnable(
        self: &Arc<Self>,
        of: Tag,
        future: impl Future<Output = ()> + Send + 'static,
    ) -> Runnable {
        let pool = self.clone();
        let again = move |again| pool.push(of, Work::Again(again));
        let (runnable, task) = async_task::spawn(future, again);
        task.detach();
        runnable
    }

    fn push(self: &Arc<Self>, of: Tag, work: Work) {
        let mut calls = Calls::default();
        let mut state = self.lock();
        state.queue.push(of, work);
        if state.queue.is_empty() {
            return;
        }
        let awake = state.awake();
        // A leader runs the jobs that it brings in itself.
        let is_mine = state.is_led_by_me();
        if awake == 0 && !is_mine {
            state.call(1, &self.config, &mut calls);
        }
        // A job waits behind another.
        if (awake > 0 || state.queue.is_line()) && state.watch != Watch::Awake {
            state.arm(&mut calls);
        }
        drop(state);
        if is_mine && let Some(lead) = self.lead.get() {
            lead.tell_of_jobs();
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
            let worker = move || {
                #[cfg(feature = "tokio")]
                let _context = pool.runtime.as_ref().map(tokio::runtime::Handle::enter);
                pool.work();
            };
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

    /// The main function of a worker.
    fn work(self: &Arc<Self>) {
        let me = Arc::new(Worker {
            thread: thread::current(),
            woken: AtomicBool::new(true),
            job: AtomicU64::new(0),
            of: AtomicU64::new(NOBODY),
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

    /// Runs jobs until the queue is empty, or the loop has waited long enough for a leader. If this
    /// worker leads next, delayed wake-ups are left for that.
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
                false => state.take(self.config.max_threads),
            };
            // The next leader performs them on the loop, where that costs least.
            let leads_next = next.is_none() && state.is_leaderless();
            if (due || next.is_none()) && !leads_next {
                wakes = std::mem::take(&mut state.put_off);
                since = None;
            }
            let Some((of, taken)) = next else {
                if leads_next {
                    return state;
                }
                drop(state);
                self.wake(wakes);
                return self.lock();
            };
            state.taken += 1;
            me.job.store(state.taken, Ordering::Relaxed);
            me.of.store(of, Ordering::Relaxed);
            drop(state);
            self.wake(std::mem::take(&mut wakes));
            let run = || match taken {
                Taken::Again(runnable) => _ = runnable.run(),
                Taken::New(job) => self.begin(of, job),
            };
            // A panic ends only its handler; the thread goes on.
            let job = || {
                if let Err(panic) = catch_unwind(AssertUnwindSafe(run)) {
                    discard(panic);
                }
            };
            gather(&mut wakes, job);
            since = since.or_else(|| Some(Instant::now()));
            state = self.lock();
            state.put_off.append(&mut wakes);
            me.job.store(0, Ordering::Relaxed);
            state.away -= usize::from(me.away.swap(false, Ordering::Relaxed));
        }
    }

    /// Performs delayed wake-ups.
    fn wake(&self, wakes: WakeUps) {
        match self.lead.get() {
            _ if wakes.is_empty() => {}
            Some(lead) => lead.wake(wakes),
            None => wakes.iter().for_each(|wake| wake.wake()),
        }
    }

    /// Sleeps until woken, or until the keep-alive time is over.
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
    /// The next job, with the tag of its source, for a worker that runs none. A source that has its
    /// share of the threads, by [`may_have_more`], waits until others are free.
    fn take(&mut self, max_threads: usize) -> Option<(Tag, Taken)> {
        // As many run jobs at most.
        if may_have_more(usize::MAX, self.threads - self.idle.len(), max_threads) {
            return self.queue.take(|_| true);
        }
        let (threads, running) = self.running();
        let own = |of| threads.get(&of).copied().unwrap_or(0);
        let may = |of| may_have_more(own(of), running, max_threads);
        self.queue.take(may)
    }

    /// Number of threads that run jobs of each known source, and of all.
    #[cold]
    fn running(&self) -> (HashMap<Tag, usize>, usize) {
        let mut threads = HashMap::<Tag, usize>::new();
        let busy = |worker: &&Arc<Worker>| worker.job.load(Ordering::Relaxed) != 0;
        for worker in self.workers.iter().filter(busy) {
            *threads
                .entry(worker.of.load(Ordering::Relaxed))
                .or_default() += 1;
        }
        let running = threads.values().sum();
        (threads, running)
    }

    /// Workers that take jobs soon, or are being woken to do so.
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

    /// Calls `count` more workers, the most recently parked first.
    fn call(&mut self, count: usize, config: &WorkersConfig, calls: &mut Calls) {
        (0..count).for_each(|_| {
            self.call_one(config.max_threads, calls);
        });
    }

    /// Calls a worker to lead. There is a thread for it even when all that may run jobs are blocked.
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
