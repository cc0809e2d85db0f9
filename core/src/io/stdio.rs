//! The server's side of stdio: this process's stdin and stdout as one wire, and when to end.
//!
//! | what happens | what the loop does |
//! |---|---|
//! | stdin ends, first signal, [`Stop`], `once` answered | finishes calls in the grace period, no new ones |
//! | the parent's death, the second signal | sends available output for at most half a second |
//! | [`Stop::finish`] | sends available output as long as its reader takes some |
//! | a broken pipe | ends at once |
//!
//! The loop waits no longer than that for a handler, so a handler that hangs cannot hold the process.
//! [`StdioOptions::exit_when_stuck`] deals with a handler that blocks the loop's own thread.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::driver::{Driver, Poller, Stop};
use super::hosted::Hosted;
use super::machine::Machine;
use super::platform::{Causes, Redirect};
use super::wake::LoopWake;
use super::workers::Workers;
use crate::connection::{Connection, Framing, Host};
use crate::error::ConnectionError;
use crate::limits::later;

/// How long an abrupt end may take.
const ABRUPT: Duration = Duration::from_millis(500);

/// How long the last output may wait for its reader to take some of it.
const LAST_OUTPUT: Duration = Duration::from_secs(5);

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
    poller: Poller,
    options: StdioOptions,
    redirect: Redirect,
    end_of_input: EndOfInput,
}

/// Called once stdin has ended.
#[derive(Default)]
struct EndOfInput(Option<Box<dyn FnOnce() + Send>>);

impl fmt::Debug for EndOfInput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("EndOfInput")
            .field(&self.0.is_some())
            .finish()
    }
}

impl Stdio {
    /// Takes over stdin and stdout. From now on, output that the process prints goes to stderr, and its
    /// stdin is empty.
    ///
    /// # Errors
    /// When stdin or stdout is not open, or the process has no descriptors left.
    pub fn take(options: StdioOptions) -> io::Result<Self> {
        let (driver, poller) = Driver::new()?;
        Ok(Self {
            driver,
            poller,
            options,
            redirect: Redirect::new()?,
            end_of_input: EndOfInput::default(),
        })
    }

    /// Calls `tell` on the loop's thread, or on that of its [helper](Self::helped), once stdin has ended or failed and its
    /// last message has been received. Requests in flight may be answered later.
    pub fn on_end_of_input(mut self, tell: impl FnOnce() + Send + 'static) -> Self {
        self.end_of_input = EndOfInput(Some(Box::new(tell)));
        self
    }

    /// Wakes the loop.
    pub fn wake(&self) -> &Arc<LoopWake> {
        self.driver.wake()
    }

    /// A handle that stops the loop.
    pub fn stop(&self) -> Stop {
        self.driver.stop()
    }

    /// Drives `machine` on this thread until the wire ends, then gives stdin and stdout back.
    ///
    /// # Errors
    /// When the wire cannot be set up or polled. The end of the wire is not an error.
    pub fn run(self, machine: &mut impl Machine) -> io::Result<Report> {
        let (mut event_loop, mut poller, _held) = self.begin()?;
        loop {
            if let Some(report) = event_loop.run(&mut poller, machine, || false)? {
                return Ok(report);
            }
        }
    }

    /// Lets `workers` drive a connection, and waits until the wire ends. Jobs that the host spawns on
    /// them cost no wake-up of another thread while they are quick.
    ///
    /// A pool drives only one connection in its life.
    ///
    /// # Errors
    /// As [`run`](Self::run), and when no thread can be started.
    pub fn drive_by<H: Host + Send + 'static>(
        self,
        workers: &Workers,
        connection: Connection,
        host: H,
    ) -> io::Result<Report> {
        connection.set_wake(self.wake().clone());
        let mut machine = Hosted::new(connection, Framing::Detect, host);
        let (mut event_loop, mut poller, _held) = self.begin()?;
        let report = workers.drive(None, move |wakes, is_wanted| {
            wakes.iter().for_each(|wake| wake.wake());
            // Other work was done since the last turn: the next one sees all wake-ups.
            event_loop.driver.wake().run();
            event_loop
                .run(&mut poller, &mut machine, is_wanted)
                .transpose()
        })?;
        let lost = |_| Err(io::Error::other("the loop panicked"));
        report.recv().unwrap_or_else(lost)
    }

    /// Makes stdin and stdout the wire of an event loop. They are given back when what comes with it is
    /// dropped.
    pub(super) fn begin(self) -> io::Result<(StdioLoop, Poller, impl Sized)> {
        let Self {
            mut driver,
            poller,
            options,
            redirect,
            end_of_input,
        } = self;
        let (read, write) = redirect.wire(driver.wake())?;
        driver.attach(read, write)?;
        let causes = Causes::new(&options, driver.registry())?;
        let watchdog = match options.exit_when_stuck {
            true => Some(causes.watchdog(options.grace, &redirect, &driver)?),
            false => None,
        };
        let event_loop = StdioLoop {
            driver,
            options,
            causes,
            end_of_input,
            ended: false,
            ending: None,
        };
        Ok((event_loop, poller, (redirect, watchdog)))
    }
}

