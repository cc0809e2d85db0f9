//! Drivers: the only rooms that block, spawn, read a clock or name a descriptor.
//!
//! One thread runs one loop over one connection; it never waits for a handler, for a writer or
//! for the peer. Linux is tested; the paths for other systems are portable and untested.

mod blocking;
#[cfg(unix)]
mod child;
#[cfg(unix)]
mod descriptor;
#[cfg(unix)]
mod drain;
mod driver;
mod environment;
mod hosted;
mod lines;
mod machine;
#[cfg(unix)]
mod parent;
#[cfg(unix)]
mod process;
#[cfg(unix)]
mod redirect;
#[cfg(unix)]
mod serve;
mod shutdown;
#[cfg(unix)]
mod signals;
#[cfg(unix)]
mod stdio;
mod wake;
mod workers;

pub use child::{Child, ChildCommand, Exit, Stderr};
pub use descriptor::{ReadEnd, WriteEnd};
pub use driver::{Driver, Stop};
pub use environment::INHERITED;
pub use hosted::Hosted;
pub use lines::MAX_LINE_BYTES;
pub use machine::Machine;
pub use serve::Running;
#[cfg(feature = "server")]
pub use serve::serve_stdio;
pub use shutdown::{Step, Waits};
pub use stdio::{Ended, Report, Stdio, StdioOptions};
pub use wake::LoopWake;
pub use workers::{Workers, WorkersConfig};
