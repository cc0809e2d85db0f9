//! Servers on Streamable HTTP: one endpoint, a connection of the engine for each request.
//!
//! ```text
//!   hyper ─▶ guard ─▶ service ─▶ exchange: the engine's connection, driven by who polls the answer
//!              │                    │
//!              ╰─ refusals          ├─ one message, the answer ─▶ application/json
//!                                   ╰─ anything before it ─────▶ text/event-stream
//! ```
//!
//! | file | what it is for |
//! |---|---|
//! | `options` | path, hosts, origins, limits |
//! | `guard` | what is refused before the body is read |
//! | `headers` | what the headers say of a request against what it says itself |
//! | `exchange` | one request from its body to its answer, on the engine's connection |
//! | `body`, `events` | the answer as hyper writes it |
//! | `service`, `serve` | the whole as a `tower` service, and on a socket |
//!
//! So far it speaks 2026-07-28, in which every request stands alone.

mod answers;
mod body;
mod collect;
mod endpoint;
mod events;
mod exchange;
mod guard;
mod headers;
mod log;
mod options;
mod reader;
mod route;
mod serve;
mod service;
mod session;
mod sessions;
mod timekeeper;
mod wait;

pub use self::body::HttpBody;
pub use self::options::HttpOptions;
pub use self::serve::{HttpServer, serve_http};
pub use self::service::HttpService;
