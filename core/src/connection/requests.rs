//! Handles whole messages: requests and notifications of the peer, and answers to this side's requests.

use std::borrow::Cow;
use std::time::Instant;

use bytes::Bytes;

use super::core::Core;
use super::host::{Answer, CallKey, Host, Incoming, Stray};
use super::opening::Opened;
use super::receive::Turn;
use super::session::Elsewhere;
use super::stream::Exchange;
use crate::correlate::RequestKey;
use crate::error::{PeerError, RequestError};
use crate::json::{number, reader};
use crate::limits::COPY_OUT_BYTES;
use crate::mcp::code::{self, REQUEST_CANCELLED};
use crate::mcp::profile::Failure;
use crate::mcp::{Era, ErrorKind, LogLevel, Method, Revision, Side, revision::UnreadableId};
use crate::message::{Field, Kind, Message, MessageRef, RequestId};

impl Core {
    /// Handles a request of the peer.
    pub(super) fn request(
        &mut self,
        exchange: &mut Exchange,
        turn: &mut Turn,
        message: MessageRef<'_>,
        now: Instant,
        host: &mut dyn Host,
    ) {
        let Some(id) = message.id() else { return };
        let Ok(vacant) = exchange.incoming.check(&id) else {
            // R-RPC-05: the request in flight is not affected.
            return self.refuse(
                exchange,
                Some(id),
                code::INVALID_REQUEST,
                "a request with this id is in flight",
            );
        };
        if let Err((kind, why)) = host.fits(&message) {
            let revision = self.config.revisions.newest(Era::Stateless);
            let answer = exchange.answer(&self.config, id, revision.unwrap_or(self.fallback()));
            answer.error(kind, &why, None);
            return;
        }
        let method = method_of(&message);
        let revision = match self.revision_of(exchange, &message, id, method) {
            Ok(revision) => revision,
            Err(()) => return,
        };
        if revision.era() == Era::Stateless && self.config.side == Side::Client {
            // R-RPC-15, R-RPC-16: a server of the stateless era sends no requests, and gets no answers.
            return self.stray(Stray::Unexpected, message.bytes(), host);
        }
        let answer = exchange.answer(&self.config, id, revision);
        let unknown = |answer: Answer<'_>| {
            // A method that is not valid Unicode is unknown like any other.
            let name = message.method().unwrap_or(Cow::Borrowed("\u{fffd}"));
            answer.refuse(Failure {
                kind: ErrorKind::MethodNotFound,
                about: &name,
                why: &format!("no method {name:?} here"),
                data: None,
            });
        };
        match method {
            Some(method)
                if !method.defined(revision, self.config.side.peer()) || !method.is_request() =>
            {
                return unknown(answer);
            }
            Some(Method::Initialize) if self.drain.is_none() => {
                match self.initialize(exchange, message, id, host) {
                    Opened::Answered => return,
                    Opened::ByHost => {}
                }
            }
            Some(Method::Ping) if !host.opens(Method::Ping) => {
                answer.result(|_| ());
                return;
            }
            Some(Method::Discover) if !host.opens(Method::Discover) => {
                let config = &self.config;
                answer.result(|result| super::opening::discovered(config, revision, result));
                return;
            }
            _ if self.drain.is_some() => {
                answer.error(ErrorKind::ShuttingDown, "shutting down", None);
                return;
            }
            _ if self.is_asking_too_fast(now) => {
                return super::admission::refuse(exchange.answer(&self.config, id, revision));
            }
            _ => {}
        }
        let request = Incoming {
            message,
            method,
            revision,
        };
        self.admit(exchange, turn, request, (id, Some(vacant)), host);
    }

    /// The revision in which to serve a request: its own envelope decides, else the handshake
    /// (R-ERA-02, R-ERA-03). `Err` if the request is refused; a server has answered it then, a client
    /// does not answer.
    fn revision_of(
        &mut self,
        exchange: &mut Exchange,
        message: &MessageRef<'_>,
        id: RequestId<'_>,
        method: Option<Method>,
    ) -> Result<Revision, ()> {
        let negotiated = self.handle.revision();
        if self.config.side == Side::Client {
            // A client answers pings before the connection is open (R-PNG-01).
            let unsettled = match method {
                Some(Method::Ping) => self.config.revisions.newest(Era::Handshake),
                _ => None,
            };
            return negotiated.or(unsettled).ok_or(());
        }
        let stateless = self.config.revisions.newest(Era::Stateless);
        if let (Some(asked), Some(newest)) = (message.raw(Field::ProtocolVersion), stateless) {
            exchange.unreadable = newest.rules().unreadable_id;
            let name = reader::as_str(asked);
            let revision = name.as_deref().and_then(Revision::parse);
            let mut refuse = |kind: ErrorKind, why: &str, data: Option<&str>| {
                let answer = exchange.answer(&self.config, id, newest);
                answer.error(kind, why, data);
            };
            match revision
                .filter(|r| r.era() == Era::Stateless && self.config.revisions.contains(*r))
            {
                None if name.is_none() => {
                    refuse(
                        ErrorKind::InvalidParams,
                        "protocolVersion must be a string",
                        None,
                    );
                }
                None => {
                    let supported = self.config.revisions.to_json();
                    let data = format!("{{\"supported\":{supported},\"requested\":{asked}}}");
                    refuse(
                        ErrorKind::UnsupportedVersion,
                        "Unsupported protocol version",
                        Some(&data),
                    );
                }
                Some(revision) => match message.raw(Field::ClientCapabilities) {
                    // R-ERR-14
                    Some(capabilities)
                        if capabilities.starts_with('{') && !has_known_level(message) =>
                    {
                        refuse(ErrorKind::InvalidParams, "unknown log level", None);
                    }
                    Some(capabilities) if capabilities.starts_with('{') => return Ok(revision),
                    _ => refuse(
                        ErrorKind::InvalidParams,
                        "clientCapabilities is missing in _meta or no object",
                        None,
                    ),
                },
            }
            return Err(());
        }
        if let Some(negotiated) = negotiated {
            exchange.unreadable = negotiated.rules().unreadable_id;
            return Ok(negotiated);
        }
        let handshake = self.config.handshake();
        match (handshake, method) {
            (Some(newest), Some(Method::Initialize | Method::Ping)) => Ok(newest),
            // R-LIF-15
            (Some(_), _) => {
                self.refuse(
                    exchange,
                    Some(id),
                    code::INVALID_REQUEST,
                    "the connection is not initialized",
                );
                Err(())
            }
            (None, Some(Method::Initialize)) => {
                // R-ERA-06
                let data = format!("{{\"supported\":{}}}", self.config.revisions.to_json());
                exchange.unreadable = UnreadableId::Omitted;
                let answer = exchange.answer(&self.config, id, Revision::V2026_07_28);
                answer.error(
                    ErrorKind::UnsupportedVersion,
                    "Unsupported protocol version",
                    Some(&data),
                );
                Err(())
            }
            (None, _) => {
                // R-ERR-19
                self.refuse(
                    exchange,
                    Some(id),
                    code::INVALID_PARAMS,
                    "protocolVersion is missing in _meta",
                );
                Err(())
            }
        }
    }

    /// Handles a notification of the peer. Notifications are never answered (R-RPC-11).
    pub(super) fn notification(
        &mut self,
        exchange: &mut Exchange,
        turn: &mut Turn,
        message: MessageRef<'_>,
        now: Instant,
        host: &mut dyn Host,
    ) {
        match method_of(&message) {
            Some(Method::Cancelled) => self.peer_cancelled(exchange, turn, &message, host),
            Some(Method::Progress) => {
                if !self.pending.progress(&message, now) {
                    self.stray(Stray::Unexpected, message.bytes(), host);
                }
            }
            _ => return host.notification(message),
        }
        host.overheard(message);
    }

    /// Cancels a request of the peer. Cancellations of unknown or finished requests and malformed ones
    /// are ignored (R-CAN-04); a later answer to the cancelled request is discarded.
    fn peer_cancelled(
        &mut self,
        exchange: &mut Exchange,
        turn: &mut Turn,
        message: &MessageRef<'_>,
        host: &mut dyn Host,
    ) {
        let id = message
            .raw(Field::RequestId)
            .and_then(RequestId::from_token);
        let Some(id) = id else { return };
        let reason = message
            .params()
            .and_then(|params| reader::find(params, "reason"));
        let reason = reason.and_then(reader::as_str);
        let Some(incoming) = exchange.incoming.find(&id) else {
            if self.is_session {
                turn.elsewhere.push(Elsewhere {
                    id: id.to_owned(),
                    reason: reason.map(Box::from),
                });
            }
            return;
        };
        let key = CallKey {
            stream: turn.stream,
            incoming,
        };
        let dispatched = turn.records.len();
        turn.records.retain(|record| record.key != key);
        if turn.records.len() < dispatched {
            // The request arrived in this very turn: the host has not received it yet.
            self.end_incoming(exchange, incoming);
        } else {
            let reason = reason.as_deref();
            self.cancel_incoming(exchange, key, reason, reason, host);
        }
        self.answer_cancelled(exchange, id);
    }

    /// Handles an answer of the peer.
    pub(super) fn answer(
        &mut self,
        exchange: &mut Exchange,
        turn: &mut Turn,
        message: MessageRef<'_>,
        now: Instant,
        host: &mut dyn Host,
    ) {
        let Some(key) = self.own_key(&message) else {
            return self.stray(Stray::Answer, message.bytes(), host);
        };
        if self.opening_answered(exchange, key, &message, now, host) {
            return;
        }
        if self.ping_answered(key) {
            return;
        }
        if self.pending.remove(key, &mut self.timers).is_none() {
            return self.stray(Stray::Answer, message.bytes(), host);
        }
        let outcome = match message.kind() {
            Kind::Error => Err(failure(peer_error(&message))),
            _ if message.bytes().len() > COPY_OUT_BYTES => {
                let (at, len) = (turn.at, message.bytes().len());
                return turn.answers.push((key, at, len, *message.envelope()));
            }
            // An answer is not decoded again, so it needs no padding.
            _ => {
                let block = Bytes::copy_from_slice(message.bytes());
                Ok(Message::from_bytes(block, *message.envelope()))
            }
        };
        if self.shared().outgoing.complete(key, outcome).is_err() {
            self.stray(Stray::Answer, message.bytes(), host);
        }
    }

    /// Fails the pending request that an invalid answer names, if its id can be read, so that its
    /// caller does not wait for a better answer.
    pub(super) fn bad_answer(&mut self, message: MessageRef<'_>, why: &'static str) {
        if message.envelope().invites_answer() || message.method().is_some() {
            return;
        }
        let key = self.own_key(&message);
        if let Some(key) = key.filter(|key| self.pending.remove(*key, &mut self.timers).is_some()) {
            // An error here means that the request had ended before.
            let _ = self
                .shared()
                .outgoing
                .complete(key, Err(RequestError::BadAnswer(why)));
        }
    }

    /// The request of this side that the answer's id names.
    fn own_key(&self, message: &MessageRef<'_>) -> Option<RequestKey> {
        let token = message.raw_bytes(Field::Id)?;
        RequestKey::from_token(token).or_else(|| {
            let text = message
                .string(Field::Id)
                .filter(|_| self.config.lenient_ids)?;
            RequestKey::from_wire(number::as_u64(&text.decode().ok()?)?)
        })
    }
}

