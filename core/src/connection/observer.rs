//! What an application is told of the requests and sessions of its connections: the one source of metrics and traces.
//!
//! ```text
//!   a request arrives or is about to be sent ─▶ Observer::request ─▶ RequestObserver
//!   it has to wait, or begins after all      ─▶ RequestObserver::waits
//!   its handler runs                         ─▶ RequestScope::enter, around each poll
//!   it is answered, cancelled or lost        ─▶ RequestObserver::end, once
//!   a handshake is done; its connection ends ─▶ Observer::session ─▶ SessionObserver::end
//! ```
//!
//! Connections without an observer pay one check of an empty field for each of these. Nothing here reads a clock: an
//! observer that measures does. Pings that a connection sends by itself to see whether its peer is alive are not reported.

use std::borrow::Cow;
use std::fmt;
use std::sync::{Arc, LazyLock};
use std::time::Instant;

use memchr::memmem::Finder;

use super::channel::Channel;
use crate::error::{CarrierFault, ConnectionError, RequestError};
use crate::json::reader;
use crate::mcp::{ErrorKind, Method, Revision, Side, TraceContext, trace_context};
use crate::message::{Dialect, Field, Kind, MessageRef};

/// Receives what happens on all connections of a [`Config`](super::Config). Called on the threads that drive connections and
/// on those that send requests; must not block.
pub trait Observer: fmt::Debug + Send + Sync {
    /// A request has arrived, or is about to be sent. Returns what observes the rest of it, if anything does.
    fn request(&self, request: &ObservedRequest<'_>) -> Option<Arc<dyn RequestObserver>>;

    /// A connection was opened by a handshake or, on a client, by `server/discover`. Returns what observes its end, if
    /// anything does.
    fn session(&self, session: &ObservedSession<'_>) -> Option<Box<dyn SessionObserver>> {
        let _ = session;
        None
    }
}

/// Observes one request. One value may observe any number of requests that are alike.
pub trait RequestObserver: fmt::Debug + Send + Sync {
    /// The request is over. Called once for each request.
    fn end(&self, end: &RequestEnd);

    /// A request that arrived has to wait for room (`true`), or waits no longer (`false`).
    fn waits(&self, waits: bool) {
        let _ = waits;
    }

    /// What surrounds the handler of the request, if anything does.
    fn scope(self: Arc<Self>) -> Option<RequestScope> {
        None
    }

    /// The trace context that a request which is about to be sent carries in its `_meta`, in place of its own; `None` to leave
    /// it as it is.
    fn trace_context(&self) -> Option<TraceContext> {
        None
    }
}

/// What surrounds the handler of a request, for example the span that is current in it. Cheap to clone.
#[derive(Clone)]
pub struct RequestScope(Arc<Box<EnterFn>>);

type EnterFn = dyn Fn(&mut dyn FnMut()) + Send + Sync;

impl RequestScope {
    /// `enter` calls its argument once, and does what is to be done before and after. It is called for each poll of the
    /// handler's future.
    pub fn new(enter: impl Fn(&mut dyn FnMut()) + Send + Sync + 'static) -> Self {
        Self(Arc::new(Box::new(enter)))
    }

    /// Calls `poll` within the scope.
    pub fn enter(&self, poll: &mut dyn FnMut()) {
        (self.0)(poll);
    }
}

impl fmt::Debug for RequestScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RequestScope(..)")
    }
}

/// Observes the end of a session.
pub trait SessionObserver: fmt::Debug + Send + Sync {
    /// The connection has ended. Called once.
    fn end(self: Box<Self>, reason: &ConnectionError);
}

/// The most bytes of a method, a name, a URI or an id that an observer sees. Peers choose these texts.
const MAX_TEXT_BYTES: usize = 256;

