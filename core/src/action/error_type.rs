//! The types of errors, as one table.

use std::fmt;

/// The type of an error, of those that the dialect names (R-ACT-30, R-ACT-31).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorType {
    /// `params` do not fit, or the message is no request.
    Validation,
    /// There is no such action, or no such tool.
    ActionNotFound,
    /// A required parameter is absent.
    ParameterMissing,
    /// Who asks is not known.
    AuthenticationFailed,
    /// Who asks may not.
    AuthorizationFailed,
    /// What the action is about is not there.
    ResourceNotFound,
    /// Too many requests in too little time.
    RateLimitExceeded,
    /// More than the client is entitled to.
    QuotaExceeded,
    /// A fault of the server's.
    Internal,
    /// The action took too long.
    Timeout,
    /// What the server depends on does not work.
    Dependency,
    /// Not possible now.
    InvalidState,
    /// It contradicts what is there.
    Conflict,
    /// The message names no action.
    MissingAction,
    /// The message is no JSON.
    InvalidJson,
    /// A stream ended early.
    Processing,
}

/// How each is spelled, and its number by default (R-ACT-32).
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

/// Other spellings, which are understood and never written (R-ACT-31).
const SYNONYMS: [(&str, ErrorType); 3] = [
    ("INVALID_PARAMETER", ErrorType::Validation),
    ("INTERNAL_ERROR", ErrorType::Internal),
    ("PERMISSION_DENIED", ErrorType::AuthorizationFailed),
];

impl ErrorType {
    /// All of them.
    pub fn all() -> impl Iterator<Item = Self> {
        TABLE.iter().map(|(one, ..)| *one)
    }

    /// The type that a spelling means; `None` when the dialect does not name it.
    pub fn parse(spelling: &str) -> Option<Self> {
        let named = TABLE.iter().find(|(_, name, _)| *name == spelling);
        let synonym = || SYNONYMS.iter().find(|(name, _)| *name == spelling);
        named
            .map(|(one, ..)| *one)
            .or_else(|| synonym().map(|(_, one)| *one))
    }

    /// Its spelling on the wire.
    pub fn name(self) -> &'static str {
        TABLE[self as usize].1
    }

    /// The `code` that goes with it, a status of HTTP.
    pub fn code(self) -> u16 {
        TABLE[self as usize].2
    }

    /// Whether to ask again may help (R-ACT-35).
    pub fn is_transient(self) -> bool {
        matches!(
            self,
            Self::RateLimitExceeded | Self::Dependency | Self::Timeout
        )
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
        // R-ACT-35: what the statuses 429, 503 and 504 say.
        for one in ErrorType::all().filter(|one| one.is_transient()) {
            assert!(matches!(one.code(), 429 | 503 | 504), "{one}");
        }
    }
}
