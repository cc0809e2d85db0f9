//! An optional callback that sees every frame of a connection, with secrets masked.

use std::fmt;
use std::sync::Arc;

use crate::json::{DecodeErrorKind, reader, string};
use crate::panics::contain;

/// The direction of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// From the peer.
    In,
    /// To the peer.
    Out,
}

/// Callback for every frame. Called on the driver's thread; must not block. A connection without one
/// pays nothing.
#[derive(Clone)]
pub struct Trace(Arc<Report>);

type Report = dyn Fn(Direction, &str) + Send + Sync;

impl Trace {
    /// Passes each frame, [redacted](redact), to `report`.
    pub fn new(report: impl Fn(Direction, &str) + Send + Sync + 'static) -> Self {
        Self(Arc::new(report))
    }

    /// Reports a frame. A callback that panics affects nothing else.
    pub(crate) fn note(&self, direction: Direction, frame: &[u8]) {
        let shown = match std::str::from_utf8(frame) {
            Ok(text) => match crate::json::validate(frame, MAX_DEPTH) {
                Ok(()) => redact(text),
                Err(error) if error.kind == DecodeErrorKind::TooDeep => {
                    format!("<{} bytes, nested more than {MAX_DEPTH} deep>", frame.len())
                }
                Err(_) => format!("<{} bytes that are no JSON>", frame.len()),
            },
            Err(_) => format!("<{} bytes that are no JSON>", frame.len()),
        };
        contain("a trace", || (self.0)(direction, &shown));
    }
}

impl fmt::Debug for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Trace").finish_non_exhaustive()
    }
}

/// Deepest nesting that is shown; what lies deeper is replaced by its length.
const MAX_DEPTH: usize = 64;
/// Longest string that is shown, in bytes of its JSON token; longer ones are replaced by their length.
const MAX_STRING_BYTES: usize = 256;
/// A member's value is a secret if its name, in lower case and without separators, contains one of
/// these.
const SECRET: [&str; 9] = [
    "password",
    "passwd",
    "secret",
    "token",
    "authorization",
    "apikey",
    "cookie",
    "credential",
    "privatekey",
];

/// Redacts JSON for a log: masks the values of members whose names suggest secrets, at any depth, and
/// replaces long strings and deeply nested values by their length. `progressToken` is not a secret.
pub fn redact(json: &str) -> String {
    let mut out = Vec::with_capacity(json.len().min(4096));
    let cut = |out: &mut Vec<u8>, token: &str| match token.len() > MAX_STRING_BYTES {
        true => string::append(out, &format!("<{} bytes>", token.len() - 2)),
        false => out.extend_from_slice(token.as_bytes()),
    };
    value(&mut out, json.trim_ascii(), 0, &cut);
    String::from_utf8(out).unwrap_or_default()
}

/// Masks secrets as [`redact`] does and keeps everything else, for log messages to the peer (R-LOG-05).
/// Nesting deeper than `MAX_DEPTH` is replaced, too.
pub(super) fn mask(json: &str) -> String {
    let mut out = Vec::with_capacity(json.len());
    value(&mut out, json.trim_ascii(), 0, &|out, token| {
        out.extend_from_slice(token.as_bytes());
    });
    String::from_utf8(out).unwrap_or_default()
}

/// Masks secrets like `mask`, and replaces each string by what `text` returns for it.
pub(crate) fn mask_with(json: &str, text: impl Fn(&str) -> String) -> String {
    let mut out = Vec::with_capacity(json.len());
    value(&mut out, json.trim_ascii(), 0, &|out, token| {
        let decoded = reader::as_str(token).unwrap_or_default();
        string::append(out, &text(&decoded));
    });
    String::from_utf8(out).unwrap_or_default()
}

/// Whether a member of this name holds a secret.
pub(crate) fn is_secret(name: &str) -> bool {
    let plain: String = name
        .chars()
        .filter(char::is_ascii_alphanumeric)
        .map(|c| c.to_ascii_lowercase())
        .collect();
    plain == "auth"
        || plain != "progresstoken"
            && plain != "maxtokens"
            && SECRET.iter().any(|secret| plain.contains(secret))
}

