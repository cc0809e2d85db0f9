//! The server's side of stdio: this process's stdin and stdout as one wire, and when to end.
//!
//! | what happens | what the loop does |
//! |---|---|
//! | stdin ends, first signal, [`Stop`], `once` answered | finishes calls in the grace period, no new ones |
//! | the parent's death, the second signal | sends available output for at most half a second |
//! | a broken pipe | ends at once |
//!
//! The loop waits no longer than that for a handler, so a handler that hangs cannot hold the process.
//! [`StdioOptions::exit_when_stuck`] deals with a handler that blocks the loop's own thread.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use mio::Token;

use super::driver::{Driver, FIRST_FREE, Stop};
use super::machine::Machine;
use super::platform::{Guard, Parent, Redirect, Signals};
use super::wake::LoopWake;
use crate::error::ConnectionError;
use crate::limits::later;

const SIGNALS: Token = Token(FIRST_FREE);
const PARENT: Token = Token(FIRST_FREE + 1);

/// How long an abrupt end may take.
const ABRUPT: Duration = Duration::from_millis(500);

/// Options of a server on stdin and stdout.
#[derive(Clone, Debug)]
pub struct StdioOptions {
    /// How long requests in flight may take after the end of stdin, a signal or a stop. 5 s by default.
    pub grace: Duration,
    /// Handle SIGTERM, SIGINT and SIGHUP while the loop runs, so that requests in flight are still
    /// answered. On by default. Turn it off in a program that handles signals itself: when the loop
    /// ends, its handlers are not restored; the default action is. No effect outside Unix.
    pub signals: bool,
    /// End when the process that started this one dies. On by default.
    pub watch_parent: bool,
    /// Exit the process, with status 1, when the loop itself cannot end because an inline handler
    /// blocks its thread beyond the grace period. Costs one sleeping thread. Off by default; no effect
    /// outside Unix.
    pub exit_when_stuck: bool,
    /// End once a request is answered and none is in flight: for clients of the [action
    /// dialect](crate::action) that start a process for each request (R-ACT-20). MCP clients send more
    /// than one request. Off by default.
    pub once: bool,
}

impl Default for StdioOptions {
    fn default() -> Self {
        Self {
            grace: Duration::from_secs(5),
            signals: true,
            watch_parent: true,
            exit_when_stuck: false,
            once: false,
        }
    }
}

/// Why a server's loop ended.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ended {
    /// The client closed our stdin.
    EndOfInput,
    /// A signal was received; its number.
    Signal(i32),
    /// The process that started this one is gone.
    ParentDied,
    /// Nobody reads our stdout any more, or a descriptor failed.
    BrokenPipe(io::ErrorKind),
    /// [`Stop::stop`] was called.
    Stopped,
    /// The protocol ended by itself.
    Closed,
    /// The request was answered, and [`StdioOptions::once`] is set.
    Answered,
}

/// How a server's loop ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The first reason to end.
    pub reason: Ended,
    /// Requests whose handlers did not answer in time.
    pub unanswered: usize,
}

/// Stdin and stdout, held by the engine until the loop has ended.
#[derive(Debug)]
pub struct Stdio {
    driver: Driver,
    options: StdioOptions,
    redirect: Redirect,
}

impl Stdio {
    /// Takes over stdin and stdout. From now on, output that the process prints goes to stderr, and its
    /// stdin is empty.
    ///
    /// # Errors
    /// When stdin or stdout is not open, or the process has no descriptors left.
    pub fn take(options: StdioOptions) -> io::Result<Self> {
        Ok(Self {
            driver: Driver::new()?,
            options,
            redirect: Redirect::new()?,
        })
    }

    /// Wakes the loop.
    pub fn wake(&self) -> &Arc<LoopWake> {
        self.driver.wake()
    }

    /// A handle that stops the loop.
    pub fn stop(&self) -> Stop {
        self.driver.stop()
    }

    /// Drives `machine` until the wire ends, then gives stdin and stdout back.
    ///
    /// # Errors
    /// When the wire cannot be set up or polled. The end of the wire is not an error.
    pub fn run(self, machine: &mut impl Machine) -> io::Result<Report> {
        self.watched(|mut vigil| {
            loop {
                match vigil.step(machine)? {
                    Next::Over(report) => return Ok(report),
                    Next::Wait { until, more } => vigil.wait(until, more)?,
                }
            }
        })
    }

    /// Runs `drive` with the loop while stdin and stdout are its wire.
    pub(super) fn watched(
        self,
        drive: impl FnOnce(Vigil) -> io::Result<Report>,
    ) -> io::Result<Report> {
        let Self {
            mut driver,
            options,
            redirect,
        } = self;
        let (read, write) = redirect.wire(driver.wake())?;
        driver.attach(read, write)?;
        let vigil = Vigil::new(driver, &options)?;
        let _guard = match options.exit_when_stuck {
            true => Some(vigil.guard(&redirect)?),
            false => None,
        };
        drive(vigil)
    }
}

/// The loop, with the signals and the parent that can end it.
pub(super) struct Vigil {
    driver: Driver,
    grace: Duration,
    once: bool,
    signals: Option<Signals>,
    signalled: Option<i32>,
    parent: Option<Parent>,
    /// The machine was told that the peer has ended.
    ended: bool,
    ending: Option<Ending>,
}

