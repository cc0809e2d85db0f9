//! Texts with the number of the request in them.

/// A text with `{n}` at some places.
#[derive(Debug)]
pub struct Template(Vec<String>);

impl Template {
    pub fn new(text: &str) -> Self {
        Self(text.split("{n}").map(str::to_owned).collect())
    }

    /// The text with this number.
    pub fn of(&self, number: u64) -> String {
        self.0.join(&number.to_string())
    }
}
