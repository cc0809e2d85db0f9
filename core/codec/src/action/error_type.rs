//! The error types of the action dialect.

use std::fmt;

use crate::message::Fault;

/// The types of errors that the dialect defines (R-ACT-30, R-ACT-31).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorType {
    /// `params` are invalid, or the message is not a request.
    Validation,
    /// The action or the tool does not exist.
    ActionNotFound,
    /// A required parameter is missing.
    ParameterMissing,
    /// The client is not authenticated.
    AuthenticationFailed,
    /// The client is not authorized.
    AuthorizationFailed,
    /// The resource of the action does not exist.
    ResourceNotFound,
    /// Too many requests in too little time.
    RateLimitExceeded,
    /// The client has used up its quota.
    QuotaExceeded,
    /// A fault of the server.
    Internal,
    /// The action took too long.
    Timeout,
    /// A service that the server depends on does not work.
    Dependency,
    /// Not possible in the current state.
    InvalidState,
    /// The request conflicts with existing data.
    Conflict,
    /// The message does not name an action.
    MissingAction,
    /// The message is not JSON.
    InvalidJson,
    /// A stream ended early.
    Processing,
}

/// The spelling and the default code of each type (R-ACT-32).
const TABLE: [(ErrorType, &str, u16); 16] = [
    (ErrorType::Validation, "VALIDATION_ERROR", 400),
    (ErrorType::ActionNotFound, "ACTION_NOT_FOUND", 404),
    (ErrorType::ParameterMissing, "PARAMETER_MISSING", 400),
    (
        ErrorType::AuthenticationFailed,
        "AUTHENTICATION_FAILED",
        401,
    ),
    (ErrorType::AuthorizationFailed, "AUTHORIZATION_FAILED", 403),
    (ErrorType::ResourceNotFound, "RESOURCE_NOT_FOUND", 404),
    (ErrorType::RateLimitExceeded, "RATE_LIMIT_EXCEEDED", 429),
    (ErrorType::QuotaExceeded, "QUOTA_EXCEEDED", 429),
    (ErrorType::Internal, "INTERNAL_SERVER_ERROR", 500),
    (ErrorType::Timeout, "TIMEOUT_ERROR", 504),
    (ErrorType::Dependency, "DEPENDENCY_ERROR", 503),
    (ErrorType::InvalidState, "INVALID_STATE", 409),
    (ErrorType::Conflict, "CONFLICT", 409),
    (ErrorType::MissingAction, "MISSING_ACTION", 400),
    (ErrorType::InvalidJson, "INVALID_JSON", 400),
    (ErrorType::Processing, "PROCESSING_ERROR", 500),
];

/// Alternative spellings that are accepted but never written (R-ACT-31).
const SYNONYMS: [(&str, ErrorType); 3] = [
    ("INVALID_PARAMETER", ErrorType::Validation),
    ("INTERNAL_ERROR", ErrorType::Internal),
    ("PERMISSION_DENIED", ErrorType::AuthorizationFailed),
];

impl ErrorType {
    /// Every type.
    pub fn all() -> impl Iterator<Item = Self> {
        TABLE.iter().map(|(one, ..)| *one)
    }

    /// The type with that spelling; `None` if the dialect does not define it.
    pub fn parse(spelling: &str) -> Option<Self> {
        let named = TABLE.iter().find(|(_, name, _)| *name == spelling);
        let synonym = || SYNONYMS.iter().find(|(name, _)| *name == spelling);
        named
            .map(|(one, ..)| *one)
            .or_else(|| synonym().map(|(_, one)| *one))
    }

    /// The spelling on the wire.
    pub fn name(self) -> &'static str {
        TABLE[self as usize].1
    }

    /// The default `code`, an HTTP status.
    pub fn code(self) -> u16 {
        TABLE[self as usize].2
    }

    /// Whether a retry may succeed (R-ACT-35).
    pub fn is_transient(self) -> bool {
        matches!(
            self,
            Self::RateLimitExceeded | Self::Dependency | Self::Timeout
        )
    }
}

/// The type of the error that answers an invalid action (R-ACT-06).
impl From<Fault> for ErrorType {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::ActionMissing | Fault::ActionType => Self::MissingAction,
            _ => Self::Validation,
        }
    }
}

impl fmt::Display for ErrorType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// R-ACT-30, R-ACT-31, R-ACT-32
    #[test]
    fn every_type_is_read_as_it_is_written_and_synonyms_are_understood() {
        for (place, one) in ErrorType::all().enumerate() {
            assert_eq!(
                one as usize, place,
                "the table is in the order of the types"
            );
            assert_eq!(ErrorType::parse(one.name()), Some(one));
        }
        assert_eq!(
            ErrorType::parse("PERMISSION_DENIED"),
            Some(ErrorType::AuthorizationFailed)
        );
        assert_eq!(ErrorType::parse("MY_OWN"), None);
        // R-ACT-35: as the HTTP statuses 429, 503 and 504 say.
        for one in ErrorType::all().filter(|one| one.is_transient()) {
            assert!(matches!(one.code(), 429 | 503 | 504), "{one}");
        }
    }
}
