//! Waking the loop from other threads, with a system call only when it sleeps.
//!
//! ```text
//!             wake                    wake: write the event descriptor
//!   RUNNING ────────▶ NOTIFIED      PARKED ───────────────▶ NOTIFIED
//!   RUNNING ────────▶ PARKED (the loop)   any ────────▶ RUNNING (the loop)
//! ```
//!
//! Every step is one atomic exchange, so a wake-up between the loop's last look at its work and
//! its sleep is never lost: the exchange `RUNNING → PARKED` fails and the loop looks again.

use std::cell::RefCell;
use std::io;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use crate::connection::Wake;

const RUNNING: u8 = 0;
const NOTIFIED: u8 = 1;
const PARKED: u8 = 2;

/// Wakes the loop that it was made by; cheap while the loop runs.
#[derive(Debug)]
pub struct LoopWake {
    me: Weak<Self>,
    state: AtomicU8,
    /// Turns begun; counted by the loop alone.
    turns: AtomicU64,
    waker: mio::Waker,
}

impl LoopWake {
    pub(super) fn new(registry: &mio::Registry, token: mio::Token) -> io::Result<Arc<Self>> {
        let waker = mio::Waker::new(registry, token)?;
        Ok(Arc::new_cyclic(|me| Self {
            me: me.clone(),
            state: AtomicU8::new(RUNNING),
            turns: AtomicU64::new(0),
            waker,
        }))
    }

    /// The same as [`wake`](Self::wake), but a worker thread may put it off until it has run the
    /// jobs behind this one, by microseconds.
    pub fn wake_soon(&self) {
        if !put_off(|| self.me.upgrade()) {
            self.wake();
        }
    }

    /// The loop looks at its work again: at once when it sleeps, before it sleeps otherwise.
    pub fn wake(&self) {
        if self.state.swap(NOTIFIED, Ordering::AcqRel) == PARKED {
            // The event descriptor cannot be full or closed while `self` lives, and a thread
            // that wakes has nobody to tell.
            let _ = self.waker.wake();
        }
    }

    /// The loop is about to sleep; `false` when it was woken since it last started to run.
    pub(super) fn park(&self) -> bool {
        self.state
            .compare_exchange(RUNNING, PARKED, Ordering::AcqRel, Ordering::Acquire)
            .is_ok()
    }

    /// The loop runs, and sees everything that was done before the wake-ups it slept through.
    pub(super) fn run(&self) {
        let turns = self.turns.load(Ordering::Relaxed);
        self.turns.store(turns + 1, Ordering::Relaxed);
        self.state.swap(RUNNING, Ordering::AcqRel);
    }

    /// Which turn the loop is in; `None` while it sleeps.
    #[cfg(unix)]
    pub(super) fn turn(&self) -> Option<u64> {
        let runs = self.state.load(Ordering::Acquire) != PARKED;
        runs.then(|| self.turns.load(Ordering::Relaxed))
    }
}

thread_local! {
    /// The wake-ups put off by the job that this thread runs, when it is a worker's.
    static GATHERED: RefCell<Option<WakeUps>> = const { RefCell::new(None) };
}

/// Wake-ups that are put off.
pub(super) type WakeUps = Vec<Arc<dyn Wake>>;

/// Leaves a wake-up to the worker whose job this thread runs. `false` when it runs none, or nobody
/// is left to be woken.
pub(super) fn put_off<W: Wake + 'static>(wake: impl FnOnce() -> Option<Arc<W>>) -> bool {
    GATHERED.with_borrow_mut(|gathered| {
        let gathered = gathered.as_mut().zip(wake());
        gathered
            .map(|(gathered, wake)| gathered.push(wake))
            .is_some()
    })
}

/// Runs a worker's job; the wake-ups that it leaves to the worker are added to `wakes`. Within
/// another job they are not left to that one's worker.
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
