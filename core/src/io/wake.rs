//! Wakes the loop from other threads, with a system call only while the loop sleeps.

use std::cell::RefCell;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use crate::connection::Wake;
use crate::wakeup::Parking;

/// Wakes the loop that it belongs to; cheap while the loop runs.
#[derive(Debug)]
pub struct LoopWake {
    me: Weak<Self>,
    parking: Parking,
    /// Number of turns begun; only the loop changes it.
    turns: AtomicU64,
    waker: mio::Waker,
}

impl LoopWake {
    pub(super) fn new(registry: &mio::Registry, token: mio::Token) -> io::Result<Arc<Self>> {
        let waker = mio::Waker::new(registry, token)?;
        Ok(Arc::new_cyclic(|me| Self {
            me: me.clone(),
            parking: Parking::new(),
            turns: AtomicU64::new(0),
            waker,
        }))
    }

    /// Announces that the loop will sleep; `false` if it was woken since it last started to run.
    pub(super) fn park(&self) -> bool {
        self.parking.park()
    }

    /// Marks the loop as running; it sees everything done before the wake-ups during its sleep.
    pub(super) fn run(&self) {
        let turns = self.turns.load(Ordering::Relaxed);
        self.turns.store(turns + 1, Ordering::Relaxed);
        self.parking.run();
    }

    /// The current turn of the loop; `None` while it sleeps.
    #[cfg(unix)]
    pub(super) fn turn(&self) -> Option<u64> {
        (!self.parking.is_parked()).then(|| self.turns.load(Ordering::Relaxed))
    }
}

impl Wake for LoopWake {
    /// Makes the loop check for work: at once if it sleeps, else before it sleeps next.
    fn wake(&self) {
        if self.parking.wake() {
            // The event descriptor cannot be full or closed while `self` lives, and the waking thread
            // could not report an error.
            let _ = self.waker.wake();
        }
    }

    /// A worker thread may delay the wake-up by microseconds, until it has run the jobs queued after the
    /// current one.
    fn wake_soon(&self) {
        if !put_off(|| self.me.upgrade()) {
            self.wake();
        }
    }
}

thread_local! {
    /// The wake-ups delayed by the worker's job that this thread runs; `None` outside of a worker.
    static GATHERED: RefCell<Option<WakeUps>> = const { RefCell::new(None) };
}

/// Delayed wake-ups.
pub(super) type WakeUps = Vec<Arc<dyn Wake>>;

/// Leaves a wake-up to the worker whose job this thread runs. Returns `false` when no job runs, or when
/// the target is gone.
pub(super) fn put_off<W: Wake + 'static>(wake: impl FnOnce() -> Option<Arc<W>>) -> bool {
    GATHERED.with_borrow_mut(|gathered| {
        let gathered = gathered.as_mut().zip(wake());
        gathered
            .map(|(gathered, wake)| gathered.push(wake))
            .is_some()
    })
}

/// Runs a worker's job, and adds the wake-ups that it delays to `wakes`. When jobs are nested, an inner
/// job's wake-ups are not left to the worker of the outer one.
pub(super) fn gather(wakes: &mut WakeUps, job: impl FnOnce()) {
    let others = GATHERED.replace(Some(std::mem::take(wakes)));
    job();
    *wakes = GATHERED.replace(others).unwrap_or_default();
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;
    use std::time::Duration;

    use super::*;

    #[test]
    fn no_wake_up_is_lost() {
        const ROUNDS: usize = 20_000;
        let mut poll = mio::Poll::new().unwrap();
        let mut events = mio::Events::with_capacity(4);
        let wake = LoopWake::new(poll.registry(), mio::Token(0)).unwrap();
        let (asked, done) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let asker = {
            let (wake, asked, done) = (wake.clone(), asked.clone(), done.clone());
            std::thread::spawn(move || {
                for round in 1..=ROUNDS {
                    asked.store(round, Ordering::Relaxed);
                    wake.wake();
                    while done.load(Ordering::Acquire) < round {
                        std::hint::spin_loop();
                    }
                }
            })
        };
        while done.load(Ordering::Relaxed) < ROUNDS {
            if wake.park() {
                poll.poll(&mut events, Some(Duration::from_secs(10)))
                    .unwrap();
                assert!(!events.is_empty(), "slept through a wake-up");
            }
            wake.run();
            done.store(asked.load(Ordering::Relaxed), Ordering::Release);
        }
        asker.join().unwrap();
    }
}
