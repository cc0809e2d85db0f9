//! The server's side of stdio: this process's stdin and stdout as one wire, and when to end.
//!
//! | what happens | what the loop does |
//! |---|---|
//! | end of stdin, the first signal, [`Stop`], the first answer where there is to be one only | answers what is in flight, at most for the grace period, and refuses what is new |
//! | the parent's death, the second signal | sends what is ready, at most for half a second |
//! | a broken pipe | ends at once |
//!
//! The loop never waits for a handler longer than that, so a wedged one cannot hold the process;
//! one that holds the loop's own thread is dealt with by [`StdioOptions::exit_when_stuck`].

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

/// How long an end that nobody waits for politely may take.
const ABRUPT: Duration = Duration::from_millis(500);

/// How a server on stdin and stdout runs.
#[derive(Clone, Debug)]
pub struct StdioOptions {
    /// How long requests in flight may still be answered after the end of stdin, a signal or a
    /// stop. 5 s by default.
    pub grace: Duration,
    /// Take SIGTERM, SIGINT and SIGHUP while the loop runs, so that what is in flight is still
    /// answered. On by default; turn it off in a program that deals with signals itself, as a
    /// handler that it had set does not come back when the loop ends: the default action does.
    pub signals: bool,
    /// End when the process that started this one dies. On by default.
    pub watch_parent: bool,
    /// End the process, with status 1, when the loop itself cannot: an inline handler that never
    /// returns holds its thread beyond the grace period. Costs one sleeping thread. Off by
    /// default, and without effect outside Unix.
    pub exit_when_stuck: bool,
    /// End once a request is answered and none is in flight: for clients of the
    /// [action dialect](crate::action) that start a process for each of their requests (R-ACT-20).
    /// Clients of MCP ask more than once. Off by default.
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
    /// A signal asked for it; its number.
    Signal(i32),
    /// The process that started this one is gone.
    ParentDied,
    /// Nobody reads our stdout any more, or a descriptor failed.
    BrokenPipe(io::ErrorKind),
    /// [`Stop::stop`] was called.
    Stopped,
    /// The protocol ended by itself.
    Closed,
    /// What was asked is answered, and no more was wanted.
    Answered,
}

/// How a server's loop ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The first reason there was.
    pub reason: Ended,
    /// Requests whose handlers had not answered in time.
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
    /// Takes stdin and stdout: what the process prints from now on goes to stderr, what it reads
    /// is empty.
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

    /// What wakes the loop.
    pub fn wake(&self) -> &Arc<LoopWake> {
        self.driver.wake()
    }

    /// A handle that ends the loop.
    pub fn stop(&self) -> Stop {
        self.driver.stop()
    }

    /// Drives `machine` until the wire ends, then gives stdin and stdout back.
    ///
    /// # Errors
    /// When the wire cannot be set up or polled; how a wire ends is not an error.
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

    /// Lets `drive` have the loop while this process's stdin and stdout are its wire.
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

/// The loop and what can end it.
pub(super) struct Vigil {
    driver: Driver,
    grace: Duration,
    once: bool,
    signals: Option<Signals>,
    signalled: Option<i32>,
    parent: Option<Parent>,
    /// The peer's end was told to the machine.
    ended: bool,
    ending: Option<Ending>,
}

/// What comes after one turn.
pub(super) enum Next {
    /// Nothing: the wire has ended.
    Over(Report),
    /// A wait, not at all when there is more to do.
    Wait { until: Option<Instant>, more: bool },
}

/// What is to be done before the loop is left.
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

    /// One turn.
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
                    // This loop ends it in time, and counts what is left.
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

    /// The loop runs on after its thread did something else: the next turn sees all of that.
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

    /// A signal that has just come, and whether it is not the first.
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
