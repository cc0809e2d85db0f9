//! JSON-RPC 2.0 messages in and out of bytes, without copies: the codec beneath `mcpbolt`, which programs
//! that speak MCP depend on instead.
//!
//! ```
//! use mcpbolt_codec::message::{Envelope, Kind, decode_unpadded};
//!
//! let call = br#"{"jsonrpc":"2.0","id":7,"method":"add","params":{"a":1}}"#;
//! let mut envelope = Envelope::new();
//! decode_unpadded(call, 128, &mut envelope)?;
//! assert_eq!(envelope.kind(), Kind::Request);
//! # Ok::<(), mcpbolt_codec::json::DecodeError>(())
//! ```
//!
//! Ids such as `R-RPC-05` name rows of [`mcpbolt::requirements`](https://docs.rs/mcpbolt/latest/mcpbolt/requirements/).
//!
//! Bytes rise from [`buffer`] through [`frame`] to [`message`], and messages are written to a [`buffer`]
//! again. [`action`] does the same for the action dialect. [`json`] reads and writes what a message
//! contains; [`scan`] has the kernels that all use.
#![deny(unsafe_code)]

pub mod action;
pub mod buffer;
pub mod error;
pub mod frame;
pub mod json;
pub mod limits;
pub mod message;
#[allow(unsafe_code)]
pub mod scan;
