//! Conversion of arguments into a handler's own type.

use schemars::JsonSchema;
use serde::de::DeserializeOwned;

/// The arguments of a tool, unconverted: validated JSON, an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arguments(pub Box<str>);

/// A type that a tool's arguments can be converted to.
pub trait FromArguments: Sized + Send + 'static {
    /// The JSON Schema of this type; `None` to keep the schema that the tool was given.
    fn schema() -> Option<String>;

    /// Converts a JSON object that the schema accepts.
    ///
    /// # Errors
    /// One sentence that says what is wrong.
    fn from_arguments(json: &str) -> Result<Self, String>;
}

impl<T: DeserializeOwned + JsonSchema + Send + 'static> FromArguments for T {
    fn schema() -> Option<String> {
        let mut schema = schemars::schema_for!(T);
        let object = schema.ensure_object();
        object.entry("type").or_insert_with(|| "object".into());
        Some(schema.to_value().to_string())
    }

    fn from_arguments(json: &str) -> Result<Self, String> {
        serde_json::from_str(json).map_err(|error| error.to_string())
    }
}

impl FromArguments for Arguments {
    fn schema() -> Option<String> {
        None
    }

    fn from_arguments(json: &str) -> Result<Self, String> {
        Ok(Self(json.into()))
    }
}
