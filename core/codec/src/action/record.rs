//! The record that decoding makes of a frame: its kind, and where its members lie.

use super::fault::Fault;
use crate::message::{self, Dialect, Envelope, Span};

/// The envelope field that holds `tool` in a request viewed as a call.
pub const TOOL: message::Field = message::Field::Uri;
/// The envelope field that holds `context`.
pub const CONTEXT: message::Field = message::Field::Cursor;
/// The envelope field that holds `metadata.min_protocol_version`.
pub const OLDEST_VERSION: message::Field = message::Field::SubscriptionId;

/// The kind of a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A request that names an action.
    Request,
    /// An answer with `"status":"success"`, alone or as the end of a stream.
    Success,
    /// An answer with `"status":"error"`, or the end of a stream that failed.
    Error,
    /// A part of a stream: `"type":"partial"`.
    Partial,
    /// JSON, but none of the other kinds: [`Record::fault`] says why.
    #[default]
    Invalid,
}

/// The members whose place is recorded while a frame is validated.
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
    /// `type`, of a part of a stream.
    Type,
    /// `jsonrpc`, which no action has: a frame with this member may be a JSON-RPC message.
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
    /// `metadata.min_protocol_version`: the oldest version that the client accepts (R-ACT-38).
    OldestVersion,
    /// `metadata.auth`
    Auth,
    /// `metadata.stream`: whether the answer may be streamed.
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
    /// The number of fields.
    pub const COUNT: usize = Self::ErrorCode as usize + 1;
}

/// The record of one decoded frame: plain data without lifetimes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Record {
    spans: [Span; Field::COUNT],
    pub(super) kind: Kind,
    pub(super) fault: Option<Fault>,
}

impl Record {
    /// An empty record to decode into.
    pub fn new() -> Self {
        Self::default()
    }

    /// The kind of message.
    #[inline]
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The request as a tool call, which a server treats it as: the action is the tool's name,
    /// `params` are the arguments. Members without a counterpart take fields that a tool call does
    /// not use: `tool` at [`TOOL`], `context` at [`CONTEXT`], the oldest version at
    /// [`OLDEST_VERSION`].
    #[inline]
    pub fn as_call(&self, dialect: Dialect) -> Envelope {
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

    /// The range of a member in the frame.
    #[inline]
    pub fn span(&self, field: Field) -> Span {
        self.spans[field as usize]
    }

    #[inline]
    pub(super) fn set(&mut self, field: Field, span: Span) {
        self.spans[field as usize] = span;
    }
}
