//! Ends the process when its loop is stuck.
//!
//! A handler that runs on the loop's own thread and never returns stops the loop: no grace period ends,
//! and no signal is seen. This thread sleeps until stdin hangs up, a signal arrives or the parent dies.
//! Then it ends the process if the loop stays in one turn beyond the grace period.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::pipe::{PipeFlags, pipe_with};

use crate::io::wake::LoopWake;
use crate::limits::later;

/// Additional time beyond the grace period in which a loop that is not stuck ends.
const MARGIN: Duration = Duration::from_millis(50);
/// How often the loop is checked after that.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// The longest time of one turn before the loop counts as stuck.
const LONGEST_TURN: Duration = Duration::from_millis(500);

/// Ends the process when the loop is stuck. Dropped when the loop has ended.
#[derive(Debug)]
pub(in crate::io) struct Watchdog {
    _alive: OwnedFd,
}

impl Watchdog {
    /// Watches the loop of `wake` once one of `calls` is readable or has hung up.
    pub(in crate::io) fn start(
        calls: Vec<(OwnedFd, PollFlags)>,
        grace: Duration,
        wake: Arc<LoopWake>,
    ) -> io::Result<Self> {
        let (ended, alive) = pipe_with(PipeFlags::CLOEXEC)?;
        let thread = std::thread::Builder::new().name("mcpbolt-watchdog".to_owned());
        thread.stack_size(64 << 10).spawn(move || {
            if !has_ended(&ended, &calls, None) && is_stuck(&ended, grace, &wake) {
                // Skips exit handlers, which might wait for the stuck thread.
                signal_hook::low_level::exit(1);
            }
        })?;
        Ok(Self { _alive: alive })
    }
}

/// Sleeps until the loop has ended, one of `calls` is ready, or `time` is over. Returns whether the
/// loop has ended.
fn has_ended(ended: &OwnedFd, calls: &[(OwnedFd, PollFlags)], time: Option<Duration>) -> bool {
    let time = time.and_then(|time| Timespec::try_from(time).ok());
    loop {
        let mut fds = vec![PollFd::new(ended, PollFlags::empty())];
        fds.extend(calls.iter().map(|(fd, flags)| PollFd::new(fd, *flags)));
        if poll(&mut fds, time.as_ref()).is_ok() {
            return fds.first().is_some_and(|fd| !fd.revents().is_empty());
        }
    }
}

fn is_stuck(ended: &OwnedFd, grace: Duration, wake: &LoopWake) -> bool {
    let due = later(Instant::now(), grace.saturating_add(MARGIN));
    let (mut turn, mut since) = (wake.turn(), Instant::now());
    while !has_ended(ended, &[], Some(LOOK_EVERY)) {
        let now = Instant::now();
        if wake.turn() != turn {
            (turn, since) = (wake.turn(), now);
        } else if turn.is_some() && now >= due && now - since >= grace.min(LONGEST_TURN) {
            return true;
        }
    }
    false
}
