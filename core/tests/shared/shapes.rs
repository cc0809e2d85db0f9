//! `corpus/shapes.txt` as JSON Schema, one document a revision.
#![allow(clippy::unwrap_used, reason = "for tests: panicking is the report")]

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

const TABLE: &str = include_str!("../../../corpus/shapes.txt");

/// The names of the revisions, of which the table has the numbers from 1 on.
pub const REVISIONS: [&str; 5] = [
    "2024-11-05",
    "2025-03-26",
    "2025-06-18",
    "2025-11-25",
    "2026-07-28",
];

/// The schema of the named revision: a document whose `$defs` are the table's shapes.
///
/// # Panics
///
/// If there is no such revision, or the table has an error.
pub fn schema(revision: &str) -> Value {
    let number = REVISIONS.iter().position(|name| *name == revision);
    let number = number.unwrap_or_else(|| panic!("no revision {revision}")) + 1;
    let mut reader = Reader {
        words: words(TABLE).into_iter().peekable(),
        revision: number,
        shapes: BTreeMap::new(),
    };
    while reader.words.peek().is_some() {
        reader.definition();
    }
    let shapes = reader.shapes.clone();
    let definitions: Map<_, _> = shapes
        .iter()
        .map(|(name, shape)| (name.clone(), written(shape, &shapes)))
        .collect();
    // Drafts differ in whether formats are looked at: they are, where the revision's own draft does.
    let draft = match number {
        1..=3 => "http://json-schema.org/draft-07/schema#",
        _ => "https://json-schema.org/draft/2020-12/schema",
    };
    json!({"$schema": draft, "$defs": definitions})
}

/// A shape as the table has it.
#[derive(Clone)]
enum Shape {
    /// One that needs no other: its schema.
    Plain(Value),
    Name(String),
    List(Box<Shape>, Option<u64>),
    Either(Vec<Shape>),
    Members(Vec<Member>),
}

#[derive(Clone)]
enum Member {
    Of(String),
    Other(Shape),
    Named {
        name: String,
        is_required: bool,
        shape: Shape,
    },
}

type Shapes = BTreeMap<String, Shape>;

fn written(shape: &Shape, shapes: &Shapes) -> Value {
    match shape {
        Shape::Plain(schema) => schema.clone(),
        Shape::Name(name) => {
            assert!(shapes.contains_key(name), "there is no {name}");
            json!({"$ref": format!("#/$defs/{name}")})
        }
        Shape::List(of, most) => {
            let mut schema = json!({"type": "array", "items": written(of, shapes)});
            if let Some(most) = most {
                schema["maxItems"] = json!(most);
            }
            schema
        }
        Shape::Either(all) => {
            let all: Vec<_> = all.iter().map(|one| written(one, shapes)).collect();
            json!({"anyOf": all})
        }
        Shape::Members(members) => {
            let mut object = Object::default();
            object.take(members, shapes);
            let mut schema = json!({"type": "object"});
            if !object.properties.is_empty() {
                schema["properties"] = Value::Object(object.properties);
            }
            if !object.required.is_empty() {
                schema["required"] = json!(object.required);
            }
            if let Some(other) = object.other {
                schema["additionalProperties"] = other;
            }
            schema
        }
    }
}

#[derive(Default)]
struct Object {
    properties: Map<String, Value>,
    required: Vec<String>,
    other: Option<Value>,
}

impl Object {
    fn take(&mut self, members: &[Member], shapes: &Shapes) {
        for member in members {
            match member {
                Member::Of(name) => match shapes.get(name) {
                    Some(Shape::Members(members)) => self.take(members, shapes),
                    _ => panic!("{name} has no members"),
                },
                Member::Other(shape) => self.other = Some(written(shape, shapes)),
                Member::Named {
                    name,
                    is_required,
                    shape,
                } => {
                    self.required.retain(|before| before != name);
                    if *is_required {
                        self.required.push(name.clone());
                    }
                    let schema = written(shape, shapes);
                    self.properties.insert(name.clone(), schema);
                }
            }
        }
    }
}

