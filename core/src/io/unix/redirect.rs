//! Keeps stray output off the wire.
//!
//! While the engine holds stdin and stdout, descriptor 1 refers to stderr and descriptor 0 to
//! `/dev/null`. A `print` of user code, of a C library or of a child process goes to the log instead of
//! between two messages, and nothing else can read bytes from the wire.

use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::sync::Arc;

use rustix::event::PollFlags;
use rustix::fs::{Mode, OFlags, open};
use rustix::io::fcntl_dupfd_cloexec;
use rustix::stdio;

use crate::io::ends::{ReadEnd, WriteEnd};
use crate::io::wake::LoopWake;

/// Stdin and stdout, taken away from the rest of the process until this is dropped.
#[derive(Debug)]
pub(in crate::io) struct Redirect {
    stdin: OwnedFd,
    stdout: OwnedFd,
}

impl Redirect {
    pub(in crate::io) fn new() -> io::Result<Self> {
        // Above the three standard numbers, even if one of them is closed.
        let stdin = fcntl_dupfd_cloexec(stdio::stdin(), 3)?;
        let stdout = fcntl_dupfd_cloexec(stdio::stdout(), 3)?;
        let nowhere = open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
        let taken = Self { stdin, stdout };
        // Output that user code printed before must not appear later.
        io::stdout().flush()?;
        stdio::dup2_stdin(&nowhere)?;
        stdio::dup2_stdout(stdio::stderr()).or_else(|_| stdio::dup2_stdout(&nowhere))?;
        Ok(taken)
    }

    /// The wire: the original stdin and stdout.
    pub(in crate::io) fn wire(&self, wake: &Arc<LoopWake>) -> io::Result<(ReadEnd, WriteEnd)> {
        let again = |fd: &OwnedFd| fcntl_dupfd_cloexec(fd, 3);
        Ok((
            ReadEnd::inherited(again(&self.stdin)?, wake)?,
            WriteEnd::inherited(again(&self.stdout)?, wake)?,
        ))
    }
}

impl Redirect {
    /// Becomes ready when the client closes its end of stdin.
    pub(in crate::io) fn hang_up(&self) -> io::Result<(OwnedFd, PollFlags)> {
        #[cfg(any(target_os = "linux", target_os = "android"))]
        let half_closed = PollFlags::RDHUP;
        #[cfg(not(any(target_os = "linux", target_os = "android")))]
        let half_closed = PollFlags::empty();
        Ok((fcntl_dupfd_cloexec(&self.stdin, 3)?, half_closed))
    }
}

impl Drop for Redirect {
    fn drop(&mut self) {
        // If the originals cannot be restored, nothing can be done, and nobody told.
        let _ = io::stdout().flush();
        let _ = stdio::dup2_stdin(&self.stdin);
        let _ = stdio::dup2_stdout(&self.stdout);
    }
}
