//! Stdin and stdout with a helper: another thread that takes turns of the loop while the loop's own thread sleeps.
//!
//! A thread that has an answer would otherwise wake the loop: two switches between threads for one write. The helper does the
//! turn itself. While the loop is in a turn of its own it does not, since the loop then sees the answer before it sleeps.

use std::fmt;
use std::io;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use super::machine::Machine;
use super::stdio::{Report, Stdio, StdioLoop};
use super::wake::{LoopWake, WakeUps, gather};
use crate::connection::Wake;
use crate::sync::lock;

/// Takes turns of a loop, on any thread.
#[derive(Clone)]
pub struct StdioHelper {
    shared: Arc<dyn Turns>,
    wake: Arc<LoopWake>,
}

impl fmt::Debug for StdioHelper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StdioHelper").finish_non_exhaustive()
    }
}

impl StdioHelper {
    /// Runs `job`, then handles and writes what it submitted with
    /// [`submit_last`](crate::connection::Replies::submit_last): on this thread if the loop sleeps. Inline handlers
    /// may run on this thread, too.
    pub fn run(&self, job: impl FnOnce()) {
        let mut wakes = WakeUps::new();
        gather(&mut wakes, job);
        let own = Arc::as_ptr(&self.wake).cast::<()>();
        wakes.retain(|wake| {
            let is_own = Arc::as_ptr(wake).cast::<()>() == own;
            if !is_own {
                wake.wake();
            }
            is_own
        });
        if wakes.is_empty() {
            return;
        }
        // A panic in the turn ends the loop, which must be awake for that.
        let awake = WakeOnDrop(&self.wake);
        if self.shared.take_turn() {
            std::mem::forget(awake);
        }
    }
}

struct WakeOnDrop<'a>(&'a LoopWake);

impl Drop for WakeOnDrop<'_> {
    fn drop(&mut self) {
        self.0.wake();
    }
}

impl Stdio {
    /// Connects `machine` to stdin and stdout. Returns a function that drives it until the wire ends, as
    /// [`run`](Self::run) does, and the helper of that loop.
    ///
    /// # Errors
    /// When the wire cannot be set up.
    pub fn helped<M: Machine + Send + 'static>(
        self,
        machine: M,
    ) -> io::Result<(
        impl FnOnce() -> io::Result<Report> + Send + 'static,
        StdioHelper,
    )> {
        let (event_loop, mut poller, held) = self.begin()?;
        let wake = event_loop.driver.wake().clone();
        let shared = Arc::new(Shared(Mutex::new(Some(Running {
            event_loop,
            machine,
            until: None,
            report: None,
        }))));
        let helper = StdioHelper {
            shared: shared.clone(),
            wake: wake.clone(),
        };
        let over = Over(shared);
        let run = move || {
            let _held = held;
            let mut timeout = Some(Duration::ZERO);
            loop {
                let events = poller.poll(timeout);
                wake.run();
                // Poisoned when a turn of the helper panicked.
                let shared = &mut over.0.0.lock().ok();
                let Some(running) = shared.as_deref_mut().and_then(Option::as_mut) else {
                    return Err(io::Error::other("the loop panicked"));
                };
                running.event_loop.driver.awake(events?);
                let more = running.turn();
                if let Some(report) = running.report.take() {
                    return Ok(report);
                }
                timeout = running.event_loop.driver.sleep(running.until, more);
            }
        };
        Ok((run, helper))
    }
}

/// A loop and its machine, until the loop ends.
struct Shared<M>(Mutex<Option<Running<M>>>);

struct Running<M> {
    event_loop: StdioLoop,
    machine: M,
    /// Until when the loop sleeps after the last turn.
    until: Option<Instant>,
    /// How the loop ended, in a turn of the helper.
    report: Option<Report>,
}

impl<M: Machine> Running<M> {
    /// Runs one turn. Returns whether there is more to do at once.
    fn turn(&mut self) -> bool {
        if self.report.is_some() {
            return true;
        }
        match self.event_loop.turn(&mut self.machine) {
            Err(report) => {
                self.report = Some(report);
                true
            }
            Ok((until, more)) => {
                self.until = until;
                more
            }
        }
    }
}

/// Frees the machine when the loop ends, also by a panic: helpers may exist for longer.
struct Over<M>(Arc<Shared<M>>);

impl<M> Drop for Over<M> {
    fn drop(&mut self) {
        let running = lock(&self.0.0).take();
        drop(running);
    }
}

trait Turns: Send + Sync {
    /// Runs a turn, unless another thread has the loop. Returns `false` if the loop must be woken.
    fn take_turn(&self) -> bool;
}

impl<M: Machine + Send> Turns for Shared<M> {
    fn take_turn(&self) -> bool {
        let Ok(mut shared) = self.0.try_lock() else {
            return false;
        };
        let Some(running) = &mut *shared else {
            return true;
        };
        let slept_until = running.until;
        let more = running.turn();
        // The loop sleeps until the time of its own last turn.
        let is_earlier = running
            .until
            .is_some_and(|until| slept_until.is_none_or(|slept| until < slept));
        !more && !is_earlier
    }
}
