//! Values that layers and HTTP middleware put beside a call, as arguments of handlers.

use std::any::type_name;

use super::from_call::FromCall;
use super::needs::Needs;
use crate::handler::HandlerError;
use crate::mcp::ErrorKind;
use crate::server::call::Context;

/// A value that is beside the call: a layer [inserted](crate::server::HandlerCall::extensions_mut) it, or HTTP
/// middleware put it into the extensions of the request. What a layer inserts comes before what middleware did.
/// A call that lacks the value is refused with an internal error; an `Option<Extension<T>>` may be missing.
///
/// ```
/// # #[cfg(feature = "macros")] {
/// use mcpbolt::prelude::*;
///
/// #[derive(Clone)]
/// struct Tenant(String);
///
/// /// Says for whom it works.
/// #[tool]
/// fn tenant(Extension(tenant): Extension<Tenant>) -> String {
///     tenant.0
/// }
///
/// let server = Server::builder("tenants", "1.0.0")
///     .with(handlers![tenant])
///     .layer(|mut call: HandlerCall, next: Next| async move {
///         call.extensions_mut().insert(Tenant("acme".to_owned()));
///         next.run(call).await
///     })
///     .build()?;
/// # }
/// # Ok::<(), mcpbolt::server::RegistryError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extension<T>(pub T);

impl<T: Clone + Send + Sync + 'static> FromCall for Extension<T> {
    fn from_call(context: &Context) -> Result<Self, HandlerError> {
        let missing = || {
            let why = format!(
                "the handler takes an `Extension` of type `{}`, but neither a layer nor HTTP middleware has \
                 inserted one",
                type_name::<T>()
            );
            HandlerError::protocol(ErrorKind::Internal, why)
        };
        let value = context.extensions().get().cloned();
        value.map(Self).ok_or_else(missing)
    }

    fn declare(needs: &mut Needs) {
        needs.head();
    }
}

impl<T: Clone + Send + Sync + 'static> FromCall for Option<Extension<T>> {
    fn from_call(context: &Context) -> Result<Self, HandlerError> {
        Ok(context.extensions().get().cloned().map(Extension))
    }

    fn declare(needs: &mut Needs) {
        needs.head();
    }
}
