//! Servers and clients for the [Model Context Protocol](https://modelcontextprotocol.io) (MCP), by which language
//! models reach tools and data: every revision from 2024-11-05 to 2026-07-28, over standard input and output,
//! Streamable HTTP, WebSocket, TCP and Unix sockets.
//!
//! # Install
//!
//! ```text
//! cargo add mcpbolt serde_json                    # servers and clients on stdio
//! cargo add mcpbolt --features http,http-client   # and on the network
//! ```
//!
//! | to | enable, besides the defaults |
//! |---|---|
//! | serve on stdio, call servers that are child processes, serve any byte stream in tokio | nothing |
//! | serve on HTTP, WebSocket, TCP or Unix sockets, or within axum and other `tower` applications | `http`; for `https`, `tls` |
//! | call servers on HTTP | `http-client` |
//! | call servers on WebSocket, TCP or Unix sockets | `net`; for `wss`, `tls` |
//! | put layers of `tower` around handlers | `tower` |
//! | verify signed tokens | `jwt` |
//! | be a resource server of OAuth | `resource-server` |
//! | log by `tracing` | `tracing` |
//! | trace and measure requests and sessions | `opentelemetry`, `prometheus` |
//! | build without tokio, macros or clients | `default-features = false` and those of `server`, `client`, `stdio`, `tokio`, `macros` that you need |
//!
//! The [README](https://docs.rs/crate/mcpbolt) lists every feature, and what each costs.
//!
//! # A server
//!
//! A function becomes a tool: its documentation is what the model reads, its arguments make the schema.
//!
//! ```no_run
//! # #[cfg(all(feature = "macros", feature = "stdio"))] {
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
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let server = Server::builder("greeter", "1.0.0").with(handlers![greet]).build()?;
//!     // On stdio, or at the address that the command line names.
//!     Ok(server.run()?)
//! }
//! # }
//! ```
//!
//! A test calls it in the same process:
//!
//! ```
//! # #[cfg(all(feature = "macros", feature = "client", feature = "stdio"))] {
//! # use mcpbolt::prelude::*;
//! # /// Greets somebody.
//! # #[tool]
//! # fn greet(name: &str) -> String {
//! #     format!("Hello, {name}!")
//! # }
//! use mcpbolt::testing::TestClient;
//! use serde_json::json;
//!
//! let server = Server::builder("greeter", "1.0.0").with(handlers![greet]).build()?;
//! block_on(async {
//!     let test = TestClient::new(&server).await?;
//!     test.call("greet", json!({"name": "Ada"})).await.expect_text("Hello, Ada!");
//!     Ok::<(), std::io::Error>(())
//! })?;
//! # }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # A client
//!
//! This client starts the server as a child process, which ends when the last clone of the client is dropped.
//!
//! ```no_run
//! # #[cfg(all(feature = "client", feature = "stdio"))] {
//! use mcpbolt::client::{Client, block_on};
//! use mcpbolt::io::ChildCommand;
//! use serde_json::json;
//!
//! let client = block_on(Client::spawn(ChildCommand::new("path/to/greeter")))?;
//! for tool in block_on(client.list_tools())? {
//!     println!("{}: {}", tool.name, tool.description.unwrap_or_default());
//! }
//! // Futures need no runtime: `.wait()` and `block_on` where there is none, else `.await`.
//! let greeting: String = client.call("greet", &json!({"name": "Ada"})).wait()?;
//! println!("{greeting}");
//! # }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Where next
//!
//! | to | look at |
//! |---|---|
//! | see each part of the protocol in a program | [`features`], and the folder `examples` |
//! | come from `rmcp` | [`coming_from_rmcp`] |
//! | write a server | [`server`], or the names of [`prelude`] |
//! | call a server | [`client`] |
//! | test a server | [`testing`] |
//! | serve or connect on stdio, sockets, HTTP or WebSocket | [`io`], [`io::http`] |
//! | limit, verify and audit clients | [`policy`], [`limits`] |
//! | share state between processes | [`store`] |
//! | measure and trace requests | [`connection::Observer`], and `telemetry` |
//! | drive a connection on an event loop of your own | [`connection`], [`handler`] |
//! | change this crate | [`architecture`]; ids such as `R-RPC-05` name rows of [`requirements`] |
//!
//! Beneath `server` and `client` is a sans-I/O engine that reads no clock: a [`connection`] takes bytes in
//! and gives bytes out, and any event loop can drive it.
#![deny(unsafe_code)]

#[cfg(doc)]
pub mod architecture {
    #![doc = include_str!("../ARCHITECTURE.md")]
}
#[cfg(doc)]
pub mod authorization {
    #![doc = include_str!("../AUTHORIZATION.md")]
}
#[cfg(all(doc, feature = "macros", feature = "client", feature = "stdio"))]
pub mod coming_from_rmcp {
    #![doc = include_str!("../COMING_FROM_RMCP.md")]
}
#[cfg(all(
    doc,
    feature = "http",
    feature = "opentelemetry",
    feature = "prometheus"
))]
pub mod metrics_and_traces {
    #![doc = include_str!("../TELEMETRY.md")]
}
#[cfg(all(doc, feature = "http", feature = "redis"))]
pub mod shared_state {
    #![doc = include_str!("../STORE.md")]
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
        FromCall, HandlerCall, HandlerError, Json, Next, ProgressReporter, Prompt, PromptResult,
        RegistryError, Reply, Resource, ResourceContents, ResourceTemplate, Role, Server, State,
        Tool, ToolResult,
    };
    #[cfg(feature = "macros")]
    pub use mcpbolt_macros::{completion, data, prompt, resource, tool, tools};
}
pub use mcpbolt_codec::{action, buffer, frame, json, message, scan};
#[cfg(feature = "macros")]
pub use mcpbolt_macros::{completion, data, prompt, resource, tool, tools};

#[cfg(all(feature = "server", feature = "client"))]
pub mod chain;
#[cfg(feature = "client")]
pub mod client;
pub mod connection;
pub mod correlate;
#[cfg(any(feature = "server", all(feature = "skills", feature = "client")))]
mod digest;
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
#[cfg(feature = "server")]
pub mod store;
mod sync;
#[cfg(any(
    feature = "prometheus",
    feature = "opentelemetry",
    feature = "settings",
    feature = "tracing"
))]
pub mod telemetry;
#[cfg(all(feature = "server", feature = "client", feature = "stdio"))]
pub mod testing;
#[cfg(any(feature = "server", feature = "stdio"))]
mod unguessable;
#[cfg(any(feature = "stdio", all(test, loom)))]
mod wakeup;
