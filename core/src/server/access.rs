//! The access guard: the one place where a server checks permission before it serves.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use crate::connection::IncomingRequest;
use crate::handler::HandlerError;
use crate::json::reader;
use crate::mcp::Method;
use crate::panics::contain;

/// An access that a client requests, as the [guard](super::Builder::guard) sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Access<'a> {
    /// The method: [`Method::CallTool`], [`Method::ReadResource`], [`Method::GetPrompt`],
    /// [`Method::Complete`], [`Method::Subscribe`], [`Method::GetSkill`] or
    /// [`Method::ReadDirectory`].
    pub method: Method,
    /// The name of the tool or prompt, or the URI.
    pub name: &'a str,
    /// The caller, where the transport knows it: see
    /// [`Connection::set_principal`](crate::connection::Connection::set_principal).
    pub principal: Option<&'a str>,
    /// The arguments of a tool or prompt, raw JSON, for the guard to inspect.
    pub arguments: Option<&'a str>,
}

/// The program's guard function.
#[derive(Clone)]
pub(super) struct Guard(Arc<Verdict>);

type Verdict = dyn Fn(&Access<'_>) -> Result<(), HandlerError> + Send + Sync;

impl Guard {
    pub fn new(
        verdict: impl Fn(&Access<'_>) -> Result<(), HandlerError> + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(verdict))
    }

    /// # Errors
    /// The guard's reason to refuse. If the guard panics, the access is refused.
    pub fn check(&self, access: &Access<'_>) -> Result<(), HandlerError> {
        let verdict = contain("a guard", || (self.0)(access));
        verdict.unwrap_or_else(|| Err(HandlerError::new("the guard failed unexpectedly")))
    }
}

impl fmt::Debug for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Guard(..)")
    }
}

/// The method and the tool, prompt or URI that a request accesses. `None` for requests that need no
/// permission, and for requests without a name, which are refused later.
pub(super) fn subject<'a>(request: &IncomingRequest<'a>) -> Option<(Method, Cow<'a, str>)> {
    let message = request.message;
    let of_target = |member| {
        let params = message.params()?;
        reader::find_path(params, &["ref", member]).and_then(reader::as_str)
    };
    let (method, name) = match request.method {
        Some(method @ (Method::CallTool | Method::GetPrompt)) => (method, message.name()),
        Some(
            method @ (Method::ReadResource
            | Method::Subscribe
            | Method::GetSkill
            | Method::ReadDirectory),
        ) => (method, message.uri()),
        Some(Method::Complete) => {
            let name = of_target("name").or_else(|| of_target("uri"));
            (Method::Complete, name)
        }
        _ => return None,
    };
    Some((method, name?))
}
