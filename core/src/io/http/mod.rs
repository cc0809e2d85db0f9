//! Servers on Streamable HTTP, every revision on one endpoint.
//!
//! ```text
//!   hyper ─▶ guard ─▶ route ─┬─▶ exchange: a connection of the engine for one request, driven by
//!              │             │   who polls its answer                            (2026-07-28)
//!              ╰─ refusals   ╰─▶ session: a connection with a stream for each POST, its logs and
//!                                their readers                       (2025-03-26 to 2025-11-25)
//!
//!   one message, the answer ─▶ application/json      anything before it ─▶ text/event-stream
//! ```
//!
//! | file | what it is for |
//! |---|---|
//! | `options` | path, hosts, origins, limits |
//! | `guard` | what is refused before the body is read |
//! | `route`, `collect` | how a POST is to be served, and its body |
//! | `headers` | what the headers say of a request against what it says itself |
//! | `exchange` | one request from its body to its answer, on the engine's connection |
//! | `session`, `sessions` | a session, and those there are |
//! | `log`, `reader` | what was written on a stream of a session, and who reads it |
//! | `events`, `body`, `answers` | what is said, as hyper writes it |
//! | `wait`, `timekeeper` | waiting as tasks do; timers that outlive requests |
//! | `endpoint` | all of it together |
//! | `service`, `serve` | the whole as a `tower` service, and on a socket |
//!
//! Clients of 2024-11-05, who get a stream first and post beside it, are served by sessions whose
//! posts are answered on that stream.

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
