//! Which connections of a pool there are, who has them and who waits. The connections themselves are the Python package's.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use mcpbolt::io::{PoolAsked, PoolGrant, PoolLedger};
use mcpbolt::settings::{PoolSettings, Seconds};
use pyo3::prelude::*;

use crate::settings::read;

/// The decisions of a pool.
#[pyclass(frozen, module = "mcpbolt._core")]
pub struct Ledger(Mutex<PoolLedger<String>>);

/// Callers that have got something (what, and the connection), callers that waited in vain, and connections to close.
type Changes = (Vec<(u64, &'static str, u64)>, Vec<u64>, Vec<u64>);

#[pymethods]
impl Ledger {
    /// `settings` is JSON.
    #[new]
    fn new(settings: &str) -> PyResult<Self> {
        let options = read::<PoolSettings<Seconds>>(settings)?.options();
        Ok(Self(Mutex::new(PoolLedger::new(options))))
    }

    /// A caller needs a connection: `"use"` or `"open"` one of that number, `"wait"` under that number, or `"refused"`.
    #[expect(clippy::needless_pass_by_value, reason = "as pyo3 extracts it")]
    fn ask(&self, key: String) -> (&'static str, u64) {
        match self.lock().ask(&key, Instant::now()) {
            PoolAsked::Granted(grant) => granted(grant),
            PoolAsked::Waits(ticket) => ("wait", ticket),
            PoolAsked::Refused => ("refused", 0),
        }
    }

    /// A caller waits no longer.
    fn withdraw(&self, ticket: u64) {
        self.lock().withdraw(ticket);
    }

    /// A connection was opened for its first caller.
    fn opened(&self, id: u64) {
        self.lock().opened(id, Instant::now());
    }

    /// A connection could not be opened, or has broken.
    fn lost(&self, id: u64) {
        self.lock().lost(id, Instant::now());
    }

    /// A caller gives a connection back.
    fn give_back(&self, id: u64, is_fit: bool) {
        self.lock().give_back(id, is_fit, Instant::now());
    }

    /// A caller does not use what it has got.
    fn decline(&self, id: u64) {
        self.lock().decline(id, Instant::now());
    }

    /// Time has passed.
    fn advance(&self) {
        self.lock().advance(Instant::now());
    }

    /// In how many seconds [`advance`](Self::advance) has something to do.
    fn due(&self) -> Option<f64> {
        let deadline = self.lock().next_deadline()?;
        Some(
            deadline
                .saturating_duration_since(Instant::now())
                .as_secs_f64(),
        )
    }

    /// Closes all connections, and sends those away that wait.
    fn close_all(&self) {
        self.lock().close_all(true);
    }

    /// What is to be done after a change.
    fn changes(&self) -> Changes {
        let mut ledger = self.lock();
        let has = |(ticket, grant)| {
            let (what, id) = granted(grant);
            (ticket, what, id)
        };
        let granted = ledger.take_granted().into_iter().map(has).collect();
        (granted, ledger.take_expired(), ledger.take_closing())
    }

    /// The counters, in the order of Python's `PoolCounts`.
    fn counts(&self) -> [u64; 10] {
        let counts = self.lock().counts();
        [
            counts.idle as u64,
            counts.in_use as u64,
            counts.opening as u64,
            counts.waiting as u64,
            counts.opened,
            counts.reused,
            counts.failed,
            counts.closed_idle,
            counts.dropped,
            counts.timed_out,
        ]
    }
}

impl Ledger {
    fn lock(&self) -> MutexGuard<'_, PoolLedger<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn granted(grant: PoolGrant) -> (&'static str, u64) {
    match grant {
        PoolGrant::Use(id) => ("use", id),
        PoolGrant::Open(id) => ("open", id),
    }
}
