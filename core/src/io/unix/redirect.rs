//! Keeping stray output off the wire.
//!
//! While the engine holds stdin and stdout, descriptor 1 leads to stderr and descriptor 0 to
//! `/dev/null`: a `print` of user code, of a library in C or of a child process shows up in the
//! log instead of between two messages, and nothing else can take bytes from the wire.

use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::sync::Arc;

use rustix::event::PollFlags;
use rustix::fs::{Mode, OFlags, open};
use rustix::io::fcntl_dupfd_cloexec;
use rustix::stdio;

use super::descriptor::{ReadEnd, WriteEnd};
use crate::io::wake::LoopWake;

/// Stdin and stdout, taken away from the rest of the process until this is dropped.
#[derive(Debug)]
pub(in crate::io) struct Redirect {
    stdin: OwnedFd,
    stdout: OwnedFd,
}

impl Redirect {
    pub(in crate::io) fn new() -> io::Result<Self> {
        // Above the three standard numbers, even when one of them is closed.
        let stdin = fcntl_dupfd_cloexec(stdio::stdin(), 3)?;
        let stdout = fcntl_dupfd_cloexec(stdio::stdout(), 3)?;
        let nowhere = open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
        let taken = Self { stdin, stdout };
        // What user code printed before is its own affair, but must not follow later.
        io::stdout().flush()?;
        stdio::dup2_stdin(&nowhere)?;
        stdio::dup2_stdout(stdio::stderr()).or_else(|_| stdio::dup2_stdout(&nowhere))?;
        Ok(taken)
    }

    /// The wire: stdin and stdout as they were.
    pub(in crate::io) fn wire(&self, wake: &Arc<LoopWake>) -> io::Result<(ReadEnd, WriteEnd)> {
        let again = |fd: &OwnedFd| fcntl_dupfd_cloexec(fd, 3);
        Ok((
            ReadEnd::inherited(again(&self.stdin)?, wake)?,
            WriteEnd::inherited(again(&self.stdout)?, wake)?,
        ))
    }
}

impl Redirect {
    /// What calls for the end of the process: the client's end of stdin, closed.
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
        // Nothing can be done, and nobody told, when the originals cannot be put back.
        let _ = io::stdout().flush();
        let _ = stdio::dup2_stdin(&self.stdin);
        let _ = stdio::dup2_stdout(&self.stdout);
    }
}
