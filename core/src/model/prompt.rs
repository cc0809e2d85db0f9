//! Prompts as `prompts/list` shows them.

use serde::{Deserialize, Serialize};
use serde_json::Map;

#[cfg(feature = "server")]
use super::object_writer::ObjectWriter;
#[cfg(feature = "server")]
use super::results::write_array;
use super::{Other, RawJson};
#[cfg(feature = "server")]
use crate::mcp::Revision;

/// A prompt as `prompts/list` shows it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Prompt {
    /// The unique name by which clients get the prompt.
    pub name: String,
    /// A display name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The purpose of the prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The arguments it takes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub arguments: Vec<PromptArgument>,
    /// Icons: a JSON array (`Icon`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub icons: Option<RawJson>,
    /// Its `_meta`: a JSON object.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<RawJson>,
    /// All other members.
    #[serde(flatten)]
    pub other: Other,
}

/// An argument of a prompt; its values are strings (R-PRM-02).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PromptArgument {
    /// Its name.
    pub name: String,
    /// A display name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The meaning of the argument.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Whether the prompt needs it.
    #[serde(default)]
    pub required: bool,
    /// All other members.
    #[serde(flatten)]
    pub other: Other,
}

impl Prompt {
    /// A prompt without arguments.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            title: None,
            description: None,
            arguments: Vec::new(),
            icons: None,
            meta: None,
            other: Map::new(),
        }
    }

    /// Sets the description: what the prompt is for.
    #[must_use]
    pub fn description(mut self, text: impl Into<String>) -> Self {
        self.description = Some(text.into());
        self
    }

    /// Sets the display name.
    #[must_use]
    pub fn title(mut self, text: impl Into<String>) -> Self {
        self.title = Some(text.into());
        self
    }

    /// Sets the icons: a JSON array (`Icon`).
    #[must_use]
    pub fn icons(mut self, json: impl ToString) -> Self {
        self.icons = Some(RawJson::new(json));
        self
    }

    /// Sets its `_meta`: a JSON object.
    #[must_use]
    pub fn meta(mut self, json: impl ToString) -> Self {
        self.meta = Some(RawJson::new(json));
        self
    }

    /// Adds an argument.
    #[must_use]
    pub fn argument(
        mut self,
        name: impl Into<String>,
        description: impl Into<String>,
        required: bool,
    ) -> Self {
        self.arguments.push(PromptArgument {
            name: name.into(),
            description: Some(description.into()),
            required,
            ..PromptArgument::default()
        });
        self
    }

    #[cfg(feature = "server")]
    pub(crate) fn write(&self, out: &mut Vec<u8>, revision: Revision) {
        let rules = revision.rules();
        let mut object = ObjectWriter::begin(out);
        object.string("name", &self.name);
        object.title(&self.title, rules);
        object.optional("description", self.description.as_deref());
        if !self.arguments.is_empty() {
            write_array(object.key("arguments"), &self.arguments, |argument, out| {
                let mut member = ObjectWriter::begin(out);
                member.string("name", &argument.name);
                member.title(&argument.title, rules);
                member.optional("description", argument.description.as_deref());
                if argument.required {
                    member.raw("required", Some("true"));
                }
                member.others(&argument.other);
                member.end();
            });
        }
        object.others(&self.other);
        object.end_with(&self.icons, &self.meta, rules);
    }
}
