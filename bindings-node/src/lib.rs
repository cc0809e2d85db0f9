//! The native module of the npm package `mcpbolt`, private to it. Its shape follows from the cost of crossing
//! between JavaScript and native code: everything crosses in batches.
//!
//! ```text
//!   engine thread                         │ JavaScript's thread
//!   Connection ─▶ Executor ─▶ Inbox ─▶ wake (no argument, only when it was empty)
//!                                         │ drain(): one string, one Int32Array
//!                                         │ handlers: JSON.parse of their slice
//!   Connection ◀─ submissions ◀─ Outbox ◀─┘ submit(): one string, one Float64Array, per tick
//! ```
//!
//! The engine's thread answers everything that JavaScript need not see, however busy JavaScript is:
//! handshake, ping, lists, unknown names, arguments that break their schema, calls that were cancelled while
//! they waited.

mod actions;
mod answers;
mod arrived;
mod arriving;
mod aside;
mod asking;
mod awaited;
mod caller;
mod calls;
mod chain;
mod child;
mod client;
mod command;
mod delegate;
mod describe;
mod drain;
mod engine;
mod entries;
mod error;
mod executor;
mod handler;
mod hosting;
mod inbox;
mod json;
mod kinds;
mod leaving;
mod link;
mod login;
mod mount;
mod open;
mod operation;
mod outbox;
mod outputs;
mod pair;
mod panics;
mod permissions;
mod pool;
mod questions;
mod relay;
mod reports;
mod requests;
mod result_cache;
mod serve;
mod served;
mod signals;
mod slots;
mod sockets;
mod submit;
mod supervise;
mod telemetry;
mod threads;
mod utf16;
mod verifier;
mod wire;