/// The result of one turn.
pub(super) enum Next {
    /// The wire has ended.
    Over(Report),
    /// The loop waits until then, or not at all if there is `more` to do.
    Wait { until: Option<Instant>, more: bool },
}

/// An end in progress.
struct Ending {
    reason: Ended,
    until: Instant,
}

impl Vigil {
    fn new(driver: Driver, options: &StdioOptions) -> io::Result<Self> {
        let registry = driver.registry();
        let signals = match options.signals {
            true => Some(Signals::new(registry, SIGNALS)?),
            false => None,
        };
        let parent = options
            .watch_parent
            .then(|| Parent::watch(registry, PARENT, Instant::now()));
        Ok(Self {
            grace: options.grace,
            once: options.once,
            signals,
            signalled: None,
            parent,
            driver,
            ended: false,
            ending: None,
        })
    }

    fn guard(&self, redirect: &Redirect) -> io::Result<Guard> {
        let mut calls = vec![redirect.hang_up()?];
        calls.extend(self.signals.as_ref().map(Signals::waiting).transpose()?);
        calls.extend(self.parent.as_ref().and_then(Parent::end));
        Guard::start(calls, self.grace, self.driver.wake().clone())
    }

    /// Runs one turn.
    ///
    /// # Errors
    /// As [`Stdio::run`].
    pub(super) fn step(&mut self, machine: &mut impl Machine) -> io::Result<Next> {
        let now = Instant::now();
        let mut more = self.driver.turn(machine, now);
        if !self.driver.is_reading() && !self.ended {
            self.ended = true;
            machine.receive_end(now);
            more = true;
        }
        if let Some((reason, allowed)) = self.cause(machine, now) {
            let until = later(now, allowed);
            match &mut self.ending {
                Some(ending) => ending.until = ending.until.min(until),
                None => {
                    // This loop enforces the deadline itself, and counts the requests left.
                    machine.drain(now, allowed.saturating_add(ABRUPT), error_of(&reason));
                    self.ending = Some(Ending { reason, until });
                    more = true;
                }
            }
        }
        if let Some(Ending { reason, until }) = &self.ending {
            let done =
                machine.in_flight() == 0 && machine.output().is_empty() && self.driver.is_flushed();
            if done || now >= *until {
                let unanswered = machine.in_flight();
                machine.close(error_of(reason));
                let reason = reason.clone();
                return Ok(Next::Over(Report { reason, unanswered }));
            }
        }
        let until = self.ending.as_ref().map(|ending| ending.until);
        let look = self.parent.as_ref().and_then(Parent::poll_timeout);
        let until = [until, machine.poll_timeout(), look]
            .into_iter()
            .flatten()
            .min();
        Ok(Next::Wait { until, more })
    }

    /// Sleeps until there is something to do.
    ///
    /// # Errors
    /// When polling itself fails.
    pub(super) fn wait(&mut self, until: Option<Instant>, more: bool) -> io::Result<()> {
        self.driver.wait(until, more)
    }

    /// Marks the loop as running after its thread did other work: the next turn sees all wake-ups.
    pub(super) fn resume(&self) {
        self.driver.wake().run();
    }

    /// A reason to end that holds now, and how long the end may take.
    fn cause(&mut self, machine: &impl Machine, now: Instant) -> Option<(Ended, Duration)> {
        if let Some(kind) = self.driver.failure() {
            return Some((Ended::BrokenPipe(kind), Duration::ZERO));
        }
        if self.is_parent_gone(now) {
            return Some((Ended::ParentDied, ABRUPT));
        }
        if let Some((signal, again)) = self.signal() {
            let allowed = if again { ABRUPT } else { self.grace };
            return Some((Ended::Signal(signal), allowed));
        }
        if machine.is_closed() {
            Some((Ended::Closed, ABRUPT))
        } else if !self.driver.is_reading() {
            Some((Ended::EndOfInput, self.grace))
        } else if self.driver.is_stopped() {
            Some((Ended::Stopped, self.grace))
        } else if self.once && self.driver.has_spoken() && machine.in_flight() == 0 {
            Some((Ended::Answered, self.grace))
        } else {
            None
        }
    }

    fn is_parent_gone(&mut self, now: Instant) -> bool {
        let told = self.driver.take_ready(PARENT);
        let Some(parent) = &mut self.parent else {
            return false;
        };
        let look = parent.poll_timeout().is_some_and(|due| now >= due);
        (told || look) && parent.is_gone(told, now)
    }

    /// A signal that has just arrived, and whether another came before it.
    fn signal(&mut self) -> Option<(i32, bool)> {
        if !self.driver.take_ready(SIGNALS) {
            return None;
        }
        let mut came = None;
        for signal in self.signals.as_mut()?.pending() {
            came = Some((signal, self.signalled.is_some()));
            self.signalled = Some(signal);
        }
        came
    }
}

fn error_of(reason: &Ended) -> ConnectionError {
    match reason {
        Ended::EndOfInput | Ended::ParentDied => ConnectionError::ClosedByPeer,
        Ended::BrokenPipe(kind) => ConnectionError::Io(*kind),
        Ended::Signal(_) | Ended::Stopped => ConnectionError::ShuttingDown,
        Ended::Closed | Ended::Answered => ConnectionError::ClosedLocally,
    }
}
