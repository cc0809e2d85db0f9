//! What a client can be asked, as its capabilities say.

use crate::json::reader;
use crate::mcp::Method;

/// Whether such a client may be sent such a request; requests of extensions are its own affair.
pub(super) fn declares(capabilities: &str, method: Option<Method>) -> bool {
    let has = |name| reader::find(capabilities, name).is_some();
    match method {
        Some(Method::CreateMessage) => has("sampling"),
        Some(Method::Elicit) => has("elicitation"),
        Some(Method::ListRoots) => has("roots"),
        _ => true,
    }
}

/// Whether such a client can answer such a question in a result.
pub(super) fn answers(capabilities: &str, method: Option<Method>) -> bool {
    let is_question = matches!(
        method,
        Some(Method::CreateMessage | Method::Elicit | Method::ListRoots)
    );
    is_question && declares(capabilities, method)
}

/// Whether such a client can be asked anything.
pub(super) fn may_be_asked(capabilities: &str) -> bool {
    let questions = [Method::CreateMessage, Method::Elicit, Method::ListRoots];
    questions
        .into_iter()
        .any(|question| declares(capabilities, Some(question)))
}
