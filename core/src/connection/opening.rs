//! How a connection opens: the handshake on both sides, and the client's probe before it.
//!
//! ```text
//!   client:  Idle ─▶ Probing ─┬─▶ Open (stateless)
//!               │     ▲       ▼
//!               │     ╰── once ── refused: no handshake here
//!               ╰───────────▶ Initializing ─▶ Open (handshake era)
//! ```

use std::time::{Duration, Instant};

use super::answer::ResultWriter;
use super::config::{Config, Opening};
use super::core::Core;
use super::handle::{Peer, RequestOptions};
use super::host::{Answer, Host};
use super::params;
use super::pending::Timer;
use super::requests::peer_error;
use super::stream::Exchange;
use crate::correlate::{RequestKey, TimerKey};
use crate::error::{ConnectionError, PeerError, RequestError};
use crate::json::{reader, string};
use crate::limits::{MAX_INTRODUCTION_BYTES, later};
use crate::mcp::code::{HEADER_MISMATCH, MISSING_CLIENT_CAPABILITY, UNSUPPORTED_VERSION};
use crate::mcp::{Era, ErrorKind, Method, Revision, Revisions, Side, meta};
use crate::message::{Kind, MessageRef, RequestId, encode};

/// Progress of a client's opening. A server has no phases: its opening is done once it has a revision.
#[derive(Debug, Default)]
pub(crate) enum Phase {
    #[default]
    Idle,
    Probing(Step),
    Initializing(Step),
    Done,
}

#[derive(Debug)]
pub(crate) struct Step {
    key: RequestKey,
    timer: TimerKey,
    asked: Revision,
    /// The server has already contradicted itself once: its next answer is final.
    again: bool,
}

/// Who answers an `initialize`.
pub(super) enum Opened {
    /// The protocol layer has answered it.
    Answered,
    /// The host answers it; the connection is open by now.
    ByHost,
}

/// The result of `server/discover` (R-DSC-03, R-DSC-04).
pub(super) fn discovered(config: &Config, revision: Revision, result: &mut ResultWriter<'_>) {
    result.raw("supportedVersions", &config.revisions.to_json());
    result.raw("capabilities", config.capabilities(revision));
    if let Some(instructions) = &config.instructions {
        result.string("instructions", instructions);
    }
    result.raw("ttlMs", "0");
    result.raw("cacheScope", "\"private\"");
}

impl Core {
    /// Begins the opening of a client; does nothing on a server or when called again.
    pub(super) fn begin(&mut self, exchange: &mut Exchange, now: Instant, host: &mut dyn Host) {
        if self.config.side != Side::Client || !matches!(self.phase, Phase::Idle) {
            return;
        }
        if self.config.opening == Opening::Actions {
            return self.opened(super::actions::REVISION, Peer::default(), host);
        }
        let newest = |era| self.config.revisions.newest(era);
        let begun = match (
            newest(Era::Stateless),
            self.config.handshake(),
            self.config.opening,
        ) {
            (Some(stateless), _, Opening::Stateless) => {
                self.opened(stateless, Peer::default(), host);
                Ok(())
            }
            (Some(stateless), None, _) | (Some(stateless), _, Opening::Probe) => {
                self.probe(exchange, stateless, false, now)
            }
            (_, Some(handshake), _) => self.ask_initialize(exchange, handshake, false, now),
            _ => Err(ConnectionError::NoCommonRevision),
        };
        if let Err(reason) = begun {
            self.fail(reason, host);
        }
    }

    fn fail(&mut self, reason: ConnectionError, host: &mut dyn Host) {
        self.phase = Phase::Done;
        if !self.handle.is_closed() {
            self.shared().close(reason.clone());
            host.closed(&reason);
        }
    }

    fn opened(&mut self, revision: Revision, peer: Peer, host: &mut dyn Host) {
        self.phase = Phase::Done;
        self.shared().open(revision, peer);
        host.opened(revision);
    }

