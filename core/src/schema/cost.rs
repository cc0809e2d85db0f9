//! The cost of a schema: the number of subschemas that one check may apply, where those behind a
//! reference count each time they are referred to (R-SCH-08).
//!
//! A few lines can double what they refer to over and over, so the sum is computed without
//! expanding references. Where a reference may have several targets, depending on the base URI or
//! the dynamic scope, the costliest target counts.
//! tell, the costliest of them counts.

use std::collections::HashMap;

use serde_json::Value;

/// Most subschemas that may be applied to one level of a value.
pub const MAX_COST: u64 = 100_000;

/// Deepest nesting of subschemas, including those behind references; a deeper schema is too costly.
const MAX_DEPTH: usize = 1000;

/// Most embedded schemas with their own `$id`; a schema with more is too costly.
const MAX_RESOURCES: usize = 64;

/// Most bytes of a schema's compiled patterns, in all.
const PATTERN_BYTES: usize = 64 << 20;

/// Most bytes of one compiled pattern.
const LONGEST_PATTERN: usize = 10 << 20;

/// Most bytes that each compiled pattern of the schema may take; `None` if there are so many
/// patterns that the share is too small to be useful.
pub fn pattern_bytes(schema: &Value) -> Option<usize> {
    let share = PATTERN_BYTES / patterns(schema).max(1);
    (share >= 16 << 10).then(|| share.min(LONGEST_PATTERN))
}

fn patterns(schema: &Value) -> usize {
    let of_member = |(keyword, value): (&String, &Value)| {
        let own = match (keyword.as_str(), value) {
            ("pattern", Value::String(_)) => 1,
            ("patternProperties", Value::Object(members)) => members.len(),
            _ => 0,
        };
        own + patterns(value)
    };
    match schema {
        Value::Object(members) => members.iter().map(of_member).sum(),
        Value::Array(elements) => elements.iter().map(patterns).sum(),
        _ => 0,
    }
}

/// The cost of the schema; not exact above [`MAX_COST`].
pub fn of(schema: &Value) -> u64 {
    let mut walk = Walk {
        resources: vec![schema],
        anchors: HashMap::new(),
        known: HashMap::new(),
        depth: 0,
    };
    walk.collect(schema);
    match walk.resources.len() > MAX_RESOURCES {
        true => MAX_COST + 1,
        false => walk.cost(schema),
    }
}

struct Walk<'a> {
    /// The schema itself, and the schemas in it that have an `$id`.
    resources: Vec<&'a Value>,
    anchors: HashMap<&'a str, Vec<&'a Value>>,
    /// The cost by address; `None` while it is being computed, so that self-references terminate.
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
                            let targets = self.targets(to);
                            let costs = targets.into_iter().map(|target| self.cost(target));
                            costs.max().unwrap_or(0)
                        }
                        // Definitions cost where they are used; the other keywords hold no schemas.
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

    /// Every place that a reference may lead to, whatever its base URI.
    fn targets(&self, to: &str) -> Vec<&'a Value> {
        let fragment = to.split_once('#').map_or("", |(_, fragment)| fragment);
        let fragment = decoded(fragment);
        let all = self.resources.iter();
        let mut targets: Vec<_> = all.filter_map(|root| root.pointer(&fragment)).collect();
        targets.extend(self.anchors.get(&*fragment).into_iter().flatten().copied());
        targets
    }

    fn collect(&mut self, schema: &'a Value) {
        match schema {
            Value::Object(members) => {
                let text = |keyword| members.get(keyword).and_then(Value::as_str);
                let id = text("$id");
                // The anchors of draft-07.
                let older = id.and_then(|id| id.strip_prefix('#'));
                let names = [text("$anchor"), text("$dynamicAnchor"), older];
                for name in names.into_iter().flatten() {
                    self.anchors.entry(name).or_default().push(schema);
                }
                if id.is_some() && older.is_none() {
                    self.resources.push(schema);
                }
                members.values().for_each(|value| self.collect(value));
            }
            Value::Array(elements) => elements.iter().for_each(|value| self.collect(value)),
            _ => {}
        }
    }
}

/// A percent-decoded fragment; empty if it is not UTF-8.
fn decoded(fragment: &str) -> String {
    let mut parts = fragment.split('%');
    let mut out = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        let escaped = part.get(..2).map(|hex| u8::from_str_radix(hex, 16));
        let (byte, rest) = match escaped {
            Some(Ok(byte)) => (byte, part.get(2..).unwrap_or_default()),
            _ => (b'%', part),
        };
        out.push(byte);
        out.extend_from_slice(rest.as_bytes());
    }
    String::from_utf8(out).unwrap_or_default()
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
        // The spelling of a reference does not matter: percent-encoded, by an `$id`, by draft-07
        // anchors.
        for (own, to) in [
            (None, "#/%24defs/d"),
            (Some("urn:x"), "urn:x#/$defs/d"),
            (Some("https://x.example/a"), "a#/$defs/d"),
            (Some("https://x.example/a"), "#/%24%64efs/d"),
        ] {
            let mut schema = json!({"$ref": format!("{to}0"), "$defs": {}});
            if let Some(id) = own {
                schema["$id"] = json!(id);
            }
            for level in 0..30 {
                let next = json!({"$ref": format!("{to}{}", level + 1)});
                schema["$defs"][format!("d{level}")] = json!({"allOf": [next, next]});
            }
            schema["$defs"]["d30"] = json!({"type": "object"});
            assert!(of(&schema) > MAX_COST, "{to}");
            // The same schema nested in another one.
            assert!(
                of(&json!({"allOf": [schema]})) > MAX_COST || own.is_none(),
                "{to}"
            );
        }
        let mut older = json!({"$ref": "#d0", "definitions": {}});
        for level in 0..30 {
            let next = json!({"$ref": format!("#d{}", level + 1)});
            older["definitions"][format!("d{level}")] =
                json!({"$id": format!("#d{level}"), "allOf": [next, next]});
        }
        assert!(of(&older) > MAX_COST);
        let many: Vec<_> = (0..100)
            .map(|n| json!({"$id": format!("urn:{n}")}))
            .collect();
        assert!(of(&json!({ "allOf": many })) > MAX_COST);
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

    #[test]
    fn patterns_share_what_they_may_take() {
        assert_eq!(pattern_bytes(&json!({})), Some(LONGEST_PATTERN));
        let of_many = |count: usize| {
            let all: Vec<_> = (0..count).map(|_| json!({"pattern": "a"})).collect();
            pattern_bytes(&json!({"items": {"anyOf": all}, "patternProperties": {"b": {}}}))
        };
        assert_eq!(of_many(63), Some(1 << 20));
        assert_eq!(of_many(4095), Some(16 << 10));
        assert_eq!(of_many(5000), None);
    }
}
