//! Values of attributes, as the OpenTelemetry conventions for MCP have them.

use std::borrow::Cow;

use crate::connection::RequestOutcome;
use crate::error::ConnectionError;
use crate::mcp::{ErrorKind, code};

/// Stands for every name beyond those that are told apart.
pub(super) const OTHER: &str = "_OTHER";

/// Errors that are the fault of a request, and so no errors of the server that answers with them.
const FAULTS_OF_REQUESTS: [i64; 5] = [
    code::PARSE_ERROR,
    code::INVALID_REQUEST,
    code::METHOD_NOT_FOUND,
    code::INVALID_PARAMS,
    // A resource that does not exist.
    -32002,
];

/// How a request ended, in attributes.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Ended {
    /// `error.type`: the code of an error as text, `tool_error` for a result in which a tool reports a failure, a word for what
    /// ended without an answer. `None` if the request succeeded, and on a server if it was answered with an error that is the
    /// fault of the request.
    pub error: Option<Cow<'static, str>>,
    /// `rpc.response.status_code`: the code of an error.
    pub code: Option<i64>,
}

impl Ended {
    /// The end of a request that arrived, or that this side sent.
    pub fn of(outcome: RequestOutcome, is_sent: bool) -> Self {
        let error = match outcome {
            RequestOutcome::Done => None,
            RequestOutcome::Failed(code, _) if !is_sent && FAULTS_OF_REQUESTS.contains(&code) => {
                None
            }
            RequestOutcome::Failed(code, _) => Some(code.to_string().into()),
            RequestOutcome::ToolFailed => Some("tool_error".into()),
            RequestOutcome::Cancelled => Some("cancelled".into()),
            RequestOutcome::TimedOut => Some("timeout".into()),
            RequestOutcome::BadAnswer => Some("invalid_answer".into()),
            RequestOutcome::Lost => Some("connection_lost".into()),
        };
        let code = match outcome {
            RequestOutcome::Failed(code, _) => Some(code),
            _ => None,
        };
        Self { error, code }
    }
}

/// `error.type` of a session; `None` if it ended in good order.
pub(super) fn session_error(reason: &ConnectionError) -> Option<&'static str> {
    match reason {
        ConnectionError::ClosedLocally
        | ConnectionError::ClosedByPeer
        | ConnectionError::ShuttingDown => None,
        _ => Some("connection_lost"),
    }
}

/// Why this side refused a request, if it was not for what the request says.
pub(super) fn refusal(outcome: RequestOutcome) -> Option<&'static str> {
    let RequestOutcome::Failed(_, Some(kind)) = outcome else {
        return None;
    };
    Some(match kind {
        ErrorKind::Overloaded => "overloaded",
        ErrorKind::ShuttingDown => "shutting_down",
        ErrorKind::RateLimited => "rate",
        ErrorKind::QuotaExceeded => "quota",
        ErrorKind::Unauthenticated => "unauthenticated",
        ErrorKind::ToolDenied | ErrorKind::ResourceDenied => "denied",
        ErrorKind::InsufficientScope => "scope",
        _ => return None,
    })
}
