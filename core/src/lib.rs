//! A protocol engine for the [Model Context Protocol](https://modelcontextprotocol.io): every
//! revision from 2024-11-05 to 2026-07-28, as server and as client.
//!
//! | to | look at |
//! |---|---|
//! | write a server | [`server`], or the names of [`prelude`] |
//! | call a server | [`client`] |
//! | test a server | [`testing`] |
//! | serve or connect on stdio, sockets, HTTP or WebSocket | [`io`], [`io::http`] |
//! | limit, verify and audit clients | [`policy`], [`limits`] |
//! | drive a connection on an event loop of your own | [`connection`], [`handler`] |
//!
//! Beneath `server` and `client` is a sans-I/O engine that reads no clock: a [`connection`] takes bytes in
//! and gives bytes out, and any event loop can drive it.
//!
//! ```
//! # #[cfg(all(feature = "macros", feature = "client", feature = "stdio"))] {
//! use mcpbolt::client::{Client, block_on};
//! use mcpbolt::prelude::*;
//!
//! /// Greets somebody.
//! #[tool]
//! fn greet(
//!     /// The name to greet.
//!     name: &str,
//! ) -> String {
//!     format!("Hello, {name}!")
//! }
//!
//! let server = Server::builder("greeter", "1.0.0").with(handlers![greet]).build()?;
//! // In one process, as in a test; `Server::serve_stdio` serves on stdin and stdout.
//! let client = block_on(Client::builder("me", "1").connect(&server))?;
//! let greeting = client.call_tool("greet", &serde_json::json!({"name": "Ada"})).wait()?;
//! assert_eq!(greeting.text(), "Hello, Ada!");
//! # }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A client that starts its server as a child process:
//!
//! ```no_run
//! # #[cfg(all(feature = "client", feature = "stdio"))] {
//! use mcpbolt::client::{Client, block_on};
//! use mcpbolt::io::ChildCommand;
//!
//! let client = block_on(Client::spawn(ChildCommand::new("path/to/server").arg("--quiet")))?;
//! for tool in block_on(client.list_tools())? {
//!     println!("{}: {}", tool.name, tool.description.unwrap_or_default());
//! }
//! // The child ends when the last clone of the client is dropped.
//! # }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! To install it, add `mcpbolt` to the dependencies; the features `http` and `http-client` bring the network.
//!
//! Where next: [`features`] shows each part of the protocol in a program, [`coming_from_rmcp`] the counterparts of
//! `rmcp`. The folder `examples` has whole programs. [`architecture`] describes the modules and which of them may
//! depend on which. Ids such as `R-RPC-05` name rows of [`requirements`].
#![deny(unsafe_code)]

#[cfg(doc)]
pub mod architecture {
    #![doc = include_str!("../ARCHITECTURE.md")]
}
#[cfg(all(doc, feature = "macros", feature = "client", feature = "stdio"))]
pub mod coming_from_rmcp {
    #![doc = include_str!("../COMING_FROM_RMCP.md")]
}
#[cfg(doc)]
pub mod requirements {
    #![doc = include_str!("../REQUIREMENTS.md")]
}
#[cfg(all(doc, feature = "macros", feature = "client", feature = "stdio"))]
pub mod features {
    #![doc = include_str!("../FEATURES.md")]
}
/// The names that ordinary servers and clients need.
#[cfg(feature = "server")]
pub mod prelude {
    #[cfg(feature = "client")]
    pub use crate::client::{CallError, CallToolResult, Client, block_on};
    pub use crate::connection::Principal;
    pub use crate::correlate::CancelToken;
    pub use crate::error::RequestError;
    pub use crate::handler::Head;
    pub use crate::handlers;
    #[cfg(feature = "stdio")]
    pub use crate::io::ChildCommand;
    pub use crate::mcp::{ErrorKind, LogLevel, TaskSupport};
    pub use crate::server::{
        Arguments, CacheScope, CompletionRequest, Completions, Content, Context, Extension,
        FromCall, HandlerCall, HandlerError, Json, Next, Prompt, PromptResult, RegistryError,
        Reply, Resource, ResourceContents, ResourceTemplate, Role, Server, State, Tool, ToolResult,
    };
    #[cfg(feature = "macros")]
    pub use mcpbolt_macros::{completion, data, prompt, resource, tool, tools};
}
pub use mcpbolt_codec::{action, buffer, frame, json, message, scan};
#[cfg(feature = "macros")]
pub use mcpbolt_macros::{completion, data, prompt, resource, tool, tools};

#[cfg(feature = "client")]
pub mod client;
pub mod connection;
pub mod correlate;
pub mod error;
pub mod handler;
#[cfg(feature = "stdio")]
pub mod io;
pub mod limits;
pub mod mcp;
#[cfg(any(feature = "server", feature = "client"))]
pub mod model;
mod panics;
#[cfg(feature = "server")]
pub mod policy;
#[cfg(any(feature = "server", feature = "client"))]
pub mod schema;
#[cfg(feature = "server")]
pub mod server;
#[cfg(feature = "settings")]
pub mod settings;
mod sync;
#[cfg(all(feature = "server", feature = "client", feature = "stdio"))]
pub mod testing;
#[cfg(any(feature = "server", feature = "stdio"))]
mod unguessable;
#[cfg(any(feature = "stdio", all(test, loom)))]
mod wakeup;
