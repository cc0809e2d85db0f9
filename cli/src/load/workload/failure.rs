//! Why a request did not get the answer that it should have.

use std::borrow::Cow;

use mcpbolt::error::RequestError;

/// A failed request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    pub why: Cow<'static, str>,
    /// Whether there was an answer, but a wrong one.
    pub is_answered: bool,
}

impl Failure {
    /// The answer is wrong.
    pub fn wrong(why: impl Into<Cow<'static, str>>) -> Self {
        Self {
            why: why.into(),
            is_answered: true,
        }
    }

    /// There is no answer.
    pub fn unanswered(why: impl Into<Cow<'static, str>>) -> Self {
        Self {
            is_answered: false,
            ..Self::wrong(why)
        }
    }
}

impl From<RequestError> for Failure {
    fn from(error: RequestError) -> Self {
        let is_answered = matches!(
            error,
            RequestError::Peer(_) | RequestError::BadAnswer(_) | RequestError::BadResult(_)
        );
        Self {
            is_answered,
            why: error.to_string().into(),
        }
    }
}
