//! Who may do what: the one place where a server asks before it serves.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use crate::connection::Incoming;
use crate::handler::HandlerError;
use crate::json::reader;
use crate::mcp::Method;

/// What a client wants to do, as a [guard](super::Builder::guard) sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Access<'a> {
    /// How: [`Method::CallTool`], [`Method::ReadResource`], [`Method::GetPrompt`],
    /// [`Method::Complete`], [`Method::Subscribe`], [`Method::GetSkill`] or
    /// [`Method::ReadDirectory`].
    pub method: Method,
    /// With what: the name of the tool or prompt, or the URI.
    pub name: &'a str,
    /// Who, where the carrier knows: see
    /// [`Connection::set_principal`](crate::connection::Connection::set_principal).
    pub principal: Option<&'a str>,
}

impl<'a> Access<'a> {
    pub(super) fn new(method: Method, name: &'a str, principal: Option<&'a str>) -> Self {
        Self {
            method,
            name,
            principal,
        }
    }
}

/// What a program says of each access.
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
    /// Why not. A guard that panics admits nobody.
    pub fn check(&self, access: &Access<'_>) -> Result<(), HandlerError> {
        let verdict = catch_unwind(AssertUnwindSafe(|| (self.0)(access)));
        verdict.unwrap_or_else(|_| Err(HandlerError::new("the guard failed unexpectedly")))
    }
}

impl fmt::Debug for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Guard(..)")
    }
}

/// Has `check` judge a request for one thing; others are for everybody.
///
/// # Errors
/// Its own.
pub(super) fn judge<E>(
    request: &Incoming<'_>,
    principal: Option<&str>,
    check: impl FnOnce(&Access<'_>) -> Result<(), E>,
) -> Result<(), E> {
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
        _ => return Ok(()),
    };
    // Without a name there is nothing to do, as whoever looks closer will say.
    name.map_or(Ok(()), |name| check(&Access::new(method, &name, principal)))
}
