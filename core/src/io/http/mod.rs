//! Streamable HTTP: servers, every revision on one endpoint, and [clients](HttpClientOptions).
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
//! | `identify` | who sends a request |
//! | `guard`, `cors` | what is refused before the body is read; whose pages may read answers |
//! | `route`, `collect` | how a POST is to be served, and its body |
//! | `headers` | what the headers say of a request against what it says itself |
//! | `exchange` | one request from its body to its answer, on the engine's connection |
//! | `session`, `sessions` | a session, and those there are |
//! | `log`, `reader` | what was written on a stream of a session, and who reads it |
//! | `running` | streams of actions, kept for clients that come back |
//! | `pieces`, `events`, `body`, `answers` | what is said, as hyper writes it |
//! | `compress` | long answers in fewer bytes |
//! | `timekeeper` | timers that outlive requests |
//! | `upgrade` | WebSocket at the same path |
//! | `endpoint` | all of it together |
//! | `service`, `serve` | the whole as a `tower` service, on a socket |
//! | `handover`, `standing` | streams of a session that go on without hyper's buffers |
//! | `client` | a client's side: each message a POST, and the streams that answer it |
//!
//! | status | of a server's answer |
//! |---|---|
//! | 101 | it goes on as a WebSocket |
//! | 200 | an answer, also one that is an error of who was asked; or events |
//! | 202, 204 | a notification or an answer was taken; a session was ended, or a page may ask |
//! | 400 | no message, or one that says what its headers do not; no session, no such revision |
//! | 401 | the policy does not know who asks; `WWW-Authenticate` asks for a token |
//! | 403 | the `Host` is not this server's, or the `Origin` not welcome; or who asks lacks a scope, which `WWW-Authenticate` names |
//! | 404 | no such method, no such session, nothing at this path |
//! | 405, 406, 415 | not by this method, not with this `Accept`, not of this `Content-Type` |
//! | 408, 413 | the body did not come to its end in time; it is too long |
//! | 409 | what is to be resumed is gone, and the other stream has its reader |
//! | 426 | a WebSocket of another version |
//! | 429 | the client asks more often than its server's policy lets it; `Retry-After` says how long to wait |
//! | 503 | there is no room for it now |
//!
//! Whatever is refused is told why by an error of JSON-RPC.
//!
//! Clients of 2024-11-05, who get a stream first and post beside it, are served by sessions whose
//! posts are answered on that stream.

#[cfg(feature = "http")]
mod actions;
#[cfg(feature = "http")]
mod answers;
#[cfg(feature = "http")]
mod body;
#[cfg(feature = "http-client")]
mod client;
#[cfg(feature = "http")]
mod collect;
#[cfg(feature = "compression")]
mod compress;
#[cfg(feature = "http")]
mod cors;
#[cfg(feature = "http")]
mod endpoint;
#[cfg(feature = "http")]
mod events;
#[cfg(feature = "http")]
mod exchange;
#[cfg(feature = "http")]
mod guard;
#[cfg(feature = "http")]
mod handover;
#[cfg(feature = "http")]
mod headers;
#[cfg(feature = "http")]
mod identify;
#[cfg(feature = "http")]
mod log;
#[cfg(feature = "http")]
mod options;
mod pieces;
#[cfg(feature = "http")]
mod reader;
#[cfg(feature = "http")]
mod route;
#[cfg(feature = "http")]
mod running;
#[cfg(feature = "http")]
mod serve;
#[cfg(feature = "http")]
mod service;
#[cfg(feature = "http")]
mod session;
#[cfg(feature = "http")]
mod sessions;
#[cfg(feature = "http")]
mod spare;
#[cfg(feature = "http")]
mod standing;
#[cfg(feature = "http")]
mod timekeeper;
#[cfg(feature = "http")]
mod upgrade;

#[cfg(feature = "http")]
use super::wait;

#[cfg(feature = "http")]
pub use self::body::HttpBody;
#[cfg(feature = "http-client")]
pub use self::client::{Along, Arrived, HttpClientOptions, Proxy, Relay, RelayOptions};
#[cfg(feature = "http")]
pub use self::identify::PeerCertificate;
#[cfg(feature = "http")]
pub use self::options::HttpOptions;
#[cfg(feature = "http")]
pub use self::serve::HttpServer;
#[cfg(feature = "http")]
pub use self::service::HttpService;
#[cfg(feature = "http")]
pub use crate::connection::Principal;
