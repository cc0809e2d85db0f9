//! Reports of rules to functions of the program.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::thread;

use mcpbolt::chain::{PinDrift, UpstreamCall};
use pyo3::prelude::*;

use crate::failures;

/// The most reports that wait for the function. Further ones are dropped, and counted.
const MAX_WAITING: usize = 8192;

/// What is reported, as the arguments of the function.
pub enum Report {
    /// A tool that is not as it was pinned: the server, the tool, its pin, and the one that it would have.
    Drift(String, String, Option<String>, String),
    /// A request to a server: the server, the method, the name, the client, the outcome, the error, and the seconds; then how many
    /// reports were dropped before this one.
    Call {
        names: (String, String, Option<String>, Option<String>),
        outcome: &'static str,
        error: Option<String>,
        seconds: f64,
        dropped: u64,
    },
}

impl Report {
    pub fn drift(drift: &PinDrift<'_>) -> Self {
        Self::Drift(
            drift.server.into(),
            drift.tool.into(),
            drift.pinned.map(str::to_owned),
            drift.found.into(),
        )
    }

    pub fn call(call: &UpstreamCall<'_>) -> Self {
        let names = (
            call.server.into(),
            call.method.into(),
            call.name.map(str::to_owned),
            call.principal.map(str::to_owned),
        );
        Self::Call {
            names,
            outcome: call.outcome.name(),
            error: call.error.map(ToString::to_string),
            seconds: call.duration.as_secs_f64(),
            dropped: 0,
        }
    }

    /// The message that an exception of its function is logged with.
    fn failure(&self) -> &'static str {
        match self {
            Self::Drift(..) => "`on_drift` failed",
            Self::Call { .. } => "the call report failed",
        }
    }

    fn pass(self, py: Python<'_>, to: &Py<PyAny>) -> PyResult<()> {
        let told = match self {
            Self::Drift(server, tool, pinned, found) => {
                to.call1(py, (server, tool, pinned, found))?
            }
            Self::Call {
                names: (server, method, name, principal),
                outcome,
                error,
                seconds,
                dropped,
            } => to.call1(
                py,
                (
                    server, method, name, principal, outcome, error, seconds, dropped,
                ),
            )?,
        };
        drop(told);
        Ok(())
    }
}

/// Passes reports to a function, in order, on a thread of its own, so that no engine thread waits for the interpreter. The thread
/// ends when this is dropped and all reports are passed.
pub struct Reporter {
    queue: SyncSender<Report>,
    dropped: AtomicU64,
}

impl Reporter {
    /// `failed` gets the exceptions of the function.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub fn new(to: Py<PyAny>, failed: Py<PyAny>) -> PyResult<Self> {
        let (queue, reports) = sync_channel::<Report>(MAX_WAITING);
        thread::Builder::new()
            .name("mcpbolt-reports".into())
            .spawn(move || {
                while let Ok(report) = reports.recv() {
                    let what = report.failure();
                    let told = Python::try_attach(|py| {
                        if let Err(error) = report.pass(py, &to) {
                            failures::report(py, &failed, error, what, None);
                        }
                    });
                    // The interpreter has ended.
                    if told.is_none() {
                        break;
                    }
                }
            })?;
        Ok(Self {
            queue,
            dropped: AtomicU64::new(0),
        })
    }

    /// Passes a report on, without waiting.
    pub fn tell(&self, mut report: Report) {
        let before = self.dropped.swap(0, Ordering::Relaxed);
        if let Report::Call { dropped, .. } = &mut report {
            *dropped = before;
        }
        if let Err(TrySendError::Full(_)) = self.queue.try_send(report) {
            self.dropped.fetch_add(before + 1, Ordering::Relaxed);
        }
    }
}
