//! Results of tools and prompts, and their encoding.

use serde::Serialize;

#[cfg(feature = "server")]
use super::ResourceContents;
#[cfg(feature = "server")]
use super::object_writer::ObjectWriter;
use super::{Content, Role};
#[cfg(feature = "server")]
use crate::connection::ResultWriter;
#[cfg(feature = "server")]
use crate::json::writer;

/// The result of a tool.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ToolResult {
    /// Blocks of content.
    pub content: Vec<Content>,
    /// Structured content: JSON. If `content` is empty, its text is also sent as a text block
    /// (R-STR-03).
    pub structured: Option<String>,
    /// Whether the tool failed.
    pub is_error: bool,
    /// The result's `_meta`: a JSON object whose names have prefixes (R-MET-02).
    pub meta: Option<String>,
}

impl ToolResult {
    /// Its size in memory in bytes.
    #[cfg(feature = "server")]
    pub(crate) fn held_bytes(&self) -> usize {
        let content: usize = self.content.iter().map(Content::held_bytes).sum();
        let more = [&self.structured, &self.meta];
        let more: usize = more.into_iter().flatten().map(String::len).sum();
        size_of::<Self>() + content + more
    }

    /// Sets the result's `_meta`, a JSON object.
    #[must_use]
    pub fn with_meta(mut self, json: impl ToString) -> Self {
        self.meta = Some(json.to_string());
        self
    }

    /// Creates a result with one text block.
    pub fn text(text: impl Into<String>) -> Self {
        Self {
            content: vec![Content::text(text)],
            ..Self::default()
        }
    }

    /// Creates a tool error, which the model reads.
    pub fn error(text: impl Into<String>) -> Self {
        Self {
            is_error: true,
            ..Self::text(text)
        }
    }

    /// Creates a result with structured content.
    ///
    /// # Errors
    /// When the value does not serialize to JSON.
    pub fn structured(value: &impl Serialize) -> Result<Self, serde_json::Error> {
        Ok(Self {
            structured: Some(serde_json::to_string(value)?),
            ..Self::default()
        })
    }

    /// Writes the members of a `CallToolResult`.
    #[cfg(feature = "server")]
    pub fn write(&self, result: &mut ResultWriter<'_>) {
        let revision = result.revision();
        let rules = revision.rules();
        let text = self.structured.as_deref().map(Content::text);
        let content = match (&text, self.content.is_empty()) {
            (Some(text), true) => std::slice::from_ref(text),
            _ => &self.content,
        };
        result.with("content", |out| {
            write_array(out, content, |block, out| block.write(out, revision));
        });
        if let Some(json) = self
            .structured
            .as_deref()
            .filter(|_| rules.structured_content)
            && (rules.any_structured_content || json.trim_start().starts_with('{'))
        {
            result.with("structuredContent", |out| writer::append_compact(out, json));
        }
        if self.is_error {
            result.raw("isError", "true");
        }
        if let Some(meta) = &self.meta {
            result.meta(meta);
        }
    }
}

/// Writes a JSON array.
#[cfg(feature = "server")]
pub(crate) fn write_array<T>(out: &mut Vec<u8>, items: &[T], write: impl Fn(&T, &mut Vec<u8>)) {
    out.push(b'[');
    for (i, item) in items.iter().enumerate() {
        if i > 0 {
            out.push(b',');
        }
        write(item, out);
    }
    out.push(b']');
}

/// Writes the members of a `ReadResourceResult`.
#[cfg(feature = "server")]
pub(crate) fn write_contents(contents: &[ResourceContents], result: &mut ResultWriter<'_>) {
    result.with("contents", |out| {
        write_array(out, contents, ResourceContents::write)
    });
    if result.revision().rules().cache_hints {
        result.raw("ttlMs", "0");
        result.raw("cacheScope", "\"private\"");
    }
}

/// A rendered prompt.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PromptResult {
    /// The purpose of the prompt.
    pub description: Option<String>,
    /// Its messages.
    pub messages: Vec<(Role, Content)>,
}

impl PromptResult {
    /// Creates a prompt of several messages.
    ///
    /// ```
    /// use mcpbolt::model::{PromptResult, Role};
    ///
    /// let prompt = PromptResult::new([
    ///     Role::User.says("Review my code."),
    ///     Role::Assistant.says(format!("Which of your {} files?", 3)),
    /// ]);
    /// assert_eq!(prompt.description("Reviews").messages.len(), 2);
    /// ```
    pub fn new(messages: impl IntoIterator<Item = (Role, Content)>) -> Self {
        Self {
            description: None,
            messages: messages.into_iter().collect(),
        }
    }

    /// Sets the description: the purpose of the prompt with these arguments.
    #[must_use]
    pub fn description(mut self, text: impl Into<String>) -> Self {
        self.description = Some(text.into());
        self
    }

    /// Creates a prompt with one user message.
    pub fn user(text: impl Into<String>) -> Self {
        Self {
            description: None,
            messages: vec![(Role::User, Content::text(text))],
        }
    }

    /// Writes the members of a `GetPromptResult`.
    #[cfg(feature = "server")]
    pub fn write(&self, result: &mut ResultWriter<'_>) {
        if let Some(description) = &self.description {
            result.string("description", description);
        }
        let revision = result.revision();
        let has_system = result.profile().overlay().system_role;
        result.with("messages", |out| {
            write_array(out, &self.messages, |(role, content), out| {
                let mut object = ObjectWriter::begin(out);
                let role = match role {
                    Role::Assistant => "assistant",
                    Role::System if has_system => "system",
                    Role::User | Role::System => "user",
                };
                object.string("role", role);
                content.write(object.key("content"), revision);
                object.end();
            });
        });
    }
}
