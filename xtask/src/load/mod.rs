//! Servers under test: how to start them, a client for single requests that checks what it gets, and `mcpbolt load` for
//! calls in numbers.
//!
//! The client is written apart from the engine, so that it takes nothing from the engine for granted. The cost of a server
//! is its process's CPU time, so waiting on a busy machine is not counted.

mod carrier;
mod cores;
mod generator;
mod http;
mod pipe;
mod scenes;
mod server;
mod session;
mod wire;

pub use carrier::Carrier;
pub use cores::as_client;
pub use generator::{Calls, Faults, Figures, Generator, Load, To};
pub use http::{Http, chunks};
pub use pipe::Pipe;
pub use scenes::cancelled_sleep;
pub use server::{Server, Start};
pub use session::Session;
pub use wire::Revision;