    fn step(
        &mut self,
        asked: Revision,
        again: bool,
        now: Instant,
        wait: Duration,
    ) -> Result<Step, ConnectionError> {
        let key = self
            .shared()
            .outgoing
            .register()
            .map_err(|_| ConnectionError::ClosedLocally)?;
        let timer = self.timers.insert(later(now, wait), Timer::Opening(key));
        Ok(Step {
            key,
            timer,
            asked,
            again,
        })
    }

    fn probe(
        &mut self,
        exchange: &mut Exchange,
        asked: Revision,
        again: bool,
        now: Instant,
    ) -> Result<(), ConnectionError> {
        let limits = &self.config.limits;
        // Without a handshake to fall back to, giving up early gains nothing: wait as long as a
        // handshake may take.
        let falls_back = !again && self.config.revisions.newest(Era::Handshake).is_some();
        let wait = match falls_back {
            true => limits.probe_timeout,
            false => limits.handshake_timeout,
        };
        let step = self.step(asked, again, now, wait)?;
        let mut frame = Vec::new();
        let name = Method::Discover.name();
        let envelope = params::envelope(&self.config, asked);
        let options = RequestOptions::default();
        params::request(
            &mut frame,
            envelope.as_deref(),
            step.key,
            name,
            None,
            &options,
        )
        .map_err(|error| ConnectionError::Handshake(error.to_string().into()))?;
        exchange.append(&frame);
        self.phase = Phase::Probing(step);
        Ok(())
    }

    fn ask_initialize(
        &mut self,
        exchange: &mut Exchange,
        asked: Revision,
        again: bool,
        now: Instant,
    ) -> Result<(), ConnectionError> {
        let step = self.step(asked, again, now, self.config.limits.handshake_timeout)?;
        let config = &self.config;
        let params = format!(
            "{{\"protocolVersion\":\"{asked}\",\"capabilities\":{},\"clientInfo\":{}}}",
            config.capabilities(asked),
            config.implementation,
        );
        exchange.write(|out| {
            encode::request(
                out,
                step.key.get(),
                Method::Initialize.name(),
                Some(&params),
            )
        });
        self.phase = Phase::Initializing(step);
        Ok(())
    }

    /// Processes an answer to the step under way; returns whether `key` was that step's request.
    pub(super) fn opening_answered(
        &mut self,
        exchange: &mut Exchange,
        key: RequestKey,
        message: &MessageRef<'_>,
        now: Instant,
        host: &mut dyn Host,
    ) -> bool {
        let (Phase::Probing(step) | Phase::Initializing(step)) = &self.phase else {
            return false;
        };
        if step.key != key {
            return false;
        }
        self.timers.cancel(step.timer);
        self.shared().outgoing.cancel(key);
        let outcome = match std::mem::replace(&mut self.phase, Phase::Done) {
            Phase::Probing(step) => self.probe_answered(exchange, &step, message, now, host),
            Phase::Initializing(step) => {
                self.initialize_answered(exchange, &step, message, now, host)
            }
            Phase::Idle | Phase::Done => Ok(()),
        };
        if let Err(reason) = outcome {
            self.fail(reason, host);
        }
        true
    }

    fn probe_answered(
        &mut self,
        exchange: &mut Exchange,
        step: &Step,
        message: &MessageRef<'_>,
        now: Instant,
        host: &mut dyn Host,
    ) -> Result<(), ConnectionError> {
        let offered = match message.kind() {
            Kind::Error => {
                return self.probe_refused(exchange, step, peer_error(message), now);
            }
            _ => {
                let result = message.result().unwrap_or("{}");
                let offered = revisions(reader::find(result, "supportedVersions"));
                if offered.is_some_and(|offered| offered.contains(step.asked)) {
                    self.opened(step.asked, discovered_peer(result), host);
                    return Ok(());
                }
                offered
            }
        };
        self.offered(exchange, step, offered, now)
    }

