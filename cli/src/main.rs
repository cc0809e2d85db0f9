//! The `mcpbolt` command.
fn main() {}
