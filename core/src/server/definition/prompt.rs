//! Prompts as `prompts/list` shows them.

use super::ObjectWriter;
use crate::mcp::Revision;

/// A prompt as `prompts/list` shows it.
#[derive(Clone, Debug, PartialEq)]
pub struct Prompt {
    /// The unique name by which clients get the prompt.
    pub name: String,
    /// A display name.
    pub title: Option<String>,
    /// What the prompt is for.
    pub description: Option<String>,
    /// The arguments it takes.
    pub arguments: Vec<PromptArgument>,
    /// Icons: a JSON array (`Icon`).
    pub icons: Option<String>,
    /// Its `_meta`: a JSON object.
    pub meta: Option<String>,
}

/// An argument of a prompt; its values are strings (R-PRM-02).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PromptArgument {
    /// Its name.
    pub name: String,
    /// A display name.
    pub title: Option<String>,
    /// What the argument means.
    pub description: Option<String>,
    /// Whether the prompt needs it.
    pub required: bool,
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
        self.icons = Some(json.to_string());
        self
    }

    /// Sets its `_meta`: a JSON object.
    #[must_use]
    pub fn meta(mut self, json: impl ToString) -> Self {
        self.meta = Some(json.to_string());
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
        let description = Some(description.into());
        self.arguments.push(PromptArgument {
            name: name.into(),
            title: None,
            description,
            required,
        });
        self
    }

    pub(in crate::server) fn write(&self, out: &mut Vec<u8>, revision: Revision) {
        let rules = revision.rules();
        let mut object = ObjectWriter::begin(out);
        object.string("name", &self.name);
        object.title(&self.title, rules);
        object.optional("description", self.description.as_deref());
        if !self.arguments.is_empty() {
            object.key("arguments").push(b'[');
            for (i, argument) in self.arguments.iter().enumerate() {
                if i > 0 {
                    object.out.push(b',');
                }
                let mut member = ObjectWriter::begin(object.out);
                member.string("name", &argument.name);
                member.title(&argument.title, rules);
                member.optional("description", argument.description.as_deref());
                if argument.required {
                    member.raw("required", Some("true"));
                }
                member.end();
            }
            object.out.push(b']');
        }
        object.end_with(&self.icons, &self.meta, rules);
    }
}