/// A request that begins. A method, name, URI or id is cut after 256 bytes, at the end of a character.
#[derive(Debug)]
pub struct ObservedRequest<'a> {
    pub(super) text: RequestText<'a>,
    pub(super) side: Side,
    pub(super) revision: Revision,
    pub(super) arrived: Option<Instant>,
    pub(super) channel: Option<&'a Arc<Channel>>,
}

/// What a request says.
#[derive(Debug)]
pub(super) enum RequestText<'a> {
    /// A request of the peer, with its method if a revision defines it.
    Received(MessageRef<'a>, Option<Method>),
    /// A request of this side, with the members of its `_meta` that its caller gave apart from its params.
    Sent {
        id: u64,
        method: &'a str,
        params: Option<&'a str>,
        meta: Option<&'a str>,
    },
}

impl<'a> ObservedRequest<'a> {
    /// Whether this side sent the request, rather than its peer.
    pub fn is_sent(&self) -> bool {
        matches!(self.text, RequestText::Sent { .. })
    }

    /// This side of the connection. A server sends requests, too, in the revisions with a handshake.
    pub fn side(&self) -> Side {
        self.side
    }

    /// The method on the wire, any text if a peer sent it; `tools/call` for an action.
    pub fn method(&self) -> Cow<'a, str> {
        match &self.text {
            RequestText::Received(_, Some(method)) => method.name().into(),
            RequestText::Received(message, None) => cut(message.method().unwrap_or_default()),
            RequestText::Sent { method, .. } => cut((*method).into()),
        }
    }

    /// The method, if a revision defines it.
    pub fn known_method(&self) -> Option<Method> {
        match &self.text {
            RequestText::Received(_, method) => *method,
            RequestText::Sent { method, .. } => Method::parse(method),
        }
    }

    /// The name of the tool, of a `tools/call`; of an action, its name.
    pub fn tool(&self) -> Option<Cow<'a, str>> {
        self.named(Method::CallTool)
    }

    /// The name of the prompt, of a `prompts/get`.
    pub fn prompt(&self) -> Option<Cow<'a, str>> {
        self.named(Method::GetPrompt)
    }

    fn named(&self, by: Method) -> Option<Cow<'a, str>> {
        self.known_method().filter(|method| *method == by)?;
        self.name()
    }

    /// The `name` in the params, whatever has it.
    pub(crate) fn name(&self) -> Option<Cow<'a, str>> {
        let name = match &self.text {
            RequestText::Received(message, _) => message.name(),
            RequestText::Sent { params, .. } => {
                reader::find((*params)?, "name").and_then(reader::as_str)
            }
        };
        name.map(cut)
    }

    /// The URI of the resource that the params name, without the user and the password in it.
    pub fn uri(&self) -> Option<Cow<'a, str>> {
        let uri = match &self.text {
            RequestText::Received(message, _) => message.uri(),
            RequestText::Sent { params, .. } => {
                reader::find((*params)?, "uri").and_then(reader::as_str)
            }
        };
        // The end of the user may be behind the cut.
        uri.map(|uri| cut(without_user(uri)))
    }

    /// The request's id: a number in digits, or the text of a string. Empty for an action without an id.
    pub fn id(&self) -> Cow<'a, str> {
        match &self.text {
            RequestText::Received(message, _) => {
                let raw = message.echo().map_or("", |id| id.raw());
                match raw.starts_with('"') {
                    true => cut(reader::as_str(raw).unwrap_or_default()),
                    false => cut(raw.into()),
                }
            }
            RequestText::Sent { id, .. } => id.to_string().into(),
        }
    }

    /// The trace context in the request's `_meta`, if its `traceparent` is valid (R-MET-09).
    pub fn trace_context(&self) -> Option<TraceContext> {
        let said = |key: &str, field| {
            let value = match &self.text {
                RequestText::Received(message, _) => message.decoded(field)?.into_owned(),
                RequestText::Sent { params, meta, .. } => {
                    let own = meta.and_then(|meta| reader::find(meta, key));
                    let theirs = || reader::find_path((*params)?, &["_meta", key]);
                    reader::as_str(own.or_else(theirs)?)?.into_owned()
                }
            };
            trace_context::is_valid(key, &value).then_some(value)
        };
        Some(TraceContext {
            parent: said("traceparent", Field::Traceparent)?,
            state: said("tracestate", Field::Tracestate),
            baggage: said("baggage", Field::Baggage),
        })
    }

    /// The revision in which the request is served, or was sent.
    pub fn revision(&self) -> Revision {
        self.revision
    }

    /// When the request was read; `None` for one that this side sends, which begins now.
    pub fn arrived(&self) -> Option<Instant> {
        self.arrived
    }

    /// How the request travels, if the driver has told.
    pub fn channel(&self) -> Option<&'a Arc<Channel>> {
        self.channel
    }
}

