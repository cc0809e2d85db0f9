//! JSON that is kept as text, in the spelling and order of its author.

use std::fmt;
use std::ops::Deref;

use serde::de::DeserializeOwned;
use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

/// A JSON text, such as a schema. The order of its members, which a model may see, stays as it is.
/// A text that a program sets is checked where it is used.
///
/// ```
/// use mcpbolt::model::RawJson;
/// let schema = RawJson::new(serde_json::json!({"type": "object"}));
/// assert_eq!(schema.read::<serde_json::Value>()?["type"], "object");
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawJson(Box<str>);

impl RawJson {
    /// Takes the text of a JSON value.
    pub fn new(json: impl ToString) -> Self {
        Self(json.to_string().into())
    }

    /// Reads the value.
    ///
    /// # Errors
    /// When the text is not JSON, or the value has another shape.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        serde_json::from_str(&self.0)
    }
}

impl Deref for RawJson {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl From<String> for RawJson {
    fn from(json: String) -> Self {
        Self(json.into())
    }
}

impl From<Box<RawValue>> for RawJson {
    fn from(json: Box<RawValue>) -> Self {
        Self(json.into())
    }
}

impl fmt::Display for RawJson {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Serialize for RawJson {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let raw: &RawValue = serde_json::from_str(&self.0).map_err(S::Error::custom)?;
        raw.serialize(to)
    }
}

impl<'de> Deserialize<'de> for RawJson {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Box::<RawValue>::deserialize(from).map(Into::into)
    }
}
