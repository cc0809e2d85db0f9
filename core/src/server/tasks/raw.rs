//! Texts that are JSON, as JSON within that of a record rather than as strings.

use serde::de::Error as _;
use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serialize as _, Serializer};
use serde_json::value::RawValue;

pub fn serialize<S: Serializer>(text: &str, serializer: S) -> Result<S::Ok, S::Error> {
    let raw = RawValue::from_string(text.to_owned()).map_err(S::Error::custom)?;
    raw.serialize(serializer)
}

pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Box<str>, D::Error> {
    Ok(Box::<RawValue>::deserialize(deserializer)?.into())
}

/// The members of an object: the text between its braces.
pub mod members {
    use super::*;

    pub fn serialize<S: Serializer>(members: &str, serializer: S) -> Result<S::Ok, S::Error> {
        super::serialize(&format!("{{{members}}}"), serializer)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
        let object = super::deserialize(deserializer)?;
        let members = object
            .strip_prefix('{')
            .and_then(|text| text.strip_suffix('}'));
        members
            .map(str::to_owned)
            .ok_or_else(|| D::Error::custom("no object"))
    }
}
