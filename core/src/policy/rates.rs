//! Rate limits per client.

use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::known::Known;
use crate::connection::{RateLimiter, Source};
use crate::limits::Rate;

/// A token bucket per client; the caller supplies the time.
pub(super) struct Rates {
    rate: Rate,
    clients: Mutex<Known<RateLimiter>>,
}

impl Rates {
    pub fn new(rate: Rate) -> Self {
        Self {
            rate,
            clients: Mutex::default(),
        }
    }

    pub fn rate(&self) -> Rate {
        self.rate
    }

    /// Counts one request of `client`.
    ///
    /// # Errors
    /// How long until the client may send another request.
    pub fn take(&self, client: &Source, now: Instant) -> Result<(), Duration> {
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        let fresh = || RateLimiter::new(self.rate, now);
        let pace = clients.of(client, fresh, |pace| pace.missing(now));
        match pace.take(now) {
            true => Ok(()),
            false => Err(pace.wait()),
        }
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
    use crate::limits::MAX_RATED_CLIENTS;

    const RATE: Rate = Rate {
        burst: 2,
        per_second: 1,
    };

    fn client(n: usize) -> Source {
        Source::Principal(n.to_string().into())
    }

    #[test]
    fn each_client_has_its_own() {
        let (rates, now) = (Rates::new(RATE), Instant::now());
        let took = |n, after| {
            let now = now + Duration::from_secs(after);
            (0..5)
                .filter(|_| rates.take(&client(n), now).is_ok())
                .count()
        };
        assert_eq!((took(1, 0), took(2, 0), took(1, 0)), (2, 2, 0));
        let wait = rates.take(&client(1), now).unwrap_err();
        assert!(wait > Duration::from_millis(900) && wait < Duration::from_millis(1100));
        assert_eq!((took(1, 1), took(2, 100)), (1, 2));
    }

    /// The clients that asked least are forgotten first; a new client starts with a full burst.
    #[test]
    fn no_more_clients_are_kept_than_may_be() {
        let (rates, now) = (Rates::new(RATE), Instant::now());
        let held = || rates.clients.lock().unwrap().len();
        let used_up = client(usize::MAX);
        (0..2).for_each(|_| rates.take(&used_up, now).unwrap());
        for n in 0..MAX_RATED_CLIENTS * 2 {
            assert!(rates.take(&client(n), now).is_ok(), "{n}");
            assert!(held() <= MAX_RATED_CLIENTS);
        }
        assert!(rates.take(&used_up, now).is_err(), "it is not forgotten");
        let later = now + Duration::from_secs(10);
        (0..MAX_RATED_CLIENTS).for_each(|n| rates.take(&client(n), later).unwrap());
        assert!(held() <= MAX_RATED_CLIENTS);
    }
}
