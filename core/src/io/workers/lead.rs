//! Leader/followers: the workers drive one event loop in turns.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;

use super::watch::Watch;
use super::{Calls, Leader, Pool, State, Workers};
use crate::connection::Wake;
use crate::io::wake::WakeUps;
use crate::sync::lock;

/// Wake-ups for an event loop that performs them itself, where they cost least.
pub(in crate::io) struct Mailbox {
    /// Wakes the loop.
    pub notifier: Arc<dyn Wake>,
    pub wakes: Mutex<WakeUps>,
}

/// Runs the event loop on this thread until it is over (then returns `true`) or the thread is wanted.
type Run = dyn Fn(WakeUps, &dyn Fn() -> bool) -> bool + Send + Sync;

/// The event loop of a pool.
pub(super) struct Lead {
    run: Box<Run>,
    mailbox: Option<Arc<Mailbox>>,
}

impl Lead {
    /// Tells the leader that it has brought in jobs. A loop without a mailbox finds out before it waits.
    pub fn tell_of_jobs(&self) {
        if let Some(mailbox) = &self.mailbox {
            mailbox.notifier.wake();
        }
    }

    /// Performs wake-ups from a thread that does not lead.
    pub fn wake(&self, mut wakes: WakeUps) {
        match &self.mailbox {
            None => wakes.iter().for_each(|wake| wake.wake()),
            Some(mailbox) => {
                lock(&mailbox.wakes).append(&mut wakes);
                mailbox.notifier.wake();
            }
        }
    }
}

impl Workers {
    /// Makes the pool drive an event loop until it is over. The receiver gets its report, or is
    /// disconnected if the loop panics. A pool drives at most one loop in its life.
    ///
    /// `run` performs the wake-ups that it is given, and then runs turns until the loop is over, or until
    /// the function that it calls before each wait says that the thread is needed for jobs. At least one
    /// turn waits first, so that endless jobs do not starve the wire. With a mailbox, the loop also
    /// performs the wake-ups in there.
    ///
    /// # Errors
    /// When the pool already drives a loop, or no thread can be started.
    pub(in crate::io) fn drive<R: Send + 'static>(
        &self,
        mailbox: Option<Arc<Mailbox>>,
        run: impl FnMut(WakeUps, &dyn Fn() -> bool) -> Option<R> + Send + 'static,
    ) -> io::Result<Receiver<R>> {
        let (sender, report) = channel();
        // Only the leader locks it, so the lock is never contended.
        let event_loop = Mutex::new(Some((run, sender)));
        let run = move |wakes, is_wanted: &dyn Fn() -> bool| {
            let mut slot = lock(&event_loop);
            let Some((run, _)) = slot.as_mut() else {
                return true;
            };
            let outcome = catch_unwind(AssertUnwindSafe(|| run(wakes, is_wanted)));
            if matches!(outcome, Ok(None)) {
                return false;
            }
            let ended = slot.take();
            drop(slot);
            if let Some((run, sender)) = ended {
                // The report tells that all of the loop is gone.
                drop(run);
                let _ = outcome.map(|report| report.map(|report| sender.send(report)));
            }
            true
        };
        let run = Box::new(run);
        if self.pool.lead.set(Lead { run, mailbox }).is_err() {
            let why = "these workers drive another connection already";
            return Err(io::Error::other(why));
        }
        let mut calls = Calls::default();
        let mut state = self.pool.lock();
        state.call_leader(&self.pool.config, &mut calls);
        drop(state);
        self.pool.make(calls);
        match self.thread_count() {
            0 => Err(io::Error::other("no thread can be started")),
            _ => Ok(report),
        }
    }
}

impl Pool {
    /// Drives the loop if nobody does, until this thread is needed for jobs.
    pub(super) fn lead<'a>(
        self: &'a Arc<Self>,
        mut state: MutexGuard<'a, State>,
    ) -> MutexGuard<'a, State> {
        let Some(lead) = self.lead.get().filter(|_| state.is_leaderless()) else {
            return state;
        };
        state.leader = Leader::Is(thread::current().id());
        state.terms += 1;
        let wakes = std::mem::take(&mut state.put_off);
        drop(state);
        // While other workers empty the queue, this thread is not needed. If all threads that may run
        // jobs are away, one must still serve the wire.
        let is_wanted = || {
            let state = self.lock();
            !state.queue.is_empty() && state.awake() == 0 && state.away < self.config.max_threads
        };
        let over = (lead.run)(wakes, &is_wanted);
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
}
