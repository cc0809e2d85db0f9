//! Remembers servers that open with a handshake, so that they are not probed again (R-ERA-10).

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use url::Url;

use crate::client::Client;
use crate::connection::{Config, OpeningMode};
use crate::limits::MAX_KNOWN_SERVERS;
use crate::mcp::Era;

/// How long this is remembered: a server may be upgraded.
const KNOWN_FOR: Duration = Duration::from_secs(3600);

/// When each endpoint that clients of this program have opened was found to need a handshake.
static HANDSHAKES: Mutex<BTreeMap<String, Instant>> = Mutex::new(BTreeMap::new());

/// The known opening of one endpoint, identified by its URL without parts that may be secret.
pub struct KnownOpening {
    endpoint: String,
    /// Whether the server is probed, so that there is something to learn.
    asks: bool,
}

impl KnownOpening {
    /// Chooses the opening according to what is known.
    pub fn apply(url: &Url, config: &mut Config) -> Self {
        let endpoint = format!("{}{}", url.origin().ascii_serialization(), url.path());
        let speaks_both = [Era::Handshake, Era::Stateless]
            .iter()
            .all(|era| config.revisions.newest(*era).is_some());
        let asks = config.opening == OpeningMode::Probe && speaks_both;
        let fresh = |found: &Instant| found.elapsed() < KNOWN_FOR;
        if asks && handshakes().get(&endpoint).is_some_and(fresh) {
            config.opening = OpeningMode::Handshake;
            // Without a probe nothing is learned.
            return Self {
                endpoint,
                asks: false,
            };
        }
        Self { endpoint, asks }
    }

    /// Learns from an opening; a failure removes what was known.
    pub fn learn(self, opened: Option<&Client>) {
        let mut handshakes = handshakes();
        let era = opened.and_then(Client::revision).map(|it| it.era());
        match era {
            Some(Era::Handshake) if !self.asks => {}
            Some(Era::Handshake) => remember(&mut handshakes, self.endpoint),
            Some(Era::Stateless) | None => drop(handshakes.remove(&self.endpoint)),
        }
    }
}

/// Remembers the endpoint. At the limit, a new endpoint replaces the one that was found first.
fn remember(handshakes: &mut BTreeMap<String, Instant>, endpoint: String) {
    if handshakes.len() >= MAX_KNOWN_SERVERS && !handshakes.contains_key(&endpoint) {
        let oldest = handshakes.iter().min_by_key(|(_, found)| **found);
        if let Some(oldest) = oldest.map(|(endpoint, _)| endpoint.clone()) {
            handshakes.remove(&oldest);
        }
    }
    handshakes.insert(endpoint, Instant::now());
}

fn handshakes() -> MutexGuard<'static, BTreeMap<String, Instant>> {
    HANDSHAKES.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_servers_are_known_than_may_be() {
        let mut known = BTreeMap::new();
        for n in 0..MAX_KNOWN_SERVERS + 10 {
            remember(&mut known, format!("http://{n}"));
        }
        assert_eq!(known.len(), MAX_KNOWN_SERVERS);
    }

    #[test]
    fn the_server_found_first_gives_way_to_a_new_one_only() {
        let begun = Instant::now();
        // The last by name was found first.
        let found = |n: usize| begun + Duration::from_millis((MAX_KNOWN_SERVERS - n) as u64);
        let name = |n: usize| format!("http://{n:04}");
        let mut known: BTreeMap<_, _> = (0..MAX_KNOWN_SERVERS)
            .map(|n| (name(n), found(n)))
            .collect();
        remember(&mut known, name(MAX_KNOWN_SERVERS));
        assert!(known.contains_key(&name(0)) && known.contains_key(&name(MAX_KNOWN_SERVERS)));
        assert!(!known.contains_key(&name(MAX_KNOWN_SERVERS - 1)));
        remember(&mut known, name(1));
        assert_eq!(known.len(), MAX_KNOWN_SERVERS, "it was known already");
    }
}
