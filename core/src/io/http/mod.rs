//! Streamable HTTP: servers that speak every revision on one endpoint, and
//! [clients](HttpClientOptions).
//!
//! ```text
//!   hyper ─▶ gate ─▶ route ──┬─▶ exchange: an engine connection for one request, driven by whoever
//!              │             │   polls its answer                                (2026-07-28)
//!              ╰─ refusals   ╰─▶ session: a connection with a stream for each POST, its logs and
//!                                their readers                       (2025-03-26 to 2025-11-25)
//!
//!   only the answer ─▶ application/json      other messages before it ─▶ text/event-stream
//! ```
//!
//! | file | what it is for |
//! |---|---|
//! | `options` | path, hosts, origins, limits |
//! | `gate` | the checks that every request must pass before it is served |
//! | `source`, `media`, `identify` | the gate's checks of the origin, the media types and the sender |
//! | `cors` | which pages may read answers |
//! | `route`, `collect` | how a POST is served; reading its body |
//! | `headers` | checks the headers of a request against its body |
//! | `exchange` | one request from its body to its answer, on an engine connection of its own |
//! | `session`, `sessions` | one session; the table of sessions |
//! | `log`, `reader` | the messages written on a stream of a session, and the response that reads them |
//! | `running` | streams of actions, kept for clients that reconnect |
//! | `pieces`, `events`, `body`, `answers` | messages, events, bodies and statuses as hyper sends them |
//! | `compress` | gzip for long answers |
//! | `timekeeper` | timers that outlive requests |
//! | `upgrade` | WebSocket at the same path |
//! | `acting`, `in_session` | requests that are actions; requests of sessions |
//! | `endpoint` | one endpoint: dispatches each request to the modules above |
//! | `service`, `serve` | the endpoint as a `tower` service, and on a socket |
//! | `handover`, `standing` | event streams that go on without hyper's buffers |
//! | `client` | the client's side: each message is a POST, and streams answer it |
//!
//! | status | when a server answers with it |
//! |---|---|
//! | 101 | the connection goes on as a WebSocket |
//! | 200 | an answer, including an error that the server itself returns; or a stream of events |
//! | 202, 204 | a notification or an answer was accepted; a session was ended, or a CORS preflight passed |
//! | 400 | no message, or one that contradicts its headers; no session id; an unsupported revision |
//! | 401 | credentials are missing or wrong; `WWW-Authenticate` asks for a token |
//! | 403 | foreign `Host` or `Origin`; or a scope is missing, which `WWW-Authenticate` names |
//! | 404 | there is no such method, no such session, or nothing at this path |
//! | 405, 406, 415 | the method is not supported; `Accept` excludes the answer; the `Content-Type` is wrong |
//! | 408, 413 | the body did not arrive in time; it is too long |
//! | 409 | the events to resume from are gone, and the session's other stream already has a reader |
//! | 426 | the WebSocket version is not supported |
//! | 429 | the client exceeds the rate that the server's policy allows; `Retry-After` says how long to wait |
//! | 503 | the server has no room for the request now |
//!
//! The body of each refusal is an error that gives the reason: of JSON-RPC, or of the action dialect.
//!
//! Clients of 2024-11-05, which open a stream first and POST messages beside it, are served by sessions
//! that answer every POST on that stream.

#[cfg(feature = "http")]
mod acting;
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
mod exchange_pool;
#[cfg(feature = "http")]
mod forwarded;
#[cfg(feature = "http")]
mod gate;
#[cfg(feature = "http")]
mod handover;
#[cfg(feature = "http")]
mod headers;
#[cfg(feature = "http")]
mod identify;
#[cfg(feature = "http")]
mod in_session;
#[cfg(feature = "http")]
mod log;
#[cfg(feature = "http")]
mod media;
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
mod source;
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
pub use self::client::{HttpClientOptions, Proxy, Relay, RelayEvent, RelayOptions, SendOptions};
#[cfg(feature = "http")]
pub use self::endpoint::Peer;
#[cfg(feature = "http")]
pub(super) use self::forwarded::is_trusted;
#[cfg(feature = "http")]
pub use self::forwarded::{Network, NoNetwork};
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
