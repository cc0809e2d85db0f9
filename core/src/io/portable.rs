//! The means that every system has: threads that block, and a process without a group. Untested.
//!
//! Stray output cannot be kept off the wire, signals are not handled, and the death of the parent shows
//! only as the end of stdin.

use std::io::{self, IoSlice, Read, Write};
use std::process::{Child, Command, ExitStatus};
use std::sync::Arc;
use std::time::{Duration, Instant};

use mio::{Registry, Token};

use super::blocking;
use super::wake::LoopWake;

/// The end of a byte stream that this process reads.
#[derive(Debug)]
pub struct ReadEnd(blocking::Reader);

impl ReadEnd {
    /// Reads `source` on a thread of its own.
    ///
    /// # Errors
    /// When the thread cannot be started.
    pub fn blocking(source: impl Read + Send + 'static, wake: &Arc<LoopWake>) -> io::Result<Self> {
        blocking::Reader::spawn(source, wake.clone()).map(Self)
    }

    pub(super) fn is_polled(&self) -> bool {
        false
    }

    pub(super) fn register(&self, _: &Registry, _: Token) -> io::Result<()> {
        Ok(())
    }

    pub(super) fn deregister(&self, _: &Registry) {}

    pub(super) fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.0.read(into)
    }
}

/// The end of a byte stream that this process writes.
#[derive(Debug)]
pub struct WriteEnd(blocking::Writer);

impl WriteEnd {
    /// Writes to `sink` on a thread of its own.
    ///
    /// # Errors
    /// When the thread cannot be started.
    pub fn blocking(sink: impl Write + Send + 'static, wake: &Arc<LoopWake>) -> io::Result<Self> {
        blocking::Writer::spawn(sink, wake.clone()).map(Self)
    }

    pub(super) fn is_polled(&self) -> bool {
        false
    }

    pub(super) fn register(&self, _: &Registry, _: Token) -> io::Result<()> {
        Ok(())
    }

    pub(super) fn deregister(&self, _: &Registry) {}

    pub(super) fn await_room(&self, _: &Registry, _: Token, _: bool) -> io::Result<()> {
        Ok(())
    }

    pub(super) fn write(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        slices.first().map_or(Ok(0), |first| self.0.write(first))
    }

    pub(super) fn is_flushed(&self) -> io::Result<bool> {
        self.0.is_flushed()
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

impl Redirect {
    pub(super) fn hang_up(&self) -> io::Result<()> {
        Ok(())
    }
}

/// There is no guard: a process whose loop is stuck is not ended.
#[derive(Debug)]
pub(super) struct Guard;

impl Guard {
    pub(super) fn start(_: Vec<()>, _: Duration, _: Arc<LoopWake>) -> io::Result<Self> {
        Ok(Self)
    }
}

/// Signals are not handled: none is ever pending, and each has its default action.
#[derive(Debug)]
pub(super) struct Signals;

impl Signals {
    pub(super) fn new(_: &Registry, _: Token) -> io::Result<Self> {
        Ok(Self)
    }

    pub(super) fn waiting(&self) -> io::Result<()> {
        Ok(())
    }

    pub(super) fn pending(&mut self) -> impl Iterator<Item = i32> + use<> {
        std::iter::empty()
    }
}

/// The parent is not watched; its death shows only as the end of stdin.
#[derive(Debug)]
pub(super) struct Parent;

impl Parent {
    pub(super) fn watch(_: &Registry, _: Token, _: Instant) -> Self {
        Self
    }

    pub(super) fn end(&self) -> Option<()> {
        None
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        None
    }

    pub(super) fn is_gone(&mut self, _: bool, _: Instant) -> bool {
        false
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

#[cfg(test)]
mod tests {
    use super::*;

    /// The default options of a server on stdio ask for signals.
    #[test]
    fn a_server_that_asks_for_signals_starts_without_them() {
        let poll = mio::Poll::new().unwrap();
        let mut signals = Signals::new(poll.registry(), Token(0)).unwrap();
        assert_eq!(signals.pending().next(), None);
    }
}
