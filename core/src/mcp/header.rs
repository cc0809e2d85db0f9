//! `x-mcp-header` in the schema of a tool: marks arguments that HTTP repeats as headers, for
//! intermediaries that do not read bodies (2026-07-28, R-HDR-07).

use serde_json::Value;

pub(crate) const KEYWORD: &str = "x-mcp-header";

/// Keywords whose value is a schema, or several, but not the schema of a named argument.
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

/// An argument that is also sent as a header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HeaderParam {
    /// The full name of the header, in lower case.
    pub header: String,
    /// The argument's path in the arguments.
    pub path: Vec<String>,
}

/// Collects the headers that the schema of a tool's arguments asks for.
///
/// # Errors
/// Says which `x-mcp-header` rule the schema violates.
pub(crate) fn params(schema: &Value) -> Result<Vec<HeaderParam>, &'static str> {
    let mut found = Vec::new();
    check(schema, Some(&mut Vec::new()), &mut found)?;
    Ok(found)
}

/// Checks a schema. `path` holds the argument names that lead to it; `None` if anything else leads
/// to it.
fn check(
    schema: &Value,
    path: Option<&mut Vec<String>>,
    found: &mut Vec<HeaderParam>,
) -> Result<(), &'static str> {
    let mut path = path;
    let Some(members) = schema.as_object() else {
        let elements = schema.as_array().into_iter().flatten();
        return elements
            .into_iter()
            .try_for_each(|one| check(one, None, found));
    };
    if let Some(name) = members.get(KEYWORD) {
        let name = name.as_str().ok_or("an x-mcp-header is a string")?;
        let is_mark = |byte: u8| b"!#$%&'*+-.^_`|~".contains(&byte);
        let is_token = |byte: u8| byte.is_ascii_alphanumeric() || is_mark(byte);
        if name.is_empty() || !name.bytes().all(is_token) {
            return Err("an x-mcp-header is the name of a header");
        }
        let kind = members.get("type").and_then(Value::as_str);
        let Some(path) = path
            .as_deref()
            .filter(|_| matches!(kind, Some("string" | "integer" | "boolean")))
        else {
            return Err(
                "an x-mcp-header stands at an argument that is a string, an integer or a boolean",
            );
        };
        let header = format!("mcp-param-{}", name.to_ascii_lowercase());
        if found.iter().any(|one| one.header == header) {
            return Err("two arguments have the same x-mcp-header");
        }
        let path = path.clone();
        found.push(HeaderParam { header, path });
    }
    for (keyword, value) in members {
        match keyword.as_str() {
            "properties" => {
                for (name, field) in value.as_object().into_iter().flatten() {
                    match path.as_deref_mut() {
                        Some(path) => {
                            path.push(name.clone());
                            check(field, Some(path), found)?;
                            path.pop();
                        }
                        None => check(field, None, found)?,
                    }
                }
            }
            "$defs" | "definitions" | "patternProperties" | "dependentSchemas" => {
                let schemas = value.as_object().into_iter().flatten();
                schemas
                    .into_iter()
                    .try_for_each(|(_, schema)| check(schema, None, found))?;
            }
            other if NESTED.contains(&other) => check(value, None, found)?,
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
        let all = |properties: Value| params(&json!({"type": "object", "properties": properties}));
        let of = |properties| all(properties).err();
        let plain = |kind: &str, name: &str| json!({"type": kind, "x-mcp-header": name});
        let inner = json!({"type": "object", "properties": {"c": plain("boolean", "C")}});
        let good = json!({"a": plain("string", "A-1"), "b": plain("integer", "b"), "in": inner});
        let header = |name: &str, path: &[&str]| HeaderParam {
            header: format!("mcp-param-{name}"),
            path: path.iter().map(|step| (*step).to_owned()).collect(),
        };
        let expected = [
            header("a-1", &["a"]),
            header("b", &["b"]),
            header("c", &["in", "c"]),
        ];
        assert_eq!(all(good).as_deref(), Ok(&expected[..]));
        // An argument may have the same name as the keyword.
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
        assert!(params(&defined).is_err());
    }
}
