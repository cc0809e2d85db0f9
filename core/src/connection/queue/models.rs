//! Loom models of submitting: only the first submission wakes the driver, and the driver still takes
//! every one. A submission that waits for ever is a deadlock.

use loom::sync::{Arc, Notify};
use loom::thread;

use super::{Queue, Submission, Submitted};
use crate::wakeup::Parking;

struct Shared {
    queue: Queue,
    parking: Parking,
    poller: Notify,
}

fn explore(threads: usize, each: usize) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = (threads > 1).then_some(3);
    builder.check(move || {
        let shared = Arc::new(Shared {
            queue: Queue::default(),
            parking: Parking::new(),
            poller: Notify::new(),
        });
        let submitting: Vec<_> = (0..threads)
            .map(|_| {
                let shared = shared.clone();
                thread::spawn(move || {
                    for _ in 0..each {
                        let is_first = shared.queue.push(&[], |all| all.push(Submission::Close));
                        if is_first && shared.parking.wake() {
                            shared.poller.notify();
                        }
                    }
                })
            })
            .collect();
        let (mut batch, mut taken) = (Submitted::default(), 0);
        loop {
            shared.queue.take(&mut batch);
            taken += batch.submissions.len();
            if taken == threads * each {
                break;
            }
            if shared.parking.park() {
                shared.poller.wait();
            }
            shared.parking.run();
        }
        submitting
            .into_iter()
            .for_each(|thread| thread.join().unwrap_or_default());
    });
}

#[test]
fn loom_the_driver_takes_all_that_one_thread_submits() {
    explore(1, 2);
}

#[test]
fn loom_the_driver_takes_all_that_two_threads_submit() {
    explore(2, 1);
}
