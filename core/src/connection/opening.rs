//! How a client opens a connection: the handshake, and the probe before it. The states only decide; the
//! connection sends what a [`Move`] asks for.
//!
//! ```text
//!   Idle ─▶ Probing ─┬─▶ Done (stateless)
//!      │     ▲       ▼
//!      │     ╰── once ── refused: no handshake here, or not in time
//!      ╰───────────▶ Initializing ─▶ Done (handshake era)
//! ```

use std::time::{Duration, Instant};

use super::actions;
use super::config::{Config, OpeningMode};
use super::observed::Observed;
use super::observer::RequestOutcome;
use super::options::PeerInfo;
use super::peer_error::peer_error;
use crate::correlate::{RequestKey, TimerKey};
use crate::error::{ConnectionError, PeerError, RequestError};
use crate::json::reader;
use crate::mcp::code::{HEADER_MISMATCH, MISSING_CLIENT_CAPABILITY, UNSUPPORTED_VERSION};
use crate::mcp::{Era, Method, Revision, Revisions, Side, meta};
use crate::message::{Kind, MessageRef};

/// Progress of a client's opening. A server has no phases: its opening is done once it has a revision.
#[derive(Debug, Default)]
pub(super) enum Opening {
    #[default]
    Idle,
    Probing(Step),
    Initializing(Step),
    Done,
}

/// A request of the opening that was sent.
#[derive(Debug)]
pub(super) struct Step {
    pub key: RequestKey,
    pub timer: Option<TimerKey>,
    pub ask: Ask,
    pub observed: Option<Box<Observed>>,
}

impl Step {
    /// The request of the step is sent.
    pub fn sent(&mut self, now: Instant, bytes: usize) {
        if let Some(observed) = &mut self.observed {
            observed.sent(now, bytes);
        }
    }
}

/// The request that a step sends to the server.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ask {
    pub revision: Revision,
    /// The server has already contradicted itself once: its next answer is final.
    pub again: bool,
    /// The server has no handshake to fall back to.
    pub refused: bool,
}

/// The next step of the opening.
pub(super) enum Move {
    /// Send `server/discover`, and wait this long for the answer.
    Probe(Ask, Duration),
    /// Send `initialize`.
    Initialize(Ask),
    /// The connection is open. First send the notification, if there is one.
    Open(Revision, PeerInfo, Option<Method>),
    /// The connection has failed.
    Fail(ConnectionError),
}

fn fail(why: impl Into<Box<str>>) -> Move {
    Move::Fail(ConnectionError::Handshake(why.into()))
}

fn silent(asked: Method) -> Move {
    Move::Fail(ConnectionError::HandshakeTimedOut(asked.name()))
}

fn fail_by(error: &PeerError) -> Move {
    fail(format!("{} ({})", error.message, error.code))
}

impl Opening {
    /// Begins the opening of a client; `None` on a server and when called again.
    #[inline]
    pub fn begin(&mut self, config: &Config) -> Option<Move> {
        if config.side != Side::Client || !matches!(self, Self::Idle) {
            return None;
        }
        *self = Self::Done;
        Some(first(config))
    }

    /// The request that waits for its answer.
    pub fn step(&self) -> Option<&Step> {
        match self {
            Self::Probing(step) | Self::Initializing(step) => Some(step),
            Self::Idle | Self::Done => None,
        }
    }

    /// Tells the observer of the step its outcome, and the length of the answer.
    pub fn end_step(&mut self, outcome: impl FnOnce() -> (RequestOutcome, usize)) {
        let (Self::Probing(step) | Self::Initializing(step)) = self else {
            return;
        };
        if let Some(observed) = step.observed.take() {
            let (outcome, answer_bytes) = outcome();
            observed.end(outcome, answer_bytes);
        }
    }

    /// Whether `key` is the request that waits for its answer.
    #[inline]
    pub fn is_step(&self, key: RequestKey) -> bool {
        self.step().is_some_and(|step| step.key == key)
    }

    fn take(&mut self) -> Self {
        std::mem::replace(self, Self::Done)
    }

    /// Processes the answer to the step.
    pub fn answered(&mut self, config: &Config, message: &MessageRef<'_>) -> Option<Move> {
        Some(match self.take() {
            Self::Probing(step) => probe_answered(config, step.ask, message),
            Self::Initializing(step) => initialize_answered(config, step.ask, message),
            Self::Idle | Self::Done => return None,
        })
    }

