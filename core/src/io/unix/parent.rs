//! Watches the process that started this one.
//!
//! `PR_SET_PDEATHSIG` reports the death of the *thread* that spawned us, which may end before the
//! parent process does. A process descriptor of the parent becomes readable when the whole process is
//! gone. Where there is none, the parent's process id is checked twice a second.

use std::io;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use mio::{Registry, Token};
use rustix::event::PollFlags;
use rustix::process::{Pid, getppid};

/// How often the parent's process id is checked if its death is not reported.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// Watches for the parent's death.
#[derive(Debug)]
pub(in crate::io) struct Parent {
    pid: Option<Pid>,
    told: Option<OwnedFd>,
    next_look: Instant,
}

impl Parent {
    pub(in crate::io) fn watch(registry: &Registry, token: Token, now: Instant) -> Self {
        let pid = getppid();
        let told = pid.and_then(|pid| process_descriptor(pid, registry, token).ok());
        Self {
            pid,
            told,
            next_look: now + LOOK_EVERY,
        }
    }

    /// A descriptor that becomes readable when the parent is gone, if the system has one.
    pub(in crate::io) fn end(&self) -> Option<(OwnedFd, PollFlags)> {
        let fd = self.told.as_ref()?.try_clone().ok()?;
        Some((fd, PollFlags::IN))
    }

    /// When [`is_gone`](Self::is_gone) must be called even if nothing was reported.
    pub(in crate::io) fn poll_timeout(&self) -> Option<Instant> {
        (self.told.is_none() && self.pid.is_some()).then_some(self.next_look)
    }

    /// Whether the original parent is gone. `told`: its descriptor became readable.
    pub(in crate::io) fn is_gone(&mut self, told: bool, now: Instant) -> bool {
        if now >= self.next_look {
            self.next_look = now + LOOK_EVERY;
        }
        told || (self.pid.is_some() && getppid() != self.pid)
    }
}

/// A descriptor, registered with the poll, that becomes readable when the process has ended.
#[cfg(target_os = "linux")]
pub(in crate::io) fn process_descriptor(
    pid: Pid,
    registry: &Registry,
    token: Token,
) -> io::Result<OwnedFd> {
    use std::os::fd::AsRawFd;
    let fd = rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty())?;
    registry.register(
        &mut mio::unix::SourceFd(&fd.as_raw_fd()),
        token,
        mio::Interest::READABLE,
    )?;
    Ok(fd)
}

/// Not supported here: the caller checks from time to time instead.
#[cfg(not(target_os = "linux"))]
pub(in crate::io) fn process_descriptor(_: Pid, _: &Registry, _: Token) -> io::Result<OwnedFd> {
    Err(io::ErrorKind::Unsupported.into())
}
