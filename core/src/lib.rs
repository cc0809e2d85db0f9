//! The mcpbolt protocol engine.