    /// Processes an error that answers the probe.
    fn probe_refused(
        &mut self,
        exchange: &mut Exchange,
        step: &Step,
        error: PeerError,
        now: Instant,
    ) -> Result<(), ConnectionError> {
        if error.code != UNSUPPORTED_VERSION {
            // R-ERA-07: these errors of the stateless era mean a server of that era that wants
            // something else; any other error means an older server.
            if matches!(error.code, MISSING_CLIENT_CAPABILITY | HEADER_MISMATCH) {
                let why = format!("{} ({})", error.message, error.code);
                return Err(ConnectionError::Handshake(why.into()));
            }
            return self.fall_back(exchange, step, now);
        }
        let data = error.data.unwrap_or_default();
        let offered = revisions(reader::find(&data, "supported"));
        if offered.is_some_and(|offered| offered.contains(step.asked)) && !step.again {
            // The server refuses a revision that it lists as supported: the cause may be temporary.
            return self.probe(exchange, step.asked, true, now);
        }
        self.offered(exchange, step, offered, now)
    }

    /// The server does not speak the revision asked for; `offered` are those it listed, if it listed
    /// any.
    fn offered(
        &mut self,
        exchange: &mut Exchange,
        step: &Step,
        offered: Option<Revisions>,
        now: Instant,
    ) -> Result<(), ConnectionError> {
        let Some(offered) = offered else {
            return self.fall_back(exchange, step, now);
        };
        let common: Revisions = offered
            .iter()
            .filter(|r| self.config.revisions.contains(*r) && *r != step.asked)
            .collect();
        match (common.newest(Era::Stateless), common.newest(Era::Handshake)) {
            (Some(stateless), _) => self.probe(exchange, stateless, step.again, now),
            (None, Some(handshake)) => self.ask_initialize(exchange, handshake, step.again, now),
            (None, None) => Err(ConnectionError::NoCommonRevision),
        }
    }

    fn fall_back(
        &mut self,
        exchange: &mut Exchange,
        step: &Step,
        now: Instant,
    ) -> Result<(), ConnectionError> {
        match self.config.handshake() {
            Some(handshake) => self.ask_initialize(exchange, handshake, step.again, now),
            None => Err(ConnectionError::NoCommonRevision),
        }
    }

    fn initialize_answered(
        &mut self,
        exchange: &mut Exchange,
        step: &Step,
        message: &MessageRef<'_>,
        now: Instant,
        host: &mut dyn Host,
    ) -> Result<(), ConnectionError> {
        let failed = |why: String| Err(ConnectionError::Handshake(why.into()));
        if message.kind() == Kind::Error {
            let error = peer_error(message);
            if let Some(stateless) = self.spoken_instead(step, &error) {
                return self.probe(exchange, stateless, true, now);
            }
            return failed(format!("{} ({})", error.message, error.code));
        }
        let result = message.result().unwrap_or("{}");
        let member = |name| reader::find(result, name);
        let version = member("protocolVersion").and_then(reader::as_str);
        let Some(revision) = version
            .as_deref()
            .and_then(Revision::parse)
            .filter(|r| r.era() == Era::Handshake && self.config.revisions.contains(*r))
        else {
            // R-LIF-11
            return Err(ConnectionError::NoCommonRevision);
        };
        let overlay = self.config.profile.overlay();
        if member("serverInfo").is_none() && !self.config.lenient && !overlay.lenient {
            return failed("the server's answer lacks serverInfo".into());
        }
        let peer = Peer {
            implementation: member("serverInfo").unwrap_or_default().into(),
            capabilities: member("capabilities").unwrap_or("{}").into(),
            instructions: member("instructions")
                .and_then(reader::as_str)
                .map(|text| text.into()),
        };
        // R-LIF-07
        let ready = match overlay.bare_initialized {
            true => Method::InitializedBare,
            false => Method::Initialized,
        };
        exchange.write(|out| encode::notification(out, ready.name(), None));
        self.opened(revision, peer, host);
        Ok(())
    }

    /// The stateless revision to use with a server that refuses `initialize` as an unsupported version:
    /// its answer to the probe was only slow.
    fn spoken_instead(&self, step: &Step, error: &PeerError) -> Option<Revision> {
        if step.again || error.code != UNSUPPORTED_VERSION {
            return None;
        }
        let data = error.data.as_deref().unwrap_or_default();
        let offered = revisions(reader::find(data, "supported"))?;
        let mut common = offered
            .iter()
            .filter(|r| self.config.revisions.contains(*r));
        common.find(|r| r.era() == Era::Stateless)
    }

