//! The means that every system has: threads that block, and a process without a group. Untested.
//!
//! Stray output cannot be kept off the wire, signals are not handled, and the death of the parent shows
//! only as the end of stdin.

use std::io::{self, IoSlice};
use std::process::{Child, Command, ExitStatus};
use std::sync::Arc;
use std::time::{Duration, Instant};

use mio::{Interest, Registry, Token};

use super::driver::Driver;
use super::ends::{ReadEnd, WriteEnd};
use super::stdio::{Ended, StdioOptions};
use super::wake::LoopWake;

/// No descriptor can be polled.
#[derive(Debug)]
pub(super) enum Descriptor {}

impl Descriptor {
    pub fn register(&self, _: &Registry, _: Token, _: Interest) -> io::Result<()> {
        match *self {}
    }

    pub fn reregister(&self, _: &Registry, _: Token, _: Interest) -> io::Result<()> {
        match *self {}
    }

    pub fn deregister(&self, _: &Registry) {
        match *self {}
    }

    pub fn read(&self, _: &mut [u8]) -> io::Result<usize> {
        match *self {}
    }

    pub fn write(&self, _: &[IoSlice<'_>]) -> io::Result<usize> {
        match *self {}
    }

    pub fn interest_at_rest(&self) -> Interest {
        match *self {}
    }
}

/// Stdin and stdout, not redirected.
#[derive(Debug)]
pub(super) struct Redirect;

impl Redirect {
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self)
    }

    pub(super) fn wire(&self, wake: &Arc<LoopWake>) -> io::Result<(ReadEnd, WriteEnd)> {
        let (stdin, stdout) = (io::stdin(), io::stdout());
        Ok((
            ReadEnd::blocking(stdin, wake)?,
            WriteEnd::blocking(stdout, wake)?,
        ))
    }
}

/// Signals are not handled: each has its default action. The parent is not watched; its death shows only as
/// the end of stdin. A process whose loop is stuck is not ended.
#[derive(Debug)]
pub(super) struct Causes;

impl Causes {
    pub(super) fn new(_: &StdioOptions, _: &Registry) -> io::Result<Self> {
        Ok(Self)
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        None
    }

    pub(super) fn take(&mut self, _: &mut Driver, _: Instant) -> Option<(Ended, bool)> {
        None
    }

    pub(super) fn watchdog(&self, _: Duration, _: &Redirect, _: &Driver) -> io::Result<()> {
        Ok(())
    }
}

/// A child process. Dropping it kills the process, but not its descendants.
#[derive(Debug)]
pub(super) struct Process {
    child: Child,
}

impl Process {
    pub(super) fn spawn(command: &mut Command) -> io::Result<Self> {
        let child = command.spawn()?;
        Ok(Self { child })
    }

    pub(super) fn pipes(
        &mut self,
        wake: &Arc<LoopWake>,
    ) -> io::Result<(ReadEnd, WriteEnd, Option<ReadEnd>)> {
        let missing = || io::Error::from(io::ErrorKind::BrokenPipe);
        let stdout = self.child.stdout.take().ok_or_else(missing)?;
        let stdin = self.child.stdin.take().ok_or_else(missing)?;
        let stderr = self.child.stderr.take();
        let stderr = stderr
            .map(|pipe| ReadEnd::blocking(pipe, wake))
            .transpose()?;
        Ok((
            ReadEnd::blocking(stdout, wake)?,
            WriteEnd::blocking(stdin, wake)?,
            stderr,
        ))
    }

    pub(super) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(super) fn register(&mut self, _: &Registry, _: Token) {}

    pub(super) fn is_told(&self) -> bool {
        false
    }

    pub(super) fn has_exited(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }

    pub(super) fn terminate(&mut self) {
        self.kill();
    }

    pub(super) fn kill(&mut self) {
        // Fails only when the process has ended.
        let _ = self.child.kill();
    }

    pub(super) fn reap(&mut self) -> io::Result<ExitStatus> {
        self.kill();
        self.child.wait()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // The kill makes the wait short; the status is not needed.
        let _ = self.reap();
    }
}

/// Not measured here, so the processors never count as busy.
pub(super) fn processor_time() -> Duration {
    Duration::ZERO
}
