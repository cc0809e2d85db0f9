//! Roots: folders and files that a server should confine its work to.

use serde::{Deserialize, Serialize};
use serde_json::Map;

use super::Other;
use crate::error::RequestError;

/// A folder or file that the client exposes to servers. Guidance, not access control (R-ROO-04).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Root {
    /// The location: a URI that begins with `file://` (R-ROO-01).
    pub uri: String,
    /// A display name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// All other members.
    #[serde(flatten)]
    pub other: Other,
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

    /// Sets a display name.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Checks that the URI is valid for a root (R-ROO-01).
    ///
    /// # Errors
    /// [`RequestError::Misuse`] if it is not a `file://` URI, or contains `..`.
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