    /// Whether `key` is the request of the step under way.
    pub(super) fn is_opening(&self, key: RequestKey) -> bool {
        matches!(&self.phase, Phase::Probing(step) | Phase::Initializing(step) if step.key == key)
    }

    /// The transport has lost the request of the step under way, or its answer.
    pub(super) fn opening_lost(
        &mut self,
        exchange: &mut Exchange,
        error: RequestError,
        now: Instant,
        host: &mut dyn Host,
    ) {
        let (Phase::Probing(step) | Phase::Initializing(step)) = &self.phase else {
            return;
        };
        self.timers.cancel(step.timer);
        self.shared().outgoing.cancel(step.key);
        let older = self.config.revisions.newest(Era::Handshake).is_some();
        let outcome = match (std::mem::replace(&mut self.phase, Phase::Done), error) {
            (Phase::Probing(step), RequestError::Peer(error)) => {
                self.probe_refused(exchange, &step, error, now)
            }
            (Phase::Probing(step), RequestError::Carrier(why))
                if older && why.is_incomprehension() =>
            {
                self.fall_back(exchange, &step, now)
            }
            (Phase::Probing(step), RequestError::BadAnswer(_)) if older => {
                self.fall_back(exchange, &step, now)
            }
            (_, RequestError::Carrier(why)) => Err(ConnectionError::Carrier(why)),
            (_, RequestError::Peer(error)) => {
                let why = format!("{} ({})", error.message, error.code);
                Err(ConnectionError::Handshake(why.into()))
            }
            (_, error) => Err(ConnectionError::Handshake(error.to_string().into())),
        };
        if let Err(reason) = outcome {
            self.fail(reason, host);
        }
    }

    /// The time for the step is up: a first probe falls back to the handshake, if this side speaks one;
    /// any other step fails.
    pub(super) fn opening_timed_out(
        &mut self,
        exchange: &mut Exchange,
        key: RequestKey,
        now: Instant,
        host: &mut dyn Host,
    ) -> Result<(), ConnectionError> {
        let (Phase::Probing(step) | Phase::Initializing(step)) = &self.phase else {
            return Ok(());
        };
        if step.key != key {
            return Ok(());
        }
        self.shared().outgoing.cancel(key);
        let older = self.config.handshake().is_some();
        match std::mem::replace(&mut self.phase, Phase::Done) {
            Phase::Probing(step) if !step.again && older => {
                if let Err(reason) = self.fall_back(exchange, &step, now) {
                    self.fail(reason, host);
                }
                Ok(())
            }
            Phase::Probing(_) => Err(ConnectionError::Handshake(
                "the server did not answer server/discover in time".into(),
            )),
            _ => Err(ConnectionError::Handshake(
                "the server did not answer initialize in time".into(),
            )),
        }
    }

