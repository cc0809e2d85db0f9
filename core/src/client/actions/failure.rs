//! Failures of action calls.

use std::fmt;
use std::time::Duration;

use crate::action::ErrorType;
use crate::error::{CarrierFault, RequestError};
use crate::json::{number, reader};

/// An error that a server answered with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActionCallError {
    /// The error type in the server's spelling (R-ACT-31).
    pub spelling: String,
    /// One sentence; empty if the server gives none.
    pub message: String,
    /// Details, raw JSON.
    pub details: Option<String>,
    /// A numeric code, most often an HTTP status.
    pub code: Option<i64>,
    /// A URL with more information.
    pub help_url: Option<String>,
    #[expect(clippy::box_collection, reason = "keeps the error small")]
    metadata: Option<Box<String>>,
}

impl ActionCallError {
    /// Parses the error of an answer, or of an operation in a batch: raw JSON.
    pub(super) fn read(error: &str) -> Self {
        let member = |name| reader::find(error, name);
        let text = |name| Some(reader::as_str(member(name)?)?.into_owned());
        Self {
            spelling: text("type").unwrap_or_default(),
            message: text("message").unwrap_or_default(),
            details: member("details").map(str::to_owned),
            code: member("code").and_then(number::as_i64),
            help_url: text("help_url"),
            metadata: None,
        }
    }

    /// The metadata of the answer: a JSON object.
    pub fn metadata(&self) -> &str {
        self.metadata.as_ref().map_or("{}", |metadata| metadata)
    }

    /// Adds the metadata of the answer.
    pub(crate) fn with_metadata(mut self, metadata: String) -> Self {
        self.metadata = Some(Box::new(metadata));
        self
    }

    /// The error type, if the dialect defines it; its spelling does not matter.
    pub fn kind(&self) -> Option<ErrorType> {
        ErrorType::parse(&self.spelling)
    }
}

/// Why an action has no result.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ActionFailure {
    /// The server answered with an error.
    Answered(ActionCallError),
    /// Nothing was sent: the params do not fit the schema, for this reason.
    Invalid(String),
    /// The data do not fit the schema that the server stated, for this reason.
    BadData(String),
    /// Nothing was sent: the circuit breaker is open after repeated failures.
    BreakerOpen,
    /// There is no answer.
    Request(RequestError),
    /// A program started for the call gave no answer; its stderr may tell why.
    Silent {
        /// The error of the request.
        error: RequestError,
        /// The end of its stderr output, at most
        /// [`MAX_CAPTURED_BYTES`](crate::limits::MAX_CAPTURED_BYTES).
        stderr: String,
    },
}

impl ActionFailure {
    /// Returns whether a retry may help: the network failed, the request timed out, or the server
    /// reports a temporary condition. Never for a fault of the request itself (R-ACT-35), nor for
    /// an action that the server had already begun.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Answered(error) => match error.kind() {
                Some(kind) => kind.is_transient(),
                None => matches!(error.code, Some(429 | 503 | 504)),
            },
            _ => match self.request() {
                Some(RequestError::TimedOut) => true,
                Some(RequestError::Carrier(error)) => !matches!(
                    error.fault,
                    CarrierFault::SessionLost | CarrierFault::TooLong
                ),
                _ => false,
            },
        }
    }

    /// Returns whether the connection was lost after the server had begun, so that the outcome is
    /// unknown.
    pub(super) fn is_lost_under_way(&self) -> bool {
        matches!(
            self.request(),
            Some(RequestError::Carrier(error)) if error.fault == CarrierFault::SessionLost
        )
    }

    /// The request error, if there is no answer.
    fn request(&self) -> Option<&RequestError> {
        match self {
            Self::Request(error) | Self::Silent { error, .. } => Some(error),
            _ => None,
        }
    }

    /// Returns whether a fallback action may succeed: not if the call itself is wrong, or was
    /// carried out.
    pub(super) fn is_of_server(&self) -> bool {
        match self {
            Self::Answered(error) => !matches!(
                error.kind(),
                Some(ErrorType::Validation | ErrorType::ParameterMissing)
            ),
            Self::Invalid(_) | Self::BadData(_) => false,
            Self::Request(error) | Self::Silent { error, .. } => {
                !matches!(error, RequestError::Misuse(_))
            }
            Self::BreakerOpen => true,
        }
    }

    /// How long the server asks to wait.
    pub fn retry_after(&self) -> Option<Duration> {
        let Self::Answered(error) = self else {
            return None;
        };
        let details = error.details.as_deref()?;
        let seconds = reader::find(details, "retry_after_seconds").and_then(number::as_f64)?;
        (seconds >= 0.0).then(|| Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX))
    }

    /// A message for end users, without protocol terms.
    pub fn for_people(&self) -> String {
        let kind = match self {
            Self::Answered(error) => error.kind(),
            Self::Invalid(_) => Some(ErrorType::Validation),
            Self::BreakerOpen => Some(ErrorType::Dependency),
            Self::BadData(_) => None,
            Self::Request(RequestError::TimedOut)
            | Self::Silent {
                error: RequestError::TimedOut,
                ..
            } => Some(ErrorType::Timeout),
            Self::Request(_) | Self::Silent { .. } => Some(ErrorType::Dependency),
        };
        let sentence = match kind {
            Some(ErrorType::Validation | ErrorType::ParameterMissing) => {
                "Something that was entered is missing or not in the right form."
            }
            Some(ErrorType::ActionNotFound) => "This is not available here.",
            Some(ErrorType::AuthenticationFailed) => "You need to sign in first.",
            Some(ErrorType::AuthorizationFailed) => "You are not allowed to do this.",
            Some(ErrorType::ResourceNotFound) => "It could not be found.",
            Some(ErrorType::RateLimitExceeded) => "Too many requests: please try again later.",
            Some(ErrorType::QuotaExceeded) => "Your quota is used up.",
            Some(ErrorType::Timeout) => "It took too long: please try again.",
            Some(ErrorType::Dependency) => "The service cannot be reached: please try again later.",
            Some(ErrorType::InvalidState | ErrorType::Conflict) => {
                "This is not possible at the moment."
            }
            _ => "Something went wrong.",
        };
        sentence.to_owned()
    }
}

impl fmt::Display for ActionFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Answered(error) => write!(f, "{}: {}", error.spelling, error.message),
            Self::Invalid(why) => write!(f, "nothing was sent: {why}"),
            Self::BadData(why) => write!(f, "the server's data do not fit its schema: {why}"),
            Self::BreakerOpen => f.write_str(
                "nothing was sent: the server has failed too often, and is left alone for a while",
            ),
            Self::Request(error) => error.fmt(f),
            Self::Silent { error, stderr } => {
                write!(f, "{error}; the program wrote: {}", stderr.trim_end())
            }
        }
    }
}

impl std::error::Error for ActionFailure {}

impl From<RequestError> for ActionFailure {
    fn from(error: RequestError) -> Self {
        Self::Request(error)
    }
}
