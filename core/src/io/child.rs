//! The client's side of stdio: a server as a child process, and its shutdown.
//!
//! ```text
//!   serve ─▶ close its stdin ─▶ wait ─▶ SIGTERM to its group ─▶ wait ─▶ SIGKILL to its group
//! ```
//!
//! The child's stdout and stderr are drained all the time, so it can always write its last output. When
//! it ends, at any step, every pending call is completed at once and its process group is killed.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use mio::Token;

use super::driver::{Driver, FIRST_FREE, Poller, Stop};
use super::environment::{INHERITED, inherited};
use super::lines::Lines;
use super::machine::Machine;
use super::platform::Process;
use super::shutdown::{Shutdown, Step, Waits};
use super::stderr::StderrReader;
use super::wake::LoopWake;
use crate::error::ConnectionError;

const EXIT: Token = Token(FIRST_FREE);
const STDERR: Token = Token(FIRST_FREE + 1);

/// How often a child's end is checked where the system does not report it.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// How long a broken wire waits for the child's exit, which gives a better reason.
const EXPLAIN: Duration = Duration::from_millis(20);

/// This process's stderr, also where the host closes it in programs that it starts, as Node does.
fn own_stderr() -> Stdio {
    #[cfg(unix)]
    if let Ok(own) = std::os::fd::AsFd::as_fd(&io::stderr()).try_clone_to_owned() {
        return Stdio::from(own);
    }
    Stdio::inherit()
}

/// The place that a child's stderr goes to.
#[derive(Default)]
pub enum Stderr {
    /// It is this process's stderr.
    #[default]
    Inherit,
    /// It is discarded.
    Discard,
    /// The function is called with each line, without its line end, on the loop's thread (of a front: on that of its clients): it must not
    /// block. Lines longer than [`MAX_LINE_BYTES`](super::MAX_LINE_BYTES) arrive in pieces.
    Lines(Box<dyn FnMut(&str) + Send>),
}

impl fmt::Debug for Stderr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Inherit => "Inherit",
            Self::Discard => "Discard",
            Self::Lines(_) => "Lines",
        })
    }
}

/// A server program to be started as a child process.
#[derive(Debug)]
pub struct ChildCommand {
    command: Command,
    inherit: BTreeSet<OsString>,
    env: Vec<(OsString, OsString)>,
    stderr: Stderr,
    waits: Waits,
}

impl ChildCommand {
    /// A program without arguments. It runs in this process's directory, inherits the variables in
    /// [`INHERITED`], and shares this process's stderr.
    pub fn new(program: impl AsRef<OsStr>) -> Self {
        Self {
            command: Command::new(program),
            inherit: INHERITED.iter().map(OsString::from).collect(),
            env: Vec::new(),
            stderr: Stderr::default(),
            waits: Waits::default(),
        }
    }

    /// Adds an argument.
    pub fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.command.arg(arg);
        self
    }

    /// Adds arguments.
    pub fn args(mut self, args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Self {
        self.command.args(args);
        self
    }

    /// Sets the directory that it runs in.
    pub fn cwd(mut self, directory: impl Into<PathBuf>) -> Self {
        self.command.current_dir(directory.into());
        self
    }

    /// Sets an environment variable, whatever is inherited.
    pub fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.env
            .push((name.as_ref().to_owned(), value.as_ref().to_owned()));
        self
    }

    /// Sets environment variables, whatever is inherited.
    pub fn envs<N, V>(self, variables: impl IntoIterator<Item = (N, V)>) -> Self
    where
        N: AsRef<OsStr>,
        V: AsRef<OsStr>,
    {
        let add = |command: Self, (name, value)| command.env(name, value);
        variables.into_iter().fold(self, add)
    }

    /// Also inherits this variable from this process, if it is set.
    pub fn inherit_env(mut self, name: impl AsRef<OsStr>) -> Self {
        self.inherit.insert(name.as_ref().to_owned());
        self
    }

    /// Inherits no variables, except those named by later calls.
    pub fn clear_env(mut self) -> Self {
        self.inherit.clear();
        self
    }

    /// Sets what happens to its stderr.
    pub fn stderr(mut self, stderr: Stderr) -> Self {
        self.stderr = stderr;
        self
    }

    /// Sets how long each step of the shutdown may take.
    pub fn waits(mut self, waits: Waits) -> Self {
        self.waits = waits;
        self
    }

    /// Starts the program in a process group of its own.
    ///
    /// # Errors
    /// When the program cannot be started, or this process has no descriptors left.
    pub fn spawn(self) -> io::Result<Child> {
        let (mut driver, poller) = Driver::new()?;
        let (stderr, lines) = match self.stderr {
            Stderr::Inherit => (own_stderr(), None),
            Stderr::Discard => (Stdio::null(), None),
            Stderr::Lines(sink) => (Stdio::piped(), Some(Lines::new(sink))),
        };
        let mut command = self.command;
        command
            .env_clear()
            .envs(inherited(self.inherit.iter().map(OsString::as_os_str)))
            .envs(self.env)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(stderr);
        let mut process = Process::spawn(&mut command)?;
        let wake = driver.wake().clone();
        let (stdout, stdin, stderr) = process.pipes(&wake)?;
        driver.attach(stdout, stdin)?;
        let drain = match (stderr, lines) {
            (Some(end), Some(lines)) => {
                Some(StderrReader::new(end, lines, driver.registry(), STDERR)?)
            }
            _ => None,
        };
        process.register(driver.registry(), EXIT);
        let attended = AttendedChild {
            driver,
            process,
            drain,
            shutdown: Shutdown::new(self.waits),
            next_look: Instant::now() + LOOK_EVERY,
            broken_at: None,
        };
        Ok(Child { attended, poller })
    }
}

