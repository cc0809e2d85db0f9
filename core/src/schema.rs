//! JSON Schema for tool arguments and results, compiled once.
//!
//! The `jsonschema` crate validates (2020-12, or draft-07 if the schema says so: R-SCH-01,
//! R-SCH-04; references are never fetched: R-SCH-05). Patterns are matched in linear time and take
//! at most 64 MiB together; a schema that multiplies itself by references is refused (R-SCH-08).
//!
//! Without the feature `validation`, a schema is only read: its form is checked, and nothing else.

#[cfg(feature = "validation")]
mod compiled;
#[cfg(feature = "validation")]
mod cost;
#[cfg(all(feature = "server", feature = "validation"))]
mod misfit;
#[cfg(not(feature = "validation"))]
mod unchecked;

use std::fmt;

use serde_json::Value;

#[cfg(feature = "validation")]
pub use self::compiled::Schema;
#[cfg(not(feature = "validation"))]
pub(crate) use self::unchecked::Unchecked as Schema;

/// The error for a schema that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidSchema(Box<str>);

impl fmt::Display for InvalidSchema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for InvalidSchema {}

/// A validation error in parts, for clients that receive it as data (R-ACT-07).
#[cfg(feature = "server")]
#[derive(Debug)]
pub(crate) struct Misfit {
    /// The error as one sentence.
    pub sentence: String,
    /// The path of the member, with dots between the names.
    pub parameter: Option<String>,
    /// The expected types and the actual type, if the type is wrong.
    pub types: Option<(Vec<&'static str>, &'static str)>,
    /// Whether the only fault is a missing member.
    pub is_absence: bool,
}

/// Reads the schema of a tool's arguments.
///
/// # Errors
/// It is not JSON, or not an object with `"type":"object"` (R-SCH-03).
#[cfg(any(feature = "server", feature = "validation"))]
fn parse_input(json: &str) -> Result<Value, InvalidSchema> {
    let schema = parse(json)?;
    if schema.get("type").and_then(Value::as_str) != Some("object") {
        return Err(InvalidSchema("it must have \"type\": \"object\"".into()));
    }
    Ok(schema)
}

fn parse(json: &str) -> Result<Value, InvalidSchema> {
    serde_json::from_str(json).map_err(|error| InvalidSchema(error.to_string().into()))
}
