//! The client's side of stdio: a server as a child process, and how it is brought to an end.
//!
//! ```text
//!   serve ─▶ close its stdin ─▶ wait ─▶ SIGTERM to its group ─▶ wait ─▶ SIGKILL to its group
//! ```
//!
//! Its stdout and stderr are drained throughout, so it can always get its last words out; when
//! it ends, at whatever step, every pending call is completed at once and nothing is left in its
//! process group.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use mio::Token;

use super::drain::Drain;
use super::driver::{Driver, FIRST_FREE, Stop};
use super::environment::{INHERITED, inherited};
use super::lines::Lines;
use super::machine::Machine;
use super::platform::Process;
use super::shutdown::{Shutdown, Step, Waits};
use super::wake::LoopWake;
use crate::error::ConnectionError;

const EXIT: Token = Token(FIRST_FREE);
const STDERR: Token = Token(FIRST_FREE + 1);

/// How often a child's end is looked for where the system does not tell of it.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// How long a broken wire waits for the child's end, which explains it better.
const EXPLAIN: Duration = Duration::from_millis(20);

/// What becomes of a child's stderr.
#[derive(Default)]
pub enum Stderr {
    /// It goes where this process's stderr goes.
    #[default]
    Inherit,
    /// It is thrown away.
    Discard,
    /// Each line, without its end, is given to the function, on the loop's thread: it must not
    /// block. Lines beyond [`MAX_LINE_BYTES`](super::MAX_LINE_BYTES) come in pieces.
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
    program: OsString,
    args: Vec<OsString>,
    cwd: Option<PathBuf>,
    inherit: BTreeSet<OsString>,
    env: Vec<(OsString, OsString)>,
    stderr: Stderr,
    waits: Waits,
}

impl ChildCommand {
    /// That program, without arguments, in this process's directory, with the variables of
    /// [`INHERITED`] and its stderr going where ours goes.
    pub fn new(program: impl AsRef<OsStr>) -> Self {
        Self {
            program: program.as_ref().to_owned(),
            args: Vec::new(),
            cwd: None,
            inherit: INHERITED.iter().map(OsString::from).collect(),
            env: Vec::new(),
            stderr: Stderr::default(),
            waits: Waits::default(),
        }
    }

    /// One more argument.
    pub fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.args.push(arg.as_ref().to_owned());
        self
    }

    /// More arguments.
    pub fn args(mut self, args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Self {
        self.args
            .extend(args.into_iter().map(|arg| arg.as_ref().to_owned()));
        self
    }

    /// The directory it runs in.
    pub fn cwd(mut self, directory: impl Into<PathBuf>) -> Self {
        self.cwd = Some(directory.into());
        self
    }

    /// A variable it sees, whatever it inherits.
    pub fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.env
            .push((name.as_ref().to_owned(), value.as_ref().to_owned()));
        self
    }

    /// One more variable that it inherits from this process, if it is set.
    pub fn inherit_env(mut self, name: impl AsRef<OsStr>) -> Self {
        self.inherit.insert(name.as_ref().to_owned());
        self
    }

    /// It inherits nothing but what is named from here on.
    pub fn clear_env(mut self) -> Self {
        self.inherit.clear();
        self
    }

    /// What becomes of its stderr.
    pub fn stderr(mut self, stderr: Stderr) -> Self {
        self.stderr = stderr;
        self
    }

    /// How long each step of its shutdown may take.
    pub fn waits(mut self, waits: Waits) -> Self {
        self.waits = waits;
        self
    }

    /// Starts it in a process group of its own.
    ///
    /// # Errors
    /// When the program cannot be started, or this process has no descriptors left.
    pub fn spawn(self) -> io::Result<Child> {
        let mut driver = Driver::new()?;
        let (stderr, lines) = match self.stderr {
            Stderr::Inherit => (Stdio::inherit(), None),
            Stderr::Discard => (Stdio::null(), None),
            Stderr::Lines(sink) => (Stdio::piped(), Some(Lines::new(sink))),
        };
        let mut command = Command::new(&self.program);
        command
            .args(&self.args)
            .env_clear()
            .envs(inherited(self.inherit.iter().map(OsString::as_os_str)))
            .envs(self.env)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(stderr);
        if let Some(directory) = &self.cwd {
            command.current_dir(directory);
        }
        let mut process = Process::spawn(&mut command)?;
        let wake = driver.wake().clone();
        let (stdout, stdin, stderr) = process.pipes(&wake)?;
        driver.attach(stdout, stdin)?;
        let drain = match (stderr, lines) {
            (Some(end), Some(lines)) => Some(Drain::new(end, lines, driver.registry(), STDERR)?),
            _ => None,
        };
        process.register(driver.registry(), EXIT);
        Ok(Child {
            driver,
            process,
            drain,
            shutdown: Shutdown::new(self.waits),
            next_look: Instant::now() + LOOK_EVERY,
            broken_at: None,
        })
    }
}

/// A running server, as the wire to it. Dropping it kills its process group.
#[derive(Debug)]
pub struct Child {
    driver: Driver,
    process: Process,
    drain: Option<Drain>,
    shutdown: Shutdown,
    next_look: Instant,
    /// When a broken wire is taken for the end of the connection.
    broken_at: Option<Instant>,
}

/// How a child ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exit {
    /// What the system says of its end.
    pub status: ExitStatus,
    /// How far it had to be pushed.
    pub step: Step,
}

impl Child {
    /// What wakes the loop.
    pub fn wake(&self) -> &Arc<LoopWake> {
        self.driver.wake()
    }

    /// A handle that ends the loop by shutting the child down.
    pub fn stop(&self) -> Stop {
        self.driver.stop()
    }

    /// The child's process number.
    pub fn id(&self) -> u32 {
        self.process.id()
    }

    /// Drives `machine` until the child has ended; asks it to end when the machine is closed,
    /// the loop stopped or the wire broken.
    ///
    /// # Errors
    /// When polling fails, or the child's status is lost because somebody else reaped it.
    pub fn run(mut self, machine: &mut impl Machine) -> io::Result<Exit> {
        loop {
            let now = Instant::now();
            let mut more = self.driver.turn(machine, now);
            if machine.is_closed() {
                more |= self.driver.discard();
            }
            if let Some(drain) = &mut self.drain {
                more |= drain.turn(self.driver.take_ready(STDERR));
            }
            if self.has_exited(now) {
                return self.finish(machine, now);
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
            self.driver.wait(due.into_iter().flatten().min(), more)?;
        }
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

    /// Whether the wire is broken beyond the moment in which the child's end would explain it.
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

    /// The child has ended: takes in what it left in its pipes, completes what is pending.
    fn finish(mut self, machine: &mut impl Machine, now: Instant) -> io::Result<Exit> {
        // Who else holds its pipes would keep them open.
        self.process.kill();
        self.driver.read_last(machine, now);
        // Its last line may lack its end.
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
