//! How often each client may ask.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::connection::Pace;
use crate::limits::{MAX_RATED_CLIENTS, Rate};

/// A token bucket for each client, on the clock that the caller brings.
pub(super) struct Rates {
    rate: Rate,
    clients: Mutex<HashMap<Box<str>, Pace>>,
}

impl Rates {
    pub fn new(rate: Rate) -> Self {
        Self {
            rate,
            clients: Mutex::default(),
        }
    }

    /// Takes one for `client`.
    ///
    /// # Errors
    /// How long until there is one again.
    pub fn take(&self, client: &str, now: Instant) -> Result<(), Duration> {
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        if !clients.contains_key(client) {
            if clients.len() >= MAX_RATED_CLIENTS {
                // Who has all that is allowed at once begins as a new one would.
                clients.retain(|_, pace| !pace.is_full(now));
            }
            let known = clients.len() < MAX_RATED_CLIENTS;
            // Beyond that all the others are one.
            let name = if known { client } else { "" };
            let pace = clients
                .entry(name.into())
                .or_insert_with(|| Pace::new(self.rate, now));
            return taken(pace, now);
        }
        clients
            .get_mut(client)
            .map_or(Ok(()), |pace| taken(pace, now))
    }

    /// Whether `client` could take one.
    ///
    /// # Errors
    /// How long until it can.
    #[cfg(feature = "http")]
    pub fn look(&self, client: &str, now: Instant) -> Result<(), Duration> {
        let clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        let pace = clients.get(client).copied();
        pace.map_or(Ok(()), |mut pace| taken(&mut pace, now))
    }
}

fn taken(pace: &mut Pace, now: Instant) -> Result<(), Duration> {
    match pace.take(now) {
        true => Ok(()),
        false => Err(pace.wait()),
    }
}

impl fmt::Debug for Rates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Rates").field(&self.rate).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: Rate = Rate {
        burst: 2,
        per_second: 1,
    };

    #[test]
    fn each_client_has_its_own() {
        let (rates, now) = (Rates::new(RATE), Instant::now());
        let took = |client, after| {
            let now = now + Duration::from_secs(after);
            (0..5).filter(|_| rates.take(client, now).is_ok()).count()
        };
        assert_eq!((took("a", 0), took("b", 0), took("a", 0)), (2, 2, 0));
        let wait = rates.take("a", now).unwrap_err();
        assert!(wait > Duration::from_millis(900) && wait < Duration::from_millis(1100));
        #[cfg(feature = "http")]
        assert!(rates.look("a", now).is_err() && rates.look("new", now).is_ok());
        assert_eq!((took("a", 1), took("b", 100)), (1, 2));
    }

    #[test]
    fn no_more_clients_are_kept_than_may_be() {
        let (rates, now) = (Rates::new(RATE), Instant::now());
        let held = || rates.clients.lock().unwrap().len();
        for n in 0..MAX_RATED_CLIENTS + 10 {
            let _ = rates.take(&n.to_string(), now);
        }
        assert_eq!(held(), MAX_RATED_CLIENTS + 1, "and one for all the others");
        let others = (0..10).filter(|n| rates.take(&format!("more {n}"), now).is_ok());
        assert_eq!(others.count(), 0);
        let later = now + Duration::from_secs(10);
        assert!(rates.take("late", later).is_ok());
        assert_eq!(held(), 1);
    }
}
