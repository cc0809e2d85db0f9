//! Handles whole messages: requests and notifications of the peer, and answers to this side's requests.

use std::borrow::Cow;

use bytes::Bytes;

use super::actions::{self, Refusal, batch::Operations};
use super::answer::{Answer, Asked};
use super::batches::{Run, Step};
use super::call::IncomingRequest;
use super::cancelled::{Elsewhere, refuse_cancelled};
use super::core::Core;
use super::host::{Host, Stray};
use super::incoming::{self, Arrival, Started};
use super::initialize::{self, Introduction};
use super::keys::{CallKey, Member, StreamId};
use super::observed::Undecided;
use super::observer::RequestOutcome;
use super::opening::Opening;
use super::peer_error::{failure, peer_error};
use super::reply::{self, Closing};
use super::routing::{self, Unserved};
use super::stream::{Completion, Entry, Exchange, Stream};
use super::streams::Streams;
use super::telling::{observe, unserved};
use crate::correlate::{CancelToken, RequestKey, Vacant};
use crate::error::RequestError;
use crate::json::reader;
use crate::limits::COPY_OUT_BYTES;
use crate::mcp::code;
use crate::mcp::profile::Failure;
use crate::mcp::{Era, ErrorKind, Method, Side};
use crate::message::{Dialect, Envelope, Fault, Field, Kind, Message, MessageRef, RequestId};

/// One pass over the input of a stream: the connection, and what is collected until the end of the pass.
pub(super) struct Pass<'a> {
    pub core: &'a mut Core,
    pub host: &'a mut dyn Host,
    pub stream: StreamId,
    /// Deferred requests. Their frames are ranges of the input, counted from the start of the pass.
    pub started: Started,
    /// Large answers: key, start, length, envelope. They leave with the block instead of being copied.
    pub answers: Vec<(RequestKey, usize, usize, Envelope)>,
    /// Cancellations of requests that are not in flight on this stream.
    pub elsewhere: Vec<Elsewhere>,
}

impl<'a> Pass<'a> {
    pub fn new(core: &'a mut Core, host: &'a mut dyn Host, stream: StreamId) -> Self {
        Self {
            core,
            host,
            stream,
            started: Started::default(),
            answers: Vec::new(),
            elsewhere: Vec::new(),
        }
    }

    pub fn stray(&mut self, what: Stray, frame: &[u8]) {
        self.core.stray(what, frame, self.host);
    }

    /// Answers a frame that cannot be served as a request.
    pub fn refuse(
        &self,
        exchange: &mut Exchange,
        id: Option<RequestId<'_>>,
        (kind, why, data): (ErrorKind, &str, Option<&str>),
    ) {
        let failure = Failure {
            kind,
            about: "",
            why,
            data,
        };
        let spelt = self
            .core
            .config
            .profile
            .spell(self.core.fallback(), failure);
        exchange.refuse(id, &spelt);
    }

    /// Handles a request of the peer, or a member of a batch.
    pub fn request(
        &mut self,
        exchange: &mut Exchange,
        message: MessageRef<'_>,
        member: Option<Member>,
    ) {
        let Some(id) = message.id() else { return };
        let core = &mut *self.core;
        let mut asked = Asked {
            member,
            ..Asked::rpc(id, core.fallback())
        };
        let vacant = match member {
            Some(_) => None,
            None => match exchange.incoming.check(&id) {
                Ok(vacant) => Some(vacant),
                // R-RPC-05: the request in flight is not affected.
                Err(_) => {
                    let why = "a request with this id is in flight";
                    let error = (ErrorKind::InvalidRequest, why, None);
                    return unserved(core, exchange, &message, asked, error);
                }
            },
        };
        if let Err((kind, why)) = self.host.fits(&message) {
            let stateless = core.config.revisions.newest(Era::Stateless);
            asked.revision = stateless.unwrap_or(asked.revision);
            return unserved(core, exchange, &message, asked, (kind, &why, None));
        }
        let method = routing::method_of(&message);
        let negotiated = core.handle.revision();
        let unreadable = &mut exchange.unreadable;
        match routing::revision_of(&core.config, negotiated, &message, method, unreadable) {
            Ok(revision) => asked.revision = revision,
            Err(Unserved::Silent) => return,
            Err(Unserved::Refused(revision, kind, why, data)) => {
                asked.revision = revision;
                return unserved(
                    core,
                    exchange,
                    &message,
                    asked,
                    (kind, why, data.as_deref()),
                );
            }
        }
        let revision = asked.revision;
        if revision.era() == Era::Stateless && core.config.side == Side::Client {
            // R-RPC-15, R-RPC-16: a server of the stateless era sends no requests, and gets no answers.
            return self.stray(Stray::Unexpected, message.bytes());
        }
        match core.config.observer {
            None => self.serve(exchange, message, method, asked, vacant),
            Some(_) => self.serve_observed(exchange, message, method, asked, vacant),
        }
    }

