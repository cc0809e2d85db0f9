//! The server's side: one endpoint for every revision, the action dialect and WebSocket.
//!
//! ```text
//!   hyper ─▶ gate ─▶ endpoint ──┬─▶ exchanges: an engine connection for one request, driven by the task
//!              │                │              that polls its answer               (2026-07-28, actions)
//!              ╰─ refusals      ╰─▶ sessions: a connection with a stream for each POST, its logs and
//!                                             their readers                (2025-03-26 to 2025-11-25)
//!
//!   only the answer ─▶ application/json      other messages before it ─▶ text/event-stream
//! ```
//!
//! | file | what it is for |
//! |---|---|
//! | `serve`, `service` | the endpoint on a socket, and as a `tower` service |
//! | `endpoint` | the line that every request passes |
//! | `gate` | the checks that every request must pass before it is served |
//! | `origin`, `media`, `credentials` | the gate's checks of the origin, the media types and the sender |
//! | `resource` | the gate's check of access tokens, and the metadata of a resource server |
//! | `forwarded`, `peer` | the address of a client, also behind proxies |
//! | `cors` | which pages may read answers |
//! | `headers`, `route`, `collect` | what headers say; how a POST is served; reading its body |
//! | `exchange`, `exchanges`, `exchange_pool` | one request on an engine connection of its own; all of them; the finished ones |
//! | `header_check` | checks the headers of a request against its body |
//! | `sessions`, `session_table` | the requests of sessions; the table of sessions |
//! | `session`, `session_bell` | one session; which task handles what handlers submit to it |
//! | `session_name` | the names of sessions, and of the streams of actions |
//! | `shared_sessions`, `session_facts` | sessions that every process accepts; what their ids say |
//! | `adoption`, `session_wishes` | accepting such a session; its subscriptions and log level |
//! | `shared_changes`, `following` | changes of lists and resources at other processes; a task that follows such |
//! | `shared_events`, `absences` | streams of sessions that any process goes on with; when the process of one is dead |
//! | `message_log`, `session_logs`, `session_reader` | the messages written on a stream of a session, and the response that reads them |
//! | `way`, `hop` | where requests of sessions go that other workers have; passing them on |
//! | `hop_body`, `hop_pool` | the bodies of these requests; the connections to other workers |
//! | `handed_over` | what a worker still takes after another one has taken over its sessions |
//! | `actions` | requests that are actions |
//! | `action_request`, `action_response` | headers and queries of actions; their statuses and headers |
//! | `action_streams` | streams of actions, kept for clients that reconnect |
//! | `carried` | bodies of this process and of other workers |
//! | `refusal`, `response`, `body`, `sse`, `gzip` | refusals, responses and their bodies |
//! | `head_timer` | the time in which the head of a request arrives |
//! | `detach`, `chunked_events` | event streams that go on without hyper's buffers |
//! | `timekeeper` | timers that outlive requests |
//! | `websocket` | WebSocket at the same path |
//! | `consent` | a consent proxy beside the endpoint |
//! | `options` | path, hosts, origins, limits |

#[cfg(feature = "sealing")]
mod absences;
mod action_request;
mod action_response;
mod action_streams;
mod actions;
#[cfg(feature = "sealing")]
mod adoption;
mod body;
mod carried;
mod chunked_events;
mod collect;
#[cfg(feature = "consent-proxy")]
mod consent;
mod cors;
mod credentials;
mod detach;
mod endpoint;
mod exchange;
mod exchange_pool;
mod exchanges;
#[cfg(feature = "sealing")]
mod following;
mod forwarded;
mod gate;
#[cfg(feature = "compression")]
mod gzip;
#[cfg(all(unix, feature = "sealing"))]
mod handed_over;
mod head_timer;
mod header_check;
mod headers;
#[cfg(unix)]
mod hop;
#[cfg(unix)]
mod hop_body;
#[cfg(unix)]
mod hop_pool;
mod media;
mod message_log;
mod options;
mod origin;
mod peer;
mod post_answer;
mod refusal;
#[cfg(feature = "resource-server")]
mod resource;
mod response;
mod route;
mod serve;
mod service;
mod session;
mod session_bell;
#[cfg(feature = "sealing")]
mod session_facts;
mod session_logs;
mod session_name;
mod session_reader;
mod session_table;
#[cfg(feature = "sealing")]
mod session_turns;
#[cfg(feature = "sealing")]
mod session_wishes;
mod sessions;
#[cfg(feature = "sealing")]
mod shared_changes;
#[cfg(feature = "sealing")]
mod shared_events;
#[cfg(feature = "sealing")]
mod shared_sessions;
mod sse;
mod timekeeper;
mod way;
mod websocket;

pub use self::body::HttpBody;
pub(in crate::io) use self::forwarded::is_trusted;
pub use self::forwarded::{Network, NoNetwork};
pub use self::options::HttpOptions;
pub use self::peer::{PeerAddress, PeerCertificate};
pub use self::serve::HttpServer;
pub use self::service::HttpService;
#[cfg(feature = "sealing")]
pub use self::shared_sessions::SharedSessions;
