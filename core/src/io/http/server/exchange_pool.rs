//! A pool of finished exchanges, for reuse. To create and drop an exchange costs about twice the
//! instructions of a reset, and some ten allocations.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::exchange::HttpExchange;
use crate::connection::Principal;

/// Maximum number kept: about as many as are answered at the same time.
const MOST: usize = 64;

/// Boxed, since an exchange moves as a whole between the pool and a request.
type Kept = Vec<Box<HttpExchange>>;

/// Exchanges that were used last are reused first, while they are in the CPU cache.
#[derive(Default)]
pub struct ExchangePool(Mutex<Kept>);

impl ExchangePool {
    /// Takes an exchange of that principal, with a server of that generation.
    pub fn take(
        &self,
        principal: Option<&Principal>,
        generation: u64,
    ) -> Option<Box<HttpExchange>> {
        let mut kept = self.lock();
        let mut old = Vec::new();
        if kept.iter().any(|one| one.generation() != generation) {
            old = kept
                .extract_if(.., |one| one.generation() != generation)
                .collect();
        }
        let at = kept.iter().rposition(|one| one.is_of(principal));
        let taken = at.map(|at| kept.remove(at));
        drop(kept);
        drop(old);
        taken
    }

    /// Keeps a finished exchange, if it can be reused and there is room.
    pub fn put(&self, mut exchange: Box<HttpExchange>) {
        if !exchange.renew() {
            return;
        }
        let mut kept = self.lock();
        // The oldest belongs to a principal that has not sent another request for long.
        let oldest = (kept.len() == MOST).then(|| kept.remove(0));
        kept.push(exchange);
        drop(kept);
        drop(oldest);
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Instant;

    use super::*;
    use crate::connection::Connection;
    use crate::io::{Workers, WorkersConfig};
    use crate::server::Server;

    #[test]
    fn no_more_are_spared_than_may_be() {
        let server = Server::builder("test", "1").build().unwrap();
        let hosting = server.hosting(Arc::new(Workers::new(WorkersConfig::default())));
        let config = hosting.config();
        let timers = Connection::new(config.clone(), Instant::now()).handle();
        let spare = ExchangePool::default();
        for _ in 0..10 * MOST {
            let exchange = HttpExchange::new(&*hosting, config, &timers, None);
            spare.put(Box::new(exchange));
        }
        let taken = std::iter::from_fn(|| spare.take(None, 0));
        assert_eq!(taken.count(), MOST);
    }

    #[test]
    fn what_an_earlier_server_has_left_is_dropped() {
        let server = Server::builder("test", "1").build().unwrap();
        let hosting = server.hosting(Arc::new(Workers::new(WorkersConfig::default())));
        let config = hosting.config();
        let timers = Connection::new(config.clone(), Instant::now()).handle();
        let spare = ExchangePool::default();
        spare.put(Box::new(HttpExchange::new(
            &*hosting, config, &timers, None,
        )));
        assert!(spare.take(None, 1).is_none());
        assert!(spare.take(None, 0).is_none());
    }
}
