//! Schemas that check values.
//!
//! Most schemas describe a flat object of plain members. For those, a shortcut accepts arguments
//! without building a tree. The shortcut never refuses: what it cannot accept goes to the full
//! validator, which also words the error. Such a schema is known to be valid, so its full validator
//! is built on first use: the first one in a process takes some 10 ms.
//!
//! Strings with lone surrogates are refused here, because they are not Unicode text and languages
//! treat them differently.

use std::sync::LazyLock;

use jsonschema::{Draft, Validator};
use memchr::memchr_iter;
use serde_json::Value;

use super::{InvalidSchema, cost, parse, parse_input};
use crate::json::{number, reader};

/// A compiled schema.
#[derive(Debug)]
pub struct Schema {
    pub(super) full: Full,
    shape: Option<Shape>,
}

type Compiled = Result<Validator, InvalidSchema>;
type Full = LazyLock<Compiled, Box<dyn FnOnce() -> Compiled + Send>>;

impl Schema {
    /// Compiles the schema of a tool's arguments.
    ///
    /// # Errors
    /// The schema is not JSON, not an object with `"type":"object"` (R-SCH-03), of a dialect other
    /// than 2020-12 and draft-07, refers to something outside itself, or is too costly to check.
    pub fn input(json: &str) -> Result<Self, InvalidSchema> {
        Self::compile(parse_input(json)?)
    }

    /// Compiles any schema.
    ///
    /// # Errors
    /// The errors of [`input`](Self::input), except that any type is allowed.
    pub fn new(json: &str) -> Result<Self, InvalidSchema> {
        Self::compile(parse(json)?)
    }

    fn compile(schema: Value) -> Result<Self, InvalidSchema> {
        if cost::of(&schema) > cost::MAX_COST {
            return Err(InvalidSchema("it is too costly to check".into()));
        }
        let dialect = schema.get("$schema").and_then(Value::as_str);
        let draft = match dialect.map(|uri| uri.trim_end_matches('#')) {
            None | Some("https://json-schema.org/draft/2020-12/schema") => Draft::Draft202012,
            Some(
                "http://json-schema.org/draft-07/schema"
                | "https://json-schema.org/draft-07/schema",
            ) => Draft::Draft7,
            Some(other) => {
                return Err(InvalidSchema(
                    format!("the dialect {other} is not supported").into(),
                ));
            }
        };
        let shape = Shape::of(&schema);
        let full: Full = LazyLock::new(Box::new(move || validator(draft, &schema)));
        if shape.is_none() {
            full.as_ref().map_err(InvalidSchema::clone)?;
        }
        Ok(Self { full, shape })
    }

    /// Whether the shortcut accepts the value, without building a tree.
    pub(super) fn accepts_at_once(&self, json: &str) -> bool {
        let fits = self.shape.as_ref().is_some_and(|shape| shape.accepts(json));
        fits && !may_hold_surrogates(json)
    }

    /// Checks a validated JSON text.
    ///
    /// # Errors
    /// One sentence that says what is wrong, and where.
    pub fn check(&self, json: &str) -> Result<(), String> {
        if self.accepts_at_once(json) {
            return Ok(());
        }
        let value: Value = serde_json::from_str(json).map_err(|error| error.to_string())?;
        let validator = self.full.as_ref().map_err(InvalidSchema::to_string)?;
        match validator.iter_errors(&value).next() {
            None => Ok(()),
            Some(error) => Err(wording(&error)),
        }
    }
}

fn validator(draft: Draft, schema: &Value) -> Compiled {
    let bytes = cost::pattern_bytes(schema);
    let bytes = bytes.ok_or_else(|| InvalidSchema("it has too many patterns".into()))?;
    jsonschema::options()
        .with_draft(draft)
        .with_pattern_options(jsonschema::PatternOptions::regex().size_limit(bytes))
        .build(schema)
        .map_err(|error| InvalidSchema(error.to_string().into()))
}

/// Longest error sentence that repeats the value, in bytes.
const MAX_SENTENCE_BYTES: usize = 200;

/// Says what is wrong and where; without the value if the sentence would be long.
pub(super) fn wording(error: &jsonschema::ValidationError<'_>) -> String {
    let path = error.instance_path().to_string();
    let mut text = error.to_string();
    if text.len() > MAX_SENTENCE_BYTES {
        text = error.masked().to_string();
    }
    if !path.is_empty() {
        text.push_str(" at ");
        text.push_str(&path);
    }
    text
}

