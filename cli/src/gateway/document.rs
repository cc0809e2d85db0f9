//! A file of settings, in TOML or in JSON, as a tree whose values know where they stand.

use std::borrow::Cow;
use std::fmt;

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// A value, and where it begins, in bytes.
#[derive(Debug)]
pub struct Node {
    pub at: usize,
    pub value: Value,
}

#[derive(Debug)]
pub enum Value {
    Text(String),
    Integer(i64),
    Flag(bool),
    List(Vec<Node>),
    Table(Vec<Member>),
    /// What no setting takes, by its name.
    Other(&'static str),
}

#[derive(Debug)]
pub struct Member {
    pub key: String,
    pub at: usize,
    pub node: Node,
}

/// What breaks a format, and where.
#[derive(Debug)]
pub struct Broken {
    pub at: usize,
    pub why: String,
}

impl Value {
    /// What the value is, for an error.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Text(_) => "a text",
            Self::Integer(_) => "a number",
            Self::Flag(_) => "true or false",
            Self::List(_) => "a list",
            Self::Table(_) => "a table",
            Self::Other(kind) => kind,
        }
    }
}

/// Reads TOML.
pub fn toml(text: &str) -> Result<Node, Broken> {
    let table = DeTable::parse(text).map_err(|error| Broken {
        at: error.span().map_or(0, |span| span.start),
        why: error.message().to_owned(),
    })?;
    let at = table.span().start;
    let value = of_table(table.into_inner());
    Ok(Node { at, value })
}

fn of_table(table: DeTable<'_>) -> Value {
    let member = |(key, node): (Spanned<Cow<'_, str>>, Spanned<DeValue<'_>>)| Member {
        at: key.span().start,
        key: key.into_inner().into_owned(),
        node: of_toml(node),
    };
    let mut members: Vec<_> = table.into_iter().map(member).collect();
    members.sort_by_key(|member| member.at);
    Value::Table(members)
}

fn of_toml(node: Spanned<DeValue<'_>>) -> Node {
    let at = node.span().start;
    let value = match node.into_inner() {
        DeValue::String(text) => Value::Text(text.into_owned()),
        DeValue::Integer(number) => i64::from_str_radix(number.as_str(), number.radix())
            .map_or(Value::Other("a large number"), Value::Integer),
        DeValue::Boolean(flag) => Value::Flag(flag),
        DeValue::Array(list) => Value::List(list.into_iter().map(of_toml).collect()),
        DeValue::Table(table) => of_table(table),
        DeValue::Float(_) => Value::Other("a fraction"),
        DeValue::Datetime(_) => Value::Other("a date"),
    };
    Node { at, value }
}

/// Reads JSON. A name that an object has twice stays there twice.
pub fn json(text: &str) -> Result<Node, Broken> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let broken = |error: serde_json::Error| Broken {
        at: offset(text, error.line(), error.column()),
        why: without_place(&error.to_string()),
    };
    let whole: &RawValue = serde_json::from_str(text).map_err(broken)?;
    of_json(text, whole).map_err(broken)
}

/// The text of an error of `serde_json` without its ` at line 1 column 2`.
pub fn without_place(why: &str) -> String {
    let end = why.rfind(" at line ").unwrap_or(why.len());
    why[..end].to_owned()
}

fn offset(text: &str, line: usize, column: usize) -> usize {
    let before = text.split_inclusive('\n').take(line.saturating_sub(1));
    before.map(str::len).sum::<usize>() + column.saturating_sub(1)
}

fn of_json(text: &str, raw: &RawValue) -> serde_json::Result<Node> {
    let raw = raw.get();
    // A raw value is a part of the text that it was read from.
    let at = raw.as_ptr().addr() - text.as_ptr().addr();
    let value = match raw.as_bytes().first() {
        Some(b'"') => Value::Text(serde_json::from_str(raw)?),
        Some(b'{') => {
            let members: Members<'_> = serde_json::from_str(raw)?;
            let member = |(key, raw): (String, &RawValue)| {
                let node = of_json(text, raw)?;
                let at = node.at;
                Ok(Member { key, at, node })
            };
            Value::Table(
                members
                    .0
                    .into_iter()
                    .map(member)
                    .collect::<serde_json::Result<_>>()?,
            )
        }
        Some(b'[') => {
            let list: Vec<&RawValue> = serde_json::from_str(raw)?;
            let list = list.into_iter().map(|raw| of_json(text, raw));
            Value::List(list.collect::<serde_json::Result<_>>()?)
        }
        Some(b't' | b'f') => Value::Flag(raw == "true"),
        Some(b'n') => Value::Other("null"),
        _ => raw
            .parse()
            .map_or(Value::Other("a fraction"), Value::Integer),
    };
    Ok(Node { at, value })
}

/// The members of an object, in order.
struct Members<'t>(Vec<(String, &'t RawValue)>);

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Seen;
        impl<'de> Visitor<'de> for Seen {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members<'de>, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(Seen)
    }
}
