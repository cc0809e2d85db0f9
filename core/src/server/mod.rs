//! The server API: tools, resources and prompts, with their handlers.
//!
//! ```
//! # #[cfg(feature = "macros")] {
//! use mcpbolt::prelude::*;
//!
//! /// Adds two numbers.
//! #[tool]
//! fn add(a: i64, b: i64) -> i64 {
//!     a + b
//! }
//!
//! let server = Server::builder("calculator", "1.0.0").with(handlers![add]).build()?;
//! # }
//! # Ok::<(), mcpbolt::server::RegistryError>(())
//! ```
//!
//! The attributes `#[mcpbolt::tool]`, `resource`, `prompt` and `completion` make handlers of functions, and
//! `#[mcpbolt::tools]` of the functions of an `impl` block, which share a value. [`handlers!`](crate::handlers) lists functions.
//! [`extract`] lists the arguments that functions may take. Without the feature `macros`, handlers are closures beside their definitions:
//!
//! ```
//! use mcpbolt::server::{Server, Tool, schemars, serde};
//!
//! #[derive(serde::Deserialize, schemars::JsonSchema)]
//! #[serde(crate = "mcpbolt::server::serde")]
//! #[schemars(crate = "mcpbolt::server::schemars")]
//! struct Add {
//!     a: i64,
//!     b: i64,
//! }
//!
//! let server = Server::builder("calculator", "1.0.0")
//!     .tool(Tool::new("add").description("Adds two numbers."), |add: Add, _| async move {
//!         (add.a + add.b).to_string()
//!     })
//!     .build()?;
//! # Ok::<(), mcpbolt::server::RegistryError>(())
//! ```
//!
//! | files | what they do |
//! |---|---|
//! | `builder` | what a program writes: definitions with handlers |
//! | `registry` | definitions without handlers: lists, pages, checks |
//! | `snapshot` | a registry and its handlers as one version, replaced when a program changes them |
//! | `host`, `lookup`, `access` | a server on one connection: a request becomes an operation, an answer or a refusal |
//! | `executor` | operations become calls of handlers, within layers, and their replies answers |
//! | `call` | what a handler is given: context, progress, questions to the client |
//! | `subscriptions`, `tasks`, `skills` | changes that clients listen to; calls that outlive their request; skills |
//! | `store`, `result_cache`, `replay_guard` | what is kept between calls |
//!
//! The language bindings build on [`Registry`], which holds definitions without handlers, and on
//! [`ServerHost`], which passes operations to an [`Executor`](crate::handler::Executor).

mod access;
mod arguments;
mod builder;
mod cache_hint;
mod call;
mod completion_request;
mod executor;
pub mod extract;
mod host;
mod lookup;
mod output;
mod registry;
mod replay_guard;
mod result_cache;
mod returned;
mod rollback;
#[cfg(feature = "skills")]
mod skills;
mod slots;
mod snapshot;
mod store;
mod subscriptions;
mod tasks;
mod template;

pub use crate::handler::HandlerError;
pub use crate::mcp::TaskSupport;
pub use crate::model::{
    Completions, Content, Prompt, PromptArgument, PromptResult, Resource, ResourceContents,
    ResourceTemplate, Role, Tool, ToolResult,
};
pub use crate::schema::InvalidSchema;
#[cfg(feature = "validation")]
pub use crate::schema::Schema;
pub use access::Access;
pub use arguments::{Arguments, FromArguments};
#[cfg(feature = "tower")]
pub use builder::HandlerService;
pub use builder::{Builder, Offer, OfferMethods, ProposedCall, Server};
pub use cache_hint::CacheScope;
pub use call::{Context, Pieces, StateSigner};
pub use completion_request::CompletionRequest;
pub use executor::{HandlerCall, Next, Reply};
pub use extract::{Extension, FromCall, ProgressReporter, State};
pub use host::{Hosting, ServerHost};
pub use output::{IntoToolResult, Json};
pub use registry::{Registry, RegistryError};
pub use result_cache::{KeptCall, Results};
pub use returned::{IntoCompletions, IntoContents, IntoPrompt};
pub use rollback::Steps;
#[cfg(feature = "skills")]
pub use skills::{InvalidSkill, Skill};
pub use snapshot::{SharedRegistry, Snapshot, SnapshotCache};
pub use subscriptions::Change;
#[cfg(all(feature = "http", feature = "sealing"))]
pub use subscriptions::ChangeFeed;
#[cfg(all(feature = "http", feature = "sealing"))]
pub(crate) use subscriptions::Changes;
pub use tasks::{TaskCall, TaskLimits};
pub use template::{InvalidTemplate, Template, path_under};
pub use {schemars, serde, serde_json};