    /// The transport has lost the request of the step, or its answer.
    pub fn lost(&mut self, config: &Config, error: RequestError) -> Option<Move> {
        let older = config.handshake().is_some();
        Some(match (self.take(), error) {
            (Self::Idle | Self::Done, _) => return None,
            (Self::Probing(step), RequestError::Peer(error)) => {
                probe_refused(config, step.ask, &error)
            }
            (Self::Probing(step), RequestError::Carrier(why))
                if older && why.is_incomprehension() =>
            {
                fall_back(config, step.ask)
            }
            (Self::Probing(step), RequestError::BadAnswer(_)) if older => {
                fall_back(config, step.ask)
            }
            (Self::Initializing(step), RequestError::Peer(error)) => {
                initialize_refused(config, step.ask, &error)
            }
            (_, RequestError::Carrier(why)) => Move::Fail(ConnectionError::Carrier(why)),
            (_, error) => fail(error.to_string()),
        })
    }

    /// The time for the step is up: a first probe falls back to the handshake, if this side speaks one; a handshake to a probe, if
    /// this side is to [try both eras](Config::tries_both_eras); any other step fails.
    pub fn timed_out(&mut self, config: &Config) -> Option<Move> {
        Some(match self.take() {
            Self::Probing(step) if !step.ask.again && config.handshake().is_some() => {
                fall_back(config, step.ask)
            }
            Self::Probing(_) => silent(Method::Discover),
            Self::Initializing(step) => match untried(config, step.ask) {
                Some(ask) => probe(config, ask),
                None => silent(Method::Initialize),
            },
            Self::Idle | Self::Done => return None,
        })
    }
}

fn first(config: &Config) -> Move {
    if config.opening == OpeningMode::Actions {
        return Move::Open(actions::REVISION, PeerInfo::default(), None);
    }
    let stateless = config.revisions.newest(Era::Stateless);
    match (stateless, config.handshake(), config.opening) {
        (Some(stateless), _, OpeningMode::Stateless) => {
            Move::Open(stateless, PeerInfo::default(), None)
        }
        (Some(revision), None, _) | (Some(revision), _, OpeningMode::Probe) => {
            let (again, refused) = (false, false);
            let ask = Ask {
                revision,
                again,
                refused,
            };
            probe(config, ask)
        }
        (_, Some(revision), _) => Move::Initialize(Ask {
            revision,
            again: false,
            refused: false,
        }),
        _ => Move::Fail(ConnectionError::NoCommonRevision),
    }
}

fn probe(config: &Config, ask: Ask) -> Move {
    let limits = &config.limits;
    // Without a handshake to fall back to, giving up early gains nothing: wait as long as a
    // handshake may take.
    let wait = match !ask.again && config.handshake().is_some() {
        true => limits.probe_timeout,
        false => limits.handshake_timeout,
    };
    Move::Probe(ask, wait)
}

fn fall_back(config: &Config, ask: Ask) -> Move {
    match config.handshake().filter(|_| !ask.refused) {
        Some(revision) => Move::Initialize(Ask { revision, ..ask }),
        None => Move::Fail(ConnectionError::NoCommonRevision),
    }
}

fn probe_answered(config: &Config, ask: Ask, message: &MessageRef<'_>) -> Move {
    if message.kind() == Kind::Error {
        return probe_refused(config, ask, &peer_error(message));
    }
    let result = message.result().unwrap_or("{}");
    let offered = revisions(reader::find(result, "supportedVersions"));
    match offered.is_some_and(|offered| offered.contains(ask.revision)) {
        true => Move::Open(ask.revision, discovered_peer(result), None),
        false => choose(config, ask, offered),
    }
}

/// Processes an error that answers the probe.
fn probe_refused(config: &Config, ask: Ask, error: &PeerError) -> Move {
    if error.code != UNSUPPORTED_VERSION {
        // R-ERA-07: these errors of the stateless era mean a server of that era that wants
        // something else; any other error means an older server.
        return match error.code {
            MISSING_CLIENT_CAPABILITY | HEADER_MISMATCH => fail_by(error),
            _ if ask.refused => fail_by(error),
            _ => fall_back(config, ask),
        };
    }
    let offered = supported(error);
    if offered.is_some_and(|offered| offered.contains(ask.revision)) && !ask.again {
        // The server refuses a revision that it lists as supported: the cause may be temporary.
        let again = true;
        return probe(config, Ask { again, ..ask });
    }
    choose(config, ask, offered)
}

