//! An opt-in look at every frame of a connection, with secrets masked.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use crate::json::{DecodeErrorKind, reader, string};

/// Which way a frame went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// From the peer.
    In,
    /// To the peer.
    Out,
}

/// Called with every frame, on the driver's thread; must not block. Costs nothing when it is not
/// set.
#[derive(Clone)]
pub struct Trace(Arc<Report>);

type Report = dyn Fn(Direction, &str) + Send + Sync;

impl Trace {
    /// Shows `report` each frame, [redacted](redact).
    pub fn new(report: impl Fn(Direction, &str) + Send + Sync + 'static) -> Self {
        Self(Arc::new(report))
    }

    /// A report that panics takes nothing along.
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
        let _ = catch_unwind(AssertUnwindSafe(|| (self.0)(direction, &shown)));
    }
}

impl fmt::Debug for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Trace").finish_non_exhaustive()
    }
}

/// Deepest nesting that is shown.
const MAX_DEPTH: usize = 64;
/// Longest string that is shown whole, in bytes of its token.
const MAX_STRING_BYTES: usize = 256;
/// What a member's name holds, in lower case and without separators, when its value is a secret.
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

/// JSON as it may be logged: the values of members whose names speak of secrets are masked (at
/// any depth), long strings and what is nested deeply are cut. `progressToken` is no secret.
pub fn redact(json: &str) -> String {
    let mut out = Vec::with_capacity(json.len().min(4096));
    let cut = |out: &mut Vec<u8>, token: &str| match token.len() > MAX_STRING_BYTES {
        true => string::append(out, &format!("<{} bytes>", token.len() - 2)),
        false => out.extend_from_slice(token.as_bytes()),
    };
    value(&mut out, json.trim_ascii(), 0, &cut);
    String::from_utf8(out).unwrap_or_default()
}

/// JSON whose secrets are masked as in [`redact`], and which is whole otherwise: what may be told
/// the peer in a log message (R-LOG-05).
pub(super) fn mask(json: &str) -> String {
    let mut out = Vec::with_capacity(json.len());
    value(&mut out, json.trim_ascii(), 0, &|out, token| {
        out.extend_from_slice(token.as_bytes());
    });
    String::from_utf8(out).unwrap_or_default()
}

/// The same, and each string as `text` has it.
#[cfg(feature = "server")]
pub(crate) fn mask_with(json: &str, text: impl Fn(&str) -> String) -> String {
    let mut out = Vec::with_capacity(json.len());
    value(&mut out, json.trim_ascii(), 0, &|out, token| {
        let decoded = reader::as_str(token).unwrap_or_default();
        string::append(out, &text(&decoded));
    });
    String::from_utf8(out).unwrap_or_default()
}

/// Whether a name speaks of secrets.
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

/// Whether that is no secret whatever it is called, such as the number of tokens.
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

    /// R-LOG-05: all of a log message but its secrets.
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
