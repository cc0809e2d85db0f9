//! A server that fails again and again is not asked for a time.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use super::super::middleware::{ChainAnswer, ChainRequest, Middleware, NextHop, Opening};
use super::expects_answer;
use crate::error::{CarrierError, CarrierFault, RequestError};
use crate::sync::lock;

/// The most failures that are counted.
pub(crate) const MAX_FAILURES: usize = 1000;

/// Middleware that refuses requests to a server for a time after it has failed often: it was lost, did not answer in time, or
/// answered what is not valid. Then one request at a time is let through, until one has an answer; and another one after the same time
/// again, if that one is still under way. A connection that a client needs before its first request counts as a request, and an attempt to
/// connect counts as one failure for all requests that wait for it at the same time, whether it fails or their time is up. An answer that is
/// an error is an answer, and a user who does not answer a question says nothing of the server. Clones are one breaker.
///
/// By default it opens at 5 failures within 10 s, for 10 s.
#[derive(Clone, Debug)]
#[must_use = "it is given to a server"]
pub struct Breaker {
    failures: usize,
    window: Duration,
    rest: Duration,
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    /// When the last failures were.
    failed: VecDeque<Instant>,
    /// The last attempts to connect that were counted, and when.
    attempts: VecDeque<(u64, Instant)>,
    /// Until when nothing is asked. After that time the breaker is half open.
    until: Option<Instant>,
    /// Since when a request is under way that tries the server.
    probed: Option<Instant>,
}

impl Default for Breaker {
    fn default() -> Self {
        Self {
            failures: 5,
            window: Duration::from_secs(10),
            rest: Duration::from_secs(10),
            state: Arc::default(),
        }
    }
}

impl Breaker {
    /// A breaker with the defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Opens at that many failures within `window`, from 1 to 1000.
    pub fn failures(mut self, failures: usize, window: Duration) -> Self {
        (self.failures, self.window) = (failures.clamp(1, MAX_FAILURES), window);
        self
    }

    /// Sets how long the server is left alone.
    pub fn rest(mut self, rest: Duration) -> Self {
        self.rest = rest;
        self
    }

    /// Whether requests are refused at present, but for one that tries the server.
    pub fn is_open(&self) -> bool {
        lock(&self.state).until.is_some()
    }

    /// Lets a request pass.
    ///
    /// # Errors
    /// That of a request which may not pass.
    fn enter(&self) -> Result<Ticket<'_>, RequestError> {
        self.admit(Instant::now()).map_err(|wait| {
            let why = format!(
                "it has failed too often, and is not asked for another {} s",
                wait.as_secs() + 1
            );
            CarrierError::new(CarrierFault::Unreachable, why).into()
        })
    }

    /// Whether a request may pass.
    ///
    /// # Errors
    /// How long the server is left alone yet.
    fn admit(&self, now: Instant) -> Result<Ticket<'_>, Duration> {
        let mut state = lock(&self.state);
        let is_probe = match state.until {
            None => false,
            Some(until) if now < until => return Err(until - now),
            Some(_) => {
                let waited = state
                    .probed
                    .map(|since| now.saturating_duration_since(since));
                let left = waited.and_then(|waited| self.rest.checked_sub(waited));
                if let Some(left) = left.filter(|left| !left.is_zero()) {
                    return Err(left);
                }
                true
            }
        };
        if is_probe {
            state.probed = Some(now);
        }
        Ok(Ticket {
            breaker: self,
            begun: now,
            is_probe,
        })
    }
}

/// A request that was let through.
struct Ticket<'a> {
    breaker: &'a Breaker,
    begun: Instant,
    /// Whether it tries the server.
    is_probe: bool,
}

impl Ticket<'_> {
    /// The server has answered, or has failed: in an `attempt` to connect, if it was that.
    fn ends(self, has_failed: bool, attempt: Option<u64>, now: Instant) {
        let mut state = lock(&self.breaker.state);
        if let Some(attempt) = attempt.filter(|_| has_failed) {
            let mut counted = state.attempts.iter();
            if let Some(at) = counted.position(|(number, _)| *number == attempt) {
                // Requests that waited for it at the same time count as one failure.
                if self.begun <= state.attempts[at].1 {
                    return;
                }
                state.attempts.remove(at);
            }
            state.attempts.truncate(MAX_FAILURES - 1);
            state.attempts.push_front((attempt, now));
        }
        if state.until.is_some() {
            if self.is_probe {
                state.until = has_failed.then(|| now + self.breaker.rest);
                state.failed.clear();
            }
        } else if has_failed {
            let window = self.breaker.window;
            state.failed.push_back(now);
            while state
                .failed
                .front()
                .is_some_and(|first| now.saturating_duration_since(*first) > window)
            {
                state.failed.pop_front();
            }
            if state.failed.len() >= self.breaker.failures {
                state.until = Some(now + self.breaker.rest);
                state.failed.clear();
            }
        }
    }
}

