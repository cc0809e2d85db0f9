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
//! The worker that fell idle last is woken first: its stack is in the cache. A second worker
//! gets work only when the first ones have not come back for the next job for a tick, however
//! they are blocked; the number then doubles with each tick up to a cap. The watch itself sleeps
//! while no job waits behind another.
//!
//! Answers leave in batches too: a handler's last act may leave the waking of the loop to its
//! worker, which does so when the queue is empty or [`GATHER`] has passed; the watch does when a
//! job behind it blocks.

use std::collections::VecDeque;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use async_task::Runnable;

use super::wake::{LoopWake, gather};
use crate::handler::{Job, Spawner};

/// How long an answer may wait for those that are computed right behind it.
const GATHER: Duration = Duration::from_micros(100);

/// The first tick after jobs began to wait, and after a worker was found stuck.
const SHORT_TICK: Duration = Duration::from_micros(200);
/// The longest tick, reached while jobs wait but are taken.
const LONG_TICK: Duration = Duration::from_millis(2);
/// Ticks without a job after which the watch sleeps.
const QUIET_TICKS: u32 = 8;

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

/// Threads that run handlers; started as they are needed.
///
/// Dropping it lets the threads finish what is queued and end; it does not wait for them.
#[derive(Debug)]
pub struct Workers {
    pool: Arc<Pool>,
}

#[derive(Debug)]
struct Pool {
    config: WorkersConfig,
    state: Mutex<State>,
    /// Wakes the watch.
    watch: Condvar,
}

