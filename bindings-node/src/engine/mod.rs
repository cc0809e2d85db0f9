//! The engine without threads, for building frameworks and transports: messages, and connections that a
//! program drives itself. Public as `mcpbolt/engine`.
//!
//! As on the hot path of servers, messages cross in batches: their bytes as one buffer, and the positions of
//! their parts as integers of a table, which JavaScript reads on demand.

mod codec;
mod connection;
mod events;
mod replies;
mod rows;
