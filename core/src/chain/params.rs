//! Params on their way to the next hop: copied byte for byte, but for the members of `_meta` that belong to a hop.

use crate::connection::{CONTEXT_KEYS, context_members};
use crate::json::{JsonStr, number, reader, string, writer};
use crate::mcp::{LogLevel, TraceContext, meta};
use crate::message::{Field, MessageRef};

/// `_meta` key of the number of hops that a request has passed (R-CHN-21).
pub(super) const HOPS: &str = "dev.mcpbolt/hops";

/// What a hop changes in the params of a request. Line breaks between tokens are dropped, since a message is one line
/// on most carriers; every other byte of a member that is not named here stays.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Edit<'a> {
    /// Replaces the progress token, if there is one.
    pub token: Option<u64>,
    /// Sets the number of hops.
    pub hops: Option<u64>,
    /// Members of `_meta` that are left out.
    pub drop: &'a [&'a str],
    /// Members that are added to `_meta`: JSON without the braces. Their names are in `drop`.
    pub add: &'a str,
    /// Params that are left out.
    pub drop_params: &'a [&'a str],
    /// Params that are added: JSON without the braces. Their names are in `drop_params`.
    pub add_params: &'a str,
    /// Replaces the trace context in `_meta`; `None` to leave it as it is.
    pub trace: Option<&'a TraceContext>,
}

/// Members of `_meta` that are a hop's own: those by which a request of the stateless era describes its client, and
/// credentials, which come last.
static OWN: [&str; 5] = [
    meta::PROTOCOL_VERSION,
    meta::CLIENT_INFO,
    meta::CLIENT_CAPABILITIES,
    meta::LOG_LEVEL,
    "auth",
];

/// The members of `_meta` that stay on this side: credentials (R-CHN-15), and between the eras the description of the client.
pub(super) fn own(crosses_eras: bool) -> &'static [&'static str] {
    let [.., auth] = &OWN;
    match crosses_eras {
        true => &OWN,
        false => std::slice::from_ref(auth),
    }
}

/// The log level that params name, if it is one.
pub(super) fn log_level(params: &str) -> Option<LogLevel> {
    let level = reader::find(params, "level").and_then(reader::as_str)?;
    LogLevel::parse(&level)
}

/// The number of hops that a message has passed.
pub(super) fn hops(message: &MessageRef<'_>) -> u64 {
    let hops = message.raw(Field::Meta).and_then(find_hops);
    hops.and_then(number::as_u64).unwrap_or(0)
}

/// The number of hops in a `_meta`. Requests of clients have none.
fn find_hops(meta: &str) -> Option<&str> {
    let meta = Some(meta).filter(|meta| reader::may_have(meta, HOPS));
    meta.and_then(|meta| reader::find(meta, HOPS))
}

impl Edit<'_> {
    /// Appends the member `params`, with a comma before it, unless there is nothing to write.
    pub fn append(&self, out: &mut Vec<u8>, message: &MessageRef<'_>) {
        let params = message.params();
        // A `_meta` that is no object is replaced by one.
        let own = message.raw(Field::Meta);
        let is_odd = own.is_some_and(|meta| !meta.starts_with('{'));
        let edits_meta =
            is_odd && self.hops.is_some() || has_any(own.unwrap_or_default(), self.drop);
        let is_plain = !edits_meta
            && self.trace.is_none()
            && self.add.is_empty()
            && self.drop_params.is_empty()
            && self.add_params.is_empty();
        let before = out.len();
        out.extend_from_slice(b",\"params\":");
        let written = match params {
            Some(params) if is_plain => self.splice(out, message, params),
            params => self.rebuild(out, params),
        };
        if !written {
            out.truncate(before);
        }
    }

    /// Appends `params`, an object of this side's own, as the member `params`, with a comma before it.
    pub fn append_own(&self, out: &mut Vec<u8>, params: &str) {
        out.extend_from_slice(b",\"params\":");
        match self.trace.is_none() && self.add.is_empty() {
            true => writer::append_compact(out, params),
            false => _ = self.rebuild(out, Some(params)),
        }
    }

    /// Copies the params, with other values at the places of those that change.
    fn splice(&self, out: &mut Vec<u8>, message: &MessageRef<'_>, params: &str) -> bool {
        let start = message.envelope().span(Field::Params).start();
        // The places to replace, in their order, and what goes there.
        let mut places: [Option<(usize, usize, u64)>; 2] = [None, None];
        let span = |field| {
            let span = message.envelope().span(field);
            span.is_some()
                .then(|| (span.start() - start, span.end() - start))
        };
        if let (Some(token), Some((from, to))) = (self.token, span(Field::ProgressToken)) {
            places[0] = Some((from, to, token));
        }
        let meta =
            span(Field::Meta).filter(|(from, _)| params.as_bytes().get(*from) == Some(&b'{'));
        let mut insert = None;
        if let Some(hops) = self.hops {
            let own = meta.and_then(|(from, to)| params.get(from..to));
            let found = own.and_then(|own| find_hops(own).map(|value| (own, value)));
            match (found, meta) {
                (Some((own, value)), Some((from, _))) => {
                    // Both are slices of the same text.
                    let at = from + (value.as_ptr() as usize - own.as_ptr() as usize);
                    places[1] = Some((at, at + value.len(), hops));
                }
                (_, Some((from, _))) => insert = Some((from + 1, false, hops)),
                (_, None) => insert = Some((1, true, hops)),
            }
        }
        if let [Some(a), Some(b)] = places
            && a.0 > b.0
        {
            places.swap(0, 1);
        }
        out.reserve(params.len() + 64);
        let mut done = 0;
        let mut copy = |out: &mut Vec<u8>, to: usize, next: usize| {
            writer::append_compact(out, params.get(done..to).unwrap_or_default());
            done = next;
        };
        if let Some((at, wraps, hops)) = insert {
            copy(out, at, at);
            let rest = params.get(at..).unwrap_or_default();
            let is_empty = rest.trim_ascii_start().starts_with('}');
            if wraps {
                out.extend_from_slice(b"\"_meta\":{");
            }
            append_member(out, HOPS, hops);
            if wraps {
                out.push(b'}');
            }
            if !is_empty {
                out.push(b',');
            }
        }
        for (from, to, value) in places.into_iter().flatten() {
            copy(out, from, to);
            number::append(out, value);
        }
        copy(out, params.len(), params.len());
        true
    }

    /// Writes the params member by member.
    fn rebuild(&self, out: &mut Vec<u8>, params: Option<&str>) -> bool {
        let params = params.unwrap_or("{}");
        let start = out.len();
        out.push(b'{');
        let mut own = "{}";
        for (name, value) in reader::members(params) {
            if name == "_meta" {
                own = value;
            } else if !is_any(name, self.drop_params) {
                push(out, name.raw(), value);
            }
        }
        push_members(out, self.add_params);
        let mut meta = vec![b'{'];
        for (name, value) in reader::members(own) {
            match self.token.filter(|_| name == "progressToken") {
                Some(token) => push(&mut meta, name.raw(), itoa::Buffer::new().format(token)),
                None if name == HOPS && self.hops.is_some() || is_any(name, self.drop) => {}
                None if self.trace.is_some() && is_any(name, &CONTEXT_KEYS) => {}
                None => push(&mut meta, name.raw(), value),
            }
        }
        push_members(&mut meta, self.add);
        if let Some(trace) = self.trace {
            push_members(&mut meta, &context_members(trace));
        }
        if let Some(hops) = self.hops {
            push(&mut meta, HOPS, itoa::Buffer::new().format(hops));
        }
        meta.push(b'}');
        if meta.len() > 2 {
            push(out, "_meta", std::str::from_utf8(&meta).unwrap_or("{}"));
        }
        out.push(b'}');
        out.len() > start + 2
    }
}

