//! The worker threads of plain functions, without the interpreter.
#![allow(clippy::unwrap_used, reason = "a test: panicking is the report")]

#[allow(dead_code, reason = "the package uses more of it")]
#[path = "../src/workers.rs"]
mod workers;

use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc::channel;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::thread::gettid;
use rustix::time::{ClockId, clock_gettime};

use self::workers::{NOBODY, Tag, Workers};

const LONG: Duration = Duration::from_secs(30);
/// The threads of one source, and of all together.
const SHARE: usize = 30;
const ALL: usize = 40;

type Job = Box<dyn FnOnce() + Send>;

/// One test at a time, so that the processor time is that of one test.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Workers that run closures, as the package's run calls.
#[derive(Default)]
struct Pool {
    workers: Workers<Job>,
    /// How many threads were started.
    spawned: AtomicUsize,
}

impl Pool {
    fn push(self: &Arc<Self>, of: Tag, jobs: impl IntoIterator<Item = Job>) {
        self.workers.push(of, jobs, None::<fn()>, || self.spawn());
    }

    fn spawn(self: &Arc<Self>) -> bool {
        self.spawned.fetch_add(1, SeqCst);
        let pool = self.clone();
        thread::spawn(move || pool.work());
        true
    }

    fn work(self: &Arc<Self>) {
        let here = gettid();
        let wait = |begin| self.workers.wait(here, begin, &|| self.spawn(), &|| ());
        let mut next = wait(true);
        while let Some(job) = next {
            job();
            next = self.workers.next(here).or_else(|| wait(false));
        }
    }

    /// Waits until a quick job of this source has run.
    fn serve(self: &Arc<Self>, of: Tag) {
        let (sender, receiver) = channel();
        self.push(of, [Box::new(move || sender.send(()).unwrap()) as Job]);
        receiver.recv_timeout(LONG).unwrap();
    }

    fn close(&self) {
        self.workers.close(LONG);
    }
}

/// Holds jobs until it opens.
#[derive(Clone, Default)]
struct Gate(Arc<(Mutex<bool>, Condvar)>);

impl Gate {
    fn open(&self) {
        *self.0.0.lock().unwrap() = true;
        self.0.1.notify_all();
    }

    fn pass(&self) {
        let open = self.0.0.lock().unwrap();
        drop(self.0.1.wait_while(open, |open| !*open).unwrap());
    }
}

/// Counts jobs.
#[derive(Clone, Default)]
struct Count(Arc<AtomicUsize>);

impl Count {
    fn add(&self) {
        self.0.fetch_add(1, SeqCst);
    }

    fn now(&self) -> usize {
        self.0.load(SeqCst)
    }

    /// Waits until the count is `expected`.
    fn reaches(&self, expected: usize) {
        let start = Instant::now();
        while self.now() < expected {
            assert!(start.elapsed() < LONG, "{} of {expected}", self.now());
            thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(self.now(), expected);
    }
}

/// Jobs that count themselves, then wait at a gate.
fn blocking(count: usize, began: &Count, gate: &Gate) -> Vec<Job> {
    let job = |_| -> Job {
        let (began, gate) = (began.clone(), gate.clone());
        Box::new(move || {
            began.add();
            gate.pass();
        })
    };
    (0..count).map(job).collect()
}

/// The processor time that this process uses in a quarter of a second.
fn used_in_a_while() -> Duration {
    let used = || Duration::try_from(clock_gettime(ClockId::ProcessCPUTime)).unwrap();
    let before = used();
    thread::sleep(Duration::from_millis(250));
    used() - before
}

#[test]
fn a_source_whose_calls_block_leaves_threads_to_others() {
    let _alone = alone();
    let (pool, began, gate) = (Arc::new(Pool::default()), Count::default(), Gate::default());
    pool.push(1, blocking(100, &began, &gate));
    began.reaches(SHARE);
    for _ in 0..20 {
        pool.serve(2);
    }
    assert_eq!(began.now(), SHARE);
    // Calls of other sources may block, too, and each finds a thread, and the next source as well.
    let (others, others_gate) = (Count::default(), Gate::default());
    let sources = 2..=ALL - SHARE;
    for source in sources.clone() {
        pool.push(source as u64, blocking(2, &others, &others_gate));
    }
    others.reaches(sources.clone().count());
    pool.serve(100);
    assert_eq!(others.now(), sources.clone().count());
    assert_eq!(began.now(), SHARE);
    others_gate.open();
    others.reaches(2 * sources.count());

    // Nothing spins while only work that is passed over waits.
    let used = used_in_a_while();
    assert!(used < Duration::from_millis(125), "{used:?}");
    assert_eq!(began.now(), SHARE);
    let spawned = pool.spawned.load(SeqCst);
    assert!(spawned <= ALL, "{spawned}");

    gate.open();
    began.reaches(100);
    pool.serve(1);
    pool.close();
}

#[test]
fn a_source_that_refills_its_share_does_not_keep_others_waiting() {
    let _alone = alone();
    let (pool, began, gate) = (Arc::new(Pool::default()), Count::default(), Gate::default());
    pool.push(1, blocking(SHARE, &began, &gate));
    began.reaches(SHARE);
    let brief = |_| -> Job {
        let began = began.clone();
        Box::new(move || {
            began.add();
            thread::sleep(Duration::from_millis(2));
        })
    };
    // With 30 threads they take at least 400 ms.
    let rest = 6000;
    pool.push(1, (0..rest).map(brief));
    gate.open();
    pool.serve(2);
    let before = began.now() - SHARE;
    assert!(before < rest / 2, "it waited for {before} calls");
    began.reaches(SHARE + rest);
    pool.close();
}

#[test]
fn calls_of_unknown_sources_use_all_threads() {
    let _alone = alone();
    let (pool, began, gate) = (Arc::new(Pool::default()), Count::default(), Gate::default());
    pool.push(NOBODY, blocking(60, &began, &gate));
    began.reaches(ALL);
    thread::sleep(Duration::from_millis(20));
    assert_eq!(began.now(), ALL);
    gate.open();
    began.reaches(60);
    pool.close();
}

/// Calls that come back from waiting for their client may exceed its share, but take no threads from
/// others.
#[test]
fn calls_that_come_back_leave_threads_to_others() {
    let _alone = alone();
    let (pool, aside) = (Arc::new(Pool::default()), Count::default());
    let (back, answer, gate) = (Count::default(), Gate::default(), Gate::default());
    let asking = |_| -> Job {
        let (pool, aside, back) = (pool.clone(), aside.clone(), back.clone());
        let (answer, gate) = (answer.clone(), gate.clone());
        Box::new(move || {
            let wait = || {
                aside.add();
                answer.pass();
            };
            pool.workers.aside(|| pool.spawn(), wait);
            back.add();
            gate.pass();
        })
    };
    pool.push(1, (0..2 * ALL).map(asking));
    aside.reaches(2 * ALL);
    answer.open();
    back.reaches(2 * ALL);
    pool.serve(2);
    let more = Count::default();
    pool.push(1, blocking(1, &more, &gate));
    pool.serve(2);
    assert_eq!(more.now(), 0);
    gate.open();
    more.reaches(1);
    pool.close();
}
