//! Headers that repeat fields of a message of 2026-07-28 (R-HDR), and the header of the session.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hyper::header::{HeaderMap, HeaderName, HeaderValue};

use super::transport::SESSION;
use crate::json::{number, reader};
use crate::mcp::header::HeaderParam;

pub const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");

/// The largest integer that every peer represents exactly (R-HDR-07).
const MAX_INTEGER: f64 = 9_007_199_254_740_991.0;

/// The session id in the headers of a response, if it is valid (R-SES-02).
pub fn session_id(head: &HeaderMap) -> Option<HeaderValue> {
    let visible = |id: &&HeaderValue| id.as_bytes().iter().all(u8::is_ascii_graphic);
    let id = head.get(SESSION).filter(|id| !id.is_empty());
    // A copy, since a clone would hold the buffer that the whole head was read into.
    HeaderValue::from_bytes(id.filter(visible)?.as_bytes()).ok()
}

/// Adds headers for the method of a message, and for the name of its target (R-HDR-01, R-HDR-12).
pub fn add_message_headers(headers: &mut HeaderMap, method: Option<&str>, target: Option<&str>) {
    if let Some(method) = method {
        insert(headers, METHOD, method);
    }
    if let Some(name) = target {
        insert(headers, NAME, name);
    }
}

/// Adds headers for the arguments that the tool's schema wants in headers (R-HDR-05).
pub fn add_argument_headers(headers: &mut HeaderMap, params: &[HeaderParam], arguments: &str) {
    for param in params {
        let path: Vec<_> = param.path.iter().map(String::as_str).collect();
        let value = reader::find_path(arguments, &path).and_then(text);
        if let (Some(value), Ok(name)) = (value, HeaderName::try_from(&*param.header)) {
            insert(headers, name, &value);
        }
    }
}

/// The header text of an argument; `None` for `null`, objects and arrays.
fn text(value: &str) -> Option<Cow<'_, str>> {
    match value.as_bytes().first()? {
        b'"' => reader::as_str(value),
        b't' | b'f' => Some(value.into()),
        b'-' | b'0'..=b'9' => {
            let number = number::as_f64(value)?;
            match number.fract() == 0.0 && number.abs() <= MAX_INTEGER {
                // 42.0 and 4.2e1 are written as 42.
                true => Some(format!("{number:.0}").into()),
                false => Some(value.into()),
            }
        }
        _ => None,
    }
}

fn insert(headers: &mut HeaderMap, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(&encoded(value)) {
        headers.insert(name, value);
    }
}

/// Encodes a value in base64 if a header would not preserve it (R-HDR-03).
fn encoded(value: &str) -> Cow<'_, str> {
    let plain = value.bytes().all(|byte| matches!(byte, b' '..=b'~'));
    let edged = value.starts_with(' ') || value.ends_with(' ');
    let looks_encoded = value.starts_with("=?base64?") && value.ends_with("?=");
    match plain && !edged && !looks_encoded {
        true => Cow::Borrowed(value),
        false => Cow::Owned(format!("=?base64?{}?=", STANDARD.encode(value))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// R-HDR-03.
    #[test]
    fn values_that_would_not_come_through_are_encoded() {
        for plain in ["", "echo", "a b", "=?base64?w6Q=", "=?BASE64?w6Q=?=", "~!"] {
            assert_eq!(encoded(plain), plain);
        }
        for (value, expected) in [
            ("ä", "=?base64?w6Q=?="),
            (" a", "=?base64?IGE=?="),
            ("a ", "=?base64?YSA=?="),
            ("a\tb", "=?base64?YQli?="),
            ("a\r\nb", "=?base64?YQ0KYg==?="),
            ("\u{7f}", "=?base64?fw==?="),
            ("=?base64?w6Q=?=", "=?base64?PT9iYXNlNjQ/dzZRPT89?="),
        ] {
            assert_eq!(encoded(value), expected, "{value:?}");
        }
    }

    /// R-HDR-05.
    #[test]
    fn arguments_are_said_in_words() {
        let param = |header: &str, path: &[&str]| HeaderParam {
            header: format!("mcp-param-{header}"),
            path: path.iter().map(|step| (*step).to_owned()).collect(),
        };
        let params = ["s", "e", "i", "f", "big", "huge", "t", "n", "o", "gone"]
            .map(|name| param(name, &[name]))
            .into_iter()
            .chain([param("deep", &["in", "x"])])
            .collect::<Vec<_>>();
        let arguments = r#"{"s":"\u0061b","e":"","i":-42,"f":42.0,"big":1e3,"huge":1e300,"t":false,"n":null,"o":{},"in":{"x":"y"}}"#;
        let mut headers = HeaderMap::new();
        add_argument_headers(&mut headers, &params, arguments);
        let said = |name: &str| {
            headers
                .get(format!("mcp-param-{name}"))
                .map(|v| v.to_str().unwrap())
        };
        for (name, value) in [
            ("s", "ab"),
            ("e", ""),
            ("i", "-42"),
            ("f", "42"),
            ("big", "1000"),
            ("huge", "1e300"),
            ("t", "false"),
            ("deep", "y"),
        ] {
            assert_eq!(said(name), Some(value), "{name}");
        }
        for none in ["n", "o", "gone"] {
            assert_eq!(said(none), None, "{none}");
        }
    }
}
