//! Exchanges that are over, to be used again.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::exchange::Exchange;
use crate::connection::Principal;

/// Most that are kept: as many as are answered at about the same time.
const MOST: usize = 64;

/// Moved as a whole from here to a request and back: in a box.
type Kept = Vec<Box<Exchange>>;

/// Those that were used last are used first: they are in the cache.
#[derive(Default)]
pub struct Spare(Mutex<Kept>);

impl Spare {
    /// One of that principal's.
    pub fn take(&self, principal: Option<&Principal>) -> Option<Box<Exchange>> {
        let mut kept = self.lock();
        let at = kept.iter().rposition(|one| one.is_of(principal))?;
        Some(kept.remove(at))
    }

    /// Keeps one that is over, if it can be used again and there is room.
    pub fn put(&self, mut exchange: Box<Exchange>) {
        if !exchange.renew() {
            return;
        }
        let mut kept = self.lock();
        // That of a principal who has not come back.
        let oldest = (kept.len() == MOST).then(|| kept.remove(0));
        kept.push(exchange);
        drop(kept);
        drop(oldest);
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