    /// Serves a request whose revision is known, and of which the observer is told.
    #[cold]
    fn serve_observed(
        &mut self,
        exchange: &mut Exchange,
        message: MessageRef<'_>,
        method: Option<Method>,
        asked: Asked<'_>,
        vacant: Option<Vacant>,
    ) {
        let request = IncomingRequest {
            message,
            method,
            revision: asked.revision,
        };
        let mut undecided = Undecided::new(observe(self.core, exchange, &request));
        let asked = Asked {
            observed: undecided.get(),
            ..asked
        };
        self.serve(exchange, message, method, asked, vacant);
    }

    /// Serves a request whose revision is known.
    #[inline(always)]
    fn serve(
        &mut self,
        exchange: &mut Exchange,
        message: MessageRef<'_>,
        method: Option<Method>,
        asked: Asked<'_>,
        vacant: Option<Vacant>,
    ) {
        let core = &mut *self.core;
        let revision = asked.revision;
        let peer = core.config.side.peer();
        match method {
            Some(method) if !method.defined(revision, peer) || !method.is_request() => {
                return unknown(&message, exchange.answer(&core.config, asked));
            }
            #[allow(
                clippy::collapsible_match,
                reason = "a guard would borrow `self` twice"
            )]
            Some(Method::Initialize) if !core.drain.is_running() => {
                if self.initialize(exchange, message, asked) {
                    return;
                }
            }
            Some(Method::Ping) if !self.host.opens(Method::Ping) => {
                exchange.answer(&core.config, asked).result(|_| ());
                return;
            }
            Some(Method::Discover) if !self.host.opens(Method::Discover) => {
                let config = &core.config;
                let answer = exchange.answer(config, asked);
                answer.result(|result| initialize::discovered(config, revision, result));
                return;
            }
            _ if self.is_refused(exchange, &asked) => return,
            _ => {}
        }
        let request = IncomingRequest {
            message,
            method,
            revision,
        };
        self.admit(exchange, request, asked, vacant);
    }

    /// Refuses a request while the connection drains, or if the peer sends requests faster than
    /// allowed; returns whether it did.
    #[inline]
    fn is_refused(&mut self, exchange: &mut Exchange, asked: &Asked<'_>) -> bool {
        let core = &mut *self.core;
        if core.drain.is_running() {
            let answer = exchange.answer(&core.config, *asked);
            answer.error(ErrorKind::ShuttingDown, "shutting down", None);
            return true;
        }
        let is_too_fast = core.incoming.load.is_too_fast(core.clock);
        if is_too_fast {
            incoming::refuse(exchange.answer(&core.config, *asked));
        }
        is_too_fast
    }

    #[inline]
    fn admit(
        &mut self,
        exchange: &mut Exchange,
        request: IncomingRequest<'_>,
        asked: Asked<'_>,
        vacant: Option<Vacant>,
    ) {
        let arrival = Arrival {
            request,
            asked,
            vacant,
        };
        let (core, to) = (&mut *self.core, (self.stream, exchange));
        core.incoming
            .admit(to, &mut self.started, &arrival, core.clock, self.host);
    }

    /// Handles `initialize`; returns whether it is answered. If not, the host answers it.
    fn initialize(
        &mut self,
        exchange: &mut Exchange,
        message: MessageRef<'_>,
        mut asked: Asked<'_>,
    ) -> bool {
        let core = &mut *self.core;
        let is_open = core.handle.revision().is_some();
        let params = message.params().unwrap_or("{}");
        let introduction: Introduction = match initialize::negotiate(&core.config, is_open, params)
        {
            Ok(introduction) => introduction,
            Err((kind, why, data)) => {
                asked.revision = initialize::fallback(&core.config);
                let answer = exchange.answer(&core.config, asked);
                answer.error(kind, why, data.as_deref());
                return true;
            }
        };
        let revision = introduction.revision;
        let by_host = self.host.opens(Method::Initialize);
        if !by_host {
            asked.revision = revision;
            let answer = exchange.answer(&core.config, asked);
            answer.result(|result| introduction.write(&core.config, result));
        }
        exchange.unreadable = revision.rules().unreadable_id;
        core.incoming.load.introduce(introduction.bytes());
        core.shared().open(revision, introduction.peer);
        core.observe_session(exchange, revision);
        self.host.opened(revision);
        !by_host
    }

    /// Handles a notification of the peer. Notifications are never answered (R-RPC-11).
    pub fn notification(&mut self, exchange: &mut Exchange, message: MessageRef<'_>) {
        match routing::method_of(&message) {
            Some(Method::Cancelled) => self.peer_cancelled(exchange, &message),
            Some(Method::Progress) => {
                let now = self.core.clock;
                if !self.core.pending.progress(&message, now) {
                    self.stray(Stray::Unexpected, message.bytes());
                }
            }
            _ => return self.host.notification(message),
        }
        self.host.overheard(message);
    }

    /// Cancels a request of the peer. Cancellations of unknown or finished requests and malformed ones
    /// are ignored (R-CAN-04); a later answer to the cancelled request is discarded.
    fn peer_cancelled(&mut self, exchange: &mut Exchange, message: &MessageRef<'_>) {
        let id = message.raw(Field::RequestId);
        let Some(id) = id.and_then(RequestId::from_token) else {
            return;
        };
        let params = message.params();
        let reason = params.and_then(|params| reader::find(params, "reason"));
        let reason = reason.and_then(reader::as_str);
        let Some(incoming) = exchange.incoming.find(&id) else {
            if self.core.is_session {
                self.elsewhere.push(Elsewhere {
                    id: id.to_owned(),
                    reason: reason.map(Box::from),
                });
            }
            return;
        };
        let key = CallKey {
            stream: self.stream,
            incoming,
        };
        let core = &mut *self.core;
        let records = &mut self.started.records;
        let before = records.len();
        records.retain(|record| record.key != key);
        if records.len() < before {
            // The request arrived in this very turn: the host has not received it yet.
            core.incoming.end(exchange, &mut core.timers, incoming);
        } else {
            let (reason, timers) = (reason.as_deref(), &mut core.timers);
            core.incoming
                .cancel((exchange, key), timers, reason, reason, self.host);
        }
        // R-ERR-27: some peers expect an answer.
        let profile = core.handle.revision().map(|_| core.config.profile);
        let own = profile.is_some_and(|profile| profile.overlay().answers_cancelled);
        if own || core.config.answer_cancelled {
            refuse_cancelled(exchange, id);
        }
    }

    /// Handles an answer of the peer.
    pub fn answer(&mut self, exchange: &mut Exchange, message: MessageRef<'_>) {
        let Some(key) = self.core.own_key(&message) else {
            return self.stray(Stray::Answer, message.bytes());
        };
        let core = &mut *self.core;
        let decide = |opening: &mut Opening, config: &_| opening.answered(config, &message);
        let outcome = || (RequestOutcome::of_answer(&message), message.bytes().len());
        if core.opening_ended(exchange, key, self.host, outcome, decide) {
            return;
        }
        if core.liveness.is_ping(key) && core.shared().outgoing.cancel(key) {
            return;
        }
        if core.pending.end(key, outcome).is_none() {
            return self.stray(Stray::Answer, message.bytes());
        }
        let outgoing = &core.shared().outgoing;
        let completed = match message.kind() {
            Kind::Error => outgoing.complete(key, Err(failure(peer_error(&message)))),
            _ if message.bytes().len() > COPY_OUT_BYTES => {
                let (at, len) = (self.started.at, message.bytes().len());
                return self.answers.push((key, at, len, *message.envelope()));
            }
            // An answer is not decoded again, so it needs no padding.
            _ => {
                let block = Bytes::copy_from_slice(message.bytes());
                outgoing.complete(key, Ok(Message::from_bytes(block, *message.envelope())))
            }
        };
        if completed.is_err() {
            self.stray(Stray::Answer, message.bytes());
        }
    }

    /// Fails the pending request that an invalid answer names, if its id can be read, so that its
    /// caller does not wait for a better answer.
    pub fn bad_answer(&mut self, message: MessageRef<'_>, why: &'static str) {
        if message.envelope().invites_answer() || message.method().is_some() {
            return;
        }
        if let Some(key) = self.core.own_key(&message) {
            self.core.complete(key, RequestError::BadAnswer(why));
        }
    }

    /// Handles a request of the action dialect.
    pub fn act(
        &mut self,
        exchange: &mut Exchange,
        message: MessageRef<'_>,
        version: Option<&'static str>,
    ) {
        let mut asked = asked_in_actions(&message, version, None);
        let mut undecided = Undecided::new(observe(self.core, exchange, &action_call(message)));
        asked.observed = undecided.get();
        if self.is_refused(exchange, &asked) {
        } else if actions::batch::is_one(&message) {
            self.begin_actions(exchange, message, asked);
        } else {
            self.admit(exchange, action_call(message), asked, None);
        }
    }

    /// Refuses a message that is no valid action, of which no observer is told.
    pub fn refuse_action(
        &self,
        exchange: &mut Exchange,
        message: &MessageRef<'_>,
        refusal: &Refusal,
    ) {
        let version = actions::agreed(message).ok().flatten();
        let mut asked = asked_in_actions(message, version, None);
        if actions::has_long_id(message) {
            (asked.id, asked.closing) = (RequestId::NONE, Closing::default());
        }
        let answer = exchange.answer(&self.core.config, asked);
        answer.action_error(&refusal.to_error());
    }

    /// Begins a batch of actions, which counts as a request in flight.
    fn begin_actions(
        &mut self,
        exchange: &mut Exchange,
        message: MessageRef<'_>,
        asked: Asked<'_>,
    ) {
        let core = &mut *self.core;
        let load = &mut core.incoming.load;
        if !load.is_below_limit() || load.is_over_budget() {
            return incoming::refuse(exchange.answer(&core.config, asked));
        }
        match Operations::read(&message, &core.config.limits) {
            Err(refusal) => {
                let answer = exchange.answer(&core.config, asked);
                answer.action_error(&refusal.to_error());
            }
            Ok(operations) => {
                let completion = Completion::of(&asked, core.clock);
                let mut entry = Entry::new(CancelToken::new(), completion);
                entry.observed = asked.observed.and_then(Undecided::take).map(Box::new);
                // The table has no limit of its own.
                if let Ok(key) = exchange.incoming.insert_unnamed(asked.id, entry) {
                    load.hold();
                    exchange.batches.begin(key, Box::new(operations));
                    core.has_batches = true;
                }
            }
        }
    }

    /// Takes the next steps of a batch.
    fn advance(&mut self, exchange: &mut Exchange, mut run: Run) {
        let outer = run.outer();
        while exchange.incoming.get(outer).is_some() {
            exchange.batches.deliver(&mut run);
            match run.step() {
                Step::Serve(index, message) => {
                    self.serve_member(exchange, message.as_ref(), Member { outer, index });
                }
                Step::Wait => return exchange.batches.put_back(run),
                Step::Done(result) => {
                    let core = &mut *self.core;
                    let ended = core.incoming.end(exchange, &mut core.timers, outer);
                    if let Some((id, entry)) = ended {
                        if let Some(observed) = entry.observed {
                            observed.end(RequestOutcome::Done, result.len());
                        }
                        let closing = entry
                            .completion
                            .map(|it| (it.dialect, it.closing(core.clock)));
                        let (id, config) = (id.as_ref(), &core.config);
                        exchange.write(|out| reply::batch(out, id, config, closing, &result));
                    }
                }
            }
        }
        // The remaining requests of the batch are of no use.
        let of_batch = |entry: &Entry| entry.member().is_some_and(|it| it.outer == outer);
        let (core, to) = (&mut *self.core, (self.stream, &mut *exchange));
        core.incoming
            .cancel_those(to, &mut core.timers, self.host, of_batch);
        exchange.batches.deliver(&mut run);
    }

    fn serve_member(&mut self, exchange: &mut Exchange, message: MessageRef<'_>, member: Member) {
        let core = &mut *self.core;
        if message.dialect() != Dialect::Rpc {
            let request = action_call(message);
            let mut asked = asked_in_actions(&message, None, Some(member));
            let mut undecided = Undecided::new(observe(core, exchange, &request));
            asked.observed = undecided.get();
            let arrival = Arrival {
                request,
                asked,
                vacant: None,
            };
            let to = (self.stream, exchange);
            return core
                .incoming
                .start(to, &mut self.started, &arrival, core.clock, self.host);
        }
        if message.kind() == Kind::Request {
            return self.request(exchange, message, Some(member));
        }
        let fault = message.fault().unwrap_or(Fault::UnknownShape);
        let asked = Asked {
            member: Some(member),
            ..Asked::rpc(RequestId::NONE, core.fallback())
        };
        let answer = exchange.answer(&core.config, asked);
        answer.error(kind_of(fault.code()), fault.message(), None);
    }
}