/// Whether a value is never a secret, whatever its name: a literal, or a short number such as a count
/// of tokens.
fn is_count(json: &str) -> bool {
    matches!(json, "true" | "false" | "null") || json.len() < 16 && json.parse::<f64>().is_ok()
}

type Strings<'a> = &'a dyn Fn(&mut Vec<u8>, &str);

fn value(out: &mut Vec<u8>, json: &str, depth: usize, strings: Strings<'_>) {
    match json.as_bytes().first() {
        Some(b'{') if depth < MAX_DEPTH => {
            out.push(b'{');
            for (i, (key, member)) in reader::members(json).enumerate() {
                if i > 0 {
                    out.push(b',');
                }
                let name = key.decode().unwrap_or_default();
                string::append(out, &name);
                out.push(b':');
                match is_secret(&name) && !is_count(member) {
                    true => out.extend_from_slice(b"\"***\""),
                    false => value(out, member, depth + 1, strings),
                }
            }
            out.push(b'}');
        }
        Some(b'[') if depth < MAX_DEPTH => {
            out.push(b'[');
            for (i, element) in reader::elements(json).enumerate() {
                if i > 0 {
                    out.push(b',');
                }
                value(out, element, depth + 1, strings);
            }
            out.push(b']');
        }
        Some(b'"') => strings(out, json),
        Some(b'{' | b'[') => string::append(out, &format!("<{} bytes>", json.len())),
        _ => out.extend_from_slice(json.as_bytes()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_masked_at_any_depth() {
        let json = r#"{"params":{"arguments":{"api_key":"k","nested":[{"Authorization":{"a":1}}],"text":"t"},"_meta":{"progressToken":1,"auth":{"type":"api_key","key":"k"}}}}"#;
        let shown = redact(json);
        assert_eq!(
            shown,
            r#"{"params":{"arguments":{"api_key":"***","nested":[{"Authorization":"***"}],"text":"t"},"_meta":{"progressToken":1,"auth":"***"}}}"#
        );
    }

    /// R-LOG-05: a log message keeps everything but its secrets.
    #[test]
    fn what_is_logged_is_whole_but_for_its_secrets() {
        let long = "x".repeat(1000);
        let json = format!(
            r#"{{"tokens":12,"max_tokens":null,"access_token":"t","Set-Cookie":["c"],"text":"{long}"}}"#
        );
        let shown = format!(
            r#"{{"tokens":12,"max_tokens":null,"access_token":"***","Set-Cookie":"***","text":"{long}"}}"#
        );
        assert_eq!(mask(&json), shown);
        for plain in ["1", "\"password\"", "[]", "null"] {
            assert_eq!(mask(plain), plain);
        }
    }

    #[test]
    fn long_strings_are_cut_and_what_is_no_json_is_counted() {
        let long = format!("{{\"text\":\"{}\"}}", "x".repeat(1000));
        assert_eq!(redact(&long), "{\"text\":\"<1000 bytes>\"}");
        let seen = Arc::new(std::sync::Mutex::new(String::new()));
        let sink = seen.clone();
        let trace = Trace::new(move |_, text| *sink.lock().unwrap() = text.to_owned());
        trace.note(Direction::In, b"password: hunter2");
        assert_eq!(*seen.lock().unwrap(), "<17 bytes that are no JSON>");
    }

    #[test]
    fn what_is_nested_deeply_is_neither_shown_nor_called_broken() {
        let deep = |levels: usize| {
            let secret = "{\"password\":\"hunter2\"}";
            format!("{}{secret}{}", "[".repeat(levels), "]".repeat(levels))
        };
        let shown = redact(&deep(MAX_DEPTH));
        assert!(
            !shown.contains("hunter2") && shown.contains("<22 bytes>"),
            "{shown}"
        );
        assert!(redact(&deep(MAX_DEPTH - 1)).contains("\"***\""));
        let seen = Arc::new(std::sync::Mutex::new(String::new()));
        let sink = seen.clone();
        let trace = Trace::new(move |_, text| *sink.lock().unwrap() = text.to_owned());
        trace.note(Direction::In, deep(MAX_DEPTH).as_bytes());
        assert_eq!(
            *seen.lock().unwrap(),
            "<150 bytes, nested more than 64 deep>"
        );
    }
}
