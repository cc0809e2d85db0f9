//! What one pass over a frame finds: a kind and where things lie.

use super::fault::Fault;
use crate::message::{self, Dialect, Envelope, Span};

/// Where `tool` stands in a request that is seen as a call.
pub(crate) const TOOL: message::Field = message::Field::Uri;
/// Where `context` does.
pub(crate) const CONTEXT: message::Field = message::Field::Cursor;
/// Where `metadata.min_protocol_version` does.
pub(crate) const OLDEST_VERSION: message::Field = message::Field::SubscriptionId;

/// What a message is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Kind {
    /// It names an action.
    Request,
    /// `"status":"success"`, alone or as the end of a stream.
    Success,
    /// `"status":"error"`, or the end of a stream that failed.
    Error,
    /// A part of a stream: `"type":"partial"`.
    Partial,
    /// JSON, but none of the above: [`Record::fault`] says why.
    #[default]
    Invalid,
}

/// The members whose place is noted while a frame is validated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Field {
    /// `action`
    Action,
    /// `params`
    Params,
    /// `tool`
    Tool,
    /// `context`
    Context,
    /// `metadata`
    Metadata,
    /// `status`
    Status,
    /// `data`
    Data,
    /// `error`
    Error,
    /// `type`, of what is a part of a stream.
    Type,
    /// `jsonrpc`, which no action has: what has it may be a message of the other language.
    JsonRpc,
    /// `metadata.request_id`
    RequestId,
    /// `metadata.client_id`
    ClientId,
    /// `metadata.server_id`, of an answer.
    ServerId,
    /// `metadata.execution_time_ms`, of an answer.
    ExecutionTime,
    /// `metadata.protocol_version`
    ProtocolVersion,
    /// `metadata.version`: stands in for `protocol_version` (R-ACT-39).
    Version,
    /// `metadata.min_protocol_version`: the oldest that the client takes (R-ACT-38).
    OldestVersion,
    /// `metadata.auth`
    Auth,
    /// `metadata.stream`: whether the answer may come in parts.
    Stream,
    /// `error.type`
    ErrorType,
    /// `error.message`
    ErrorMessage,
    /// `error.details`
    ErrorDetails,
    /// `error.code`
    ErrorCode,
}

impl Field {
    /// How many there are.
    pub const COUNT: usize = Self::ErrorCode as usize + 1;
}

/// The record of one decoded frame: plain data, `Copy`, free of lifetimes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Record {
    spans: [Span; Field::COUNT],
    pub(super) kind: Kind,
    pub(super) fault: Option<Fault>,
}

impl Record {
    /// A record to decode into.
    pub fn new() -> Self {
        Self::default()
    }

    /// What the message is.
    #[inline]
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The request as a call of a tool, which is what it becomes in a server: the action is the
    /// name, `params` are the arguments. What a call has no member for stands where a call says
    /// nothing: `tool` at [`TOOL`], `context` at [`CONTEXT`].
    #[inline]
    pub(crate) fn as_call(&self, dialect: Dialect) -> Envelope {
        let version = match self.span(Field::ProtocolVersion) {
            Span::ABSENT => self.span(Field::Version),
            version => version,
        };
        Envelope::of_request(
            dialect,
            &[
                (message::Field::Id, self.span(Field::RequestId)),
                (message::Field::Name, self.span(Field::Action)),
                (message::Field::Arguments, self.span(Field::Params)),
                (message::Field::Meta, self.span(Field::Metadata)),
                (message::Field::ProtocolVersion, version),
                (TOOL, self.span(Field::Tool)),
                (CONTEXT, self.span(Field::Context)),
                (OLDEST_VERSION, self.span(Field::OldestVersion)),
            ],
        )
    }

    /// Why the message is [`Kind::Invalid`].
    #[inline]
    pub fn fault(&self) -> Option<Fault> {
        self.fault
    }

    /// Where a member lies in the frame.
    #[inline]
    pub fn span(&self, field: Field) -> Span {
        self.spans[field as usize]
    }

    #[inline]
    pub(super) fn set(&mut self, field: Field, span: Span) {
        self.spans[field as usize] = span;
    }
}
