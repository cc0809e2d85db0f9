//! Typed calls to a server, from any thread and any runtime.
//!
//! A [`Client`] is a [`Handle`](crate::connection::Handle) with typed MCP methods. If the server did not
//! declare the capability for a request, the request fails locally with an error that names it
//! (R-CAP-03).
//!
//! ```text
//!   builder ─▶ host ──────────────╮           lists, settings, skills, tasks, actions, batch:
//!      ╰─▶ handlers ─▶ context ─▶ client ◀─── further methods of a client
//!                                   ▼
//!              call, pages, pending, rounds, tasks: one call, from its params to its answer
//!                                   ▼
//!              core: the connection, and what is remembered of the server
//!                                   ▼
//!              cache, cursor, known_tools, listen, actions/state
//! ```

mod actions;
mod batch;
mod builder;
mod cache;
mod call;
#[expect(clippy::module_inception, reason = "the file of the type of that name")]
mod client;
mod context;
mod core;
mod cursor;
mod extension;
mod handlers;
mod host;
mod known_tools;
mod listen;
mod lists;
mod notice;
mod pages;
mod pending;
mod results;
mod rounds;
mod settings;
mod shapes;
#[cfg(feature = "skills")]
mod skills;
mod tasks;
mod tool_hints;
mod typed;

pub use self::actions::{
    ActionAnswer, ActionCall, ActionCallError, ActionFailure, BreakerPolicy, RetryPolicy,
};
pub use self::batch::{BatchError, BatchRequest, BatchResponse};
pub use self::builder::{ClientBuilder, Prepared};
pub use self::call::{CallTool, PendingCall};
pub use self::client::Client;
pub use self::context::ClientContext;
pub use self::host::ClientHost;
pub use self::listen::{Interests, Listening};
pub use self::notice::Notice;
pub use self::pages::Pages;
pub use self::pending::PendingRequest;
pub use self::results::{CallToolResult, GetPromptResult, PromptMessage};
#[cfg(feature = "skills")]
pub use self::skills::{SkillFile, SkillFiles, SkillInfo};
pub use self::tasks::{Started, Task, TaskInfo};
pub use self::tool_hints::{ToolHints, Trust};
#[cfg(all(feature = "server", feature = "stdio"))]
pub(crate) use self::typed::read as read_value;
pub use self::typed::{CallError, TypedCall};
pub use crate::sync::block_on;
