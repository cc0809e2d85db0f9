//! The action dialect: decoding in one validating pass, encoding by appending bytes.
//!
//! ```text
//!   request    {"action":"file.read","params":{…},"tool":…,"context":…,"metadata":{"request_id":…}}
//!   answer     {"status":"success","data":{…},"metadata":{"request_id":…}}
//!              {"status":"error","error":{"type":"RESOURCE_NOT_FOUND","message":"…"},"metadata":{…}}
//!   of a stream   {"type":"partial","data":…}   {"type":"complete","status":"success","data":…}
//!                 {"type":"error","error":{…}}
//! ```
//!
//! This module is the counterpart of [`message`](crate::message) and follows the same rules: the
//! pass that finds the members also validates the whole frame as JSON, nothing is allocated, and a
//! request's id belongs to the peer: any JSON value, echoed byte for byte (R-ACT-04).

mod decode;
pub mod encode;
mod error_type;
mod version;

use std::borrow::Cow;

use crate::message::{Dialect, Field, MessageRef};

pub use decode::decode;
pub use error_type::ErrorType;
pub use version::{NEWEST, Version, agree, known, negotiate};

/// The field of `tool`.
pub const TOOL: Field = Field::Uri;

/// The field of `context`.
pub const CONTEXT: Field = Field::Cursor;

/// The field of `metadata.min_protocol_version`: the oldest version that the client accepts
/// (R-ACT-38).
pub const OLDEST_VERSION: Field = Field::SubscriptionId;

/// The process or state that an action call belongs to, as its client names it. `None` if the call
/// is not an action, or names none.
pub fn context_of<'a>(call: &MessageRef<'a>) -> Option<Cow<'a, str>> {
    match call.dialect() {
        Dialect::Rpc => None,
        _ => call.decoded(CONTEXT),
    }
}

/// The path, below that of an HTTP endpoint, at which actions are streamed (R-ACT-24).
pub const STREAM: &str = "/stream";

/// The single member of `data` that only refers to the data (R-ACT-29).
pub const REFERENCE: &str = "mcp.reference";

/// The action that returns referenced data in parts.
pub const GET_DATA: &str = "mcp.get_data";

/// The action that runs a batch of actions.
pub const BATCH: &str = "batch.execute";

/// Whether a frame begins the way most clients begin a request.
#[inline]
pub fn begins(frame: &[u8]) -> bool {
    frame.starts_with(b"{\"action\"")
}

/// Whether a frame, which may be incomplete, contains no sign of JSON-RPC (R-ERA-14).
pub fn is_of_no_other(frame: &[u8]) -> bool {
    memchr::memmem::find(frame, b"\"jsonrpc\"").is_none()
}

/// Whether the metadata of a request, raw JSON, contain `"stream":true`: the answer may then be
/// streamed, over a transport that has no other way to say so.
pub fn is_streamed(request: &str) -> bool {
    crate::json::reader::find_path(request, &["metadata", "stream"]) == Some("true")
}

#[cfg(test)]
mod tests;
