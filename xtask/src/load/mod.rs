//! The load client: speaks MCP to one server, over its pipes or HTTP, and checks everything.
//!
//! It keeps a number of calls in flight, each with a text of its own, and checks every answer: one
//! per id, the exact text, progress in order and before the answer. The cost of the server is its
//! process's CPU time, so waiting on a busy machine is not counted.

mod carrier;
mod closed_loop;
mod cores;
mod http;
mod ledger;
mod pipe;
mod scenes;
mod server;
mod session;
mod wire;

pub use carrier::Carrier;
pub use closed_loop::{Figures, Window, run};
pub use cores::as_client;
pub use http::{Http, chunks};
pub use ledger::Faults;
pub use pipe::Pipe;
pub use scenes::cancelled_sleep;
pub use server::{Server, Start};
pub use session::Session;
pub use wire::{Revision, Workload};
