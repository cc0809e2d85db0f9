//! Loom models: no wake-up is lost, whatever the order of steps. A lost wake-up shows as a
//! deadlock.
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p mcpbolt --lib --no-default-features --release loom`.

use std::sync::atomic::Ordering;
use std::task::{Context, Wake, Waker};

use loom::sync::atomic::AtomicUsize;
use loom::sync::{Arc, Notify};
use loom::thread;

use super::{Parking, Ring};

/// The state shared by a loop and the threads that wake it.
struct Shared {
    parking: Parking,
    poller: Notify,
    work: AtomicUsize,
}

impl Shared {
    fn add_work(&self) {
        self.work.fetch_add(1, Ordering::Relaxed);
        if self.parking.wake() {
            self.poller.notify();
        }
    }

    /// Runs like a driver until it has seen `all` the work.
    fn run(&self, all: usize) {
        while self.work.load(Ordering::Relaxed) < all {
            if self.parking.park() {
                self.poller.wait();
            }
            self.parking.run();
        }
    }
}

fn loom_parking(threads: usize) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = (threads > 1).then_some(3);
    builder.check(move || {
        let shared = Arc::new(Shared {
            parking: Parking::new(),
            poller: Notify::new(),
            work: AtomicUsize::new(0),
        });
        let adding: Vec<_> = (0..threads)
            .map(|_| {
                let shared = shared.clone();
                thread::spawn(move || shared.add_work())
            })
            .collect();
        shared.run(threads);
        adding
            .into_iter()
            .for_each(|thread| thread.join().unwrap_or_default());
    });
}

#[test]
fn loom_a_loop_that_parks_sees_the_work_of_one_thread() {
    loom_parking(1);
}

#[test]
fn loom_a_loop_that_parks_sees_the_work_of_two_threads() {
    loom_parking(2);
}

/// When several threads wake a sleeping loop, exactly one of them rings its poller.
#[test]
fn loom_a_sleep_is_rung_once() {
    loom::model(|| {
        let parking = Arc::new(Parking::new());
        assert!(parking.park(), "nobody woke it");
        let other = parking.clone();
        let waking = thread::spawn(move || other.wake());
        let rings = [parking.wake(), waking.join().unwrap_or_default()];
        assert!(rings[0] != rings[1]);
        assert!(!parking.park(), "it is to look for work first");
        parking.run();
        assert!(parking.park());
    });
}

/// A loop whose sleep ends by itself, as at a deadline, sees what a thread added meanwhile: at once, or
/// after another sleep.
#[test]
fn loom_a_loop_that_awakes_by_itself_loses_no_wake_up() {
    loom::model(|| {
        let shared = Arc::new(Shared {
            parking: Parking::new(),
            poller: Notify::new(),
            work: AtomicUsize::new(0),
        });
        let other = shared.clone();
        let adding = thread::spawn(move || other.add_work());
        shared.parking.park();
        shared.parking.run();
        shared.run(1);
        adding.join().unwrap_or_default();
    });
}

/// Wakes a model's task.
struct Task(Notify);

impl Wake for Task {
    fn wake(self: std::sync::Arc<Self>) {
        self.0.notify();
    }
}

#[test]
fn loom_a_task_that_watches_sees_every_ring() {
    loom::model(|| {
        let ring = Arc::new((Ring::new(), AtomicUsize::new(0)));
        let other = ring.clone();
        let ringing = thread::spawn(move || {
            for _ in 0..2 {
                other.1.fetch_add(1, Ordering::Relaxed);
                other.0.ring();
            }
        });
        let task = std::sync::Arc::new(Task(Notify::new()));
        let waker = Waker::from(task.clone());
        loop {
            let rung = ring.0.watch(&Context::from_waker(&waker));
            if ring.1.load(Ordering::Relaxed) == 2 {
                break;
            }
            if !rung {
                task.0.wait();
            }
        }
        ringing.join().unwrap_or_default();
    });
}

/// When two tasks poll one after the other, the last one is woken.
#[test]
fn loom_a_task_that_takes_over_is_woken() {
    loom::model(|| {
        let ring = Arc::new(Ring::new());
        let first = Waker::from(std::sync::Arc::new(Task(Notify::new())));
        let seen = ring.watch(&Context::from_waker(&first));
        assert!(!seen, "nobody rang");
        let other = ring.clone();
        let ringing = thread::spawn(move || other.ring());
        let task = std::sync::Arc::new(Task(Notify::new()));
        let waker = Waker::from(task.clone());
        while !ring.watch(&Context::from_waker(&waker)) {
            task.0.wait();
        }
        ringing.join().unwrap_or_default();
    });
}

/// Two threads ring at the same time.
#[test]
fn loom_a_task_sees_the_rings_of_two_threads() {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(|| {
        let ring = Arc::new((Ring::new(), AtomicUsize::new(0)));
        let ringing = [(), ()].map(|()| {
            let other = ring.clone();
            thread::spawn(move || {
                other.1.fetch_add(1, Ordering::Relaxed);
                other.0.ring();
            })
        });
        let task = std::sync::Arc::new(Task(Notify::new()));
        let waker = Waker::from(task.clone());
        loop {
            let rung = ring.0.watch(&Context::from_waker(&waker));
            if ring.1.load(Ordering::Relaxed) == 2 {
                break;
            }
            if !rung {
                task.0.wait();
            }
        }
        for thread in ringing {
            thread.join().unwrap_or_default();
        }
    });
}

/// A ring for an earlier use may come while the flag is reset; a later one still wakes the task.
#[test]
fn loom_a_ring_that_comes_late_takes_no_wake_up_from_the_next_use() {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(|| {
        let ring = Arc::new((Ring::new(), AtomicUsize::new(0)));
        let before = Waker::from(std::sync::Arc::new(Task(Notify::new())));
        ring.0.watch(&Context::from_waker(&before));
        let other = ring.clone();
        let late = thread::spawn(move || other.0.ring());
        ring.0.reset();
        let other = ring.clone();
        let ringing = thread::spawn(move || {
            other.1.fetch_add(1, Ordering::Relaxed);
            other.0.ring();
        });
        let task = std::sync::Arc::new(Task(Notify::new()));
        let waker = Waker::from(task.clone());
        loop {
            let rung = ring.0.watch(&Context::from_waker(&waker));
            if ring.1.load(Ordering::Relaxed) == 1 {
                break;
            }
            if !rung {
                task.0.wait();
            }
        }
        for thread in [late, ringing] {
            thread.join().unwrap_or_default();
        }
    });
}
