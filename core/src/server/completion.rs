//! Completing the arguments of prompts and resource templates while a user types.

use std::collections::HashMap;

use crate::connection::ResultWriter;
use crate::json::{number, reader, string};
use crate::mcp::Profile;

/// Maximum number of values in one answer (R-CMP-02).
pub const MAX_VALUES: usize = 100;

/// The prompt or resource that an argument belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CompletionTarget {
    /// The prompt with this name.
    Prompt(String),
    /// The resource template, or the resource, with this URI.
    Resource(String),
}

/// A request for the values that an argument may take, given how it begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompletionRequest {
    /// The prompt or resource of the argument; the registry has it.
    pub target: CompletionTarget,
    /// The argument's name.
    pub argument: String,
    /// What the user has typed so far.
    pub value: String,
    /// The other arguments that are already filled in. Empty before 2025-06-18.
    pub context: HashMap<String, String>,
}

/// The values found, best first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Completions {
    /// The values. Only the first [`MAX_VALUES`] are sent, with a mark that there are more.
    pub values: Vec<String>,
    /// The total number, if it is known and larger than the number of `values`.
    pub total: Option<u64>,
}

impl CompletionRequest {
    /// Parses the params of `completion/complete`.
    ///
    /// # Errors
    /// A sentence for the client that says what is wrong.
    pub(super) fn parse(params: &str, profile: Profile) -> Result<Self, &'static str> {
        let text = |path: &[&str]| {
            let raw = reader::find_path(params, path)?;
            Some(reader::as_str(raw)?.into_owned())
        };
        let target = match text(&["ref", "type"]).as_deref() {
            Some("ref/prompt") => text(&["ref", "name"]).map(CompletionTarget::Prompt),
            Some("ref/resource") => {
                let named = profile.overlay().names_resources;
                let name = || text(&["ref", "name"]).filter(|_| named);
                let uri = text(&["ref", "uri"]).or_else(name);
                uri.map(CompletionTarget::Resource)
            }
            _ => return Err("the type of ref is neither ref/prompt nor ref/resource"),
        };
        let pair = |(key, value): (crate::json::JsonStr<'_>, &str)| {
            let value = reader::as_str(value)?.into_owned();
            Some((key.decode().ok()?.into_owned(), value))
        };
        let context = reader::find_path(params, &["context", "arguments"]).unwrap_or("{}");
        Ok(Self {
            target: target.ok_or("ref names nothing")?,
            argument: text(&["argument", "name"]).ok_or("the argument's name is missing")?,
            value: text(&["argument", "value"]).ok_or("the argument's value is missing")?,
            context: reader::members(context).filter_map(pair).collect(),
        })
    }
}

impl Completions {
    pub(super) fn write(&self, result: &mut ResultWriter<'_>) {
        let shown = &self.values[..self.values.len().min(MAX_VALUES)];
        let known = self.total.unwrap_or(self.values.len() as u64);
        result.with("completion", |out| {
            out.extend_from_slice(b"{\"values\":[");
            for (i, value) in shown.iter().enumerate() {
                if i > 0 {
                    out.push(b',');
                }
                string::append(out, value);
            }
            out.extend_from_slice(b"],\"total\":");
            number::append(out, known);
            out.extend_from_slice(b",\"hasMore\":");
            out.extend_from_slice(match known > shown.len() as u64 {
                true => b"true".as_slice(),
                false => b"false",
            });
            out.push(b'}');
        });
    }
}

impl From<Vec<String>> for Completions {
    fn from(values: Vec<String>) -> Self {
        Self {
            values,
            total: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// R-CMP-03.
    #[test]
    fn a_request_is_read_or_told_what_is_wrong() {
        let request = CompletionRequest::parse(
            r#"{"ref":{"type":"ref/prompt","name":"greet"},"argument":{"name":"to","value":"W\u006f"},"context":{"arguments":{"lang":"en"}}}"#,
            Profile::Official,
        )
        .unwrap();
        assert_eq!(request.target, CompletionTarget::Prompt("greet".into()));
        assert_eq!((&*request.argument, &*request.value), ("to", "Wo"));
        assert_eq!(request.context["lang"], "en");
        for (params, why) in [
            ("{}", "neither"),
            (r#"{"ref":{"type":"ref/prompt"}}"#, "names nothing"),
            (
                r#"{"ref":{"type":"ref/resource","uri":"a:b"},"argument":{"value":"x"}}"#,
                "name is missing",
            ),
            (
                r#"{"ref":{"type":"ref/resource","uri":"a:b"},"argument":{"name":"x","value":1}}"#,
                "value is missing",
            ),
        ] {
            let error = CompletionRequest::parse(params, Profile::Official).unwrap_err();
            assert!(error.contains(why), "{params}: {error}");
        }
    }
}