/// The first bytes of a text, up to [`MAX_TEXT_BYTES`].
fn cut(text: Cow<'_, str>) -> Cow<'_, str> {
    if text.len() <= MAX_TEXT_BYTES {
        return text;
    }
    let end = text.floor_char_boundary(MAX_TEXT_BYTES);
    match text {
        Cow::Borrowed(text) => text.get(..end).unwrap_or_default().into(),
        // A long text is not kept for its beginning.
        Cow::Owned(text) => text.get(..end).unwrap_or_default().to_owned().into(),
    }
}

/// A URI without what stands between `//` and the last `@` of its authority.
fn without_user(uri: Cow<'_, str>) -> Cow<'_, str> {
    let Some((scheme, rest)) = uri.split_once("//") else {
        return uri;
    };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    match authority.rsplit_once('@') {
        None => uri,
        Some((_, host)) => format!("{scheme}//{host}{path}").into(),
    }
}

/// A session that begins.
#[derive(Debug)]
pub struct ObservedSession<'a> {
    pub(super) side: Side,
    pub(super) revision: Revision,
    pub(super) channel: Option<&'a Arc<Channel>>,
}

impl<'a> ObservedSession<'a> {
    /// This side of the connection.
    pub fn side(&self) -> Side {
        self.side
    }

    /// The revision of the session.
    pub fn revision(&self) -> Revision {
        self.revision
    }

    /// How the messages of the session travel, if the driver has told.
    pub fn channel(&self) -> Option<&'a Arc<Channel>> {
        self.channel
    }
}

/// The end of a request.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct RequestEnd {
    /// When the request was read, as in [`ObservedRequest::arrived`]; for one of this side, when the driver took it.
    pub begun: Option<Instant>,
    /// How the request ended.
    pub outcome: RequestOutcome,
    /// Length of the request's message, without its framing; of one that this side sent, 0 if it was not sent.
    pub request_bytes: usize,
    /// Length of the answer's message, without its framing; 0 without an answer.
    pub answer_bytes: usize,
}

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestOutcome {
    /// Answered with a result.
    Done,
    /// Answered with a result in which a tool reports a failure (`isError`); in the action dialect, an error of the tool.
    ToolFailed,
    /// Answered with an error: its code, and its kind if this side chose the error by kind.
    Failed(i64, Option<ErrorKind>),
    /// Cancelled by the side that sent it, or its stream ended.
    Cancelled,
    /// A request of this side that was not answered in time.
    TimedOut,
    /// The answer violates the protocol.
    BadAnswer,
    /// The transport refused a request of this side, or answered it with something else, with this status (of HTTP).
    Refused(u16),
    /// A request of this side that was not sent because this side's limits were reached.
    Overloaded,
    /// The connection ended, or the transport failed for this request. Also when a request of this side could not be sent.
    Lost,
}

impl RequestOutcome {
    /// Whether the answer to a request of that dialect is an error.
    pub(super) fn is_error(self, dialect: Dialect) -> bool {
        match self {
            Self::Failed(..) => true,
            Self::ToolFailed => dialect != Dialect::Rpc,
            _ => false,
        }
    }

