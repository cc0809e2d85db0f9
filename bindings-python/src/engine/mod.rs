//! The engine without its drivers: what a framework is made of. Public as `mcpbolt.engine`.

mod clock;
pub mod codec;
pub mod connection;
pub mod events;
pub mod message;
