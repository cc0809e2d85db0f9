//! Arguments of the functions that `#[tool]`, `#[resource]`, `#[prompt]` and `#[completion]` register:
//! parameters, which the client sends, and values of the call.
//!
//! | the type of an argument | where its value comes from |
//! |---|---|
//! | implements [`FromCall`], as [`Context`](super::Context), [`State`] and [`Principal`](crate::connection::Principal) do | the call |
//! | [`Json<T>`](super::Json) | all parameters together, in one type |
//! | any other type that derives `Deserialize` and `JsonSchema` | the parameter with the argument's name |
//!
//! An `Option` is not required.
//! An argument may be a reference: `&str` takes a `String` and lends it.

mod argument;
mod from_call;
mod given;
mod signature;
mod state;

pub use self::argument::{Argument, InlineArgument, Parameter};
pub use self::from_call::FromCall;
pub use self::given::Received;
pub use self::signature::{Signature, Taker};
pub(in crate::server) use self::state::States;
pub use self::state::{State, StateType};
