//! Values of attributes, as the OpenTelemetry conventions for MCP have them.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use crate::connection::RequestOutcome;
use crate::error::ConnectionError;
use crate::mcp::{ErrorKind, code};

/// Stands for every name beyond those that are told apart.
pub(super) const OTHER: &str = "_OTHER";

/// Kinds of errors that are told apart within one series.
pub(super) const MAX_ERRORS: usize = 8;

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
    /// `error.type`: the code of an error or the status of HTTP as text, `tool_error` for a result in which a tool reports a
    /// failure, a word for what ended without an answer. `None` if the request succeeded, and on a server if it was answered
    /// with an error that is the fault of the request.
    pub error: Option<Cow<'static, str>>,
    /// `rpc.response.status_code`: the code of an error as text.
    pub code: Option<Cow<'static, str>>,
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
            RequestOutcome::Refused(status) => Some(status.to_string().into()),
            RequestOutcome::Overloaded => Some("overloaded".into()),
            RequestOutcome::Lost => Some("connection_lost".into()),
        };
        let code = match outcome {
            RequestOutcome::Failed(code, _) => Some(code.to_string().into()),
            _ => None,
        };
        Self { error, code }
    }

    /// The same as it counts if it is not told apart.
    fn other(&self) -> Self {
        let other = |of: &Option<_>| of.as_ref().map(|_| OTHER.into());
        Self {
            error: other(&self.error),
            code: other(&self.code),
        }
    }
}

/// A value for each way in which requests of one series fail. Peers choose the codes of errors, so only the first
/// [`MAX_ERRORS`] ways are told apart.
#[derive(Debug, Default)]
pub(super) struct Failures<T>(Mutex<BTreeMap<Ended, T>>);

impl<T: Clone + Default> Failures<T> {
    /// The failure as it counts, and its value.
    pub fn of(&self, mut ended: Ended) -> (Ended, T) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= MAX_ERRORS && !all.contains_key(&ended) {
            ended = ended.other();
        }
        let value = all.entry(ended.clone()).or_default().clone();
        (ended, value)
    }

    /// All failures and their values.
    pub fn all(&self) -> Vec<(Ended, T)> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let each = all
            .iter()
            .map(|(ended, value)| (ended.clone(), value.clone()));
        each.collect()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_a_series_are_told_apart_while_there_are_few() {
        for is_sent in [false, true] {
            let failures = Failures::<()>::default();
            for code in 0..100 {
                failures.of(Ended::of(RequestOutcome::Failed(code, None), is_sent));
            }
            let all = failures.all();
            assert_eq!(all.len(), MAX_ERRORS + 1);
            let is_other = |it: &&(Ended, ())| it.0.error.as_deref() == Some(OTHER);
            assert_eq!(all.iter().filter(is_other).count(), 1);
        }
    }

    #[test]
    fn a_fault_of_a_request_that_is_not_told_apart_is_no_success() {
        let failures = Failures::<()>::default();
        for code in 0..MAX_ERRORS as i64 {
            failures.of(Ended::of(RequestOutcome::Failed(code, None), false));
        }
        let fault = RequestOutcome::Failed(code::INVALID_PARAMS, None);
        let (ended, ()) = failures.of(Ended::of(fault, false));
        assert_eq!((ended.error, ended.code), (None, Some(OTHER.into())));
    }
}