/// The event loop of stdio, with all that can end it.
pub(super) struct StdioLoop {
    pub driver: Driver,
    options: StdioOptions,
    causes: Causes,
    end_of_input: EndOfInput,
    /// The machine was told that the peer has ended.
    ended: bool,
    ending: Option<Ending>,
}

/// An end in progress.
struct Ending {
    reason: Ended,
    until: Instant,
    /// Whether its time is not extended by progress.
    is_abrupt: bool,
    /// What the last turn left to write: bytes, and pieces that a thread has.
    unsent: (usize, usize),
}

impl StdioLoop {
    /// Runs turns until the wire ends, or `is_wanted` says that this thread is needed elsewhere. One turn
    /// waits at least, so that endless jobs of the thread do not starve the wire and the signals.
    ///
    /// # Errors
    /// As [`Stdio::run`].
    fn run(
        &mut self,
        poller: &mut Poller,
        machine: &mut impl Machine,
        is_wanted: impl Fn() -> bool,
    ) -> io::Result<Option<Report>> {
        let mut has_looked = false;
        loop {
            let (until, more) = match self.turn(machine) {
                Err(report) => return Ok(Some(report)),
                Ok(wait) => wait,
            };
            let is_wanted = is_wanted();
            if is_wanted && has_looked {
                return Ok(None);
            }
            poller.wait(&mut self.driver, until, more || is_wanted)?;
            has_looked = true;
        }
    }

    /// Runs one turn. Returns until when to wait, and whether there is more to do at once.
    ///
    /// # Errors
    /// The report, when the wire has ended.
    pub fn turn(&mut self, machine: &mut impl Machine) -> Result<(Option<Instant>, bool), Report> {
        let now = Instant::now();
        // Before the turn, which then handles all that was submitted before the loop was asked to finish.
        let is_finishing = self.driver.is_finishing();
        let mut more = self.driver.turn(machine, now);
        if !self.driver.is_reading() && !self.ended {
            self.ended = true;
            machine.receive_end(now);
            if let Some(tell) = self.end_of_input.0.take() {
                tell();
            }
            more = true;
        }
        let cause = match is_finishing {
            true => self.abrupt(now).or(Some((Ended::Stopped, LAST_OUTPUT))),
            false => self.cause(machine, now),
        };
        if let Some((reason, allowed)) = cause {
            let (until, is_abrupt) = (later(now, allowed), allowed <= ABRUPT);
            match &mut self.ending {
                Some(ending) => {
                    ending.until = ending.until.min(until);
                    ending.is_abrupt |= is_abrupt;
                }
                None => {
                    // This loop enforces the deadline itself, and counts the requests left.
                    let patience = match is_finishing {
                        true => Duration::MAX,
                        false => allowed.saturating_add(ABRUPT),
                    };
                    machine.drain(now, patience, error_of(&reason));
                    self.ending = Some(Ending {
                        reason,
                        until,
                        is_abrupt,
                        unsent: (0, 0),
                    });
                    more = true;
                }
            }
        }
        if let Some(Ending {
            reason,
            until,
            is_abrupt,
            unsent,
        }) = &mut self.ending
        {
            let left = (machine.output().len(), self.driver.waiting());
            if is_finishing && !*is_abrupt && left != std::mem::replace(unsent, left) {
                *until = later(now, LAST_OUTPUT);
            }
            let has_answered = is_finishing || machine.in_flight() == 0;
            let done = self.driver.failure().is_some()
                || has_answered && left.0 == 0 && self.driver.is_flushed();
            if done || now >= *until {
                let unanswered = machine.in_flight();
                machine.close(error_of(reason));
                let reason = reason.clone();
                return Err(Report { reason, unanswered });
            }
        }
        let until = self.ending.as_ref().map(|ending| ending.until);
        let until = [until, machine.poll_timeout(), self.causes.poll_timeout()]
            .into_iter()
            .flatten()
            .min();
        Ok((until, more))
    }

    /// A reason to end before the last output is written, and how long the end may take.
    fn abrupt(&mut self, now: Instant) -> Option<(Ended, Duration)> {
        if let Some(kind) = self.driver.failure() {
            return Some((Ended::BrokenPipe(kind), Duration::ZERO));
        }
        let (cause, is_abrupt) = self.causes.take(&mut self.driver, now)?;
        is_abrupt.then_some((cause, ABRUPT))
    }

    /// A reason to end that holds now, and how long the end may take.
    fn cause(&mut self, machine: &impl Machine, now: Instant) -> Option<(Ended, Duration)> {
        if let Some(kind) = self.driver.failure() {
            return Some((Ended::BrokenPipe(kind), Duration::ZERO));
        }
        let grace = self.options.grace;
        if let Some((cause, is_abrupt)) = self.causes.take(&mut self.driver, now) {
            return Some((cause, if is_abrupt { ABRUPT } else { grace }));
        }
        if machine.is_closed() {
            Some((Ended::Closed, ABRUPT))
        } else if !self.driver.is_reading() {
            Some((Ended::EndOfInput, grace))
        } else if self.driver.is_stopped() {
            Some((Ended::Stopped, grace))
        } else if self.options.once && self.driver.has_spoken() && machine.in_flight() == 0 {
            Some((Ended::Answered, grace))
        } else {
            None
        }
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
