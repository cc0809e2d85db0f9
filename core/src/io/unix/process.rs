//! A child process and all its descendants, as one process group.
//!
//! The id of a group may be reused once its last member is reaped. The group is therefore signalled
//! only while its leader is unreaped: first the end is *seen*, then the rest of the group is killed,
//! then the leader is reaped.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus};
use std::sync::Arc;

use mio::{Registry, Token};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

use super::parent::process_descriptor;
use crate::io::ends::{ReadEnd, WriteEnd};
use crate::io::wake::LoopWake;

/// A child that leads its own process group. Dropping it kills the group.
#[derive(Debug)]
pub(in crate::io) struct Process {
    child: Child,
    pid: Pid,
    told: Option<OwnedFd>,
    reaped: Option<ExitStatus>,
}

impl Process {
    pub(in crate::io) fn spawn(command: &mut Command) -> io::Result<Self> {
        let child = command.process_group(0).spawn()?;
        let pid = Pid::from_child(&child);
        Ok(Self {
            child,
            pid,
            told: None,
            reaped: None,
        })
    }

    /// The id of the process, until it is reaped.
    #[cfg(feature = "http")]
    pub(in crate::io) fn pid(&self) -> Option<Pid> {
        self.reaped.is_none().then_some(self.pid)
    }

    /// Our ends of its stdout, stdin and, if it is piped, stderr.
    pub(in crate::io) fn pipes(
        &mut self,
        _wake: &Arc<LoopWake>,
    ) -> io::Result<(ReadEnd, WriteEnd, Option<ReadEnd>)> {
        let missing = || io::Error::from(io::ErrorKind::BrokenPipe);
        let stdout = ReadEnd::own(self.child.stdout.take().ok_or_else(missing)?)?;
        let stdin = WriteEnd::own(self.child.stdin.take().ok_or_else(missing)?)?;
        let stderr = self.child.stderr.take().map(ReadEnd::own).transpose()?;
        Ok((stdout, stdin, stderr))
    }

    /// The id of the process and of its group.
    pub(in crate::io) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Registers the end of the process with the poll, where the system supports that.
    pub(in crate::io) fn register(&mut self, registry: &Registry, token: Token) {
        self.told = process_descriptor(self.pid, registry, token).ok();
    }

    /// Whether the poll reports the end; otherwise [`has_exited`](Self::has_exited) must be called from
    /// time to time.
    pub(in crate::io) fn is_told(&self) -> bool {
        self.told.is_some()
    }

    /// Whether the process has ended; leaves it unreaped.
    pub(in crate::io) fn has_exited(&mut self) -> bool {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
        // A failure means that other code has reaped it.
        self.reaped.is_some() || !matches!(waitid(WaitId::Pid(self.pid), options), Ok(None))
    }

    /// Sends SIGTERM to the group.
    pub(in crate::io) fn terminate(&mut self) {
        self.signal(Signal::TERM);
    }

    /// Sends SIGKILL to the group.
    pub(in crate::io) fn kill(&mut self) {
        self.signal(Signal::KILL);
    }

    fn signal(&self, signal: Signal) {
        if self.reaped.is_none() {
            // The group may consist only of a leader that has ended.
            let _ = kill_process_group(self.pid, signal);
        }
    }

    /// Kills the rest of the group and reaps the leader; blocks until the leader has ended.
    pub(in crate::io) fn reap(&mut self) -> io::Result<ExitStatus> {
        if let Some(status) = self.reaped {
            return Ok(status);
        }
        self.kill();
        let status = self.child.wait()?;
        self.reaped = Some(status);
        Ok(status)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // The kill makes the wait short; the status is not needed.
        let _ = self.reap();
    }
}
