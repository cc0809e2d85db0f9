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

/// Of two tasks that poll one after the other, the last one is woken.
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