/// Whether any surrogate is escaped, paired or not.
fn may_hold_surrogates(json: &str) -> bool {
    let json = json.as_bytes();
    memchr_iter(b'\\', json).any(|at| matches!(json[at..], [_, b'u', b'd' | b'D', ..]))
}

/// A flat object schema: members of plain types, some of them required, and no other constraints
/// but `additionalProperties`. Always a valid schema.
#[derive(Debug)]
struct Shape {
    members: Vec<(Box<str>, Plain, bool)>,
    required: usize,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Plain {
    String,
    Integer,
    Number,
    Boolean,
    Any,
}

/// Whether the keyword is a well-formed annotation, which does not affect validity.
fn is_annotation(key: &str, value: &Value) -> bool {
    match key {
        "title" | "description" | "$comment" => value.is_string(),
        "examples" => value.is_array(),
        "default" => true,
        _ => false,
    }
}

impl Shape {
    fn of(schema: &Value) -> Option<Self> {
        let schema = schema.as_object()?;
        let known = |(key, value): (&String, &Value)| match key.as_str() {
            "type" => value == "object",
            "additionalProperties" => value.is_boolean(),
            "$schema" => value.is_string(),
            "properties" | "required" => true,
            key => is_annotation(key, value),
        };
        if !schema.iter().all(known) {
            return None;
        }
        let required: Vec<&str> = match schema.get("required") {
            Some(names) => names
                .as_array()?
                .iter()
                .map(Value::as_str)
                .collect::<Option<_>>()?,
            None => Vec::new(),
        };
        let empty = serde_json::Map::new();
        let properties = match schema.get("properties") {
            Some(properties) => properties.as_object()?,
            None => &empty,
        };
        if properties.len() > 64 {
            return None;
        }
        let member = |(name, schema): (&String, &Value)| {
            let plain = Plain::of(schema)?;
            let needed = required.contains(&name.as_str());
            Some((name.as_str().into(), plain, needed))
        };
        let members: Vec<_> = properties.iter().map(member).collect::<Option<_>>()?;
        // Each required name is a member, and none occurs twice.
        let needed = members.iter().filter(|(.., needed)| *needed).count();
        (needed == required.len()).then_some(Self {
            members,
            required: needed,
        })
    }

    /// Whether the object is certainly valid. The full validator decides about members that are not
    /// listed or occur twice.
    fn accepts(&self, json: &str) -> bool {
        if !json.starts_with('{') {
            return false;
        }
        let mut seen = 0u64;
        let mut required = 0;
        for (key, value) in reader::members(json) {
            let Some(index) = self
                .members
                .iter()
                .position(|(name, ..)| **name == *key.raw())
            else {
                return false;
            };
            let (_, plain, needed) = &self.members[index];
            if key.is_escaped() || seen & 1 << index != 0 || !plain.accepts(value) {
                return false;
            }
            seen |= 1 << index;
            required += usize::from(*needed);
        }
        required == self.required
    }
}

impl Plain {
    fn of(schema: &Value) -> Option<Self> {
        let schema = schema.as_object()?;
        let mut others = schema.iter().filter(|(key, _)| *key != "type");
        if !others.all(|(key, value)| is_annotation(key, value)) {
            return None;
        }
        match schema.get("type").map(Value::as_str) {
            None => Some(Self::Any),
            Some(Some("string")) => Some(Self::String),
            Some(Some("integer")) => Some(Self::Integer),
            Some(Some("number")) => Some(Self::Number),
            Some(Some("boolean")) => Some(Self::Boolean),
            _ => None,
        }
    }

