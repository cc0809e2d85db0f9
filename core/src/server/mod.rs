//! The server API: tools, resources and prompts, with their handlers.
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
//! The language bindings build on [`Registry`], which holds definitions without handlers, and on
//! [`ServerHost`], which passes operations to an [`Executor`](crate::handler::Executor).

mod access;
pub(crate) mod actions;
mod admission;
mod approval;
mod arguments;
mod ask;
mod atomic;
mod audience;
mod batch;
mod builder;
mod cache;
mod completion;
mod content;
mod context;
mod definition;
mod executor;
mod extend;
mod handlers;
mod host;
mod hosting;
mod listen;
mod live;
mod numbered;
mod offers;
mod operations;
mod output;
mod registry;
mod replay_guard;
mod result_cache;
mod rounds;
mod sanitise;
#[cfg(feature = "skills")]
mod skills;
mod state_signer;
mod streaming;
mod tasks;
mod template;

pub use crate::handler::HandlerError;
pub use crate::mcp::{Role, TaskSupport};
pub use crate::schema::{InvalidSchema, Schema};
pub use access::Access;
pub use approval::Pending;
pub use arguments::{Arguments, FromArguments};
pub use atomic::Steps;
pub use audience::Change;
pub use builder::{Builder, Server};
pub use cache::CacheScope;
pub use completion::{CompletionRequest, CompletionTarget, Completions, MAX_VALUES};
pub use content::{Content, PromptResult, ResourceBody, ResourceContents, ToolResult};
pub use context::Context;
pub use definition::{Prompt, PromptArgument, Resource, Tool};
pub use executor::HandlerExecutor;
pub use host::ServerHost;
pub use hosting::{AnyExecutor, Hosting};
pub use live::{Live, Offer, View};
pub use output::{IntoToolResult, Json};
pub use registry::{Registry, RegistryError};
pub use result_cache::{KeptCall, Results};
#[cfg(feature = "skills")]
pub use skills::{InvalidSkill, Skill};
pub use state_signer::StateSigner;
pub use streaming::Pieces;
pub use tasks::{TaskCall, TaskLimits};
pub use template::{InvalidTemplate, Template, path_under};
pub use {schemars, serde, serde_json};