/// Takes the next steps of all batches.
pub(super) fn advance_batches(core: &mut Core, streams: &mut Streams, host: &mut dyn Host) {
    core.has_batches = false;
    for (stream, Stream { exchange, .. }) in streams.iter_mut() {
        if !exchange.batches.are_none() {
            let mut pass = Pass::new(core, host, stream);
            pass.started = Started::copying();
            for run in exchange.batches.take() {
                pass.advance(exchange, run);
            }
            pass.started.dispatch(host);
            core.has_batches |= !exchange.batches.are_none();
        }
    }
}

/// Refuses a request of a method that is not known.
#[cold]
fn unknown(message: &MessageRef<'_>, answer: Answer<'_>) {
    // A method that is not valid Unicode is unknown like any other.
    let name = message.method().unwrap_or(Cow::Borrowed("\u{fffd}"));
    answer.refuse(Failure {
        kind: ErrorKind::MethodNotFound,
        about: &name,
        why: &format!("no method {name:?} here"),
        data: None,
    });
}

/// The kind of error that a frame's code stands for.
pub(super) fn kind_of(code: i32) -> ErrorKind {
    match i64::from(code) {
        code::PARSE_ERROR => ErrorKind::Parse,
        code::INVALID_PARAMS => ErrorKind::InvalidParams,
        _ => ErrorKind::InvalidRequest,
    }
}

/// An action as the host sees it.
fn action_call(message: MessageRef<'_>) -> IncomingRequest<'_> {
    IncomingRequest {
        message,
        method: Some(Method::CallTool),
        revision: actions::REVISION,
    }
}

fn asked_in_actions<'a>(
    message: &MessageRef<'a>,
    version: Option<&'static str>,
    member: Option<Member>,
) -> Asked<'a> {
    Asked {
        id: message.echo().unwrap_or(RequestId::NONE),
        dialect: message.dialect(),
        revision: actions::REVISION,
        closing: Closing {
            version,
            elapsed_ms: None,
        },
        member,
        observed: None,
    }
}