    /// The outcome of a request of this side that fails without an answer.
    pub(super) fn of_failure(error: &RequestError) -> Self {
        match error {
            RequestError::Peer(error) => Self::Failed(error.code, None),
            RequestError::Cancelled(_) => Self::Cancelled,
            RequestError::TimedOut => Self::TimedOut,
            RequestError::BadAnswer(_) | RequestError::BadResult(_) => Self::BadAnswer,
            RequestError::Overloaded => Self::Overloaded,
            RequestError::Carrier(error) => match (error.fault, error.status) {
                (CarrierFault::TimedOut, _) => Self::TimedOut,
                (_, Some(status)) => Self::Refused(status),
                (_, None) => Self::Lost,
            },
            _ => Self::Lost,
        }
    }

    /// The outcome of a request of this side that was answered.
    pub(super) fn of_answer(message: &MessageRef<'_>) -> Self {
        match message.kind() {
            Kind::Error => Self::Failed(super::peer_error::peer_error(message).code, None),
            _ => Self::of_result(message.result().unwrap_or_default().as_bytes()),
        }
    }

    /// The outcome of a request that was answered with this result, a JSON object.
    pub(super) fn of_result(object: &[u8]) -> Self {
        // Most results are told apart by the bytes alone.
        static NAME: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("isError"));
        let may_have = NAME.find(object).is_some();
        let is_failure = may_have
            && str::from_utf8(object).is_ok_and(|it| reader::find(it, "isError") == Some("true"));
        match is_failure {
            true => Self::ToolFailed,
            false => Self::Done,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::CarrierError;

    #[test]
    fn a_failure_of_the_transport_is_told_by_its_kind() {
        use RequestOutcome::{Lost, Overloaded, Refused, TimedOut};
        let carrier = |fault, status| {
            RequestError::from(CarrierError {
                status,
                ..CarrierError::new(fault, "")
            })
        };
        for (error, outcome) in [
            (carrier(CarrierFault::TimedOut, None), TimedOut),
            (carrier(CarrierFault::Refused, Some(503)), Refused(503)),
            (carrier(CarrierFault::Unreachable, None), Lost),
            (RequestError::Overloaded, Overloaded),
        ] {
            assert_eq!(RequestOutcome::of_failure(&error), outcome, "{error:?}");
        }
    }

    #[test]
    fn long_texts_are_cut_at_the_end_of_a_character() {
        let long = format!("xx{}", "\u{20ac}".repeat(100));
        for text in [Cow::Borrowed(&*long), Cow::Owned(long.clone())] {
            assert_eq!(cut(text), long[..254]);
        }
        assert_eq!(cut("x".repeat(256).into()).len(), 256);
    }

    #[test]
    fn a_uri_is_seen_without_its_user_and_password() {
        for (uri, seen) in [
            ("postgres://app:secret@db/t", "postgres://db/t"),
            ("postgres://app:s@ecret@db?x=a@b", "postgres://db?x=a@b"),
            ("//app@db", "//db"),
            ("https://db/a@b//c@d", "https://db/a@b//c@d"),
            ("https://db#a@b", "https://db#a@b"),
            ("mailto:a@b", "mailto:a@b"),
        ] {
            assert_eq!(without_user(uri.into()), seen);
        }
    }

    #[test]
    fn a_result_is_a_failure_of_a_tool_by_its_own_member_alone() {
        use RequestOutcome::{Done, ToolFailed};
        for (object, outcome) in [
            ("{}", Done),
            (r#"{"isError":false,"content":[]}"#, Done),
            (r#"{"content":[],"isError":true}"#, ToolFailed),
            (r#"{"structuredContent":{"isError":true}}"#, Done),
            (
                r#"{"content":[{"type":"text","text":"\"isError\":true"}]}"#,
                Done,
            ),
        ] {
            let found = RequestOutcome::of_result(object.as_bytes());
            assert_eq!(found, outcome, "{object}");
        }
    }
}
