//! The mcpbolt protocol engine.

pub mod buffer;
pub mod correlate;
pub mod error;
pub mod limits;
pub mod mcp;
