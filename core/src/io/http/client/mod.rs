//! Clients on HTTP: Streamable HTTP of every revision, the two endpoints of 2024-11-05, and actions.
//!
//! ```text
//!   handles ─▶ Connection ─▶ driver ─┬─▶ requests: one message, answered as JSON or events
//!                 ▲                  ├─▶ requests::stand: messages of no request (handshake era)
//!                 │                  ├─▶ renewal: a new session for one that has ended
//!                 │                  ├─▶ legacy_sse: one stream for all answers  (2024-11-05)
//!                 │                  ╰─▶ actions: one request of the action dialect
//!                 ╰── messages ── exchange: reads what is answered, and resumes it
//! ```
//!
//! Everything of one client runs in one task: the connection is driven where its answers arrive.
//!
//! | file | what it is for |
//! |---|---|
//! | `options` | the options of a client |
//! | `connector` | opens connections: names, proxies, TLS |
//! | `connections`, `failure` | requests and responses on them; what failures mean |
//! | `transport` | requests to one server: its URL, credentials, redirects |
//! | `outgoing`, `message_headers` | one outgoing message, and the headers that repeat its fields |
//! | `event_reader`, `response` | parsing of responses |
//! | `exchange` | what answers a request, passed to a sink; a stream is resumed when it breaks off |
//! | `engine` | the connection and its application, and the sink that feeds it |
//! | `carrier` | the state that all tasks of a client share |
//! | `requests`, `renewal`, `legacy_sse`, `actions` | the tasks of the drawing |
//! | `driver_tasks` | the tasks of a driver, and the requests among them |
//! | `driver` | polls the parts in turn |
//! | `known_openings` | servers that are known to begin with a handshake |
//! | `relay` | the same transport for another program's client, without an engine connection |
//! | `authorization`, `logout` | logins, with the feature `oauth` |
//! | `open` | [`ClientBuilder::http`](crate::client::ClientBuilder::http) |

mod actions;
#[cfg(feature = "oauth")]
mod authorization;
mod carrier;
mod connections;
mod connector;
mod driver;
mod driver_tasks;
mod engine;
mod event_reader;
mod exchange;
mod failure;
mod known_openings;
mod legacy_sse;
#[cfg(feature = "oauth")]
mod logout;
mod message_headers;
mod open;
mod options;
mod outgoing;
mod relay;
mod renewal;
mod requests;
mod response;
mod transport;

#[cfg(feature = "oauth")]
pub use self::authorization::{Authorization, Hooked, LoggedOut, LoginHooks, WithBrowser};
#[cfg(feature = "resource-server")]
pub(super) use self::connections::{HttpConnections, uri};
pub use self::options::{HttpClientOptions, Proxy};
pub use self::relay::{Relay, RelayEvent, RelayOptions, SendOptions};
#[cfg(feature = "resource-server")]
pub(super) use self::response::read_body;
pub(in crate::io) use self::transport::SharedTransport;

/// Connections with the proxy, the roots and the certificate of `options`.
///
/// # Errors
/// When an option is not valid.
#[cfg(feature = "resource-server")]
pub(super) fn connections_by(options: &HttpClientOptions) -> std::io::Result<HttpConnections> {
    let certificate = options.certificate.as_ref();
    let settings = options.connections(certificate, &connections::PROTOCOLS)?;
    Ok(HttpConnections::new(settings, None))
}
