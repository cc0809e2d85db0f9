//! Checks the headers of a request against its message (R-HDR).

use std::borrow::Cow;
use std::fmt::Display;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hyper::header::{HeaderMap, HeaderName, HeaderValue};

use super::headers::{METHOD, NAME, RequestHeaders, VERSION, Values};
use crate::json::reader;
use crate::mcp::header::HeaderParam;
use crate::mcp::{ErrorKind, Method};
use crate::message::{Field, MessageRef};
use crate::server::Registry;

/// Compares the headers with the message (R-HDR-02, R-HDR-04).
///
/// # Errors
/// A sentence that says which header does not match.
pub fn check(
    headers: &RequestHeaders<'_>,
    message: &MessageRef<'_>,
    registry: &Registry,
) -> Result<(), (ErrorKind, String)> {
    fits(headers, message, registry).map_err(|why| (ErrorKind::HeaderMismatch, why))
}

/// Whether a header that occurs once equals, byte by byte, a field of the message that is a string
/// without escapes: the fast path.
fn says(values: &[&HeaderValue], message: &MessageRef<'_>, field: Field) -> bool {
    let [said] = values else { return false };
    let token = message.raw_bytes(field);
    let own = token.and_then(|token| token.strip_prefix(b"\"")?.strip_suffix(b"\""));
    own.is_some_and(|own| own == said.as_bytes() && own.iter().all(|byte| is_plain(*byte)))
}

/// Whether a byte stands for itself both in a JSON string and in a header.
fn is_plain(byte: u8) -> bool {
    matches!(byte, b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'/' | b':')
}

fn fits(
    headers: &RequestHeaders<'_>,
    message: &MessageRef<'_>,
    registry: &Registry,
) -> Result<(), String> {
    let method = message.method().unwrap_or_default();
    if !says(&headers.version, message, Field::ProtocolVersion)
        || !says(&headers.method, message, Field::Method)
    {
        let version = message.decoded(Field::ProtocolVersion);
        if method == Method::Initialize.name() && version.is_none() {
            // R-ERA-06: a client that still begins with a handshake is told which revisions are spoken.
            return Ok(());
        }
        let said = needed(&headers.version, &VERSION)?;
        // R-ERA-05: a version that the message lacks is reported by the check of the envelope.
        if version.is_some_and(|own| own != said) {
            return Err(differs(&VERSION, &said));
        }
        let said = needed(&headers.method, &METHOD)?;
        if said != method {
            return Err(differs(&METHOD, &said));
        }
    }
    let method = Method::parse(&method);
    let field = match method {
        Some(Method::CallTool | Method::GetPrompt) => Some(Field::Name),
        Some(Method::ReadResource) => Some(Field::Uri),
        _ => None,
    };
    let own = match method {
        _ if let Some(field) = field => message.decoded(field),
        // R-TSX-15
        Some(Method::GetTask | Method::UpdateTask | Method::CancelTask) => {
            let params = message.params().unwrap_or("{}");
            reader::find(params, "taskId").and_then(reader::as_str)
        }
        _ => None,
    };
    let Some(own) = own else { return Ok(()) };
    if !field.is_some_and(|field| says(&headers.name, message, field)) {
        let said = needed(&headers.name, &NAME)?;
        if decoded(&said)? != own {
            return Err(differs(&NAME, &said));
        }
    }
    let tool = match method {
        Some(Method::CallTool) => registry.tool(&own),
        _ => None,
    };
    let mirrored = match (tool, method) {
        (None, Some(Method::CallTool)) => registry.mirrored(&own),
        _ => None,
    };
    let params = match tool {
        Some(number) => registry.header_params(number),
        None => mirrored.as_deref().unwrap_or_default(),
    };
    if params.is_empty() {
        return Ok(());
    }
    let arguments = message.arguments().unwrap_or("{}");
    params
        .iter()
        .try_for_each(|param| check_param(headers.all, param, arguments))
}

/// Compares the header of one argument with the argument (R-HDR-05, R-HDR-06, R-HDR-13).
fn check_param(headers: &HeaderMap, param: &HeaderParam, arguments: &str) -> Result<(), String> {
    let path: Vec<_> = param.path.iter().map(String::as_str).collect();
    let own = reader::find_path(arguments, &path).filter(|own| *own != "null");
    let values: Values<'_> = headers.get_all(&*param.header).iter().collect();
    let said = value(&values, &param.header)?;
    let (own, said) = match (own, said) {
        (None, None) => return Ok(()),
        (Some(own), Some(said)) => (own, said),
        (Some(_), None) => return Err(missing(&param.header)),
        (None, Some(said)) => return Err(differs(&param.header, &said)),
    };
    let plain = decoded(&said)?;
    let same = match reader::as_str(own) {
        Some(own) => own == plain,
        // Numbers are compared by value: 42.0 equals 42.
        None => plain == own || number(&plain).is_some_and(|said| number(own) == Some(said)),
    };
    match same {
        true => Ok(()),
        false => Err(differs(&param.header, &said)),
    }
}

fn number(text: &str) -> Option<f64> {
    text.parse().ok().filter(|number: &f64| number.is_finite())
}

fn missing(name: impl Display) -> String {
    format!("{name} is missing")
}

fn differs(name: impl Display, said: &str) -> String {
    format!("{name} says {said:?}, the message does not")
}

/// The value of a required header.
fn needed<'h>(values: &[&'h HeaderValue], name: &HeaderName) -> Result<Cow<'h, str>, String> {
    value(values, name)?.ok_or_else(|| missing(name))
}

/// The trimmed value of a header, which may occur at most once.
fn value<'h>(
    values: &[&'h HeaderValue],
    name: impl Display,
) -> Result<Option<Cow<'h, str>>, String> {
    match values {
        [] => Ok(None),
        [value] => Ok(Some(text(value))),
        _ => Err(format!("{name} occurs more than once")),
    }
}

/// Bytes beyond ASCII are read as UTF-8; they never equal a value that a sender may write unencoded.
fn text(value: &HeaderValue) -> Cow<'_, str> {
    let bytes = value.as_bytes().trim_ascii();
    String::from_utf8_lossy(bytes)
}

/// Decodes a value that is base64-wrapped because a header cannot carry it as it is (R-HDR-03).
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
