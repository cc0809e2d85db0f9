//! The steps that shut a child down (R-STD-07), as a state machine without a clock of its own.

use crate::limits::later;
use std::time::{Duration, Instant};

/// How long each step may take before the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waits {
    /// From closing the child's stdin to SIGTERM. 2 s by default.
    pub after_close: Duration,
    /// From SIGTERM to SIGKILL. 2 s by default.
    pub after_terminate: Duration,
}

impl Default for Waits {
    fn default() -> Self {
        Self {
            after_close: Duration::from_secs(2),
            after_terminate: Duration::from_secs(2),
        }
    }
}

/// The last step that was needed to end the child.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Step {
    /// None: it ended by itself.
    None,
    /// Its stdin was closed.
    Closed,
    /// Its process group got SIGTERM.
    Terminated,
    /// Its process group got SIGKILL.
    Killed,
}

/// The state of the shutdown.
#[derive(Debug)]
pub(super) struct Shutdown {
    waits: Waits,
    step: Step,
    due: Option<Instant>,
}

impl Shutdown {
    pub(super) fn new(waits: Waits) -> Self {
        Self {
            waits,
            step: Step::None,
            due: None,
        }
    }

    pub(super) fn step(&self) -> Step {
        self.step
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.due
    }

    /// Takes the first step, unless it was taken already.
    pub(super) fn begin(&mut self, now: Instant) {
        if self.step == Step::None {
            self.step = Step::Closed;
            self.due = Some(later(now, self.waits.after_close));
        }
    }

    /// The step that is due now, if any.
    pub(super) fn handle_timeout(&mut self, now: Instant) -> Option<Step> {
        if self.due.is_none_or(|due| now < due) {
            return None;
        }
        (self.step, self.due) = match self.step {
            Step::None => (Step::None, None),
            Step::Closed => (
                Step::Terminated,
                Some(later(now, self.waits.after_terminate)),
            ),
            Step::Terminated | Step::Killed => (Step::Killed, None),
        };
        Some(self.step)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_step_waits_for_its_time_and_comes_once() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let mut shutdown = Shutdown::new(Waits {
            after_close: Duration::from_millis(10),
            after_terminate: Duration::from_millis(20),
        });
        assert_eq!(shutdown.handle_timeout(at(1000)), None);
        shutdown.begin(start);
        shutdown.begin(at(5));
        assert_eq!(shutdown.poll_timeout(), Some(at(10)));
        assert_eq!(shutdown.handle_timeout(at(9)), None);
        assert_eq!(shutdown.handle_timeout(at(10)), Some(Step::Terminated));
        assert_eq!(shutdown.handle_timeout(at(29)), None);
        assert_eq!(shutdown.handle_timeout(at(30)), Some(Step::Killed));
        assert_eq!(shutdown.handle_timeout(at(99)), None);
        assert_eq!(shutdown.step(), Step::Killed);
    }
}
