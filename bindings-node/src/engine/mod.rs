//! The engine without threads, for who builds a framework or a transport: messages, and
//! connections that a program drives itself. Public as `mcpbolt/engine`.
//!
//! As on the hot path of servers, messages cross many at a time: their bytes as one buffer, and
//! what was found in them as integers of a table, which JavaScript looks at when it wants to.

mod codec;
mod connection;
mod events;
mod replies;
mod rows;
