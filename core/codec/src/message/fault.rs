//! Reasons why valid JSON is not a valid message.

use std::fmt;

/// The shape error of a message of either dialect; of several, the most specific.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Fault {
    /// Neither an object nor an array.
    NotAnObject,
    /// A member that the engine routes by occurs twice in its object (R-RPC-24).
    DuplicateMember,
    /// A member that the engine routes by is spelled with escapes.
    EscapedMember,
    /// No `jsonrpc`.
    VersionMissing,
    /// `jsonrpc` is not the string `2.0`.
    VersionWrong,
    /// `id` is neither a string nor an integer (null, a fraction, an exponent, …).
    IdType,
    /// `id` is longer than [`MAX_ID_BYTES`](crate::limits::MAX_ID_BYTES).
    IdTooLong,
    /// `method` is not a string.
    MethodType,
    /// `params` is not an object (R-RPC-12, R-ACT-02).
    ParamsType,
    /// Both `method` and `result` or `error`; or both `action` and `status`.
    RequestAndResponse,
    /// Both `result` and `error`.
    ResultAndError,
    /// An `id`, but neither `method`, `result` nor `error`.
    NoContent,
    /// `result` is not an object (R-RPC-10).
    ResultType,
    /// A `result` without an `id`.
    ResultWithoutId,
    /// `error` is not an object with an integer `code` and a string `message` (R-RPC-09).
    ErrorShape,
    /// None of the members that make a message.
    UnknownShape,
    /// An action: neither `action`, `status` nor `type`.
    ActionMissing,
    /// An action: `action` is not a string.
    ActionType,
    /// An action: `tool` is not a string.
    ToolType,
    /// An action: `context` is not a string.
    ContextType,
    /// An action: `metadata` is not an object.
    MetadataType,
    /// An action: `status` is neither `success` nor `error`.
    StatusWrong,
    /// An action: `type` is neither `partial`, `complete` nor `error`.
    TypeWrong,
    /// An action: an error without an `error` object that has a `type`, or a success with one
    /// (R-ACT-05).
    ActionErrorShape,
}

impl Fault {
    /// The JSON-RPC error code to answer with: `-32602` for params, else `-32600`.
    pub fn code(self) -> i32 {
        match self {
            Self::ParamsType => -32602,
            _ => -32600,
        }
    }

    /// The error message to answer with.
    pub fn message(self) -> &'static str {
        match self {
            Self::NotAnObject => "a message must be a JSON object",
            Self::DuplicateMember => "a member occurs twice",
            Self::EscapedMember => "a protocol member is spelled with escapes",
            Self::VersionMissing => "jsonrpc is missing",
            Self::VersionWrong => "jsonrpc must be \"2.0\"",
            Self::IdType => "id must be a string or an integer",
            Self::IdTooLong => "id is too long",
            Self::MethodType => "method must be a string",
            Self::ParamsType => "params must be an object",
            Self::RequestAndResponse => "a message cannot be a request and a response",
            Self::ResultAndError => "a response cannot have both result and error",
            Self::NoContent => "method, result and error are all missing",
            Self::ResultType => "result must be an object",
            Self::ResultWithoutId => "a result needs an id",
            Self::ErrorShape => "error must have an integer code and a string message",
            Self::UnknownShape => "not a JSON-RPC message",
            Self::ActionMissing => "no action is named",
            Self::ActionType => "action must be a string",
            Self::ToolType => "tool must be a string",
            Self::ContextType => "context must be a string",
            Self::MetadataType => "metadata must be an object",
            Self::StatusWrong => "status must be \"success\" or \"error\"",
            Self::TypeWrong => "type must be \"partial\", \"complete\" or \"error\"",
            Self::ActionErrorShape => "an error, and nothing else, has an error object with a type",
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.message())
    }
}

impl std::error::Error for Fault {}
