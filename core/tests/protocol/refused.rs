//! The table of shapes (`corpus/shapes.txt`) refuses what the official JSON Schemas refuse.
//! `corpus/refused.txt` lists the verdicts of the official schemas on a complete value of every shape and
//! on its mutants: a member removed, or a value replaced.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde_json::{Map, Value, json};

use crate::shapes::{REVISIONS, schema};

const TABLE: &str = include_str!("../../../corpus/refused.txt");

/// The mutations, by their names in the table. The first removes the part.
const PLACED: [(&str, &str); 13] = [
    ("gone", ""),
    ("null", "null"),
    ("true", "true"),
    ("7", "7"),
    ("-7", "-7"),
    ("0.5", "0.5"),
    ("1e9", "1000000000.5"),
    ("text", "\"a b\""),
    ("[]", "[]"),
    ("[text]", "[\"a b\"]"),
    ("[7]", "[7]"),
    ("{}", "{}"),
    ("{x}", "{\"x\":0.5,\"type\":\"x\"}"),
];

/// The depth down to which parts are mutated. Deeper parts belong to shapes with lines of their own.
const DEPTH: usize = 3;

#[test]
fn the_shapes_refuse_what_the_official_schemas_refuse() {
    let schemas = REVISIONS.map(schema);
    let has = |name: &str, at: usize| {
        let mut lines = TABLE.lines().filter_map(|line| line.strip_prefix(name));
        let number = (at + 1).to_string();
        lines
            .any(|line| line.starts_with(' ') && line.rsplit('@').next().unwrap().contains(&number))
    };
    let found = table(&schemas, |name, at| {
        has(name, at)
            .then(|| validator(&schemas[at], name))
            .flatten()
    });
    if let Some((is, was)) = found.lines().zip(TABLE.lines()).find(|(is, was)| is != was) {
        let now = concat!(env!("CARGO_TARGET_TMPDIR"), "/refused.txt");
        std::fs::write(now, &found).unwrap();
        panic!("{is}\nstands in the table as\n{was}\n(all of it as it is now: {now})");
    }
    assert_eq!(found.lines().count(), TABLE.lines().count());
    assert!(TABLE.lines().count() > 300);
}

/// The examples in `corpus/messages.json` match the shapes they name.
#[test]
fn every_example_has_its_shape() {
    let document = schema("2026-07-28");
    let corpus: Vec<Value> =
        serde_json::from_str(include_str!("../../../corpus/messages.json")).unwrap();
    for example in corpus {
        let name = example["is"].as_str().unwrap();
        let judge = validator(&document, name).unwrap_or_else(|| panic!("no shape {name}"));
        if let Err(error) = judge.validate(&example["value"]) {
            panic!("{name}{}: {error}", error.instance_path());
        }
    }
}

/// Renders the verdicts of the validators that `judge` returns for a shape and a revision's index. First come the
/// kinds of parts: the mutations that a part refuses. Then follows a line for each shape and revision:
/// the revisions whose complete values it takes, and the kind of each part.
pub fn table(
    shapes: &[Value; 5],
    judge: impl Fn(&str, usize) -> Option<jsonschema::Validator>,
) -> String {
    let mut kinds = BTreeMap::new();
    let mut text = String::new();
    let all = shapes
        .iter()
        .flat_map(|document| document["$defs"].as_object().unwrap().keys());
    let names: std::collections::BTreeSet<_> = all.collect();
    for name in names {
        let wholes = shapes.each_ref().map(|document| whole(document, name));
        let mut before = String::new();
        for (at, value) in wholes.iter().enumerate() {
            let (Some(judge), Some(value)) = (judge(name, at), value) else {
                continue;
            };
            assert!(
                judge.is_valid(value),
                "{name} of {}: {value}",
                REVISIONS[at]
            );
            let taken = wholes.iter().enumerate().filter_map(|(from, value)| {
                let is_taken = judge.is_valid(value.as_ref()?);
                is_taken.then(|| (from + 1).to_string())
            });
            let mut line = format!("takes {}", taken.collect::<String>());
            for place in places(value, DEPTH) {
                let refused = PLACED.iter().filter(|(_, with)| {
                    changed(value, &place, with).is_some_and(|value| !judge.is_valid(&value))
                });
                let kind: Vec<_> = refused.map(|(word, _)| *word).collect();
                let next = kinds.len();
                let kind = kinds.entry(kind.join(" ")).or_insert(next);
                let _ = write!(line, " {place}={kind}");
            }
            match line == before {
                true => text.insert_str(text.len() - 1, &(at + 1).to_string()),
                false => _ = writeln!(text, "{name} {line} @{}", at + 1),
            }
            before = line;
        }
    }
    let mut kinds: Vec<_> = kinds
        .into_iter()
        .map(|(kind, number)| (number, kind))
        .collect();
    kinds.sort();
    let kinds: String = kinds
        .iter()
        .map(|(number, kind)| format!("{number} refuses {kind}\n"))
        .collect();
    kinds + &text
}

