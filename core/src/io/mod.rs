//! Drivers: the only module that blocks, spawns threads or tasks, reads a clock or uses file
//! descriptors.
//!
//! One loop serves one connection, driven by one thread at a time: a thread of its own or, on a server,
//! the worker that currently leads. The loop never waits for a handler, a writer or the peer. Linux is
//! tested; the code paths for other systems are portable but untested.
//!
//! | file | what it is for |
//! |---|---|
//! | `address`, `auth` | a server's address in one syntax; the credentials that a client sends |
//! | `driver`, `wake` | the loop: one turn of work, one wait for more, and waking it from another thread |
//! | `machine`, `hosted` | what the loop drives: a connection and its application |
//! | `stdio` | a server on this process's stdin and stdout, and when it ends |
//! | `helped` | turns of that server's loop on the thread that has an answer, while the loop sleeps |
//! | `child`, `shutdown`, `stderr`, `lines`, `environment` | a server as a child process, from start to end |
//! | `open` | connects a client to a server at any kind of address |
//! | `links` | how a chain reaches its server, and where its front is served |
//! | `serve` | `Server::serve`, `serve_stdio`, `serve_on`, `serve_transport`, `run` |
//! | `client_stream` | `ClientBuilder::connect_on`, `connect_transport` |
//! | `prefixed` | messages of a carrier of the program's own, as a byte stream |
//! | `spawn`, `running`, `pair` | clients of a child process; a client and a server in one process |
//! | `supervise` | several processes that serve one address |
//! | `net` | TCP, Unix sockets and WebSocket, on tokio |
//! | `login` | a browser for the user of a login, and the address it comes back to |
//! | `http` | servers and clients on HTTP, on hyper, reqwest and tokio |
//! | `redis`, `store_keys` | a shared store on a server of Redis or Valkey; the file with the keys of a store |
//! | `task`, `wait` | the loop around one connection on one byte stream, as a tokio task; waiting in tasks |
//! | `tokio_spawner` | handlers as tasks of a program's own tokio runtime |
//! | `ended` | the wait for the ends of client connections |
//! | `runtime`, `trust` | the tokio runtime of clients; trusted roots |
//! | `wire` | a pipe beneath a protocol that the program implements itself |
//! | `shares` | bounded tables that many sources share, and which entry is evicted when one is full |
//! | `faults` | errors of the caller |
//! | `trace`, `event` | the messages of a connection, written to a file; events for `tracing` |
//! | `workers` | threads for handlers, which may also drive a server's event loop |
//! | `ends`, `blocking` | the ends of a byte stream: by readiness, or by a thread |
//! | `unix`, `portable` | descriptors, processes, signals |

#[cfg(feature = "http")]
#[macro_use]
mod event;

mod address;
#[cfg(feature = "client")]
mod auth;
mod blocking;
mod child;
#[cfg(all(unix, feature = "net", feature = "client"))]
mod child_task;
#[cfg(all(feature = "client", feature = "tokio"))]
mod client_stream;
mod driver;
mod ended;
mod ends;
mod environment;
#[cfg(any(feature = "client", feature = "net"))]
mod faults;
mod helped;
mod hosted;
#[cfg(any(feature = "http", feature = "http-client"))]
pub mod http;
mod lines;
#[cfg(all(feature = "server", feature = "client"))]
mod links;
#[cfg(feature = "oauth")]
pub mod login;
mod machine;
#[cfg(feature = "net")]
mod net;
#[cfg(feature = "client")]
mod oneshot;
#[cfg(feature = "net")]
mod open;
mod pair;
#[cfg(feature = "client")]
mod pool;
#[cfg(not(unix))]
mod portable;
#[cfg(all(feature = "codec", any(feature = "server", feature = "client")))]
mod prefixed;
#[cfg(feature = "client")]
mod reconnect;
#[cfg(feature = "redis")]
mod redis;
mod running;
#[cfg(feature = "net")]
mod runtime;
#[cfg(feature = "server")]
mod serve;
#[cfg(feature = "http")]
mod shares;
mod shutdown;
#[cfg(feature = "client")]
mod spawn;
mod stderr;
mod stdio;
#[cfg(feature = "sealing")]
mod store_keys;
#[cfg(all(unix, feature = "http"))]
mod supervise;
#[cfg(all(feature = "tokio", any(feature = "server", feature = "client")))]
mod task;
#[cfg(feature = "tokio")]
mod tokio_spawner;
mod trace;
#[cfg(any(feature = "http-client", feature = "tls"))]
mod trust;
#[cfg(unix)]
mod unix;
#[cfg(all(feature = "tokio", any(feature = "server", feature = "client")))]
mod wait;
mod wake;
mod wire;
mod workers;

#[cfg(not(unix))]
use portable as platform;
#[cfg(unix)]
use unix as platform;

#[cfg(feature = "redis")]
pub use self::redis::{RedisOptions, RedisStore};
pub use address::{Address, AddressError, Url};
#[cfg(feature = "client")]
pub use auth::{Auth, ClientCertificate};
pub use child::{Child, ChildCommand, Exit, Stderr};
pub use driver::{Driver, Poller, Stop};
pub use ended::wait_for_clients;
pub use ends::{ReadEnd, WriteEnd};
pub use environment::INHERITED;
pub use helped::StdioHelper;
pub use hosted::Hosted;
pub use lines::MAX_LINE_BYTES;
pub use machine::Machine;
#[cfg(feature = "http")]
pub use net::listener::Listener;
#[cfg(feature = "http")]
pub use net::metrics::{Counts, Metrics};
#[cfg(feature = "http")]
pub use net::serve::{ServeOptions, Serving, Stopper, TlsOptions, serve, serve_with};
#[cfg(feature = "net")]
pub use open::ConnectOptions;
#[cfg(all(feature = "server", feature = "client"))]
pub use pair::connect_pair;
pub use pair::join;
#[cfg(feature = "net")]
pub use pool::PoolTarget;
#[cfg(feature = "client")]
pub use pool::{
    Pool, PoolAsked, PoolCounts, PoolError, PoolGrant, PoolLedger, PoolOptions, Pooled,
};
#[cfg(feature = "client")]
pub use reconnect::{Backoff, Reconnecting};
pub use running::Running;
#[cfg(feature = "http")]
pub use serve::OnAddress;
#[cfg(all(feature = "server", feature = "tokio"))]
pub use serve::OnStream;
#[cfg(all(feature = "server", feature = "codec"))]
pub use serve::OnTransport;
#[cfg(feature = "server")]
pub use serve::{OnStdio, Serve};
pub use shutdown::{Step, Waits};
pub use stdio::{Ended, Report, Stdio, StdioOptions};
#[cfg(feature = "sealing")]
pub use store_keys::read_store_keys;
#[cfg(all(unix, feature = "http"))]
pub use supervise::{Supervising, SupervisionState, Supervisor, SupervisorOptions, WorkerProcess};
pub use trace::{TRACE_VARIABLE, trace_to, traced};
pub use wake::LoopWake;
pub use wire::{Wire, WireEvent, WireHandle};
pub use workers::{Workers, WorkersConfig};
