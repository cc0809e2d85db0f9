//! How much one look at a value may take: every subschema that a schema applies, those behind
//! references counted wherever they are referred to (R-SCH-08).
//!
//! A few lines can double what they refer to over and over. The sum is found without doing the same.

use std::collections::HashMap;

use serde_json::Value;

/// Most subschemas that one level of a value may be held against.
pub const MAX_COST: u64 = 100_000;

/// Most subschemas within one another, those behind references included; a schema with more costs
/// too much.
const MAX_DEPTH: usize = 1000;

/// The schema's cost; above [`MAX_COST`] it is not exact.
pub fn of(schema: &Value) -> u64 {
    let mut anchors = HashMap::new();
    collect(schema, &mut anchors);
    Walk {
        root: schema,
        anchors,
        known: HashMap::new(),
        depth: 0,
    }
    .cost(schema)
}

struct Walk<'a> {
    root: &'a Value,
    anchors: HashMap<&'a str, &'a Value>,
    /// By address; `None` while it is being found, so that what refers to itself has an end.
    known: HashMap<*const Value, Option<u64>>,
    depth: usize,
}

impl<'a> Walk<'a> {
    fn cost(&mut self, schema: &'a Value) -> u64 {
        let place = std::ptr::from_ref(schema);
        match self.known.get(&place) {
            Some(known) => return known.unwrap_or(1),
            None => drop(self.known.insert(place, None)),
        }
        if self.depth == MAX_DEPTH {
            return MAX_COST + 1;
        }
        self.depth += 1;
        let mut cost = 1u64;
        match schema {
            Value::Object(members) => {
                for (keyword, value) in members {
                    let more = match (keyword.as_str(), value) {
                        ("$ref" | "$dynamicRef", Value::String(to)) => {
                            self.target(to).map_or(0, |target| self.cost(target))
                        }
                        // What is only defined costs where it is used; the rest holds no schemas.
                        (
                            "$defs" | "definitions" | "enum" | "const" | "default" | "examples",
                            _,
                        ) => 0,
                        (_, Value::Object(_) | Value::Array(_)) => self.cost(value),
                        _ => 0,
                    };
                    cost = cost.saturating_add(more);
                }
            }
            Value::Array(elements) => {
                for element in elements {
                    cost = cost.saturating_add(self.cost(element));
                }
            }
            _ => {}
        }
        self.depth -= 1;
        self.known.insert(place, Some(cost));
        cost
    }

    fn target(&self, to: &str) -> Option<&'a Value> {
        let fragment = to.strip_prefix('#')?;
        let found = self.root.pointer(fragment);
        found.or_else(|| self.anchors.get(fragment).copied())
    }
}

fn collect<'a>(schema: &'a Value, anchors: &mut HashMap<&'a str, &'a Value>) {
    match schema {
        Value::Object(members) => {
            for keyword in ["$anchor", "$dynamicAnchor"] {
                if let Some(name) = members.get(keyword).and_then(Value::as_str) {
                    anchors.insert(name, schema);
                }
            }
            members.values().for_each(|value| collect(value, anchors));
        }
        Value::Array(elements) => elements.iter().for_each(|value| collect(value, anchors)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// R-SCH-08.
    #[test]
    fn what_doubles_is_seen_and_what_refers_to_itself_has_an_end() {
        let doubling = |levels: usize, named: bool| {
            let mut schema = json!({"$ref": if named { "#d0" } else { "#/$defs/d0" }, "$defs": {}});
            for level in 0..levels {
                let next = match named {
                    true => format!("#d{}", level + 1),
                    false => format!("#/$defs/d{}", level + 1),
                };
                let both = json!([{"$ref": next}, {"$ref": next}]);
                schema["$defs"][format!("d{level}")] =
                    json!({"$anchor": format!("d{level}"), "allOf": both});
            }
            schema["$defs"][format!("d{levels}")] =
                json!({"$anchor": format!("d{levels}"), "type": "object"});
            schema
        };
        for named in [true, false] {
            assert!(of(&doubling(4, named)) < 200);
            assert!(of(&doubling(30, named)) > MAX_COST);
            assert!(of(&doubling(1000, named)) > MAX_COST);
        }
        let mut chain = json!({"$ref": "#/$defs/d0", "$defs": {}});
        for level in 0..100_000 {
            chain["$defs"][format!("d{level}")] =
                json!({"$ref": format!("#/$defs/d{}", level + 1)});
        }
        assert!(of(&chain) > MAX_COST, "however long, without a deep stack");
        let tree = json!({"properties": {"children": {"items": {"$ref": "#"}}}});
        assert!(of(&tree) < 20);
        let wide: Vec<_> = (0..1000).map(|n| json!({"const": n})).collect();
        assert!((1000..1100).contains(&of(&json!({ "oneOf": wide }))));
    }
}