/// The server does not speak the revision asked for; `offered` are those it listed, if it listed any.
fn choose(config: &Config, ask: Ask, offered: Option<Revisions>) -> Move {
    let Some(offered) = offered else {
        return fall_back(config, ask);
    };
    let common: Revisions = offered
        .iter()
        .filter(|r| config.revisions.contains(*r) && *r != ask.revision)
        .collect();
    match (common.newest(Era::Stateless), common.newest(Era::Handshake)) {
        (Some(revision), _) => probe(config, Ask { revision, ..ask }),
        (None, Some(revision)) => Move::Initialize(Ask { revision, ..ask }),
        (None, None) => Move::Fail(ConnectionError::NoCommonRevision),
    }
}

fn initialize_answered(config: &Config, ask: Ask, message: &MessageRef<'_>) -> Move {
    if message.kind() == Kind::Error {
        return initialize_refused(config, ask, &peer_error(message));
    }
    let result = message.result().unwrap_or("{}");
    let member = |name| reader::find(result, name);
    let version = member("protocolVersion").and_then(reader::as_str);
    let revision = version.as_deref().and_then(Revision::parse);
    let Some(revision) =
        revision.filter(|r| r.era() == Era::Handshake && config.revisions.contains(*r))
    else {
        // R-LIF-11
        return Move::Fail(ConnectionError::NoCommonRevision);
    };
    let overlay = config.profile.overlay();
    if member("serverInfo").is_none() && !config.lenient && !overlay.lenient {
        return fail("the server's answer lacks serverInfo");
    }
    let peer = PeerInfo {
        implementation: member("serverInfo").unwrap_or_default().into(),
        capabilities: member("capabilities").unwrap_or("{}").into(),
        instructions: instructions(result),
    };
    // R-LIF-07
    let ready = match overlay.bare_initialized {
        true => Method::InitializedBare,
        false => Method::Initialized,
    };
    Move::Open(revision, peer, Some(ready))
}

/// Processes an error that answers `initialize`.
fn initialize_refused(config: &Config, ask: Ask, error: &PeerError) -> Move {
    let again = true;
    match spoken_instead(config, ask, error) {
        Some(revision) => probe(
            config,
            Ask {
                revision,
                again,
                ..ask
            },
        ),
        None => untried(config, ask).map_or_else(|| fail_by(error), |ask| probe(config, ask)),
    }
}

/// The probe of a server that has refused the handshake, which came first, if this side is to [try both eras](Config::tries_both_eras).
fn untried(config: &Config, ask: Ask) -> Option<Ask> {
    let is_first = config.opening == OpeningMode::Handshake && !ask.again && !ask.refused;
    let revision = config.revisions.newest(Era::Stateless)?;
    (config.tries_both_eras && is_first).then_some(Ask {
        revision,
        again: true,
        refused: true,
    })
}

/// The stateless revision to use with a server that refuses `initialize` as an unsupported version:
/// its answer to the probe was only slow.
fn spoken_instead(config: &Config, ask: Ask, error: &PeerError) -> Option<Revision> {
    if ask.again || error.code != UNSUPPORTED_VERSION {
        return None;
    }
    let mut common = supported(error)?
        .iter()
        .filter(|r| config.revisions.contains(*r));
    common.find(|r| r.era() == Era::Stateless)
}

/// The revisions that an error of the server lists as supported, if it lists any.
fn supported(error: &PeerError) -> Option<Revisions> {
    let data = error.data.as_deref().unwrap_or_default();
    revisions(reader::find(data, "supported"))
}

/// The known revisions in a JSON array of version strings.
fn revisions(array: Option<&str>) -> Option<Revisions> {
    let array = array.filter(|array| array.starts_with('['))?;
    let names = reader::elements(array).filter_map(reader::as_str);
    Some(names.filter_map(|name| Revision::parse(&name)).collect())
}

fn discovered_peer(result: &str) -> PeerInfo {
    let info = reader::find(result, "_meta").and_then(|own| reader::find(own, meta::SERVER_INFO));
    PeerInfo {
        // An earlier draft had the server's info beside the capabilities.
        implementation: info
            .or_else(|| reader::find(result, "serverInfo"))
            .unwrap_or_default()
            .into(),
        capabilities: reader::find(result, "capabilities").unwrap_or("{}").into(),
        instructions: instructions(result),
    }
}

fn instructions(result: &str) -> Option<Box<str>> {
    let text = reader::find(result, "instructions").and_then(reader::as_str);
    text.map(|text| text.into())
}
