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
pub(crate) use record::OLDEST_VERSION;
#[cfg(feature = "server")]
pub(crate) use record::TOOL;
pub use record::{Field, Kind, Record};
pub(crate) use version::{NEWEST, agree, known};
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

/// Where an endpoint of HTTP has the streams of actions, behind its own path (R-ACT-24).
#[cfg(any(feature = "http", feature = "http-client"))]
pub(crate) const STREAM: &str = "/stream";

/// The one member of data that are not there themselves, but referred to (R-ACT-29).
#[cfg(any(feature = "client", feature = "server"))]
pub(crate) const REFERENCE: &str = "mcp.reference";

/// The action that gives what is referred to, in parts.
#[cfg(any(feature = "client", feature = "server"))]
pub(crate) const GET_DATA: &str = "mcp.get_data";

/// Whether a frame begins as most clients write a request.
#[inline]
pub(crate) fn begins(frame: &[u8]) -> bool {
    frame.starts_with(b"{\"action\"")
}

/// Whether nothing in a frame speaks of JSON-RPC (R-ERA-14), as far as can be told of one that is
/// not whole.
pub(crate) fn is_of_no_other(frame: &[u8]) -> bool {
    memchr::memmem::find(frame, b"\"jsonrpc\"").is_none()
}

/// Whether a request, raw JSON, says that its answer may come in parts, on a carrier that has no
/// other way to say so: `"stream":true` in its metadata.
#[cfg(feature = "http-client")]
pub(crate) fn is_streamed(request: &str) -> bool {
    crate::json::reader::find_path(request, &["metadata", "stream"]) == Some("true")
}

#[cfg(test)]
mod tests;