/// A validator for the named shape, or `None` if the document has no such definition.
pub fn validator(document: &Value, name: &str) -> Option<jsonschema::Validator> {
    let key = ["$defs", "definitions"]
        .into_iter()
        .find(|key| document.get(key).is_some())?;
    document[key].get(name)?;
    let mut document = document.clone();
    document["$ref"] = json!(format!("#/{key}/{name}"));
    Some(jsonschema::validator_for(&document).unwrap())
}

/// A value with every member that the shape has, and the first of its alternatives.
fn whole(document: &Value, name: &str) -> Option<Value> {
    let shape = document["$defs"].get(name)?;
    Some(value_of(document, shape))
}

fn value_of(document: &Value, schema: &Value) -> Value {
    if let Some(name) = schema["$ref"]
        .as_str()
        .and_then(|name| name.rsplit('/').next())
    {
        return value_of(document, &document["$defs"][name]);
    }
    if let Some(value) = schema.get("const") {
        return value.clone();
    }
    if let Some(all) = schema["anyOf"].as_array() {
        return value_of(document, &all[0]);
    }
    match schema["type"].as_str() {
        Some("string") => json!("file:///a"),
        Some("number") => json!(0.25),
        Some("integer") => json!(3),
        Some("boolean") => json!(true),
        Some("null") => Value::Null,
        Some("array") => json!([value_of(document, &schema["items"])]),
        Some("object") => {
            let properties = schema["properties"].as_object();
            let mut all: Map<_, _> = properties
                .into_iter()
                .flatten()
                .map(|(name, schema)| (name.clone(), value_of(document, schema)))
                .collect();
            if let Some(other) = schema.get("additionalProperties") {
                all.insert("any".to_owned(), value_of(document, other));
            }
            Value::Object(all)
        }
        _ => json!({"any": [null]}),
    }
}

/// The places of all parts of a value down to a depth, as pointers; the value's own, which is
/// empty, first.
fn places(value: &Value, depth: usize) -> Vec<String> {
    let mut found = vec![String::new()];
    if depth == 0 {
        return found;
    }
    let inner: Vec<(String, &Value)> = match value {
        Value::Object(all) => all
            .iter()
            .map(|(name, part)| (name.replace('/', "~1"), part))
            .collect(),
        Value::Array(all) => all.iter().map(|part| ("0".to_owned(), part)).collect(),
        _ => Vec::new(),
    };
    for (name, part) in inner {
        let below = places(part, depth - 1);
        found.extend(below.iter().map(|place| format!("/{name}{place}")));
    }
    found
}

/// The value with something else at a place; `None` where it cannot be, as nothing in the place of the
/// whole.
fn changed(value: &Value, place: &str, with: &str) -> Option<Value> {
    let mut value = value.clone();
    if !with.is_empty() {
        *value.pointer_mut(place)? = serde_json::from_str(with).unwrap();
        return Some(value);
    }
    let (parent, name) = place.rsplit_once('/')?;
    let name = name.replace("~1", "/");
    value.pointer_mut(parent)?.as_object_mut()?.remove(&name);
    Some(value)
}
