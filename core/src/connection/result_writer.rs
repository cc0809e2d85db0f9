//! Writes the members of a result in the form that its revision requires.

use std::ops::Range;

use super::config::Config;
use crate::json::{string, writer};
use crate::mcp::{Profile, Revision, Side, meta};

/// Writes the members of one result object. It exists only during the call that writes the result, so a
/// result cannot be left unfinished.
#[derive(Debug)]
pub struct ResultWriter<'a> {
    out: &'a mut Vec<u8>,
    revision: Revision,
    profile: Profile,
    empty: bool,
    result_type: bool,
    meta: bool,
    server_info: &'a str,
    /// Records the positions of some members, if requested.
    places: Option<&'a mut Places>,
}

/// Positions of the result members from which the answer to an action is made.
#[derive(Debug, Default)]
pub(super) struct Places {
    members: [Range<usize>; 3],
    open: Option<usize>,
    /// Whether members were written whose positions are not known.
    pub incomplete: bool,
}

impl Places {
    const NAMES: [&str; 3] = ["content", "structuredContent", "isError"];

    fn begin(&mut self, name: &str, at: usize) {
        self.open = Self::NAMES.iter().position(|own| *own == name);
        if let Some(member) = self.open.and_then(|open| self.members.get_mut(open)) {
            *member = at..at;
        }
    }

    fn end(&mut self, at: usize) {
        if let Some(member) = self.open.take().and_then(|open| self.members.get_mut(open)) {
            member.end = at;
        }
    }

    /// `content`, `structuredContent` and `isError` of the written object.
    pub fn find<'a>(&self, object: &'a str) -> [Option<&'a str>; 3] {
        let find = |member: &Range<usize>| object.get(member.clone());
        self.members
            .each_ref()
            .map(|member| find(member).filter(|value| !value.is_empty()))
    }
}

impl ResultWriter<'_> {
    /// The revision in which the answer is written.
    pub fn revision(&self) -> Revision {
        self.revision
    }

    /// The profile in which the answer is written, if it applies to that revision.
    pub fn profile(&self) -> Profile {
        self.profile.in_revision(self.revision)
    }

    fn key(&mut self, name: &str) {
        if let Some(places) = &mut self.places {
            places.end(self.out.len());
        }
        if !std::mem::take(&mut self.empty) {
            self.out.push(b',');
        }
        self.out.push(b'"');
        self.out.extend_from_slice(name.as_bytes());
        self.out.extend_from_slice(b"\":");
        if let Some(places) = &mut self.places {
            places.begin(name, self.out.len());
        }
    }

    /// Writes a member whose value is already JSON; line breaks between its tokens are dropped
    /// (R-STD-01). `name` must not need escaping.
    pub fn raw(&mut self, name: &str, json: &str) {
        self.key(name);
        writer::append_compact(self.out, json);
    }

    /// Writes a member whose value `write` appends as JSON without raw line breaks.
    pub fn with(&mut self, name: &str, write: impl FnOnce(&mut Vec<u8>)) {
        self.key(name);
        write(self.out);
    }

    /// Writes a string member.
    pub fn string(&mut self, name: &str, value: &str) {
        self.key(name);
        string::append(self.out, value);
    }

    /// Writes members that are already JSON: the inside of an object without its braces. Line breaks
    /// between tokens are dropped (R-STD-01).
    pub fn members(&mut self, members: &str) {
        if self.begin_members(members) {
            writer::append_compact(self.out, members);
        }
    }

    /// Writes members that the engine encoded itself: they are copied unchanged.
    pub(crate) fn encoded(&mut self, members: &str) {
        if self.begin_members(members) {
            self.out.extend_from_slice(members.as_bytes());
        }
    }

    fn begin_members(&mut self, members: &str) -> bool {
        if let Some(places) = &mut self.places {
            places.end(self.out.len());
            places.incomplete = true;
        }
        if !members.is_empty() && !std::mem::take(&mut self.empty) {
            self.out.push(b',');
        }
        !members.is_empty()
    }

    /// Writes all members of a JSON object from a handler. Its `_meta` is merged with the engine's; its
    /// `resultType` is kept.
    pub fn object(&mut self, object: &str) {
        for (key, value) in crate::json::reader::members(object) {
            match key.raw() {
                "_meta" => self.meta(value),
                "resultType" => self.result_type(value),
                key => self.raw(key, value),
            }
        }
    }

    /// Writes the `_meta` of the result, a JSON object. Only the first call counts.
    pub fn meta(&mut self, object: &str) {
        if self.meta {
            return;
        }
        self.meta = true;
        let mut own = self.revision.rules().result_type && !self.server_info.is_empty();
        if !own {
            return self.raw("_meta", object);
        }
        self.key("_meta");
        self.out.push(b'{');
        let mut empty = true;
        for (key, value) in crate::json::reader::members(object) {
            own &= key.raw() != meta::SERVER_INFO;
            push_member(self.out, &mut empty, key.raw(), value);
        }
        if own {
            push_member(self.out, &mut empty, meta::SERVER_INFO, self.server_info);
        }
        self.out.push(b'}');
    }

    /// Writes the `resultType`, a JSON string; the default is `complete`. Left out in revisions without
    /// `resultType`. Only the first call counts.
    pub fn result_type(&mut self, json: &str) {
        if !self.result_type && self.revision.rules().result_type {
            self.result_type = true;
            self.raw("resultType", json);
        }
    }

    fn finish(&mut self) {
        if !self.revision.rules().result_type {
            return;
        }
        if !self.result_type {
            self.key("resultType");
            self.out.extend_from_slice(b"\"complete\"");
        }
        if !self.server_info.is_empty() {
            self.meta("{}");
        }
    }
}

fn push_member(out: &mut Vec<u8>, empty: &mut bool, key: &str, value: &str) {
    if !std::mem::take(empty) {
        out.push(b',');
    }
    out.push(b'"');
    out.extend_from_slice(key.as_bytes());
    out.extend_from_slice(b"\":");
    writer::append_compact(out, value);
}

/// Appends a result as an object; `places`, if given, receives offsets in `out`. With `config`, the object
/// names this side where the revision asks for that.
pub(super) fn append(
    out: &mut Vec<u8>,
    revision: Revision,
    config: Option<&Config>,
    places: Option<&mut Places>,
    write: impl FnOnce(&mut ResultWriter<'_>),
) {
    out.push(b'{');
    let server = config.filter(|config| config.side == Side::Server);
    let mut writer = ResultWriter {
        out,
        revision,
        profile: config.map_or(Profile::Official, |config| config.profile),
        empty: true,
        result_type: false,
        meta: false,
        server_info: server.map_or("", |config| &config.implementation),
        places,
    };
    write(&mut writer);
    writer.finish();
    if let Some(places) = writer.places {
        places.end(writer.out.len());
    }
    out.push(b'}');
}

/// Encodes a result as a separate object, to answer with later; without this side's name.
pub(crate) fn object(revision: Revision, write: impl FnOnce(&mut ResultWriter<'_>)) -> String {
    let mut out = Vec::new();
    append(&mut out, revision, None, None, write);
    String::from_utf8(out).unwrap_or_default()
}
