//! A descriptor that becomes readable when there is something to drain.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};

/// One wake for any number of events: raised when the first comes, lowered before they are
/// taken.
#[derive(Debug)]
pub struct Signal {
    fd: OwnedFd,
    raised: AtomicBool,
}

impl Signal {
    /// A lowered signal.
    pub fn new() -> io::Result<Self> {
        let fd = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Self {
            fd,
            raised: AtomicBool::new(false),
        })
    }

    /// The number of the descriptor, for an event loop.
    pub fn fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }

    /// There is something. A system call only when it was lowered.
    pub fn raise(&self) {
        if !self.raised.swap(true, Ordering::AcqRel) {
            // The counter of an event descriptor cannot overflow by ones.
            let _ = rustix::io::write(&self.fd, &1u64.to_ne_bytes());
        }
    }

    /// Whether it is raised: what is added before this is asked is going to be taken.
    pub fn is_raised(&self) -> bool {
        self.raised.load(Ordering::Acquire)
    }

    /// Everything that was raised before is about to be taken. The descriptor is emptied first:
    /// a raise in between is seen by who takes, a later one writes again.
    pub fn lower(&self) {
        let _ = rustix::io::read(&self.fd, &mut [0; 8]);
        self.raised.swap(false, Ordering::AcqRel);
    }

    /// Sleeps until it is raised.
    pub fn wait(&self) {
        let _ = poll(&mut [PollFd::new(&self.fd, PollFlags::IN)], None);
    }
}
