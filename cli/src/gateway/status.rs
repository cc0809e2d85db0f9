//! What a gateway knows of its servers: state, requests, times and errors.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use hdrhistogram::Histogram;
use mcpbolt::chain::{Breaker, UpstreamCall, UpstreamHealth};
use mcpbolt::error::RequestError;
use mcpbolt::policy::{AuditOutcome, Redaction};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::shown;

/// The servers of the newest settings, in the order of the file. What is counted goes on over changes of the file.
#[derive(Default)]
pub struct Status(Mutex<Vec<Arc<Seen>>>);

/// What was seen of one server.
pub struct Seen {
    name: String,
    health: UpstreamHealth,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    breaker: Option<Breaker>,
    /// Requests by their outcomes.
    outcomes: BTreeMap<&'static str, u64>,
    /// Times until answers, in microseconds.
    latency: Option<Histogram<u64>>,
    /// The last request that failed, and when.
    last_error: Option<(String, SystemTime)>,
}

/// The longest time that is told apart from longer ones, in microseconds: an hour.
const LONGEST: u64 = 3_600_000_000;

/// The most that is kept of an error.
const MAX_ERROR_BYTES: usize = 1024;

fn lock<T>(state: &Mutex<T>) -> MutexGuard<'_, T> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Status {
    /// The counts of a server, which are those that it has had before.
    pub fn of(&self, name: &str) -> Arc<Seen> {
        let known = lock(&self.0).iter().find(|seen| seen.name == name).cloned();
        known.unwrap_or_else(|| {
            Arc::new(Seen {
                name: name.to_owned(),
                health: UpstreamHealth::default(),
                state: Mutex::default(),
            })
        })
    }

    /// Has these servers shown from now on.
    pub fn show(&self, servers: Vec<(Arc<Seen>, Option<Breaker>)>) {
        let servers = servers.into_iter().map(|(seen, breaker)| {
            lock(&seen.state).breaker = breaker;
            seen
        });
        *lock(&self.0) = servers.collect();
    }

    /// What is known now.
    pub fn report(&self) -> Report {
        let servers = lock(&self.0).clone();
        Report {
            upstreams: servers.iter().map(|seen| seen.row()).collect(),
        }
    }
}

impl Seen {
    /// What counts the connections.
    pub fn health(&self) -> UpstreamHealth {
        self.health.clone()
    }

    /// Counts a request.
    pub fn count(&self, call: &UpstreamCall<'_>) {
        let is_cancelled = call.outcome == AuditOutcome::Cancelled;
        let why = call.error.filter(|_| !is_cancelled);
        let why = why.map(|error| failure(call.method, error));
        let mut state = lock(&self.state);
        *state.outcomes.entry(call.outcome.name()).or_default() += 1;
        if !is_cancelled {
            let micros = u64::try_from(call.duration.as_micros()).unwrap_or(LONGEST);
            if state.latency.is_none() {
                state.latency = Histogram::new_with_bounds(1, LONGEST, 2).ok();
            }
            if let Some(latency) = &mut state.latency {
                latency.saturating_record(micros);
            }
        }
        if let Some(why) = why {
            state.last_error = Some((why, SystemTime::now()));
        }
    }

    fn row(&self) -> Row {
        let state = lock(&self.state);
        let health = self.health.state();
        let is_resting = state.breaker.as_ref().is_some_and(Breaker::is_open);
        let errors = [state.last_error.clone(), health.last_error];
        let last = errors.into_iter().flatten().max_by_key(|(_, when)| *when);
        Row {
            name: self.name.clone(),
            state: match health.is_up {
                _ if is_resting => "resting",
                None => "idle",
                Some(true) => "up",
                Some(false) => "down",
            },
            revision: health.revision.map(|revision| revision.name()),
            era: health.revision.map(|revision| match revision.era() {
                mcpbolt::mcp::Era::Handshake => "handshake",
                mcpbolt::mcp::Era::Stateless => "stateless",
            }),
            implementation: RawValue::from_string(health.implementation).ok(),
            connections: health.opened,
            restarts: health.lost,
            failed_connections: health.failed,
            requests: state.outcomes.values().sum(),
            outcomes: state.outcomes.clone(),
            latency: state.latency.as_ref().map(Latency::of),
            last_error: last.map(|(message, when)| LastError {
                message: shown::line(&format!("the server {:?}: {message}", self.name)),
                seconds_ago: when.elapsed().unwrap_or_default().as_secs(),
                at: when
                    .duration_since(UNIX_EPOCH)
                    .unwrap_or_default()
                    .as_secs(),
            }),
        }
    }
}

/// Why a request failed, for the status. The words of a server stay away: they may have what `mask` hides from clients.
fn failure(method: &str, error: &RequestError) -> String {
    let why = match error {
        RequestError::Peer(error) => {
            format!("{method}: the peer answered with error {}", error.code)
        }
        error => format!("{method}: {error}"),
    };
    let mut why = Redaction::new().text(&why).into_owned();
    why.truncate(why.floor_char_boundary(MAX_ERROR_BYTES));
    why
}

/// All servers at one moment.
#[derive(Serialize)]
pub struct Report {
    pub upstreams: Vec<Row>,
}

/// One server at one moment.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Row {
    pub name: String,
    /// `idle` before the first connection, `up`, `down`, or `resting` while its breaker is open.
    pub state: &'static str,
    pub era: Option<&'static str>,
    pub revision: Option<&'static str>,
    /// How the server describes itself.
    pub implementation: Option<Box<RawValue>>,
    pub connections: u64,
    /// Connections that were lost.
    pub restarts: u64,
    pub failed_connections: u64,
    pub requests: u64,
    pub outcomes: BTreeMap<&'static str, u64>,
    pub latency: Option<Latency>,
    pub last_error: Option<LastError>,
}

/// Times until answers, in milliseconds.
#[derive(Serialize)]
pub struct Latency {
    pub p50: f64,
    pub p90: f64,
    pub p99: f64,
    pub max: f64,
}

impl Latency {
    fn of(times: &Histogram<u64>) -> Self {
        // Microseconds of an hour are exact.
        let ms =
            |micros: u64| u32::try_from(micros).map_or(f64::MAX, |micros| f64::from(micros) / 1e3);
        Self {
            p50: ms(times.value_at_quantile(0.5)),
            p90: ms(times.value_at_quantile(0.9)),
            p99: ms(times.value_at_quantile(0.99)),
            max: ms(times.max()),
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LastError {
    pub message: String,
    /// Seconds since 1970.
    pub at: u64,
    pub seconds_ago: u64,
}
