//! What one pass over a frame finds: a kind and where things lie.

#[cfg(feature = "server")]
use std::ops::Range;

use super::fault::Fault;

/// A part of a frame: from `start` up to `end`, in bytes.
///
/// The empty span at 0 stands for "absent"; no member of a message begins there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Span {
    start: u32,
    end: u32,
}

impl Span {
    /// Not there.
    pub const ABSENT: Self = Self { start: 0, end: 0 };

    /// From `start` up to `end`; both fit, because longer frames are refused.
    #[inline]
    pub(crate) fn new(start: usize, end: usize) -> Self {
        Self {
            start: start as u32,
            end: end as u32,
        }
    }

    /// Whether it is there.
    #[inline]
    pub fn is_some(self) -> bool {
        self.end != 0
    }

    /// Whether it is absent.
    #[inline]
    pub fn is_none(self) -> bool {
        self.end == 0
    }

    /// Offset of its first byte.
    #[inline]
    pub fn start(self) -> usize {
        self.start as usize
    }

    /// Offset behind its last byte.
    #[inline]
    pub fn end(self) -> usize {
        self.end as usize
    }

    /// Its bytes within the frame it was found in; `None` when absent.
    #[inline]
    pub fn get(self, frame: &[u8]) -> Option<&[u8]> {
        if self.is_none() {
            return None;
        }
        frame.get(self.start()..self.end())
    }
}

/// What a message is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A method with an id.
    Request,
    /// A method without one.
    Notification,
    /// An id with a result.
    Response,
    /// An error, with an id, with a null one or with none.
    Error,
    /// A top-level array: see [`batch`](super::batch).
    Batch,
    /// JSON, but none of the above: [`Envelope::fault`] says why.
    #[default]
    Invalid,
}

/// The language that a message is answered in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// JSON-RPC.
    #[default]
    Rpc,
    /// The [action dialect](crate::action).
    Action,
    /// The same, in parts as they come (R-ACT-24).
    ActionStream,
    /// The same, one operation of a batch, which is answered with the others (R-ACT-16).
    ActionPart,
}

/// The members whose place is noted while a frame is validated.
///
/// Those of `params`, of its `_meta`, of `result` and of `error` are noted whatever the method is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Field {
    /// `jsonrpc`
    Version,
    /// `id`: a string or an integer; otherwise absent.
    Id,
    /// `method`
    Method,
    /// `params`
    Params,
    /// `result`
    Result,
    /// `error`
    Error,
    /// `params.name`
    Name,
    /// `params.uri`
    Uri,
    /// `params.arguments`
    Arguments,
    /// `params.cursor`
    Cursor,
    /// `params.requestId`
    RequestId,
    /// `params.progressToken` (of a progress notification)
    Progress,
    /// `params._meta`
    Meta,
    /// `params._meta.progressToken` (of a request)
    ProgressToken,
    /// `params._meta["io.modelcontextprotocol/protocolVersion"]`
    ProtocolVersion,
    /// `params._meta["io.modelcontextprotocol/clientCapabilities"]`
    ClientCapabilities,
    /// `params._meta["io.modelcontextprotocol/clientInfo"]`
    ClientInfo,
    /// `params._meta["io.modelcontextprotocol/logLevel"]`
    LogLevel,
    /// `params._meta["io.modelcontextprotocol/subscriptionId"]`
    SubscriptionId,
    /// `params._meta.traceparent`
    Traceparent,
    /// `params._meta.tracestate`
    Tracestate,
    /// `params._meta.baggage`
    Baggage,
    /// `result.resultType`
    ResultType,
    /// `error.code`
    ErrorCode,
    /// `error.message`
    ErrorMessage,
    /// `error.data`
    ErrorData,
}

impl Field {
    /// How many there are.
    pub const COUNT: usize = Self::ErrorData as usize + 1;
}

/// The record of one decoded frame: plain data, `Copy`, free of lifetimes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Envelope {
    pub(super) spans: [Span; Field::COUNT],
    pub(super) kind: Kind,
    pub(super) fault: Option<Fault>,
    pub(super) id_member: bool,
    /// A `result` or `error` was begun, in whatever spelling.
    pub(super) answer: bool,
    /// How it is to be answered.
    pub(super) dialect: Dialect,
}

impl Envelope {
    /// A record to decode into.
    pub fn new() -> Self {
        Self::default()
    }

    /// The record of a request of another dialect, whose members stand where those of JSON-RPC do.
    #[inline]
    pub(crate) fn of_request(dialect: Dialect, members: &[(Field, Span)]) -> Self {
        let mut envelope = Self {
            kind: Kind::Request,
            dialect,
            ..Self::default()
        };
        for (field, span) in members {
            envelope.set(*field, *span);
        }
        envelope
    }

    /// The language that the message is to be answered in.
    #[inline]
    pub fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// What the message is.
    #[inline]
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Where a member lies in the frame.
    #[inline]
    pub fn span(&self, field: Field) -> Span {
        self.spans[field as usize]
    }

    /// Why the message is [`Kind::Invalid`].
    #[inline]
    pub fn fault(&self) -> Option<Fault> {
        self.fault
    }

    /// Whether there was an `id` member at all, even a null or malformed one.
    #[inline]
    pub fn has_id_member(&self) -> bool {
        self.id_member
    }

    /// Whether a message, or a frame that broke off before it was one, deserves an error answer
    /// from a server: not if it looks like a notification (R-RPC-11) or like a response.
    pub fn invites_answer(&self) -> bool {
        let has = |field| self.span(field).is_some();
        match self.kind {
            Kind::Request | Kind::Batch => true,
            Kind::Notification | Kind::Response | Kind::Error => false,
            Kind::Invalid if has(Field::Method) => self.id_member,
            Kind::Invalid => !self.answer,
        }
    }

    /// The same when what stood at `place` has become longer or shorter; `new` says where what was
    /// behind it is now.
    #[cfg(feature = "server")]
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
    pub(super) fn set(&mut self, field: Field, span: Span) {
        self.spans[field as usize] = span;
    }
}
