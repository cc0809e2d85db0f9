//! Why valid JSON is not a valid message.

use std::fmt;

use super::error_type::ErrorType;

/// The first shape error of a message, most telling first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Fault {
    /// No object.
    NotAnObject,
    /// A member the engine reads occurs twice in its object.
    DuplicateMember,
    /// A member the engine reads is spelled with escapes.
    EscapedMember,
    /// Neither `action`, `status` nor `type`.
    ActionMissing,
    /// `action` is no string.
    ActionType,
    /// `action` beside `status`.
    RequestAndAnswer,
    /// `params` is no object.
    ParamsType,
    /// `tool` is no string.
    ToolType,
    /// `context` is no string.
    ContextType,
    /// `metadata` is no object.
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

    /// One sentence for the answer.
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
