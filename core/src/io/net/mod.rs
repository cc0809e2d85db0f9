//! Sockets: TCP, Unix and WebSocket, on tokio, both sides.
//!
//! ```text
//!   socket ─▶ [TLS] ─▶ drive ─▶ connection               a message a line, or behind its length
//!   socket ─▶ [TLS] ─▶ drive ─▶ websocket ─▶ connection  a message a text
//! ```
//!
//! One task drives one connection. It never waits for a handler, reads on while writing is
//! blocked, and is bounded in what it does before others have their turn.
//!
//! | file | what it is for |
//! |---|---|
//! | `drive` | the loop around one connection on one socket |
//! | `websocket` | a connection behind WebSocket's frames: pings, heartbeats, close codes |
//! | `handshake` | how WebSocket begins on HTTP |
//! | `reception` | connections that others open |
//! | `connect`, `upgrade` | those that this side opens |
//! | `listen`, `unix`, `serve` | sockets that are listened on; a server on any address |
//! | `threads`, `crew` | what drives a server's sockets: threads of their own, or those of handlers |
//! | `metrics` | what a server has done so far |
//! | `socket`, `tls` | what TCP sockets are set to; TLS |

pub(super) mod connect;
#[cfg(feature = "http")]
mod crew;
pub(super) mod drive;
pub(super) mod handshake;
#[cfg(feature = "http")]
pub(super) mod listen;
#[cfg(feature = "http")]
pub(super) mod metrics;
#[cfg(feature = "http")]
pub(super) mod reception;
#[cfg(feature = "http")]
pub(super) mod serve;
mod socket;
#[cfg(feature = "http")]
mod threads;
#[cfg(all(feature = "http", feature = "tls"))]
pub(super) mod tls;
#[cfg(all(unix, feature = "http"))]
mod unix;
mod upgrade;
mod websocket;
