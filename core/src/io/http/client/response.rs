//! Reads responses: a JSON answer, a stream of events, or an error status.

use bytes::Bytes;
use hyper::header::CONTENT_TYPE;
use serde_json::Value;

use super::connections::HttpResponse;
use super::failure::refused;
use crate::error::{CarrierError, CarrierFault, PeerError};
use crate::json::number;

/// Longest body of an error response that is read, in bytes.
pub const MAX_ERROR_BODY_BYTES: usize = 64 << 10;

/// The format of a body.
#[derive(Debug, PartialEq, Eq)]
pub enum BodyKind {
    /// One message, or several in an array.
    Json,
    /// A stream of events.
    Events,
    /// Any other format.
    Other,
}

/// The format of a body, according to its `Content-Type` (R-HTP-04).
pub fn body_kind(response: &HttpResponse) -> BodyKind {
    let Some(kind) = response.headers().get(CONTENT_TYPE) else {
        return BodyKind::Other;
    };
    let kind = kind.as_bytes().split(|&byte| byte == b';').next();
    let kind = kind.unwrap_or_default().trim_ascii();
    match () {
        () if kind.eq_ignore_ascii_case(b"application/json") => BodyKind::Json,
        () if kind.eq_ignore_ascii_case(b"text/event-stream") => BodyKind::Events,
        () => BodyKind::Other,
    }
}

/// Reads the whole body, in the pieces in which it arrived.
///
/// # Errors
/// When it is longer than `max_len` or breaks off.
pub async fn read_body(
    response: &mut HttpResponse,
    max_len: usize,
) -> Result<Vec<Bytes>, CarrierError> {
    let too_long = || CarrierError::new(CarrierFault::TooLong, "the answer is longer than allowed");
    if response.content_length() > Some(max_len as u64) {
        return Err(too_long());
    }
    let (mut pieces, mut len) = (Vec::new(), 0);
    while let Some(piece) = response.chunk().await? {
        len += piece.len();
        if len > max_len {
            return Err(too_long());
        }
        if !piece.is_empty() {
            pieces.push(piece);
        }
    }
    Ok(pieces)
}

/// An error response, with the contents of its body.
pub struct ErrorResponse {
    /// The failure of the request.
    pub error: CarrierError,
    /// The JSON-RPC error in the body, if there is one.
    pub peer: Option<PeerError>,
    /// The id of the request that the body names, if any.
    pub id: Option<u64>,
    /// The body, if it is declared as JSON.
    pub json: Vec<u8>,
}

impl ErrorResponse {
    /// Reads the rest of an error response.
    pub async fn read(mut response: HttpResponse) -> Self {
        let is_json = body_kind(&response) == BodyKind::Json;
        // If the body breaks off, the status is enough.
        let body = read_body(&mut response, MAX_ERROR_BODY_BYTES)
            .await
            .unwrap_or_default();
        let body = body.concat();
        let json = if is_json { body.clone() } else { Vec::new() };
        let said: Value = serde_json::from_slice(&json).unwrap_or_default();
        let peer = peer(&said);
        let text = match &peer {
            Some(peer) => (*peer.message).into(),
            None => String::from_utf8_lossy(&body),
        };
        Self {
            error: refused(&response, &text),
            id: said["id"].as_u64(),
            peer,
            json,
        }
    }

    /// Whether the response asks for credentials. Such a response answers no request.
    pub fn wants_credentials(&self) -> bool {
        self.error.status == Some(401) || self.error.authenticate.is_some()
    }
}

/// The error in a JSON-RPC message.
fn peer(message: &Value) -> Option<PeerError> {
    let error = message.get("error")?;
    Some(PeerError {
        code: number::as_i64(&error.get("code")?.to_string())?,
        message: error.get("message")?.as_str()?.into(),
        data: error.get("data").map(|data| data.to_string().into()),
    })
}
