//! The types that an argument of a handler may have.

use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use super::from_call::FromCall;
use super::given::Received;
use super::signature::Signature;
use crate::handler::HandlerError;
use crate::server::output::Json;

/// A type that a parameter is converted to. Implemented for every type that derives `Deserialize` and
/// `JsonSchema`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a parameter",
    label = "does not derive `Deserialize` and `JsonSchema`",
    note = "if `{Self}` is your own type, put `#[mcpbolt::data]` on it"
)]
pub trait Parameter: DeserializeOwned + JsonSchema + Send + 'static {}

// A type that lacks both is one error, about this trait.
#[diagnostic::do_not_recommend]
impl<T: DeserializeOwned + JsonSchema + Send + 'static> Parameter for T {}

/// A type of a handler's argument. Every type that implements [`FromCall`] is one, every [`Parameter`], and
/// [`Json`], which takes all parameters together. `Kind` is inferred.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be an argument of a handler",
    label = "neither a parameter nor taken from the call",
    note = "for a parameter, the type derives `Deserialize` and `JsonSchema`: put `#[mcpbolt::data]` on it",
    note = "for a value of the call, the type implements `FromCall`, as `Context`, `State<T>` and `Principal` do"
)]
pub trait Argument<Kind>: Sized {
    /// Declares the argument.
    #[doc(hidden)]
    fn declare(signature: &mut Signature, name: &'static str, description: &str) -> usize;

    /// Takes the argument of a call.
    #[doc(hidden)]
    fn take(call: &Received<'_>, at: usize, default: Option<&str>) -> Result<Self, HandlerError>;
}

/// The kind of arguments that are taken from the call.
#[derive(Debug)]
pub struct OfCall;

/// The kind of arguments that are parameters.
#[derive(Debug)]
pub struct OfClient;

/// The kind of arguments that are all parameters together.
#[derive(Debug)]
pub struct Together;

impl<T: FromCall> Argument<OfCall> for T {
    fn declare(signature: &mut Signature, _: &'static str, _: &str) -> usize {
        T::declare(signature.needs_mut());
        0
    }

    fn take(call: &Received<'_>, _: usize, _: Option<&str>) -> Result<Self, HandlerError> {
        T::from_call(call.context()?)
    }
}

impl<T: Parameter> Argument<OfClient> for T {
    fn declare(signature: &mut Signature, name: &'static str, description: &str) -> usize {
        signature.parameter::<T>(name, description)
    }

    fn take(call: &Received<'_>, at: usize, default: Option<&str>) -> Result<Self, HandlerError> {
        call.parameter(at, default)
    }
}

impl<T: Parameter> Argument<Together> for Json<T> {
    fn declare(signature: &mut Signature, _: &'static str, _: &str) -> usize {
        signature.all::<T>();
        0
    }

    fn take(call: &Received<'_>, _: usize, _: Option<&str>) -> Result<Self, HandlerError> {
        call.all().map(Json)
    }
}

/// A type of an inline tool's argument: parameters only. `Kind` is inferred.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be an argument of an inline tool",
    label = "not a parameter",
    note = "an inline tool takes only parameters: to take values of the call, remove `inline`",
    note = "the type of a parameter derives `Deserialize` and `JsonSchema`: put `#[mcpbolt::data]` on it"
)]
pub trait InlineArgument<Kind>: Argument<Kind> {}

#[diagnostic::do_not_recommend]
impl<T: Parameter> InlineArgument<OfClient> for T {}

impl<T: Parameter> InlineArgument<Together> for Json<T> {}
