//! Runs a future without a runtime: on the thread that begins it, and then on each thread that wakes it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};

use super::Job;
use crate::panics::contain;

/// Runs a job whose polls are short: each runs on the thread that wakes it. A panic ends the job.
pub(crate) fn drive(job: Job) {
    let job = Arc::new(Driven {
        job: Mutex::new(Some(job)),
        is_woken: AtomicBool::new(false),
    });
    job.wake();
}

struct Driven {
    /// `None` once the job has ended.
    job: Mutex<Option<Job>>,
    /// Whether the job was woken since its last poll began.
    is_woken: AtomicBool,
}

impl Wake for Driven {
    fn wake(self: Arc<Self>) {
        self.is_woken.store(true, Ordering::SeqCst);
        let waker = Waker::from(self.clone());
        while self.is_woken.load(Ordering::SeqCst) {
            let Ok(mut job) = self.job.try_lock() else {
                // The thread that polls sees the flag after it has released the lock.
                return;
            };
            self.is_woken.store(false, Ordering::SeqCst);
            let Some(running) = job.as_mut() else { return };
            let polled = contain("a job", || {
                running.as_mut().poll(&mut Context::from_waker(&waker))
            });
            if !matches!(polled, Some(Poll::Pending)) {
                let ended = job.take();
                drop(job);
                contain("a job", || drop(ended));
                return;
            }
        }
    }
}
