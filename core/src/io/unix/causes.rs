//! Ends a server on stdio for reasons besides its wire: signals, and the death of the process that started it.

use std::io;
use std::time::{Duration, Instant};

use mio::{Registry, Token};

use super::parent::Parent;
use super::redirect::Redirect;
use super::signals::Signals;
use super::watchdog::Watchdog;
use crate::io::driver::{Driver, FIRST_FREE};
use crate::io::stdio::{Ended, StdioOptions};

const SIGNALS: Token = Token(FIRST_FREE);
const PARENT: Token = Token(FIRST_FREE + 1);

/// The signals and the parent that can end the event loop.
#[derive(Debug)]
pub(in crate::io) struct Causes {
    signals: Option<Signals>,
    /// Whether a signal has arrived.
    is_signalled: bool,
    parent: Option<Parent>,
}

impl Causes {
    pub fn new(options: &StdioOptions, registry: &Registry) -> io::Result<Self> {
        let signals = match options.signals {
            true => Some(Signals::new(registry, SIGNALS)?),
            false => None,
        };
        let watch = || Parent::watch(registry, PARENT, Instant::now());
        Ok(Self {
            signals,
            is_signalled: false,
            parent: options.watch_parent.then(watch),
        })
    }

    /// When [`take`](Self::take) must be called even if nothing was reported.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.parent.as_ref()?.poll_timeout()
    }

    /// A cause that has just arisen, and whether the end is to be abrupt.
    pub fn take(&mut self, driver: &mut Driver, now: Instant) -> Option<(Ended, bool)> {
        let told = driver.take_ready(PARENT);
        if let Some(parent) = &mut self.parent
            && (told || parent.poll_timeout().is_some_and(|due| now >= due))
            && parent.is_gone(told, now)
        {
            return Some((Ended::ParentDied, true));
        }
        if !driver.take_ready(SIGNALS) {
            return None;
        }
        let mut cause = None;
        for signal in self.signals.as_mut()?.pending() {
            let is_again = std::mem::replace(&mut self.is_signalled, true);
            cause = Some((Ended::Signal(signal), is_again));
        }
        cause
    }

    /// Starts the thread that ends the process when its loop is stuck after one of these causes, or after
    /// the client has hung up.
    pub fn watchdog(
        &self,
        grace: Duration,
        redirect: &Redirect,
        driver: &Driver,
    ) -> io::Result<Watchdog> {
        let mut calls = vec![redirect.hang_up()?];
        calls.extend(self.signals.as_ref().map(Signals::waiting).transpose()?);
        calls.extend(self.parent.as_ref().and_then(Parent::end));
        Watchdog::start(calls, grace, driver.wake().clone())
    }
}