/// Whether the decoded name is one of `names`.
pub(super) fn is_any(name: JsonStr<'_>, names: &[&str]) -> bool {
    names.iter().any(|one| name == *one)
}

/// Whether a `_meta` has any of these members.
fn has_any(meta: &str, names: &[&str]) -> bool {
    let may_have = names.iter().any(|name| reader::may_have(meta, name));
    may_have && reader::members(meta).any(|(name, _)| is_any(name, names))
}

/// Params without these members of `_meta`.
pub(super) fn without(params: &str, drop: &[&str]) -> String {
    let own = reader::find(params, "_meta");
    if !own.is_some_and(|own| has_any(own, drop)) {
        return params.to_owned();
    }
    let edit = Edit {
        drop,
        ..Edit::default()
    };
    let mut out = Vec::new();
    edit.rebuild(&mut out, Some(params));
    String::from_utf8(out).unwrap_or_default()
}

/// Replaces one member of the `_meta` of notification params, or of a result, by a raw value; the rest is copied.
pub(super) fn with_meta(object: &str, name: &str, value: Option<&str>) -> String {
    let mut out = vec![b'{'];
    let mut own = "{}";
    for (key, value) in reader::members(object) {
        match key == "_meta" {
            true => own = value,
            false => push(&mut out, key.raw(), value),
        }
    }
    let mut meta = vec![b'{'];
    for (key, value) in reader::members(own).filter(|(key, _)| *key != name) {
        push(&mut meta, key.raw(), value);
    }
    if let Some(value) = value {
        push(&mut meta, name, value);
    }
    meta.push(b'}');
    if meta.len() > 2 {
        push(
            &mut out,
            "_meta",
            std::str::from_utf8(&meta).unwrap_or("{}"),
        );
    }
    out.push(b'}');
    String::from_utf8(out).unwrap_or_default()
}

/// Appends a member to an object that is being written; `name` is still escaped.
pub(super) fn push(out: &mut Vec<u8>, name: &str, value: &str) {
    if !matches!(out.last(), Some(b'{')) {
        out.push(b',');
    }
    out.push(b'"');
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b"\":");
    writer::append_compact(out, value);
}

fn push_members(out: &mut Vec<u8>, members: &str) {
    if !members.is_empty() {
        if !matches!(out.last(), Some(b'{')) {
            out.push(b',');
        }
        writer::append_compact(out, members);
    }
}

fn append_member(out: &mut Vec<u8>, name: &str, value: u64) {
    string::append(out, name);
    out.push(b':');
    number::append(out, value);
}

/// Text as a name that [`push`] takes.
pub(super) fn escaped(text: &str) -> String {
    let quoted = json_text(text);
    let inner = quoted.get(1..quoted.len() - 1);
    inner.unwrap_or_default().to_owned()
}

/// Text as JSON.
pub(super) fn json_text(text: &str) -> String {
    let mut out = Vec::new();
    string::append(&mut out, text);
    String::from_utf8(out).unwrap_or_default()
}
