//! The wire, written down straight from the engine.

use std::io;
use std::path::Path;

use mcpbolt::connection::Trace;
use mcpbolt::io::{trace_from_environment, trace_to};
use mcpbolt::mcp::Side;

/// The trace the user asks for, or else the environment.
pub fn open(path: Option<&Path>, side: Side) -> io::Result<Option<Trace>> {
    match path {
        Some(path) => trace_to(path).map(Some),
        None => trace_from_environment(side),
    }
}
