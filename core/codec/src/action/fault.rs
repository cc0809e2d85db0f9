//! Reasons why valid JSON is not a valid message.

use std::fmt;

use super::error_type::ErrorType;

/// The shape error of a message; of several, the most specific.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Fault {
    /// Not an object.
    NotAnObject,
    /// A member that the engine reads occurs twice in its object.
    DuplicateMember,
    /// A member that the engine reads is spelled with escapes.
    EscapedMember,
    /// Neither `action`, `status` nor `type`.
    ActionMissing,
    /// `action` is not a string.
    ActionType,
    /// Both `action` and `status`.
    RequestAndAnswer,
    /// `params` is not an object.
    ParamsType,
    /// `tool` is not a string.
    ToolType,
    /// `context` is not a string.
    ContextType,
    /// `metadata` is not an object.
    MetadataType,
    /// `status` is neither `success` nor `error`.
    StatusWrong,
    /// `type` is neither `partial`, `complete` nor `error`.
    TypeWrong,
    /// An error without an `error` object that has a `type`, or a success with one (R-ACT-05).
    ErrorShape,
}

impl Fault {
    /// The type of the error to answer with (R-ACT-06).
    pub fn error_type(self) -> ErrorType {
        match self {
            Self::ActionMissing | Self::ActionType => ErrorType::MissingAction,
            _ => ErrorType::Validation,
        }
    }

    /// The error message to answer with.
    pub fn message(self) -> &'static str {
        match self {
            Self::NotAnObject => "a message must be a JSON object",
            Self::DuplicateMember => "a member occurs twice",
            Self::EscapedMember => "a protocol member is spelled with escapes",
            Self::ActionMissing => "no action is named",
            Self::ActionType => "action must be a string",
            Self::RequestAndAnswer => "a message cannot be a request and an answer",
            Self::ParamsType => "params must be an object",
            Self::ToolType => "tool must be a string",
            Self::ContextType => "context must be a string",
            Self::MetadataType => "metadata must be an object",
            Self::StatusWrong => "status must be \"success\" or \"error\"",
            Self::TypeWrong => "type must be \"partial\", \"complete\" or \"error\"",
            Self::ErrorShape => "an error, and nothing else, has an error object with a type",
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.message())
    }
}

impl std::error::Error for Fault {}
