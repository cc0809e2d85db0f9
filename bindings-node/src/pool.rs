//! Which connections of a pool there are, who has them and who waits. The connections themselves are JavaScript's.

use std::time::Instant;

use mcpbolt::io::{PoolAsked, PoolGrant, PoolLedger};
use mcpbolt::settings::{Milliseconds, PoolSettings};
use napi_derive::napi;

use crate::error::Result;
use crate::json::read;

/// The decisions of a pool.
#[napi]
pub struct Ledger(PoolLedger<String>);

/// What a caller has got: `use` or `open` the connection of that number, `wait` under that number, or `refused`.
#[napi(object)]
pub struct Grant {
    /// The caller that waited.
    pub ticket: f64,
    pub what: String,
    pub id: f64,
}

impl Grant {
    fn new(ticket: u64, grant: PoolGrant) -> Self {
        let (what, id) = match grant {
            PoolGrant::Use(id) => ("use", id),
            PoolGrant::Open(id) => ("open", id),
        };
        Self {
            ticket: ticket as f64,
            what: what.to_owned(),
            id: id as f64,
        }
    }
}

/// What is to be done after a change.
#[napi(object)]
pub struct PoolChanges {
    pub granted: Vec<Grant>,
    /// Callers that waited in vain.
    pub expired: Vec<f64>,
    /// Connections to close.
    pub closing: Vec<f64>,
}

#[napi]
impl Ledger {
    /// `settings` is JSON.
    #[napi(constructor, catch_unwind)]
    pub fn new(settings: String) -> Result<Self> {
        let options = read::<PoolSettings<Milliseconds>>(&settings)?.options();
        Ok(Self(PoolLedger::new(options)))
    }

    /// A caller needs a connection.
    #[napi(catch_unwind)]
    pub fn ask(&mut self, key: String) -> Grant {
        let (what, id) = match self.0.ask(&key, Instant::now()) {
            PoolAsked::Granted(grant) => return Grant::new(0, grant),
            PoolAsked::Waits(ticket) => ("wait", ticket),
            PoolAsked::Refused => ("refused", 0),
        };
        Grant {
            ticket: 0.0,
            what: what.to_owned(),
            id: id as f64,
        }
    }

    /// A connection was opened for its first caller.
    #[napi(catch_unwind)]
    pub fn opened(&mut self, id: f64) {
        self.0.opened(id as u64, Instant::now());
    }

    /// A connection could not be opened, or has broken.
    #[napi(catch_unwind)]
    pub fn lost(&mut self, id: f64) {
        self.0.lost(id as u64, Instant::now());
    }

    /// A caller gives a connection back.
    #[napi(catch_unwind)]
    pub fn give_back(&mut self, id: f64, is_fit: bool) {
        self.0.give_back(id as u64, is_fit, Instant::now());
    }

    /// A caller waits no longer.
    #[napi(catch_unwind)]
    pub fn withdraw(&mut self, ticket: f64) {
        self.0.withdraw(ticket as u64);
    }

    /// Time has passed.
    #[napi(catch_unwind)]
    pub fn advance(&mut self) {
        self.0.advance(Instant::now());
    }

    /// In how many ms `advance` has something to do.
    #[napi(catch_unwind)]
    pub fn due(&self) -> Option<f64> {
        let left = self
            .0
            .next_deadline()?
            .saturating_duration_since(Instant::now());
        Some(left.as_secs_f64() * 1000.0)
    }

    /// Closes all connections, and sends those away that wait.
    #[napi(catch_unwind)]
    pub fn close_all(&mut self) {
        self.0.close_all(true);
    }

    /// What is to be done after a change.
    #[napi(catch_unwind)]
    pub fn changes(&mut self) -> PoolChanges {
        let granted = self.0.take_granted().into_iter();
        let numbers = |numbers: Vec<u64>| numbers.into_iter().map(|it| it as f64).collect();
        PoolChanges {
            granted: granted
                .map(|(ticket, grant)| Grant::new(ticket, grant))
                .collect(),
            expired: numbers(self.0.take_expired()),
            closing: numbers(self.0.take_closing()),
        }
    }

    /// The counters, in the order of `PoolCounts`.
    #[napi(catch_unwind)]
    pub fn counts(&self) -> Vec<f64> {
        let counts = self.0.counts();
        let now = [counts.idle, counts.in_use, counts.opening, counts.waiting];
        let ever = [
            counts.opened,
            counts.reused,
            counts.failed,
            counts.closed_idle,
            counts.dropped,
            counts.timed_out,
        ];
        let now = now.into_iter().map(|it| it as f64);
        now.chain(ever.into_iter().map(|it| it as f64)).collect()
    }
}
