//! Drivers: the only room that blocks, spawns, reads a clock or names a descriptor.
//!
//! One loop serves one connection, driven by one thread at a time: a thread of its own, or, on a
//! server, whichever worker leads. It never waits for a handler, a writer or the peer. Linux is tested; the paths for other systems are portable and untested.
//!
//! | file | what it is for |
//! |---|---|
//! | `driver`, `wake` | the loop: one turn of work, one wait for more, waking it from elsewhere |
//! | `machine`, `hosted` | what the loop drives: a connection and its application |
//! | `stdio` | a server on this process's stdin and stdout, and when it ends |
//! | `child`, `shutdown`, `drain`, `lines`, `environment` | a server as a child, from start to end |
//! | `serve`, `spawn`, `pair` | both, without a loop of one's own; a client and a server in one process |
//! | `http` | servers on HTTP, on hyper and tokio |
//! | `trace` | the wire, written to a file |
//! | `workers`, `crew` | threads for handlers, which may drive a server's loop too |
//! | `unix`, `portable`, `blocking` | descriptors, processes, signals; what cannot be polled |

mod blocking;
mod child;
mod crew;
mod drain;
mod driver;
mod environment;
mod hosted;
#[cfg(feature = "http")]
pub mod http;
mod lines;
mod machine;
mod pair;
#[cfg(not(unix))]
mod portable;
#[cfg(feature = "client")]
mod reconnect;
mod serve;
mod shutdown;
#[cfg(feature = "client")]
mod spawn;
mod stdio;
mod trace;
#[cfg(unix)]
mod unix;
mod wake;
mod workers;

#[cfg(not(unix))]
use portable as platform;
#[cfg(unix)]
use unix as platform;

pub use child::{Child, ChildCommand, Exit, Stderr};
pub use driver::{Driver, Stop};
pub use environment::INHERITED;
pub use hosted::Hosted;
pub use lines::MAX_LINE_BYTES;
pub use machine::Machine;
#[cfg(all(feature = "server", feature = "client"))]
pub use pair::connect_pair;
pub use pair::join;
pub use platform::{ReadEnd, WriteEnd};
#[cfg(feature = "client")]
pub use reconnect::{Backoff, Reconnecting};
pub use serve::Running;
#[cfg(feature = "server")]
pub use serve::serve_stdio;
pub use shutdown::{Step, Waits};
pub use stdio::{Ended, Report, Stdio, StdioOptions};
pub use trace::{TRACE_VARIABLE, trace_to, traced};
pub use wake::LoopWake;
pub use workers::{Workers, WorkersConfig};
