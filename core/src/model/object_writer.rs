//! Writes JSON objects, member by member.

use super::{Other, RawJson};
use crate::json::{string, writer};
use crate::mcp::revision::Rules;

/// Writes one JSON object, member by member.
pub(crate) struct ObjectWriter<'a> {
    out: &'a mut Vec<u8>,
    empty: bool,
}

impl<'a> ObjectWriter<'a> {
    pub fn begin(out: &'a mut Vec<u8>) -> Self {
        out.push(b'{');
        Self { out, empty: true }
    }

    /// Writes a key, which must need no escaping; append its value to the returned buffer.
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
            writer::append_compact(self.key(key), json);
        }
    }

    /// Writes the members that have no field of their own.
    pub fn others(&mut self, other: &Other) {
        for (key, value) in other {
            if !std::mem::take(&mut self.empty) {
                self.out.push(b',');
            }
            string::append(self.out, key);
            self.out.push(b':');
            self.out.extend_from_slice(value.to_string().as_bytes());
        }
    }

    /// Writes the display name, if the revision has it.
    pub fn title(&mut self, title: &Option<String>, rules: &Rules) {
        let title = title.as_deref().filter(|_| rules.structured_content);
        self.optional("title", title);
    }

    /// Writes icons and `_meta`, if the revision has them, and closes the object.
    pub fn end_with(mut self, icons: &Option<RawJson>, meta: &Option<RawJson>, rules: &Rules) {
        self.raw("icons", icons.as_deref().filter(|_| rules.icons));
        let meta = meta.as_deref().filter(|_| rules.structured_content);
        self.raw("_meta", meta);
        self.end();
    }

    pub fn end(self) {
        self.out.push(b'}');
    }
}
