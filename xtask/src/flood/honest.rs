//! Honest clients during a flood: each calls, waits for its answer, and records the latency.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;

use crate::attacks::case::Carrier;
use crate::attacks::client::Client;
use crate::attacks::target::Place;

/// The pause between two calls of a client.
const PAUSE: Duration = Duration::from_millis(50);
/// Calls per session, for clients that renew their sessions.
const CALLS: u64 = 20;

/// The outcome of the clients' calls.
#[derive(Debug, Default)]
pub struct Told {
    pub calls: u64,
    pub failures: Vec<String>,
    /// Not sorted.
    pub latencies: Vec<Duration>,
}

impl Told {
    pub fn add(&mut self, other: Self) {
        self.calls += other.calls;
        self.failures.extend(other.failures);
        self.latencies.extend(other.latencies);
    }

    /// The 99th percentile of the latencies.
    pub fn p99(&self) -> Duration {
        let mut sorted = self.latencies.clone();
        sorted.sort_unstable();
        let rank = (sorted.len() * 99).div_ceil(100);
        sorted
            .get(rank.saturating_sub(1))
            .copied()
            .unwrap_or_default()
    }
}

/// Opens a client with a new session, with this key if one is given.
pub fn open(place: &Place, key: Option<&str>) -> Result<Client> {
    let host = format!("127.0.0.1:{}", place.port());
    let mut client = Client::new(place.connect(None)?, Carrier::Http, &host);
    client.key = key.map(str::to_owned);
    client.shake_hands()?;
    Ok(client)
}

/// Calls until `stop`. With `renews`, the client opens a new session now and then.
pub fn call(client: &mut Client, place: &Place, renews: bool, stop: &AtomicBool) -> Told {
    let mut told = Told::default();
    while !stop.load(Relaxed) {
        told.calls += 1;
        let begin = Instant::now();
        let answer = client.echo(told.calls);
        let failed = answer.is_err();
        match answer {
            Ok(()) => told.latencies.push(begin.elapsed()),
            Err(error) => told.failures.push(format!("{error:#}")),
        }
        // After a failure, later answers on the connection cannot be assigned to calls.
        if failed || renews && told.calls.is_multiple_of(CALLS) {
            match open(place, None) {
                Ok(another) => *client = another,
                Err(error) => told.failures.push(format!("another session: {error:#}")),
            }
        }
        thread::sleep(PAUSE);
    }
    told
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_call_of_a_hundred_may_be_slower() {
        let told = Told {
            latencies: (1..=200).rev().map(Duration::from_millis).collect(),
            ..Told::default()
        };
        assert_eq!(told.p99(), Duration::from_millis(198));
        assert_eq!(Told::default().p99(), Duration::ZERO);
    }
}
