//! Reads the errors that a peer answers with.

use crate::error::{PeerError, RequestError};
use crate::json::{number, reader};
use crate::mcp::code::{self, REQUEST_CANCELLED};
use crate::message::MessageRef;

/// Reads the peer's error.
pub(super) fn peer_error(message: &MessageRef<'_>) -> PeerError {
    read_error(message.error().unwrap_or("{}"))
}

/// Reads an error object; replaces missing members by defaults.
pub(crate) fn read_error(error: &str) -> PeerError {
    let text = reader::find(error, "message").and_then(reader::as_str);
    let code = reader::find(error, "code").and_then(number::as_i64);
    PeerError {
        code: code.unwrap_or(code::INTERNAL_ERROR),
        message: text.unwrap_or_default().into(),
        data: reader::find(error, "data").map(Box::from),
    }
}

/// The error that the caller of a request gets for an error of the peer.
pub(super) fn failure(error: PeerError) -> RequestError {
    match error.code {
        REQUEST_CANCELLED => RequestError::Cancelled(Some(error.message)), // R-ERR-27
        _ => RequestError::Peer(error),
    }
}
