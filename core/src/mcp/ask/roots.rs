//! Roots: the folders and files that a server should keep to.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::error::RequestError;

/// A folder or a file that the client shows to servers. Guidance, not access control (R-ROO-04).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Root {
    /// Where it is: begins with `file://` (R-ROO-01).
    pub uri: String,
    /// A name for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Everything else.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

impl Root {
    /// A root at that URI.
    pub fn new(uri: impl Into<String>) -> Self {
        Self {
            uri: uri.into(),
            name: None,
            other: Map::new(),
        }
    }

    /// Sets a name for people.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Whether its URI is one that a root may have (R-ROO-01).
    ///
    /// # Errors
    /// It is not at a `file://` URI, or leads out of itself.
    pub fn check(&self) -> Result<(), RequestError> {
        let path = self.uri.strip_prefix("file://");
        match path.is_some_and(|path| path.split(['/', '\\']).all(|step| step != "..")) {
            true => Ok(()),
            false => Err(RequestError::Misuse(
                "a root is at a file:// URI without \"..\"",
            )),
        }
    }
}
