//! The mcpbolt protocol engine.

pub mod buffer;
#[cfg(feature = "client")]
pub mod client;
pub mod connection;
pub mod correlate;
pub mod error;
pub mod frame;
pub mod handler;
#[cfg(feature = "stdio")]
pub mod io;
pub mod json;
pub mod limits;
pub mod mcp;
pub mod message;
pub mod scan;
#[cfg(feature = "server")]
pub mod server;
