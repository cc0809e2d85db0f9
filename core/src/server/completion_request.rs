//! A request to complete an argument of a prompt or resource template while a user types.

use std::collections::HashMap;

use crate::json::reader;
use crate::mcp::Profile;
use crate::model::CompletionTarget;

/// A request for the values that an argument may take, given how it begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompletionRequest {
    /// The prompt or resource of the argument; the registry has it.
    pub target: CompletionTarget,
    /// The argument's name.
    pub argument: String,
    /// The beginning of the value, as typed by the user so far.
    pub value: String,
    /// The other arguments that are already filled in. Empty before 2025-06-18.
    pub context: HashMap<String, String>,
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
            Some("ref/prompt") => text(&["ref", "name"]).map(CompletionTarget::prompt),
            Some("ref/resource") => {
                let named = profile.overlay().names_resources;
                let name = || text(&["ref", "name"]).filter(|_| named);
                let uri = text(&["ref", "uri"]).or_else(name);
                uri.map(CompletionTarget::resource)
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
        assert_eq!(request.target, CompletionTarget::prompt("greet"));
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
