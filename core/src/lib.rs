//! The mcpbolt protocol engine.

pub mod buffer;
pub mod error;
pub mod limits;
pub mod mcp;
