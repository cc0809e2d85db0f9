//! What a server offers: tools, resources, templates and prompts, as the lists show them.

mod prompt;
mod resource;
mod tool;
mod wellformed;

pub use self::prompt::{Prompt, PromptArgument};
pub use self::resource::Resource;
pub use self::tool::Tool;
use crate::json::string;

/// Writes one JSON object, member by member.
pub(in crate::server) struct ObjectWriter<'a> {
    out: &'a mut Vec<u8>,
    empty: bool,
}

impl<'a> ObjectWriter<'a> {
    pub fn begin(out: &'a mut Vec<u8>) -> Self {
        out.push(b'{');
        Self { out, empty: true }
    }

    /// Writes a key; its value is to be appended to what this gives. Keys need no escaping.
    pub fn key(&mut self, key: &str) -> &mut Vec<u8> {
        if !std::mem::take(&mut self.empty) {
            self.out.push(b',');
        }
        self.out.push(b'"');
        self.out.extend_from_slice(key.as_bytes());
        self.out.extend_from_slice(b"\":");
        self.out
    }

    pub fn string(&mut self, key: &str, value: &str) {
        string::append(self.key(key), value);
    }

    pub fn optional(&mut self, key: &str, value: Option<&str>) {
        if let Some(value) = value {
            self.string(key, value);
        }
    }

    pub fn raw(&mut self, key: &str, json: Option<&str>) {
        if let Some(json) = json {
            crate::json::writer::append_compact(self.key(key), json);
        }
    }

    pub fn end(self) {
        self.out.push(b'}');
    }
}