/// The method, if a revision defines it.
fn method_of(message: &MessageRef<'_>) -> Option<Method> {
    let known = message.raw_bytes(Field::Method).and_then(Method::of_token);
    // The name may contain escapes.
    known.or_else(|| Method::parse(&message.method()?))
}

/// The error that the caller of a request gets for an error of the peer.
fn failure(error: PeerError) -> RequestError {
    match error.code {
        REQUEST_CANCELLED => RequestError::Cancelled(Some(error.message)), // R-ERR-27
        _ => RequestError::Peer(error),
    }
}

/// Reads the peer's error.
pub(super) fn peer_error(message: &MessageRef<'_>) -> PeerError {
    read_error(message.error().unwrap_or("{}"))
}

/// Reads an error object; replaces missing members by defaults.
pub(crate) fn read_error(error: &str) -> PeerError {
    let text = reader::find(error, "message").and_then(reader::as_str);
    let code = reader::find(error, "code").and_then(number::as_i64);
    PeerError {
        code: code.unwrap_or(code::INTERNAL_ERROR),
        message: text.unwrap_or_default().into(),
        data: reader::find(error, "data").map(Box::from),
    }
}

/// Whether the log level in the envelope is a known one; `true` if there is none.
fn has_known_level(message: &MessageRef<'_>) -> bool {
    let known = |raw| reader::as_str(raw).is_some_and(|name| LogLevel::parse(&name).is_some());
    message.raw(Field::LogLevel).is_none_or(known)
}
