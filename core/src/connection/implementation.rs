//! What one side says that it is.

use std::fmt;
use std::ops::Deref;

use crate::json::reader;

/// Name, version and more of a program: a JSON object (`Implementation` in the schema), whose name
/// is read once.
#[derive(Clone, Debug)]
pub struct Implementation {
    json: Box<str>,
    name: Option<Box<str>>,
}

impl Implementation {
    /// The name in it, if it has one.
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