impl Drop for Ticket<'_> {
    fn drop(&mut self) {
        let mut state = lock(&self.breaker.state);
        if self.is_probe && state.probed == Some(self.begun) {
            state.probed = None;
        }
    }
}

impl Middleware for Breaker {
    fn keeps_lists(&self) -> bool {
        true
    }

    fn request<'a>(&'a self, request: ChainRequest, next: NextHop<'a>) -> ChainAnswer<'a> {
        if !expects_answer(&request) {
            return next.run(request);
        }
        Box::pin(async move {
            let ticket = self.enter()?;
            let answer = next.clone().run(request).await;
            let waits = matches!(answer, Err(RequestError::TimedOut)) && next.signs().1;
            if let Some(has_failed) = is_failure(&answer).filter(|_| !waits) {
                ticket.ends(has_failed, next.unopened(), Instant::now());
            }
            answer
        })
    }

    fn connection_opens<'a>(&'a self, opening: Opening<'a>) -> Opening<'a> {
        Box::pin(async move {
            let ticket = self.enter()?;
            let opened = opening.await;
            let (outcome, attempt) = match &opened {
                Ok(()) => (Ok(()), None),
                Err(why) => (Err(why.error.clone()), why.attempt),
            };
            if let Some(has_failed) = is_failure(&outcome) {
                ticket.ends(has_failed, attempt, Instant::now());
            }
            opened
        })
    }
}

/// Whether the server has failed; `None` if the outcome says nothing of it.
fn is_failure<T>(answer: &Result<T, RequestError>) -> Option<bool> {
    match answer {
        Ok(_) | Err(RequestError::Peer(_)) => Some(false),
        Err(
            RequestError::Closed(_)
            | RequestError::Carrier(_)
            | RequestError::TimedOut
            | RequestError::BadAnswer(_)
            | RequestError::BadResult(_),
        ) => Some(true),
        Err(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_server_that_fails_often_is_left_alone_and_tried_one_request_at_a_time() {
        let breaker = Breaker::new().failures(3, 10 * SECOND).rest(5 * SECOND);
        let mut now = Instant::now();
        let fail = |now| breaker.admit(now).unwrap().ends(true, None, now);
        // Failures that are far apart do not count together, and a success in between changes nothing.
        for _ in 0..5 {
            fail(now);
            now += 6 * SECOND;
            breaker.admit(now).unwrap().ends(false, None, now);
        }
        assert!(!breaker.is_open());
        now += 10 * SECOND;
        let late = breaker.admit(now).unwrap();
        (0..3).for_each(|_| fail(now));
        assert!(breaker.is_open());
        late.ends(false, None, now);
        assert_eq!(breaker.admit(now + SECOND).err(), Some(4 * SECOND));
        now += 5 * SECOND;
        // One that is cancelled says nothing.
        drop(breaker.admit(now).unwrap());
        let probe = breaker.admit(now).unwrap();
        assert!(breaker.admit(now).is_err(), "one is under way");
        probe.ends(true, None, now);
        assert_eq!(breaker.admit(now).err(), Some(5 * SECOND));
        now += 5 * SECOND;
        breaker.admit(now).unwrap().ends(false, None, now);
        assert!(!breaker.is_open());
        (0..2).for_each(|_| fail(now));
        assert!(breaker.admit(now).is_ok());
    }

    #[test]
    fn a_try_that_goes_on_and_on_lets_another_one_through() {
        let breaker = Breaker::new().failures(1, SECOND).rest(5 * SECOND);
        let mut now = Instant::now();
        breaker.admit(now).unwrap().ends(true, None, now);
        now += 5 * SECOND;
        let first = breaker.admit(now).unwrap();
        assert_eq!(breaker.admit(now + SECOND).err(), Some(4 * SECOND));
        now += 5 * SECOND;
        let second = breaker.admit(now).unwrap();
        drop(first);
        assert!(breaker.admit(now).is_err(), "the second is under way");
        second.ends(false, None, now);
        assert!(!breaker.is_open());
    }

    #[test]
    fn failures_are_counted_up_to_a_number() {
        let breaker = Breaker::new().failures(usize::MAX, SECOND);
        let now = Instant::now();
        for _ in 0..MAX_FAILURES {
            breaker.admit(now).unwrap().ends(true, None, now);
        }
        assert!(breaker.is_open());
        assert!(lock(&breaker.state).failed.is_empty());
    }
}
