//! A descriptor that becomes readable when there is something to drain.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};

/// One wakeup for any number of events: raised when the first comes, lowered before they are
/// taken.
#[derive(Debug)]
pub struct Signal {
    fd: OwnedFd,
    raised: AtomicBool,
}

impl Signal {
    /// Makes a lowered signal.
    pub fn new() -> io::Result<Self> {
        let fd = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Self {
            fd,
            raised: AtomicBool::new(false),
        })
    }

    /// The descriptor, for an event loop.
    pub fn fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }

    /// Raises the signal. Makes a system call only if it was lowered.
    pub fn raise(&self) {
        if !self.raised.swap(true, Ordering::AcqRel) {
            // The counter of an eventfd does not overflow in increments of one.
            let _ = rustix::io::write(&self.fd, &1u64.to_ne_bytes());
        }
    }

    /// Whether the signal is raised. If so, events added before this call are going to be taken.
    pub fn is_raised(&self) -> bool {
        self.raised.load(Ordering::Acquire)
    }

    /// Lowers the signal, before events are taken. The descriptor is emptied first: events of a raise in
    /// between are still taken, and a later raise writes again.
    pub fn lower(&self) {
        let _ = rustix::io::read(&self.fd, &mut [0; 8]);
        self.raised.swap(false, Ordering::AcqRel);
    }

    /// Blocks until the signal is raised.
    pub fn wait(&self) {
        let _ = poll(&mut [PollFd::new(&self.fd, PollFlags::IN)], None);
    }
}
