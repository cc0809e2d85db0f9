//! Arguments as what a handler wants them to be.

use schemars::JsonSchema;
use serde::de::DeserializeOwned;

/// The arguments of a tool as they came: validated JSON, an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arguments(pub Box<str>);

/// What can be made of a tool's arguments.
pub trait FromArguments: Sized + Send + 'static {
    /// The JSON Schema it stands for; `None` to keep the one that the tool was given.
    fn schema() -> Option<String>;

    /// Makes it from an object that its schema accepts.
    ///
    /// # Errors
    /// What is wrong, in one sentence.
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
