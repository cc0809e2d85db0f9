//! Settings out of a tree: what is wrong is collected, each with its line and its key.

use std::path::Path;

use super::document::{Member, Node, Value};

/// What was found while a file is read.
pub struct Findings<'f> {
    file: &'f Path,
    text: &'f str,
    /// Whether keys that are not known may be another program's.
    pub is_shared: bool,
    problems: Vec<(usize, String)>,
    warnings: Vec<(usize, String)>,
}

impl<'f> Findings<'f> {
    pub fn new(file: &'f Path, text: &'f str, is_shared: bool) -> Self {
        Self {
            file,
            text,
            is_shared,
            problems: Vec::new(),
            warnings: Vec::new(),
        }
    }

    /// Notes what is wrong at a place.
    pub fn wrong(&mut self, at: usize, key: &str, why: impl std::fmt::Display) {
        let found = self.found(at, key, &why);
        self.problems.push((at, found));
    }

    /// Notes a key that means nothing: in a file that another program reads as well, that is no problem.
    fn needless(&mut self, at: usize, key: &str, why: &str) {
        if self.is_shared {
            let found = self.found(at, key, &"is ignored");
            self.warnings.push((at, found));
        } else {
            self.wrong(at, key, why);
        }
    }

    /// How many problems there are so far.
    pub fn problems(&self) -> usize {
        self.problems.len()
    }

    /// The problems and the warnings, in the order of their places.
    pub fn told(self) -> (Vec<String>, Vec<String>) {
        let in_order = |mut found: Vec<(usize, String)>| {
            found.sort_by_key(|(at, _)| *at);
            found.into_iter().map(|(_, text)| text).collect()
        };
        (in_order(self.problems), in_order(self.warnings))
    }

    fn found(&self, at: usize, key: &str, why: &dyn std::fmt::Display) -> String {
        let before = &self.text.as_bytes()[..at.min(self.text.len())];
        let line = 1 + before.iter().filter(|byte| **byte == b'\n').count();
        let file = self.file.display();
        let colon = if key.is_empty() { "" } else { ": " };
        format!("{file}:{line}: {key}{colon}{why}")
    }
}

/// The keys of a table that have not been read.
pub struct Keys {
    path: String,
    /// Where the table begins.
    pub at: usize,
    left: Vec<Member>,
    known: Vec<&'static str>,
}

/// A value of a table.
pub struct Entry {
    pub path: String,
    pub node: Node,
}

/// A text, and where it stands.
pub struct Text {
    pub path: String,
    pub at: usize,
    pub text: String,
}

impl Text {
    pub fn of(Entry { path, node }: Entry, findings: &mut Findings<'_>) -> Option<Self> {
        let Node { at, value } = node;
        let Value::Text(text) = value else {
            findings.wrong(
                at,
                &path,
                format_args!("is {}; must be a text", value.kind()),
            );
            return None;
        };
        Some(Self { path, at, text })
    }
}

impl Keys {
    /// The keys of a table; of one that has a key twice, the first counts.
    pub fn of(Entry { path, node }: Entry, findings: &mut Findings<'_>) -> Option<Self> {
        let Value::Table(members) = node.value else {
            findings.wrong(
                node.at,
                &path,
                format_args!("is {}; must be a table", node.value.kind()),
            );
            return None;
        };
        let mut left: Vec<Member> = Vec::with_capacity(members.len());
        for member in members {
            if left.iter().any(|other| other.key == member.key) {
                findings.wrong(member.at, &joined(&path, &member.key), "is given twice");
            } else {
                left.push(member);
            }
        }
        let known = Vec::new();
        Some(Self {
            path,
            at: node.at,
            left,
            known,
        })
    }

    /// Where the table stands in the file.
    pub fn path(&self) -> &str {
        &self.path
    }

    pub fn take(&mut self, key: &'static str) -> Option<Entry> {
        self.knows(key);
        let at = self.left.iter().position(|member| member.key == key)?;
        Some(self.entry(at))
    }

