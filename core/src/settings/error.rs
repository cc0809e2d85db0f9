//! The error for settings that cannot be used.

use std::fmt;

/// A member of a JSON object cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingsError {
    /// The path of the member, such as `resume.first`; empty if the error is not about a single member.
    pub field: String,
    /// Why it cannot be used.
    pub reason: String,
}

impl SettingsError {
    pub(super) fn at(field: &str, reason: impl fmt::Display) -> Self {
        let mut reason = reason.to_string();
        // The members may come from another language's object, so positions in the text say nothing.
        if let Some(end) = reason.rfind(" at line ") {
            reason.truncate(end);
        }
        Self {
            field: field.to_owned(),
            reason,
        }
    }
}

impl fmt::Display for SettingsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.field.as_str() {
            "" => f.write_str(&self.reason),
            field => write!(f, "{field}: {}", self.reason),
        }
    }
}

impl std::error::Error for SettingsError {}
