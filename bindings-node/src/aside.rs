//! Long texts among the arguments of a call. They cross to JavaScript beside the JSON, as strings of their own:
//! within it, JavaScript would store each of them twice.

use std::ops::Range;

use mcpbolt::json::JsonStr;
use mcpbolt::json::reader::members;
use napi::{Env, JsString, Result};

use crate::utf16;

/// Texts of fewer bytes stay in the JSON.
const LONG: usize = 32 << 10;
/// How many texts of a call cross beside its JSON.
const MAX: usize = 8;

/// A text that the JSON holds the place of by an empty string.
#[derive(Debug)]
pub struct Aside {
    pub name: String,
    /// The token in the arguments.
    place: Range<usize>,
    /// The text, if it has escapes.
    decoded: Option<String>,
}

/// The long texts that are members of `arguments`, in order.
pub fn find(arguments: &str) -> Vec<Aside> {
    let mut found: Vec<(JsonStr<'_>, Aside)> = Vec::new();
    if arguments.len() < LONG {
        return Vec::new();
    }
    for (name, value) in members(arguments) {
        // As in JavaScript, the last member of a name counts.
        found.retain(|(other, _)| *other != name);
        if value.len() >= LONG && found.len() < MAX {
            found.extend(aside(arguments, name, value).map(|aside| (name, aside)));
        }
    }
    found.into_iter().map(|(_, aside)| aside).collect()
}

/// `None` if the value is no text, or one of them contains a lone surrogate.
fn aside(arguments: &str, name: JsonStr<'_>, value: &str) -> Option<Aside> {
    let text = JsonStr::from_token(value)?;
    let decoded = match text.is_escaped() {
        false => None,
        true => Some(text.decode().ok()?.into_owned()),
    };
    let start = value.as_ptr() as usize - arguments.as_ptr() as usize;
    Some(Aside {
        name: name.decode().ok()?.into_owned(),
        place: start..start + value.len(),
        decoded,
    })
}

/// Appends the arguments with empty strings in the places of those texts.
pub fn write_rest(out: &mut String, arguments: &str, aside: &[Aside]) {
    let mut at = 0;
    for Aside { place, .. } in aside {
        out.push_str(arguments.get(at..place.start).unwrap_or_default());
        out.push_str("\"\"");
        at = place.end;
    }
    out.push_str(arguments.get(at..).unwrap_or_default());
}

impl Aside {
    /// The text as a string of JavaScript.
    pub fn string<'e>(&self, env: &'e Env, arguments: &str) -> Result<JsString<'e>> {
        let text = match &self.decoded {
            Some(text) => text,
            None => {
                let quoted = arguments.get(self.place.clone());
                let text = quoted.and_then(|quoted| quoted.get(1..quoted.len() - 1));
                text.unwrap_or_default()
            }
        };
        utf16::string(env, text, utf16::len(text))
    }
}