    /// Where a key is, if it is there and has not been read.
    pub fn place(&self, key: &str) -> Option<usize> {
        Some(self.left.iter().find(|member| member.key == key)?.at)
    }

    /// Takes keys that mean nothing here, and tells why.
    pub fn needless(&mut self, keys: &[&'static str], why: &str, findings: &mut Findings<'_>) {
        for key in keys {
            if let Some(at) = self.place(key)
                && let Some(entry) = self.take(key)
            {
                findings.needless(at, &entry.path, why);
            }
        }
    }

    /// Whether a key has a list, if it is there.
    pub fn is_list(&mut self, key: &'static str) -> Option<bool> {
        self.knows(key);
        let member = self.left.iter().find(|member| member.key == key)?;
        Some(matches!(member.node.value, Value::List(_)))
    }

    fn knows(&mut self, key: &'static str) {
        if !self.known.contains(&key) {
            self.known.push(key);
        }
    }

    /// The members that are left, with their keys.
    pub fn rest(mut self) -> Vec<(String, Entry)> {
        let mut rest = Vec::with_capacity(self.left.len());
        while !self.left.is_empty() {
            let key = self.left[0].key.clone();
            rest.push((key, self.entry(0)));
        }
        rest
    }

    fn entry(&mut self, at: usize) -> Entry {
        let Member { key, node, .. } = self.left.remove(at);
        let path = joined(&self.path, &key);
        Entry { path, node }
    }

    pub fn text(&mut self, key: &'static str, findings: &mut Findings<'_>) -> Option<Text> {
        Text::of(self.take(key)?, findings)
    }

    pub fn flag(&mut self, key: &'static str, findings: &mut Findings<'_>) -> bool {
        let Some(Entry { path, node }) = self.take(key) else {
            return false;
        };
        let Value::Flag(flag) = node.value else {
            findings.wrong(
                node.at,
                &path,
                format_args!("is {}; must be true or false", node.value.kind()),
            );
            return false;
        };
        flag
    }

    /// A whole number from 1 on.
    pub fn number(&mut self, key: &'static str, findings: &mut Findings<'_>) -> Option<u64> {
        self.number_from(1, key, findings)
    }

    /// A whole number from `least` on.
    pub fn number_from(
        &mut self,
        least: u64,
        key: &'static str,
        findings: &mut Findings<'_>,
    ) -> Option<u64> {
        let Entry { path, node } = self.take(key)?;
        let number = match node.value {
            Value::Integer(number) => u64::try_from(number).ok().filter(|it| *it >= least),
            _ => None,
        };
        if number.is_none() {
            let why = format_args!("must be a whole number from {least} on");
            findings.wrong(node.at, &path, why);
        }
        number
    }

    /// A list of texts.
    pub fn texts(&mut self, key: &'static str, findings: &mut Findings<'_>) -> Vec<Text> {
        let Some(Entry { path, node }) = self.take(key) else {
            return Vec::new();
        };
        let Value::List(list) = node.value else {
            findings.wrong(
                node.at,
                &path,
                format_args!("is {}; must be a list of texts", node.value.kind()),
            );
            return Vec::new();
        };
        let entries = list.into_iter().enumerate().map(|(index, node)| Entry {
            path: format!("{path}[{index}]"),
            node,
        });
        entries
            .filter_map(|entry| Text::of(entry, findings))
            .collect()
    }

    /// Tells of keys that nothing has read.
    pub fn end(self, findings: &mut Findings<'_>) {
        for Member { key, at, .. } in &self.left {
            let path = joined(&self.path, key);
            let known = self.known.join(", ");
            findings.needless(*at, &path, &format!("is no setting; there are {known}"));
        }
    }
}

/// The path of a key of the table at `path`.
pub fn joined(path: &str, key: &str) -> String {
    let is_plain = !key.is_empty()
        && key
            .chars()
            .all(|c| c.is_alphanumeric() || matches!(c, '-' | '_'));
    let key = if is_plain {
        key.to_owned()
    } else {
        format!("{key:?}")
    };
    match path {
        "" => key,
        _ => format!("{path}.{key}"),
    }
}