#[derive(Debug, Default)]
struct State {
    queue: VecDeque<Runnable>,
    /// Loops to be woken once the jobs at hand have run.
    put_off: Vec<Arc<LoopWake>>,
    /// Jobs taken so far.
    taken: u64,
    /// Parked workers; the last one is the warmest.
    idle: Vec<Arc<Parked>>,
    threads: usize,
    watch: Watch,
    closed: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Watch {
    #[default]
    NotStarted,
    Asleep,
    Awake,
}

#[derive(Debug)]
struct Parked {
    thread: Thread,
    /// Changed under the lock only, together with the place in [`State::idle`].
    woken: AtomicBool,
}

/// Who is to be woken once the lock is released.
#[derive(Default)]
struct Calls {
    workers: Vec<Arc<Parked>>,
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
                watch: Condvar::new(),
            }),
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
        let runnables: Vec<Runnable> = futures.map(|future| self.runnable(future)).collect();
        self.pool.push(runnables);
    }

    fn runnable(&self, future: impl Future<Output = ()> + Send + 'static) -> Runnable {
        let pool = self.pool.clone();
        let (runnable, task) = async_task::spawn(future, move |again| pool.push([again]));
        task.detach();
        runnable
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

    fn spawn_batch(&self, jobs: &mut dyn Iterator<Item = Job>) {
        Self::spawn_batch(self, jobs);
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

    fn push(self: &Arc<Self>, runnables: impl IntoIterator<Item = Runnable>) {
        let mut calls = Calls::default();
        let mut state = self.lock();
        state.queue.extend(runnables);
        if state.queue.is_empty() {
            return;
        }
        let awake = state.threads - state.idle.len();
        if awake == 0 {
            state.call(1, &self.config, &mut calls);
        }
        // Somebody waits behind somebody else.
        if awake + state.queue.len() > 1 && state.watch != Watch::Awake {
            calls.new_watch = state.watch == Watch::NotStarted;
            calls.watch = state.watch == Watch::Asleep;
            state.watch = Watch::Awake;
        }
        drop(state);
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
                self.lock().threads -= 1;
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
    fn work(&self) {
        let parked = Arc::new(Parked {
            thread: thread::current(),
            woken: AtomicBool::new(false),
        });
        let mut state = self.lock();
        loop {
            state = self.run_queue(state);
            if state.closed {
                break;
            }
            parked.woken.store(false, Ordering::Relaxed);
            state.idle.push(parked.clone());
            drop(state);
            self.park(&parked);
            state = self.lock();
            if !parked.woken.load(Ordering::Acquire) {
                state.idle.retain(|other| !Arc::ptr_eq(other, &parked));
                if state.queue.is_empty() {
                    break;
                }
            }
        }
        state.threads -= 1;
    }

    /// Runs jobs until none is queued, and leaves no wake-up behind.
    fn run_queue<'a>(&'a self, mut state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        let mut wakes = Vec::new();
        let mut since = None;
        loop {
            let next = state.queue.pop_front();
            let flush =
                next.is_none() || since.is_some_and(|since: Instant| since.elapsed() >= GATHER);
            if flush {
                wakes = std::mem::take(&mut state.put_off);
                since = None;
            }
            state.taken += u64::from(next.is_some());
            if next.is_none() && wakes.is_empty() {
                return state;
            }
            drop(state);
            wakes.drain(..).for_each(|wake| wake.wake());
            if let Some(runnable) = next {
                // A handler's panic is the handler's; the thread serves on.
                let job = || drop(catch_unwind(AssertUnwindSafe(|| runnable.run())));
                gather(&mut wakes, job);
            }
            state = self.lock();
            if !wakes.is_empty() {
                since = since.or_else(|| Some(Instant::now()));
                state.put_off.append(&mut wakes);
            }
        }
    }

    /// Sleeps until woken or for as long as a thread without work is kept.
    fn park(&self, parked: &Parked) {
        let until = Instant::now() + self.config.keep_alive;
        while !parked.woken.load(Ordering::Acquire) {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            thread::park_timeout(left);
        }
    }

    /// The watch's life: looks once a tick whether the workers still come back for jobs.
    fn watch(self: &Arc<Self>) {
        let (mut tick, mut quiet, mut seen) = (SHORT_TICK, 0, 0);
        loop {
            thread::sleep(tick);
            let mut calls = Calls::default();
            let mut state = self.lock();
            if state.closed && state.queue.is_empty() {
                return;
            }
            let still = state.taken == seen;
            let stuck = still && !state.queue.is_empty();
            quiet = if still && !stuck { quiet + 1 } else { 0 };
            seen = state.taken;
            // The job that was to be followed by the wake-ups has not come back.
            let late = match still {
                true => std::mem::take(&mut state.put_off),
                false => Vec::new(),
            };
            if stuck {
                tick = SHORT_TICK;
                let awake = state.threads - state.idle.len();
                let more = awake.clamp(1, state.queue.len());
                state.call(more, &self.config, &mut calls);
            } else if quiet < QUIET_TICKS || !late.is_empty() {
                tick = (tick * 2).min(LONG_TICK);
            } else {
                state.watch = Watch::Asleep;
                while state.watch == Watch::Asleep && !state.closed {
                    state = self
                        .watch
                        .wait(state)
                        .unwrap_or_else(PoisonError::into_inner);
                }
                (tick, quiet, seen) = (SHORT_TICK, 0, state.taken);
            }
            drop(state);
            late.iter().for_each(|wake| wake.wake());
            self.make(calls);
        }
    }
}

impl State {
    /// Calls so many more workers to the queue, the warmest first.
    fn call(&mut self, count: usize, config: &WorkersConfig, calls: &mut Calls) {
        for _ in 0..count {
            if let Some(worker) = self.idle.pop() {
                worker.woken.store(true, Ordering::Release);
                calls.workers.push(worker);
            } else if self.threads < config.max_threads {
                self.threads += 1;
                calls.new_workers += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::sync::atomic::AtomicUsize;
    use std::sync::mpsc::channel;

    use super::*;

    const LONG: Duration = Duration::from_secs(30);

    fn pool(max_threads: usize) -> Workers {
        Workers::new(WorkersConfig {
            max_threads,
            keep_alive: Duration::from_millis(200),
            ..WorkersConfig::default()
        })
    }

    #[test]
    fn every_job_of_every_batch_runs_once() {
        let workers = pool(8);
        let (sender, receiver) = channel();
        for batch in 0..200 {
            workers.spawn_batch((0..50).map(|job| {
                let sender = sender.clone();
                async move { sender.send(batch * 50 + job).unwrap() }
            }));
        }
        drop(sender);
        let mut seen: Vec<i32> = receiver.iter().collect();
        seen.sort_unstable();
        assert!(seen.into_iter().eq(0..10_000));
    }

    #[test]
    fn handlers_that_block_hold_up_nobody() {
        let workers = pool(64);
        let barrier = Arc::new(Barrier::new(33));
        let start = Instant::now();
        workers.spawn_batch((0..32).map(|_| {
            let barrier = barrier.clone();
            async move {
                barrier.wait();
            }
        }));
        barrier.wait();
        assert!(
            start.elapsed() < Duration::from_secs(2),
            "{:?}",
            start.elapsed()
        );
        assert!(workers.thread_count() >= 32);
    }

    #[test]
    fn no_more_threads_than_the_cap_and_they_go_when_idle() {
        let workers = pool(4);
        let (running, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let (sender, receiver) = channel();
        workers.spawn_batch((0..40).map(|_| {
            let (running, most, sender) = (running.clone(), most.clone(), sender.clone());
            async move {
                most.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                thread::sleep(Duration::from_millis(5));
                running.fetch_sub(1, Ordering::SeqCst);
                sender.send(()).unwrap();
            }
        }));
        for _ in 0..40 {
            receiver.recv_timeout(LONG).unwrap();
        }
        assert!((2..=4).contains(&most.load(Ordering::SeqCst)), "{most:?}");
        let start = Instant::now();
        while workers.thread_count() > 0 {
            assert!(
                start.elapsed() < LONG,
                "{} threads stay",
                workers.thread_count()
            );
            thread::sleep(Duration::from_millis(10));
        }
    }

    #[test]
    fn a_panic_costs_neither_the_thread_nor_the_others() {
        let workers = pool(1);
        let (sender, receiver) = channel();
        workers.spawn(async { std::panic::resume_unwind(Box::new(())) });
        workers.spawn(async move { sender.send(()).unwrap() });
        receiver.recv_timeout(LONG).unwrap();
    }

    #[test]
    fn a_future_that_waits_goes_on_when_it_is_woken() {
        let workers = pool(2);
        let (sender, receiver) = channel();
        let mut left = 1000;
        workers.spawn(async move {
            std::future::poll_fn(|cx| {
                left -= 1;
                if left == 0 {
                    return std::task::Poll::Ready(());
                }
                let waker = cx.waker().clone();
                match left % 100 {
                    0 => drop(thread::spawn(move || waker.wake())),
                    _ => waker.wake(),
                }
                std::task::Poll::Pending
            })
            .await;
            sender.send(()).unwrap();
        });
        receiver.recv_timeout(LONG).unwrap();
    }

    #[test]
    fn what_is_queued_still_runs_when_the_pool_is_dropped() {
        let workers = pool(1);
        let (sender, receiver) = channel();
        workers.spawn_batch((0..100).map(|n| {
            let sender = sender.clone();
            async move { sender.send(n).unwrap() }
        }));
        drop((workers, sender));
        assert_eq!(receiver.iter().count(), 100);
    }

    #[test]
    fn a_wake_up_that_is_put_off_does_not_wait_for_a_job_that_blocks() {
        let mut poll = mio::Poll::new().unwrap();
        let wake = LoopWake::new(poll.registry(), mio::Token(0)).unwrap();
        let workers = pool(1);
        for _ in 0..20 {
            assert!(wake.park());
            let (release, blocked) = channel::<()>();
            let quick = wake.clone();
            let jobs: [Job; 2] = [
                Box::pin(async move { quick.wake_soon() }),
                Box::pin(async move {
                    blocked.recv().unwrap_err();
                }),
            ];
            workers.spawn_batch(jobs.into_iter());
            let mut events = mio::Events::with_capacity(1);
            poll.poll(&mut events, Some(LONG)).unwrap();
            assert!(!events.is_empty(), "the loop was not woken");
            wake.run();
            drop(release);
        }
    }

    #[test]
    fn quick_jobs_keep_to_one_thread() {
        let workers = pool(64);
        let (sender, receiver) = channel();
        for _ in 0..100 {
            workers.spawn_batch((0..32).map(|_| {
                let sender = sender.clone();
                async move { sender.send(()).unwrap() }
            }));
            for _ in 0..32 {
                receiver.recv_timeout(LONG).unwrap();
            }
        }
        // The system may stop a thread at any point, which looks like a stuck one.
        assert!(workers.thread_count() <= 8, "{}", workers.thread_count());
    }
}
