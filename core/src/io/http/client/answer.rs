//! What comes back: an answer in JSON, a stream of events, or a status that is neither.

use bytes::Bytes;
use reqwest::Response;
use reqwest::header::CONTENT_TYPE;
use serde_json::Value;

use super::link::{failure, refused};
use crate::error::{CarrierError, CarrierFault, PeerError};
use crate::json::number;

/// Longest body of a refusal that is read, in bytes.
pub const REFUSAL_BYTES: usize = 64 << 10;

/// How a body is to be read.
#[derive(Debug, PartialEq, Eq)]
pub enum Kind {
    /// One message, or several in an array.
    Json,
    /// A stream of events.
    Events,
    /// Neither.
    Other,
}

/// What the head of an answer says of its body (R-HTP-04).
pub fn kind(response: &Response) -> Kind {
    let Some(kind) = response.headers().get(CONTENT_TYPE) else {
        return Kind::Other;
    };
    let kind = kind.as_bytes().split(|&byte| byte == b';').next();
    let kind = kind.unwrap_or_default().trim_ascii();
    match () {
        () if kind.eq_ignore_ascii_case(b"application/json") => Kind::Json,
        () if kind.eq_ignore_ascii_case(b"text/event-stream") => Kind::Events,
        () => Kind::Other,
    }
}

/// The whole body, in the pieces in which it came.
///
/// # Errors
/// When it is longer than `max_len` or breaks off.
pub async fn body(response: &mut Response, max_len: usize) -> Result<Vec<Bytes>, CarrierError> {
    let too_long = || CarrierError::new(CarrierFault::TooLong, "the answer is longer than allowed");
    if response.content_length() > Some(max_len as u64) {
        return Err(too_long());
    }
    let (mut pieces, mut len) = (Vec::new(), 0);
    while let Some(piece) = response.chunk().await.map_err(failure)? {
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

/// A status that is no success, and what the body says of it.
pub struct Refusal {
    /// What became of the request.
    pub error: CarrierError,
    /// The error in the body, if it is one of the protocol.
    pub peer: Option<PeerError>,
    /// The request that the body names, if it names one.
    pub id: Option<u64>,
}

impl Refusal {
    /// Reads what is left of it.
    pub async fn read(mut response: Response) -> Self {
        let json = kind(&response) == Kind::Json;
        // A body that breaks off says nothing, which the status does not need.
        let body = body(&mut response, REFUSAL_BYTES).await.unwrap_or_default();
        let body = body.concat();
        let said: Value = match json {
            true => serde_json::from_slice(&body).unwrap_or_default(),
            false => Value::Null,
        };
        let peer = peer(&said);
        let text = match &peer {
            Some(peer) => (*peer.message).into(),
            None => String::from_utf8_lossy(&body),
        };
        Self {
            error: refused(&response, &text),
            id: said["id"].as_u64(),
            peer,
        }
    }
}

/// The error that a message is.
fn peer(message: &Value) -> Option<PeerError> {
    let error = message.get("error")?;
    Some(PeerError {
        code: number::as_i64(&error.get("code")?.to_string())?,
        message: error.get("message")?.as_str()?.into(),
        data: error.get("data").map(|data| data.to_string().into()),
    })
}
