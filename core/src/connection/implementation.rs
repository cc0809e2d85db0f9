//! How a program describes itself to its peer.

use std::fmt;
use std::ops::Deref;

use crate::json::reader;

/// Name, version and other details of a program, as a JSON object (`Implementation` in the schema). The
/// name is parsed once.
#[derive(Clone, Debug)]
pub struct Implementation {
    json: Box<str>,
    name: Option<Box<str>>,
}

impl Implementation {
    /// The `name` member, if there is one.
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }
}

impl From<&str> for Implementation {
    fn from(json: &str) -> Self {
        let name = reader::find(json, "name").and_then(reader::as_str);
        Self {
            name: name.map(|name| (&*name).into()),
            json: json.into(),
        }
    }
}

impl Deref for Implementation {
    type Target = str;

    fn deref(&self) -> &str {
        &self.json
    }
}

impl fmt::Display for Implementation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self)
    }
}
