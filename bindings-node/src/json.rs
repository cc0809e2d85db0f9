//! JSON and numbers that cross between JavaScript and native code.

use std::time::Duration;

use mcpbolt::error::RequestError;
use mcpbolt::json::string;
use mcpbolt::settings;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::error::{Result, misuse};

/// Reads what the TypeScript side has written; an error names the member that is wrong.
pub fn read<'a, T: Deserialize<'a>>(json: &'a str) -> Result<T> {
    settings::read(json).map_err(misuse)
}

/// Writes a value that JSON can always represent.
pub fn text(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

/// Writes a result for the caller of a request.
pub fn result(value: &impl Serialize) -> std::result::Result<String, RequestError> {
    let shape = RequestError::BadAnswer("a result of another shape");
    serde_json::to_string(value).map_err(|_| shape)
}

/// JSON text as a value that is written unchanged; `None` if it is empty.
pub fn raw(json: &str) -> Option<&RawValue> {
    serde_json::from_str(json).ok()
}

/// Appends a JSON string.
pub fn quote(out: &mut String, text: &str) {
    let mut quoted = Vec::with_capacity(text.len() + 2);
    string::append(&mut quoted, text);
    // Escaping keeps valid text valid.
    out.push_str(&String::from_utf8_lossy(&quoted));
}

/// Converts milliseconds from JavaScript.
pub fn duration(ms: f64) -> Result<Duration> {
    let not = |_| misuse(format!("{ms} ms is not a duration"));
    Duration::try_from_secs_f64(ms / 1000.0).map_err(not)
}