/// A running server process and the wire to it. Dropping it kills its process group.
#[derive(Debug)]
pub struct Child {
    pub(super) attended: AttendedChild,
    pub(super) poller: Poller,
}

/// A child and its wire, without the place where its loop sleeps.
#[derive(Debug)]
pub(super) struct AttendedChild {
    pub driver: Driver,
    process: Process,
    drain: Option<StderrReader>,
    shutdown: Shutdown,
    next_look: Instant,
    /// When a broken wire counts as the end of the connection.
    broken_at: Option<Instant>,
}

/// How a child ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exit {
    /// The status that the system reports.
    pub status: ExitStatus,
    /// The last step of the shutdown that was taken.
    pub step: Step,
}

impl Child {
    /// Wakes the loop.
    pub fn wake(&self) -> &Arc<LoopWake> {
        self.attended.driver.wake()
    }

    /// A handle that stops the loop and shuts the child down.
    pub fn stop(&self) -> Stop {
        self.attended.driver.stop()
    }

    /// The child's process id.
    pub fn id(&self) -> u32 {
        self.attended.process.id()
    }

    /// Drives `machine` until the child has ended. Shuts the child down when the machine is closed, the
    /// loop is stopped or the wire breaks.
    ///
    /// # Errors
    /// When polling fails, or the exit status is lost because other code reaped the child.
    pub fn run(self, machine: &mut impl Machine) -> io::Result<Exit> {
        let Self {
            attended: mut child,
            mut poller,
        } = self;
        loop {
            let now = Instant::now();
            match child.turn(machine, now) {
                None => return child.finish(machine, now),
                Some((until, more)) => poller.wait(&mut child.driver, until, more)?,
            }
        }
    }
}

impl AttendedChild {
    /// Runs one turn. Returns until when the loop sleeps, and whether there is more to do at once; `None` when the child has
    /// ended.
    pub fn turn(
        &mut self,
        machine: &mut impl Machine,
        now: Instant,
    ) -> Option<(Option<Instant>, bool)> {
        let mut more = self.driver.turn(machine, now);
        if machine.is_closed() {
            more |= self.driver.discard();
        }
        if let Some(drain) = &mut self.drain {
            more |= drain.turn(self.driver.take_ready(STDERR));
        }
        if self.has_exited(now) {
            return None;
        }
        self.advance_shutdown(machine, now);
        let look = (!self.process.is_told()).then_some(self.next_look);
        let broken = self.broken_at.filter(|_| !machine.is_closed());
        let due = [
            machine.poll_timeout(),
            self.shutdown.poll_timeout(),
            look,
            broken,
        ];
        Some((due.into_iter().flatten().min(), more))
    }

    fn has_exited(&mut self, now: Instant) -> bool {
        if self.process.is_told() {
            return self.driver.take_ready(EXIT);
        }
        if now >= self.next_look {
            self.next_look = now + LOOK_EVERY;
        }
        self.process.has_exited()
    }

    /// Whether the wire is broken, and the time in which the child's exit would explain it is over.
    fn is_broken(&mut self, now: Instant) -> bool {
        let broken = self.driver.failure().is_some() || !self.driver.is_reading();
        if broken && self.broken_at.is_none() {
            self.broken_at = Some(now + EXPLAIN);
        }
        self.broken_at.is_some_and(|at| now >= at)
    }

    fn advance_shutdown(&mut self, machine: &mut impl Machine, now: Instant) {
        if self.driver.is_stopped() {
            machine.close(ConnectionError::ClosedLocally);
        }
        let broken = self.is_broken(now);
        if broken && !machine.is_closed() {
            machine.receive_end(now);
            machine.close(ConnectionError::ClosedByPeer);
        }
        if machine.is_closed() {
            self.shutdown.begin(now);
        }
        let due = self.shutdown.handle_timeout(now);
        let flushed = machine.output().is_empty() && self.driver.is_flushed();
        if self.shutdown.step() != Step::None && (flushed || broken || due.is_some()) {
            self.driver.close_write();
        }
        match due {
            Some(Step::Terminated) => self.process.terminate(),
            Some(Step::Killed) => self.process.kill(),
            _ => {}
        }
    }

    /// The child has ended: reads what it left in its pipes, and completes pending calls.
    pub fn finish(mut self, machine: &mut impl Machine, now: Instant) -> io::Result<Exit> {
        // Other processes of its group would keep the pipes open.
        self.process.kill();
        self.driver.read_last(machine, now);
        // Its last line may lack a line end.
        machine.receive_end(now);
        if let Some(drain) = &mut self.drain {
            drain.finish();
        }
        let status = self.process.reap();
        let how = status
            .as_ref()
            .map_or_else(ToString::to_string, ToString::to_string);
        machine.close(ConnectionError::PeerExited(how.into()));
        Ok(Exit {
            status: status?,
            step: self.shutdown.step(),
        })
    }
}
