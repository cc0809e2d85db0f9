//! The record that decoding makes of a frame: its kind, and where its members lie.

use std::ops::Range;

use super::fault::Fault;

/// A byte range of a frame, from `start` up to but not including `end`.
///
/// The empty span at 0 stands for "absent"; no member of a message begins there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Span {
    start: u32,
    end: u32,
}

impl Span {
    /// No such member.
    pub const ABSENT: Self = Self { start: 0, end: 0 };

    /// The range from `start` up to `end`; both fit into 32 bits, because longer frames are
    /// refused.
    #[inline]
    pub fn new(start: usize, end: usize) -> Self {
        Self {
            start: start as u32,
            end: end as u32,
        }
    }

    /// Whether the member is present.
    #[inline]
    pub fn is_some(self) -> bool {
        self.end != 0
    }

    /// Whether the member is absent.
    #[inline]
    pub fn is_none(self) -> bool {
        self.end == 0
    }

    /// Offset of the first byte.
    #[inline]
    pub fn start(self) -> usize {
        self.start as usize
    }

    /// Offset after the last byte.
    #[inline]
    pub fn end(self) -> usize {
        self.end as usize
    }

    /// The bytes of the range; `frame` is the frame it was found in. `None` when absent.
    #[inline]
    pub fn get(self, frame: &[u8]) -> Option<&[u8]> {
        if self.is_none() {
            return None;
        }
        frame.get(self.start()..self.end())
    }
}

/// The kind of a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A method and an id; or an action, with or without an id.
    Request,
    /// A method without an id; or a part of an action's streamed answer.
    Notification,
    /// A result and an id; or the answer of an action that succeeded, or the end of its stream.
    Response,
    /// An error; the id may be null or missing.
    Error,
    /// A top-level array: see [`batch`](super::batch).
    Batch,
    /// JSON, but none of the other kinds: [`Envelope::fault`] says why.
    #[default]
    Invalid,
}

/// The protocol that a message is answered in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// JSON-RPC.
    #[default]
    Rpc,
    /// The [action dialect](crate::action).
    Action,
    /// The action dialect, with the answer streamed in parts (R-ACT-24).
    ActionStream,
    /// The action dialect, as one operation of a batch that is answered as a whole (R-ACT-16).
    ActionPart,
}

/// The members whose place is recorded while a frame is validated.
///
/// The members of `params`, its `_meta`, `result` and `error` are recorded for every method. An
/// action is recorded as a tool call; the members that it has in place of those of a call are listed
/// after a semicolon.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Field {
    /// `jsonrpc`
    Version,
    /// `id`, if it is a string or an integer; `metadata.request_id`, which may be any value.
    Id,
    /// `method`
    Method,
    /// `params`
    Params,
    /// `result`; `data`
    Result,
    /// `error`
    Error,
    /// `params.name`; `action`
    Name,
    /// `params.uri`; `tool`
    Uri,
    /// `params.arguments`; `params`
    Arguments,
    /// `params.cursor`; `context`
    Cursor,
    /// `params.requestId`; `metadata.client_id`
    RequestId,
    /// `params.progressToken` (of a progress notification)
    Progress,
    /// `params._meta`; `metadata`
    Meta,
    /// `params._meta.progressToken` (of a request)
    ProgressToken,
    /// `params._meta["io.modelcontextprotocol/protocolVersion"]`; `metadata.protocol_version`, or
    /// else `metadata.version` (R-ACT-39)
    ProtocolVersion,
    /// `params._meta["io.modelcontextprotocol/clientCapabilities"]`
    ClientCapabilities,
    /// `params._meta["io.modelcontextprotocol/clientInfo"]`
    ClientInfo,
    /// `params._meta["io.modelcontextprotocol/logLevel"]`
    LogLevel,
    /// `params._meta["io.modelcontextprotocol/subscriptionId"]`; `metadata.min_protocol_version`
    SubscriptionId,
    /// `params._meta.traceparent`
    Traceparent,
    /// `params._meta.tracestate`
    Tracestate,
    /// `params._meta.baggage`
    Baggage,
    /// `result.resultType`; `type`
    ResultType,
    /// `error.code`
    ErrorCode,
    /// `error.message`
    ErrorMessage,
    /// `error.data`; `error.details`
    ErrorData,
}

impl Field {
    /// The number of fields.
    pub const COUNT: usize = Self::ErrorData as usize + 1;
}

/// The record of one decoded frame: plain data without lifetimes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Envelope {
    pub(super) spans: [Span; Field::COUNT],
    pub(super) kind: Kind,
    pub(super) fault: Option<Fault>,
    pub(super) id_member: bool,
    /// The frame has a `result` or `error` member, spelled with escapes or not, complete or not.
    pub(super) answer: bool,
    /// The protocol to answer in.
    pub(super) dialect: Dialect,
}

impl Envelope {
    /// An empty record to decode into.
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty record of a message in that dialect.
    #[inline]
    pub fn of(dialect: Dialect) -> Self {
        Self {
            dialect,
            ..Self::default()
        }
    }

    /// Sets the protocol to answer in.
    #[inline]
    pub fn set_dialect(&mut self, dialect: Dialect) {
        self.dialect = dialect;
    }

    /// The protocol that the message must be answered in.
    #[inline]
    pub fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// The kind of message.
    #[inline]
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The range of a member in the frame.
    #[inline]
    pub fn span(&self, field: Field) -> Span {
        self.spans[field as usize]
    }

    /// Why the message is [`Kind::Invalid`].
    #[inline]
    pub fn fault(&self) -> Option<Fault> {
        self.fault
    }

    /// Whether the frame has an `id` member, even a null or malformed one.
    #[inline]
    pub fn has_id_member(&self) -> bool {
        self.id_member
    }

    /// Whether a server should answer the message with an error if it is invalid, or broke off.
    /// False if it looks like a notification (R-RPC-11) or like a response.
    pub fn invites_answer(&self) -> bool {
        let has = |field| self.span(field).is_some();
        match self.kind {
            Kind::Request | Kind::Batch => true,
            Kind::Notification | Kind::Response | Kind::Error => false,
            Kind::Invalid if has(Field::Method) => self.id_member,
            Kind::Invalid => !self.answer,
        }
    }

    /// The record after the bytes at `place` were replaced by longer or shorter ones; `new` maps an
    /// offset after `place` to its new value.
    pub(super) fn moved(&self, place: Range<usize>, new: impl Fn(usize) -> usize) -> Self {
        let moved = |span: Span| match (span.start(), span.end()) {
            _ if span.is_none() => span,
            (start, end) if start >= place.end => Span::new(new(start), new(end)),
            (start, end) if end >= place.end => Span::new(start, new(end)),
            _ => span,
        };
        Self {
            spans: self.spans.map(moved),
            ..*self
        }
    }

    #[inline]
    pub(crate) fn set(&mut self, field: Field, span: Span) {
        self.spans[field as usize] = span;
    }
}
