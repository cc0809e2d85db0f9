//! A stream of changes that its client does not know yet: what servers tell on it waits for the acknowledgement (R-SUB-02).

use std::collections::BTreeSet;

use super::filter::is_list;
use super::params::push;
use crate::correlate::CancelToken;
use crate::json::reader;

/// The most bytes of changes that wait; a stream with more ends after the acknowledgement (R-SUB-12). A change that is told
/// twice waits once.
const MAX_BYTES: usize = 256 * 1024;

/// Changes that wait for the acknowledgement of their stream, and the servers that the acknowledgement waits for.
pub(super) struct Held {
    parts: Vec<Part>,
    told: Vec<(Box<str>, Box<str>)>,
    told_bytes: usize,
    /// Cancelled when no server is awaited, or no more fits.
    pub opens: CancelToken,
}

/// What one server sees to.
pub(super) struct Part {
    /// Its index among the servers of the front.
    pub server: usize,
    /// The filter, as clients name things: what the server is asked for, or what it has granted.
    pub filter: String,
    pub is_awaited: bool,
}

impl Held {
    pub fn new(parts: Vec<Part>) -> Self {
        let held = Self {
            parts,
            told: Vec::new(),
            told_bytes: 0,
            opens: CancelToken::new(),
        };
        if !held.is_awaiting() {
            held.opens.cancel(None);
        }
        held
    }

    pub fn is_awaiting(&self) -> bool {
        self.parts.iter().any(|part| part.is_awaited)
    }

    pub fn awaits(&self, server: usize) -> bool {
        self.awaited().any(|awaited| awaited == server)
    }

    /// The servers that are awaited.
    pub fn awaited(&self) -> impl Iterator<Item = usize> {
        let awaited = self.parts.iter().filter(|part| part.is_awaited);
        awaited.map(|part| part.server)
    }

    /// A server is not awaited any more: it has granted this, or is asked again later.
    pub fn settle(&mut self, server: usize, granted: Option<&str>) {
        let own = self.parts.iter_mut().filter(|part| part.server == server);
        for part in own {
            part.is_awaited = false;
            if let Some(granted) = granted {
                granted.clone_into(&mut part.filter);
            }
        }
    }

    /// Keeps a change for later.
    pub fn tell(&mut self, method: &str, params: &str) {
        let is_told = |(m, p): &(Box<str>, Box<str>)| **m == *method && **p == *params;
        if self.told.iter().any(is_told) {
            return;
        }
        self.told_bytes += method.len() + params.len();
        if !self.is_full() {
            self.told.push((method.into(), params.into()));
        }
    }

    /// Whether changes had to be left out.
    pub fn is_full(&self) -> bool {
        self.told_bytes > MAX_BYTES
    }

    pub fn told(&self) -> impl Iterator<Item = (&str, &str)> {
        let told = self.told.iter();
        told.map(|(method, params)| (&**method, &**params))
    }

    /// The filter of what servers have granted, or may grant yet (R-SUB-03).
    pub fn granted(&self) -> String {
        let members = || {
            let filters = self.parts.iter().map(|part| &*part.filter);
            filters.flat_map(reader::members)
        };
        let mut out = vec![b'{'];
        let mut lists = BTreeSet::new();
        for (name, value) in members() {
            if is_list(name) && value == "true" && lists.insert(name.raw()) {
                push(&mut out, name.raw(), value);
            }
        }
        for kind in ["resourceSubscriptions", "taskIds"] {
            let own = members().filter(|(name, _)| *name == kind);
            let own: Vec<_> = own.flat_map(|(_, all)| reader::elements(all)).collect();
            if !own.is_empty() {
                push(&mut out, kind, &format!("[{}]", own.join(",")));
            }
        }
        out.push(b'}');
        String::from_utf8(out).unwrap_or_default()
    }
}
