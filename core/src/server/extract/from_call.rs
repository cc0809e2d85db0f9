//! Values that handlers take from the call itself.

use std::sync::Arc;

use super::needs::Needs;
use super::state::State;
use crate::connection::Principal;
use crate::correlate::CancelToken;
use crate::handler::{HandlerError, Head};
use crate::server::arguments::Arguments;
use crate::server::call::Context;

/// A value that a handler takes from its call.
///
/// Implement it to prepare for many handlers what they need of a call:
///
/// ```
/// # #[cfg(feature = "macros")] {
/// use mcpbolt::prelude::*;
///
/// struct Admin(String);
///
/// impl FromCall for Admin {
///     fn from_call(context: &Context) -> Result<Self, HandlerError> {
///         let caller = context.verified().filter(|caller| caller.has_scope("admin"));
///         let caller = caller.ok_or_else(|| HandlerError::new("only for administrators"))?;
///         Ok(Self(caller.name().to_owned()))
///     }
/// }
///
/// /// Empties the shop.
/// #[tool]
/// fn clear(admin: Admin) -> String {
///     format!("cleared by {}", admin.0)
/// }
/// # }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not taken from a call",
    label = "does not implement `FromCall`",
    note = "`Context`, `State<T>`, `Extension<T>`, `Principal`, `CancelToken`, `ProgressReporter`, `Option<Arc<Head>>` and `Arguments` are taken from a call, and types that implement `FromCall`",
    note = "a parameter needs a name: `title: String`, and in a resource one of the variables of its URI"
)]
pub trait FromCall: Sized {
    /// Takes the value. The handler does not run if this fails.
    ///
    /// # Errors
    /// An error with which the call is answered.
    fn from_call(context: &Context) -> Result<Self, HandlerError>;

    /// Declares what the value needs of the server, such as the needs of other values that it is made of.
    /// Nothing by default.
    fn declare(needs: &mut Needs) {
        let _ = needs;
    }
}

impl FromCall for Context {
    fn from_call(context: &Context) -> Result<Self, HandlerError> {
        Ok(context.clone())
    }
}

impl<T: Send + Sync + 'static> FromCall for State<T> {
    fn from_call(context: &Context) -> Result<Self, HandlerError> {
        let missing = || HandlerError::new("the server lacks a state");
        context.state().map(State).ok_or_else(missing)
    }

    fn declare(needs: &mut Needs) {
        needs.state::<T>();
    }
}

/// The verified caller. A call without one is refused.
impl FromCall for Principal {
    fn from_call(context: &Context) -> Result<Self, HandlerError> {
        let unknown = || HandlerError::new("the caller is not verified");
        context.verified().cloned().ok_or_else(unknown)
    }
}

/// The verified caller, if there is one.
impl FromCall for Option<Principal> {
    fn from_call(context: &Context) -> Result<Self, HandlerError> {
        Ok(context.verified().cloned())
    }
}

/// The head of the HTTP request that carried the call; `None` if another transport did.
impl FromCall for Option<Arc<Head>> {
    fn from_call(context: &Context) -> Result<Self, HandlerError> {
        Ok(context.head().cloned())
    }

    fn declare(needs: &mut Needs) {
        needs.head();
    }
}

impl FromCall for CancelToken {
    fn from_call(context: &Context) -> Result<Self, HandlerError> {
        Ok(context.cancel_token().clone())
    }
}

/// The arguments of a tool as the client sent them.
impl FromCall for Arguments {
    fn from_call(context: &Context) -> Result<Self, HandlerError> {
        let message = context.message();
        let arguments = message.and_then(|message| message.arguments());
        Ok(Self(arguments.unwrap_or("{}").into()))
    }
}
