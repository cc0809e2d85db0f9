//! Servers that were found to open with a handshake, so that nobody asks them again (R-ERA-10).

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use reqwest::Url;

use crate::client::Client;
use crate::connection::{Config, Opening};
use crate::limits::MAX_KNOWN_SERVERS;
use crate::mcp::Era;

/// How long it is taken for granted: a server may have learned more.
const KNOWN_FOR: Duration = Duration::from_secs(3600);

/// When it was found out, of the endpoints that the clients of this program have opened.
static HANDSHAKES: Mutex<BTreeMap<String, Instant>> = Mutex::new(BTreeMap::new());

/// What is known of one endpoint, by its URL without what may be a secret.
pub struct Known {
    endpoint: String,
    /// Whether it is asked what it speaks, so that something can be learned.
    asks: bool,
}

impl Known {
    /// Opens as is known to fit.
    pub fn apply(url: &Url, config: &mut Config) -> Self {
        let endpoint = format!("{}{}", url.origin().ascii_serialization(), url.path());
        let speaks_both = [Era::Handshake, Era::Stateless]
            .iter()
            .all(|era| config.revisions.newest(*era).is_some());
        let asks = config.opening == Opening::Probe && speaks_both;
        let fresh = |found: &Instant| found.elapsed() < KNOWN_FOR;
        if asks && handshakes().get(&endpoint).is_some_and(fresh) {
            config.opening = Opening::Handshake;
            // Who takes it for granted does not find it out.
            return Self {
                endpoint,
                asks: false,
            };
        }
        Self { endpoint, asks }
    }

    /// Learns from an opening; what failed is not known any more.
    pub fn learn(self, opened: Option<&Client>) {
        let mut handshakes = handshakes();
        let era = opened.and_then(Client::revision).map(|it| it.era());
        match era {
            Some(Era::Handshake) if !self.asks => {}
            Some(Era::Handshake) => {
                if handshakes.len() >= MAX_KNOWN_SERVERS {
                    handshakes.pop_first();
                }
                handshakes.insert(self.endpoint, Instant::now());
            }
            Some(Era::Stateless) | None => drop(handshakes.remove(&self.endpoint)),
        }
    }
}

fn handshakes() -> MutexGuard<'static, BTreeMap<String, Instant>> {
    HANDSHAKES.lock().unwrap_or_else(PoisonError::into_inner)
}
