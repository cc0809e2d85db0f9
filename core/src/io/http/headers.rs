//! What the headers of a request say of it, against what it says itself (R-HDR).

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hyper::header::{HeaderMap, HeaderValue};

use crate::mcp::{ErrorKind, Method};
use crate::message::{Field, MessageRef};

const VERSION: &str = "mcp-protocol-version";
const METHOD: &str = "mcp-method";
const NAME: &str = "mcp-name";

/// Holds the standard headers against the message (R-HDR-02, R-HDR-04).
///
/// # Errors
/// What does not fit, as a sentence.
pub fn check(headers: &HeaderMap, message: &MessageRef<'_>) -> Result<(), (ErrorKind, String)> {
    let mismatch = |why: String| (ErrorKind::HeaderMismatch, why);
    let method = message.method().unwrap_or_default();
    let own_version = message.decoded(Field::ProtocolVersion);
    if method == Method::Initialize.name() && own_version.is_none() {
        // R-ERA-06: who still begins so is told what is spoken here.
        return Ok(());
    }
    let version = value(headers, VERSION).map_err(mismatch)?;
    match (own_version, version) {
        (Some(own), Some(said)) if own == said => {}
        // R-ERA-05: that it is missing there is told by who looks at the envelope.
        (None, Some(_)) => {}
        (_, Some(said)) => return Err(mismatch(differs("MCP-Protocol-Version", &said))),
        (_, None) => return Err(mismatch("MCP-Protocol-Version is missing".into())),
    }
    match value(headers, METHOD).map_err(mismatch)? {
        Some(said) if said == method => {}
        Some(said) => return Err(mismatch(differs("Mcp-Method", &said))),
        None => return Err(mismatch("Mcp-Method is missing".into())),
    }
    let own = match Method::parse(&method) {
        Some(Method::CallTool | Method::GetPrompt) => message.name(),
        Some(Method::ReadResource) => message.uri(),
        _ => None,
    };
    let Some(own) = own else { return Ok(()) };
    match value(headers, NAME).map_err(mismatch)? {
        Some(said) if decoded(&said).map_err(mismatch)? == own => Ok(()),
        Some(said) => Err(mismatch(differs("Mcp-Name", &said))),
        None => Err(mismatch("Mcp-Name is missing".into())),
    }
}

fn differs(name: &str, said: &str) -> String {
    format!("{name} says {said:?}, the message does not")
}

/// A header's value, trimmed; it may be there once.
fn value<'h>(headers: &'h HeaderMap, name: &str) -> Result<Option<Cow<'h, str>>, String> {
    let mut all = headers.get_all(name).iter();
    let (first, second) = (all.next(), all.next());
    if second.is_some() {
        return Err(format!("{name} is there more than once"));
    }
    Ok(first.map(|value| text(value)))
}

/// Bytes beyond ASCII are looked at as UTF-8: they never equal what a sender may say plainly.
fn text(value: &HeaderValue) -> Cow<'_, str> {
    let bytes = value.as_bytes().trim_ascii();
    String::from_utf8_lossy(bytes)
}

/// A value that may be wrapped, because it cannot stand in a header as it is (R-HDR-03).
fn decoded(said: &str) -> Result<Cow<'_, str>, String> {
    let wrapped = said.strip_prefix("=?base64?");
    let Some(wrapped) = wrapped.and_then(|rest| rest.strip_suffix("?=")) else {
        return Ok(Cow::Borrowed(said));
    };
    let bytes = STANDARD.decode(wrapped).ok();
    let text = bytes.and_then(|bytes| String::from_utf8(bytes).ok());
    text.map(Cow::Owned)
        .ok_or_else(|| format!("{said:?} is not base64 of UTF-8"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// R-HDR-03, R-HDR-04.
    #[test]
    fn wrapped_values_are_decoded_and_others_taken_as_they_are() {
        assert_eq!(decoded("=?base64?w6Q=?=").as_deref(), Ok("ä"));
        for plain in ["echo", "=?BASE64?w6Q=?=", "=?base64?w6Q=", "base64?w6Q=?="] {
            assert_eq!(decoded(plain).as_deref(), Ok(plain));
        }
        for broken in ["=?base64?w6Q?=", "=?base64?w*Q=?=", "=?base64?/w==?="] {
            assert!(decoded(broken).is_err(), "{broken}");
        }
    }
}