    /// Handles `initialize` on a server (R-LIF-04, R-LIF-10).
    pub(super) fn initialize(
        &mut self,
        exchange: &mut Exchange,
        message: MessageRef<'_>,
        id: RequestId<'_>,
        host: &mut dyn Host,
    ) -> Opened {
        let params = message.params().unwrap_or("{}");
        let member = |name| reader::find(params, name);
        let fallback = self.config.handshake().unwrap_or(Revision::V2025_11_25);
        let config = self.config.clone();
        let Exchange { output, wire, .. } = &mut *exchange;
        let reply = |output, revision| Answer {
            output,
            wire,
            id,
            message: None,
            revision,
            config: &config,
            interceptor: None,
        };
        let overlay = config.profile.overlay();
        if self.handle.revision().is_some() {
            // R-LIF-14
            reply(output, fallback).error(ErrorKind::InvalidRequest, "already initialized", None);
            return Opened::Answered;
        }
        let Some(version) = member("protocolVersion").and_then(reader::as_str) else {
            reply(output, fallback).error(
                ErrorKind::InvalidParams,
                "protocolVersion is missing",
                None,
            );
            return Opened::Answered;
        };
        let object = |name| member(name).is_some_and(|value| value.starts_with('{'));
        let complete = object("capabilities") && object("clientInfo");
        if !config.lenient && !overlay.lenient && !complete {
            let why = "capabilities and clientInfo must be objects";
            reply(output, fallback).error(ErrorKind::InvalidParams, why, None);
            return Opened::Answered;
        }
        let spoken = Revision::parse(&version)
            .filter(|r| r.era() == Era::Handshake && config.revisions.contains(*r));
        if spoken.is_none() && overlay.refuses_versions {
            // R-ERR-20
            let spoken = config
                .revisions
                .iter()
                .filter(|r| r.era() == Era::Handshake);
            let supported = spoken.collect::<Revisions>().to_json();
            let requested = member("protocolVersion").unwrap_or("null");
            let data = format!("{{\"supported\":{supported},\"requested\":{requested}}}");
            reply(output, fallback).error(
                ErrorKind::UnsupportedVersion,
                "Unsupported protocol version",
                Some(&data),
            );
            return Opened::Answered;
        }
        let revision = spoken.unwrap_or(fallback);
        let is_named = object("clientInfo");
        let by_host = host.opens(Method::Initialize);
        if !by_host {
            reply(output, revision).result(|result| {
                result.with("protocolVersion", |out| {
                    string::append(out, revision.name())
                });
                result.raw("capabilities", config.capabilities(revision));
                // R-LIF-08: under a lenient profile, a client that sent no clientInfo gets no
                // serverInfo.
                if is_named || !overlay.lenient {
                    result.raw("serverInfo", &config.implementation);
                }
                if let Some(instructions) = &config.instructions {
                    result.string("instructions", instructions);
                }
            });
        }
        exchange.unreadable = revision.rules().unreadable_id;
        let peer = Peer {
            implementation: what_fits(member("clientInfo").unwrap_or_default()),
            capabilities: what_fits(member("capabilities").unwrap_or("{}")),
            instructions: None,
        };
        self.introduced = peer.implementation.len() + peer.capabilities.len();
        self.opened(revision, peer, host);
        match by_host {
            true => Opened::ByHost,
            false => Opened::Answered,
        }
    }
}

/// What is kept of `capabilities` or `clientInfo`, a JSON object. Of an object that is too long, keeps
/// the members that fit, in their order.
fn what_fits(object: &str) -> Box<str> {
    if object.len() <= MAX_INTRODUCTION_BYTES {
        return object.into();
    }
    let mut kept = String::from("{");
    for (key, value) in reader::members(object) {
        // Two quotes, a colon, a comma and the closing brace.
        if kept.len() + key.raw().len() + value.len() + 5 > MAX_INTRODUCTION_BYTES {
            continue;
        }
        if kept.len() > 1 {
            kept.push(',');
        }
        kept.push('"');
        kept.push_str(key.raw());
        kept.push_str("\":");
        kept.push_str(value);
    }
    kept.push('}');
    kept.into()
}

/// The known revisions in a JSON array of version strings.
fn revisions(array: Option<&str>) -> Option<Revisions> {
    let array = array.filter(|array| array.starts_with('['))?;
    let names = reader::elements(array).filter_map(reader::as_str);
    Some(names.filter_map(|name| Revision::parse(&name)).collect())
}

fn discovered_peer(result: &str) -> Peer {
    let info = reader::find(result, "_meta").and_then(|own| reader::find(own, meta::SERVER_INFO));
    Peer {
        // F-42: an earlier draft had the server's info beside the capabilities.
        implementation: info
            .or_else(|| reader::find(result, "serverInfo"))
            .unwrap_or_default()
            .into(),
        capabilities: reader::find(result, "capabilities").unwrap_or("{}").into(),
        instructions: reader::find(result, "instructions")
            .and_then(reader::as_str)
            .map(|text| text.into()),
    }
}
