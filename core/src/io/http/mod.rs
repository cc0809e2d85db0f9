//! Streamable HTTP: servers that speak every revision on one endpoint, and
//! [clients](HttpClientOptions).
//!
//! `server` is the server's side and `client` the client's; `message_bytes` splits the engine's output into
//! messages for both.
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

#[cfg(feature = "http-client")]
pub(super) mod client;
#[cfg(feature = "resource-server")]
mod fetch;
mod message_bytes;
#[cfg(feature = "http")]
mod server;

#[cfg(feature = "http-client")]
pub use self::client::{HttpClientOptions, Proxy, Relay, RelayEvent, RelayOptions, SendOptions};
#[cfg(feature = "resource-server")]
pub(super) use self::fetch::connect_issuers;
#[cfg(all(feature = "http", feature = "sealing"))]
pub use self::server::SharedSessions;
#[cfg(feature = "http")]
pub(super) use self::server::is_trusted;
#[cfg(feature = "http")]
pub use self::server::{
    HttpBody, HttpOptions, HttpServer, HttpService, Network, NoNetwork, PeerAddress,
    PeerCertificate,
};
#[cfg(feature = "http")]
pub use crate::connection::Principal;
