//! Arguments of the functions that `#[tool]`, `#[resource]`, `#[prompt]` and `#[completion]` register:
//! parameters, which the client sends, and values of the call.
//!
//! | the type of an argument | where its value comes from |
//! |---|---|
//! | implements [`FromCall`], as those below do | the call |
//! | [`Json<T>`](super::Json) | all parameters together, in one type |
//! | any other type that derives `Deserialize` and `JsonSchema` | the parameter with the argument's name |
//!
//! | value of the call | |
//! |---|---|
//! | [`Context`](super::Context) | progress, logs, questions to the client, and everything else about the call |
//! | [`State<T>`](State) | a value that the server was built with |
//! | [`Principal`](crate::connection::Principal), `Option<Principal>` | the verified caller |
//! | `Option<Arc<`[`Head`](crate::handler::Head)`>>` | the HTTP request: headers, session, peer |
//! | [`Extension<T>`](Extension), `Option<Extension<T>>` | a value that a layer, or HTTP middleware, put beside the call |
//! | [`CancelToken`](crate::correlate::CancelToken) | ends with the call |
//! | [`ProgressReporter`] | reports how far the call has come |
//! | [`Arguments`](super::Arguments) | the arguments of a tool, raw |
//!
//! A parameter of type `Option` is not required.
//! An argument may be a reference: `&str` takes a `String` and lends it.

mod argument;
mod extension;
mod from_call;
mod given;
mod needs;
mod owner;
mod progress;
mod session_values;
mod signature;
mod state;

pub use self::argument::{Argument, InlineArgument, Parameter};
pub use self::extension::Extension;
pub use self::from_call::FromCall;
#[doc(hidden)]
pub use self::given::Received;
pub use self::needs::Needs;
#[doc(hidden)]
pub use self::owner::Owner;
pub use self::progress::ProgressReporter;
pub(in crate::server) use self::session_values::SessionValues;
#[doc(hidden)]
pub use self::signature::{Signature, Taker};
pub use self::state::State;
pub(in crate::server) use self::state::States;
