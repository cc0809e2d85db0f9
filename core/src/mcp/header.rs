//! `x-mcp-header` in the schema of a tool: arguments that HTTP repeats as headers, for those on the
//! way that read no bodies (2026-07-28, R-HDR-07).

use std::collections::BTreeSet;

use serde_json::Value;

const KEYWORD: &str = "x-mcp-header";

/// Keywords whose value is one schema, or several by a name that is no argument's.
const NESTED: [&str; 16] = [
    "additionalProperties",
    "allOf",
    "anyOf",
    "contains",
    "dependentSchemas",
    "else",
    "if",
    "items",
    "not",
    "oneOf",
    "patternProperties",
    "prefixItems",
    "propertyNames",
    "then",
    "unevaluatedItems",
    "unevaluatedProperties",
];

/// What is wrong with the headers that the schema of a tool's arguments asks for, if something is.
pub(crate) fn fault(schema: &Value) -> Option<&'static str> {
    check(schema, true, &mut BTreeSet::new()).err()
}

/// Checks a schema; `named` says whether only names of arguments lead to it.
fn check(schema: &Value, named: bool, seen: &mut BTreeSet<String>) -> Result<(), &'static str> {
    let Some(members) = schema.as_object() else {
        let elements = schema.as_array().into_iter().flatten();
        return elements
            .into_iter()
            .try_for_each(|one| check(one, false, seen));
    };
    if let Some(name) = members.get(KEYWORD) {
        let name = name.as_str().ok_or("an x-mcp-header is a string")?;
        let is_mark = |byte: u8| b"!#$%&'*+-.^_`|~".contains(&byte);
        let is_token = |byte: u8| byte.is_ascii_alphanumeric() || is_mark(byte);
        if name.is_empty() || !name.bytes().all(is_token) {
            return Err("an x-mcp-header is the name of a header");
        }
        let kind = members.get("type").and_then(Value::as_str);
        if !named || !matches!(kind, Some("string" | "integer" | "boolean")) {
            return Err(
                "an x-mcp-header stands at an argument that is a string, an integer or a boolean",
            );
        }
        if !seen.insert(name.to_ascii_lowercase()) {
            return Err("two arguments have the same x-mcp-header");
        }
    }
    for (keyword, value) in members {
        match keyword.as_str() {
            "properties" => {
                let fields = value.as_object().into_iter().flatten();
                fields
                    .into_iter()
                    .try_for_each(|(_, field)| check(field, named, seen))?;
            }
            "$defs" | "definitions" | "patternProperties" | "dependentSchemas" => {
                let schemas = value.as_object().into_iter().flatten();
                schemas
                    .into_iter()
                    .try_for_each(|(_, schema)| check(schema, false, seen))?;
            }
            other if NESTED.contains(&other) => check(value, false, seen)?,
            _ => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// R-HDR-07.
    #[test]
    fn headers_stand_at_plain_arguments_and_have_names_of_their_own() {
        let of = |properties: Value| fault(&json!({"type": "object", "properties": properties}));
        let plain = |kind: &str, name: &str| json!({"type": kind, "x-mcp-header": name});
        let inner = json!({"type": "object", "properties": {"c": plain("boolean", "C")}});
        let good = json!({"a": plain("string", "A-1"), "b": plain("integer", "b"), "in": inner});
        assert_eq!(of(good), None);
        // An argument may be called as the keyword is.
        assert_eq!(of(json!({"x-mcp-header": {"type": "number"}})), None);
        for bad in [
            json!({"a": plain("string", "")}),
            json!({"a": plain("string", "a b")}),
            json!({"a": plain("string", "a:b")}),
            json!({"a": plain("string", "\u{e9}")}),
            json!({"a": plain("string", "a\u{1}")}),
            json!({"a": plain("number", "A")}),
            json!({"a": plain("object", "A")}),
            json!({"a": plain("array", "A")}),
            json!({"a": plain("null", "A")}),
            json!({"a": {"x-mcp-header": "A"}}),
            json!({"a": {"type": "string", "x-mcp-header": 1}}),
            json!({"a": plain("string", "A"), "b": plain("string", "a")}),
            json!({"a": {"type": "array", "items": plain("string", "A")}}),
            json!({"a": {"anyOf": [plain("string", "A")]}}),
        ] {
            assert!(of(bad.clone()).is_some(), "{bad}");
        }
        let defined = json!({"type": "object", "$defs": {"a": plain("string", "A")}});
        assert!(fault(&defined).is_some());
    }
}
