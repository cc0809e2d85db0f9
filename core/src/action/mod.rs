//! Frames as messages of the action dialect: one validated pass in, appended bytes out.
//!
//! ```text
//!   request    {"action":"file.read","params":{…},"tool":…,"context":…,"metadata":{"request_id":…}}
//!   answer     {"status":"success","data":{…},"metadata":{"request_id":…}}
//!              {"status":"error","error":{"type":"RESOURCE_NOT_FOUND","message":"…"},"metadata":{…}}
//!   of a stream   {"type":"partial","data":…}   {"type":"complete","status":"success","data":…}
//!                 {"type":"error","error":{…}}
//! ```
//!
//! It stands beside [`message`](crate::message) and keeps the same laws: the whole frame is proven to be
//! JSON in the pass that finds its members, nothing is allocated, and a request's id is the peer's
//! property: any JSON value, echoed as it was spelled (R-ACT-04).

mod decode;
pub mod encode;
mod error_type;
mod fault;
mod keys;
mod record;
mod version;
mod view;

#[cfg(feature = "server")]
use std::borrow::Cow;

#[cfg(feature = "server")]
use crate::message::{Dialect, MessageRef};

pub use decode::decode;
pub use error_type::ErrorType;
pub use fault::Fault;
#[cfg(feature = "server")]
pub(crate) use record::TOOL;
pub use record::{Field, Kind, Record};
pub use version::{Version, negotiate};
pub use view::ActionRef;

/// The process or state that the call of an action belongs to, as its client names it; `None` for
/// what is no action, and where none is named.
#[cfg(feature = "server")]
pub fn context_of<'a>(call: &MessageRef<'a>) -> Option<Cow<'a, str>> {
    match call.dialect() {
        Dialect::Rpc => None,
        _ => call.decoded(record::CONTEXT),
    }
}

/// Whether a frame begins as most clients write a request, and nothing in it speaks of JSON-RPC
/// (R-ERA-14). What does not may be one, too: that takes a closer look.
#[inline]
pub(crate) fn begins(frame: &[u8]) -> bool {
    frame.starts_with(b"{\"action\"") && memchr::memmem::find(frame, b"\"jsonrpc\"").is_none()
}

/// Whether a request, raw JSON, says that its answer may come in parts, on a carrier that has no
/// other way to say so: `"stream":true` in its metadata.
#[cfg(feature = "http-client")]
pub(crate) fn is_streamed(request: &str) -> bool {
    let metadata = crate::json::reader::find(request, "metadata");
    metadata.is_some_and(wants_stream)
}

/// The same of the metadata.
pub(crate) fn wants_stream(metadata: &str) -> bool {
    crate::json::reader::find(metadata, "stream") == Some("true")
}

#[cfg(test)]
mod tests;
