//! Values for the arguments of prompts and resource templates.

use serde::{Deserialize, Serialize};

#[cfg(feature = "server")]
use super::results::write_array;
#[cfg(feature = "server")]
use crate::connection::ResultWriter;
#[cfg(feature = "server")]
use crate::json::{number, string};

/// Maximum number of values in one answer (R-CMP-02).
pub const MAX_VALUES: usize = 100;

/// The prompt or resource template that an argument belongs to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type")]
pub enum CompletionTarget {
    /// A prompt.
    #[serde(rename = "ref/prompt")]
    Prompt {
        /// Its name.
        name: String,
    },
    /// A resource template, or a resource.
    #[serde(rename = "ref/resource")]
    Resource {
        /// Its URI, or URI template.
        uri: String,
    },
}

impl CompletionTarget {
    /// The prompt with this name.
    pub fn prompt(name: impl Into<String>) -> Self {
        Self::Prompt { name: name.into() }
    }

    /// The resource template, or the resource, with this URI.
    pub fn resource(uri: impl Into<String>) -> Self {
        Self::Resource { uri: uri.into() }
    }
}

/// Values for an argument, best first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Completions {
    /// The values. A server sends the first [`MAX_VALUES`] of them, with a mark that there are more.
    pub values: Vec<String>,
    /// The total number, if it is known; else the number of `values`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<u64>,
    /// Whether there are more than these.
    #[serde(default)]
    pub has_more: bool,
}

impl Completions {
    #[cfg(feature = "server")]
    pub(crate) fn write(&self, result: &mut ResultWriter<'_>) {
        let shown = &self.values[..self.values.len().min(MAX_VALUES)];
        let known = self.total.unwrap_or(self.values.len() as u64);
        result.with("completion", |out| {
            out.extend_from_slice(b"{\"values\":");
            write_array(out, shown, |value, out| string::append(out, value));
            out.extend_from_slice(b",\"total\":");
            number::append(out, known);
            let has_more = self.has_more || known > shown.len() as u64;
            out.extend_from_slice(format!(",\"hasMore\":{has_more}}}").as_bytes());
        });
    }
}

impl From<Vec<String>> for Completions {
    fn from(values: Vec<String>) -> Self {
        Self {
            values,
            ..Self::default()
        }
    }
}
