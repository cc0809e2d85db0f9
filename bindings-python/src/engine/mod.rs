//! The protocol engine without I/O, for building frameworks and transports. Public as `mcpbolt.engine`.

mod clock;
pub mod codec;
pub mod connection;
pub mod events;
pub mod message;