/// Names, literals and marks: `...`, `..` and single characters.
fn words(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    for line in text.lines() {
        let mut rest = line.trim_start();
        while let Some(first) = rest.chars().next().filter(|first| *first != '#') {
            let is_word = |c: char| c.is_ascii_alphanumeric() || "_$-".contains(c);
            let length = match first {
                '"' => rest[1..].find('"').map_or(rest.len(), |end| end + 2),
                '.' => rest.find(|c| c != '.').unwrap_or(rest.len()),
                c if is_word(c) => rest.find(|c| !is_word(c)).unwrap_or(rest.len()),
                _ => 1,
            };
            let (word, after) = rest.split_at(length);
            found.push(word);
            rest = after.trim_start();
        }
    }
    found
}

struct Reader {
    words: std::iter::Peekable<std::vec::IntoIter<&'static str>>,
    revision: usize,
    shapes: Shapes,
}

impl Reader {
    fn next(&mut self) -> &'static str {
        self.words.next().unwrap_or_default()
    }

    /// Takes the word if it is the next.
    fn has(&mut self, word: &str) -> bool {
        self.words.next_if(|next| *next == word).is_some()
    }

    fn must(&mut self, word: &str) {
        let next = self.next();
        assert_eq!(next, word, "the table has {next} for {word}");
    }

    fn definition(&mut self) {
        let name = self.next();
        let is_of_this = self.range();
        self.must("=");
        if let Some(shape) = self.shape().filter(|_| is_of_this) {
            self.shapes.insert(name.to_owned(), shape);
        }
    }

    /// `@3`, `@-2`, `@3-4` or nothing: whether this revision is in it.
    fn range(&mut self) -> bool {
        if !self.has("@") {
            return true;
        }
        let word = self.next();
        let (from, to) = word.split_once('-').unwrap_or((word, ""));
        let bound = |text: &str, otherwise| match text {
            "" => otherwise,
            number => number.parse().unwrap(),
        };
        (bound(from, 1)..=bound(to, REVISIONS.len())).contains(&self.revision)
    }

    /// The alternative shapes of this revision; `None` if it has none.
    fn shape(&mut self) -> Option<Shape> {
        let mut all = Vec::new();
        self.has("|");
        loop {
            let one = self.one();
            if self.range() {
                all.push(one);
            }
            if !self.has("|") {
                break;
            }
        }
        match all.len() {
            0 | 1 => all.pop(),
            _ => Some(Shape::Either(all)),
        }
    }

    fn one(&mut self) -> Shape {
        let mut shape = match self.next() {
            "{" => Shape::Members(self.members()),
            "(" => {
                let inner = self.shape().unwrap();
                self.must(")");
                inner
            }
            word => plain(word).map_or_else(|| Shape::Name(word.to_owned()), Shape::Plain),
        };
        while self.has("[") {
            let most = self.has("..").then(|| self.next().parse().unwrap());
            self.must("]");
            shape = Shape::List(Box::new(shape), most);
        }
        shape
    }

    fn members(&mut self) -> Vec<Member> {
        let mut all = Vec::new();
        while !self.has("}") {
            if self.has("...") {
                let name = self.next().to_owned();
                if self.range() {
                    all.push(Member::Of(name));
                }
            } else {
                let name = self.next().trim_matches('"');
                let is_required = !self.has("?");
                self.must(":");
                match self.shape() {
                    Some(shape) if name == "*" => all.push(Member::Other(shape)),
                    Some(shape) => all.push(Member::Named {
                        name: name.to_owned(),
                        is_required,
                        shape,
                    }),
                    None => {}
                }
            }
            self.has(",");
        }
        all
    }
}

fn plain(word: &str) -> Option<Value> {
    Some(match word {
        "any" => json!({}),
        "string" | "number" | "integer" | "boolean" | "object" | "null" => json!({"type": word}),
        "uri" => json!({"type": "string", "format": "uri"}),
        "template" => json!({"type": "string", "format": "uri-template"}),
        "bytes" => json!({"type": "string", "format": "byte"}),
        "fraction" => json!({"type": "number", "minimum": 0, "maximum": 1}),
        "natural" => json!({"type": "integer", "minimum": 0}),
        _ => {
            let literal: Value = serde_json::from_str(word).ok()?;
            json!({ "const": literal })
        }
    })
}
