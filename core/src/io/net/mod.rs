//! Servers and clients on sockets: TCP, Unix and WebSocket, on tokio.
//!
//! ```text
//!   socket ─▶ [TLS] ─▶ drive ─▶ connection               messages in lines or behind their lengths
//!   socket ─▶ [TLS] ─▶ drive ─▶ websocket ─▶ connection  one message in each text frame
//! ```
//!
//! One task drives one connection. The task never waits for a handler, keeps reading while writes are
//! blocked, and does a bounded amount of work before other tasks run.
//!
//! | file | what it is for |
//! |---|---|
//! | `websocket` | a connection on WebSocket frames: pings, heartbeats, close codes |
//! | `handshake` | the opening handshake of WebSocket on HTTP |
//! | `places` | how many connections there may be, and which give way |
//! | `reception` | connections that clients open |
//! | `connect`, `upgrade` | connections that this side opens |
//! | `listen`, `unix`, `serve` | listening sockets; a server at any address |
//! | `listener` | listening sockets that a server is handed |
//! | `tenure` | what the supervisor of several processes tells their servers |
//! | `threads` | the threads that drive a server's sockets: their own, or those of handlers |
//! | `metrics` | what a server has done so far |
//! | `turns`, `least_used` | which connections run first when more is ready than the threads can do |
//! | `trim` | memory goes back to the system when many connections have ended |
//! | `socket`, `tls` | options of TCP sockets; TLS |

pub(super) mod connect;
pub(super) mod handshake;
#[cfg(feature = "http")]
mod least_used;
#[cfg(feature = "http")]
pub(super) mod listen;
#[cfg(feature = "http")]
pub(super) mod listener;
#[cfg(feature = "http")]
pub(super) mod metrics;
#[cfg(feature = "http")]
pub(super) mod places;
#[cfg(feature = "http")]
pub(super) mod reception;
#[cfg(feature = "http")]
pub(super) mod serve;
mod socket;
#[cfg(feature = "http")]
pub(super) mod tenure;
#[cfg(feature = "http")]
mod threads;
#[cfg(all(feature = "http", feature = "tls"))]
pub(super) mod tls;
#[cfg(feature = "http")]
mod trim;
#[cfg(feature = "http")]
pub(super) mod turns;
#[cfg(all(unix, feature = "http"))]
mod unix;
mod upgrade;
mod websocket;