    fn accepts(self, value: &str) -> bool {
        match self {
            Self::String => value.starts_with('"'),
            Self::Integer => number::is_integer(value),
            Self::Number => value.starts_with(|c: char| c == '-' || c.is_ascii_digit()),
            Self::Boolean => matches!(value, "true" | "false"),
            Self::Any => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ECHO: &str = r#"{"type":"object","properties":{"text":{"type":"string"},"n":{"type":"integer"}},"required":["text"]}"#;

    #[test]
    fn the_shortcut_never_accepts_what_the_validator_refuses() {
        let schemas = [
            ECHO,
            r#"{"type":"object","additionalProperties":false}"#,
            r#"{"type":"object","properties":{"a":{"type":"number"},"b":{"type":"boolean"},"c":{}}}"#,
            r#"{"type":"object","properties":{"a":{"type":"string","maxLength":2}}}"#,
            r#"{"type":"object","properties":{"a":{}},"additionalProperties":{"type":"string"}}"#,
        ];
        let arguments = [
            "{}",
            r#"{"text":"x"}"#,
            r#"{"text":1}"#,
            r#"{"text":"x","n":1}"#,
            r#"{"text":"x","n":1.0}"#,
            r#"{"text":"x","n":1.5}"#,
            r#"{"text":"x","text":1}"#,
            r#"{"text":1,"text":"x"}"#,
            r#"{"te\u0078t":"x"}"#,
            r#"{"extra":true}"#,
            r#"{"a":-1e3,"b":false,"c":[1]}"#,
            r#"{"a":"xyz"}"#,
            "[]",
        ];
        let mut shortcuts = 0;
        for json in schemas {
            let schema = Schema::input(json).unwrap();
            for arguments in arguments {
                let value: Value = serde_json::from_str(arguments).unwrap();
                let full = schema.full.as_ref().unwrap().is_valid(&value);
                let short = schema
                    .shape
                    .as_ref()
                    .is_some_and(|shape| shape.accepts(arguments));
                assert!(full || !short, "{json} {arguments}");
                assert_eq!(schema.check(arguments).is_ok(), full, "{json} {arguments}");
                shortcuts += usize::from(short);
            }
        }
        assert_eq!(shortcuts, 5, "the shortcut is taken");
    }

    #[test]
    fn what_has_a_shape_is_a_valid_schema() {
        let parts = [
            ("", true),
            (
                r#","title":"T","description":"D","$comment":"C","default":7,"examples":[1]"#,
                true,
            ),
            (r#","title":7"#, false),
            (r#","description":null"#, false),
            (r#","examples":{}"#, false),
            (r#","required":["a"]"#, true),
            (r#","required":["a","a"]"#, false),
            (r#","required":["b"]"#, false),
            (r#","required":"a""#, false),
            (r#","required":[1]"#, false),
            (r#","additionalProperties":false"#, true),
            (r#","additionalProperties":7"#, false),
            (r#","additionalProperties":{"type":"string"}"#, false),
            (r#","$id":"x""#, false),
            (r#","properties":[]"#, false),
        ];
        let members = [
            ("{}", true),
            (r#"{"type":"string","title":"T","examples":[]}"#, true),
            (r#"{"type":"string","examples":7}"#, false),
            (r#"{"type":"strin"}"#, false),
            (r#"{"type":["string"]}"#, false),
            ("true", false),
        ];
        for ((part, plain), (member, is_plain)) in parts
            .iter()
            .flat_map(|part| members.map(|member| (part, member)))
        {
            let json = format!(r#"{{"type":"object","properties":{{"a":{member}}}{part}}}"#);
            let value: Value = serde_json::from_str(&json).unwrap();
            let has_shape = Shape::of(&value).is_some();
            assert_eq!(has_shape, *plain && is_plain, "{json}");
            let compiled = validator(Draft::Draft202012, &value);
            assert!(!has_shape || compiled.is_ok(), "{json}");
            assert_eq!(Schema::new(&json).is_ok(), compiled.is_ok(), "{json}");
        }
        assert!(
            Schema::new(r#"{"type":"string"}"#)
                .unwrap()
                .check("{}")
                .is_err()
        );
    }

    #[test]
    fn lone_surrogates_are_refused_wherever_they_stand() {
        let schema = Schema::input(ECHO).unwrap();
        for good in ["\\ud83d\\ude00", "\\\\ud800", "\\u00e9", "\\\\\\u0064"] {
            let json = format!("{{\"text\":\"{good}\"}}");
            assert_eq!(schema.check(&json), Ok(()), "{json}");
        }
        for bad in ["\\ud800", "\\uDFFF", "\\\\\\ude00\\ud83d", "\\ud83d\\ud83d"] {
            for json in [
                format!("{{\"text\":\"{bad}\"}}"),
                format!("{{\"text\":\"\",\"x\":[{{\"{bad}\":1}}]}}"),
            ] {
                assert!(schema.check(&json).is_err(), "{json}");
            }
        }
    }

    /// R-SCH-01 to R-SCH-03, R-SCH-05 to R-SCH-07, R-SCH-10, R-SCH-11.
    #[test]
    fn bad_schemas_are_refused_at_once() {
        for json in [
            "{",
            "null",
            "{}",
            r#"{"type":"string"}"#,
            r#"{"type":"object","$schema":"http://json-schema.org/draft-04/schema#"}"#,
            r#"{"type":"object","properties":{"a":{"$ref":"https://example.com/x.json"}}}"#,
            r#"{"type":"object","properties":{"a":{"type":"strin"}}}"#,
        ] {
            assert!(Schema::input(json).is_err(), "{json}");
        }
    }

    /// R-SCH-04: the two dialects that the documentation of [`Schema`] names, in cases where they
    /// differ.
    #[test]
    fn two_dialects_are_spoken() {
        let of = |dialect: &str, list: &str| {
            let head = format!(r#""type":"object"{dialect}"#);
            let json = format!(r#"{{{head},"properties":{{"a":{{"type":"array",{list}}}}}}}"#);
            Schema::input(&json).unwrap()
        };
        let newest = r#","$schema":"https://json-schema.org/draft/2020-12/schema""#;
        let older = r#","$schema":"http://json-schema.org/draft-07/schema#""#;
        let pair = r#"{"a":["x",1]}"#;
        let swapped = r#"{"a":[1,"x"]}"#;
        let types = r#"[{"type":"string"},{"type":"integer"}]"#;
        let (items, prefix) = (
            format!(r#""items":{types}"#),
            format!(r#""prefixItems":{types}"#),
        );
        for dialect in ["", newest] {
            let schema = of(dialect, &prefix);
            assert!(schema.check(pair).is_ok() && schema.check(swapped).is_err());
        }
        let schema = of(older, &items);
        assert!(schema.check(pair).is_ok() && schema.check(swapped).is_err());
        assert!(
            of(older, &prefix).check(swapped).is_ok(),
            "a word that draft-07 lacks"
        );
        let said = include_str!("../schema.rs")
            .split("mod compiled;")
            .next()
            .unwrap();
        assert!(said.contains("2020-12") && said.contains("draft-07"));
    }

    /// R-SCH-08: a self-referring schema terminates, and so does a pattern.
    #[test]
    fn hostile_schemas_have_an_end() {
        for json in [
            r##"{"type":"object","$ref":"#"}"##,
            r##"{"type":"object","allOf":[{"$ref":"#/allOf/0"}]}"##,
            r##"{"type":"object","$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}}}"##,
            r##"{"type":"object","$dynamicAnchor":"a","$dynamicRef":"#a"}"##,
            r##"{"type":"object","not":{"$ref":"#"}}"##,
            r##"{"type":"object","anyOf":[{"$ref":"#"},{"$ref":"#"}]}"##,
        ] {
            // Valid or not: the check must terminate.
            let _ = Schema::input(json).map(|schema| schema.check(r#"{"a":[{}]}"#));
        }
        let of = |pattern: &str| {
            Schema::input(&format!(
                r#"{{"type":"object","properties":{{"a":{{"pattern":"{pattern}"}}}}}}"#
            ))
        };
        let text = format!(r#"{{"a":"{}!"}}"#, "a".repeat(100_000));
        for pattern in ["^(a+)+$", "^(a|a)*$", "^(a|aa)+$", "^(.*a){12}$"] {
            assert!(of(pattern).unwrap().check(&text).is_err(), "{pattern}");
        }
        for huge in [
            "((a{1000}){1000}){1000}",
            r"(\\pL{1000}){100}",
            "(?=a)a",
            r"(a)\\1",
        ] {
            assert!(of(huge).is_err(), "{huge}");
        }
    }

    #[test]
    fn an_error_names_the_place() {
        let error = Schema::input(ECHO)
            .unwrap()
            .check(r#"{"text":7}"#)
            .unwrap_err();
        assert!(error.contains("/text"), "{error}");
    }

    #[test]
    fn an_error_does_not_repeat_what_is_long() {
        let long = format!("{{\"n\":\"{}\",\"text\":\"\"}}", "x".repeat(1 << 20));
        let error = Schema::input(ECHO).unwrap().check(&long).unwrap_err();
        assert!(error.contains("/n") && error.len() < 300, "{}", error.len());
    }
}
