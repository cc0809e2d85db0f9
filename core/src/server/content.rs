//! Results of tools, resources and prompts, and their encoding.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;

use super::definition::ObjectWriter;
use crate::connection::ResultWriter;
use crate::handler::HandlerError;
use crate::json::writer;
use crate::mcp::{Revision, Role};

/// One block of content.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Content {
    /// Text.
    Text(String),
    /// An image.
    Image {
        /// Its bytes, not encoded.
        data: Vec<u8>,
        /// Its MIME type.
        mime_type: String,
    },
    /// A sound (from 2025-03-26 on; sent as an embedded resource before).
    Audio {
        /// Its bytes, not encoded.
        data: Vec<u8>,
        /// Its MIME type.
        mime_type: String,
    },
    /// An embedded resource, with its contents.
    Resource(ResourceContents),
    /// A link to a resource that clients may read (from 2025-06-18 on; sent as text before).
    ResourceLink {
        /// The URI it is read at.
        uri: String,
        /// Its name.
        name: String,
        /// Its MIME type.
        mime_type: Option<String>,
    },
}

impl Content {
    /// A block of text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    pub(super) fn write(&self, out: &mut Vec<u8>, revision: Revision) {
        let rules = revision.rules();
        let mut object = ObjectWriter::begin(out);
        match self {
            Self::Audio { data, mime_type } if !rules.annotations => {
                object.raw("type", Some("\"resource\""));
                ResourceContents::blob("audio:inline", data.clone(), mime_type)
                    .write(object.key("resource"));
            }
            Self::ResourceLink { uri, name, .. } if !rules.resource_links => {
                object.raw("type", Some("\"text\""));
                object.string("text", &format!("{name}: {uri}"));
            }
            Self::Text(text) => {
                object.raw("type", Some("\"text\""));
                object.string("text", text);
            }
            Self::Image { data, mime_type } => {
                object.raw("type", Some("\"image\""));
                binary(&mut object, "data", data);
                object.string("mimeType", mime_type);
            }
            Self::Audio { data, mime_type } => {
                object.raw("type", Some("\"audio\""));
                binary(&mut object, "data", data);
                object.string("mimeType", mime_type);
            }
            Self::Resource(contents) => {
                object.raw("type", Some("\"resource\""));
                contents.write(object.key("resource"));
            }
            Self::ResourceLink {
                uri,
                name,
                mime_type,
            } => {
                object.raw("type", Some("\"resource_link\""));
                object.string("uri", uri);
                object.string("name", name);
                object.optional("mimeType", mime_type.as_deref());
            }
        }
        object.end();
    }
}

fn binary(object: &mut ObjectWriter<'_>, key: &str, data: &[u8]) {
    let out = object.key(key);
    out.push(b'"');
    let at = out.len();
    out.resize(at + data.len().div_ceil(3) * 4, 0);
    // The buffer has the exact size, so encoding cannot fail.
    let written = STANDARD.encode_slice(data, &mut out[at..]).unwrap_or(0);
    out.truncate(at + written);
    out.push(b'"');
}

/// The contents of one resource.
#[derive(Clone, Debug, PartialEq)]
pub struct ResourceContents {
    /// The URI.
    pub uri: String,
    /// The MIME type.
    pub mime_type: Option<String>,
    /// The contents.
    pub body: ResourceBody,
}

/// Text, or bytes that are sent as base64 (R-RES-02).
#[derive(Clone, Debug, PartialEq)]
pub enum ResourceBody {
    /// Text.
    Text(String),
    /// Bytes, not encoded.
    Blob(Vec<u8>),
}

impl ResourceContents {
    /// Creates text contents.
    pub fn text(uri: impl Into<String>, text: impl Into<String>) -> Self {
        Self {
            uri: uri.into(),
            mime_type: None,
            body: ResourceBody::Text(text.into()),
        }
    }

    /// Creates binary contents.
    pub fn blob(
        uri: impl Into<String>,
        bytes: impl Into<Vec<u8>>,
        mime_type: impl Into<String>,
    ) -> Self {
        let mime_type = Some(mime_type.into());
        Self {
            uri: uri.into(),
            mime_type,
            body: ResourceBody::Blob(bytes.into()),
        }
    }

    pub(super) fn write(&self, out: &mut Vec<u8>) {
        let mut object = ObjectWriter::begin(out);
        object.string("uri", &self.uri);
        object.optional("mimeType", self.mime_type.as_deref());
        match &self.body {
            ResourceBody::Text(text) => object.string("text", text),
            ResourceBody::Blob(bytes) => binary(&mut object, "blob", bytes),
        }
        object.end();
    }
}

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
    /// A protocol error to send instead of the result: see [`HandlerError::protocol`].
    pub refusal: Option<HandlerError>,
}

impl Content {
    /// Its size in memory in bytes, not counting some names.
    fn held_bytes(&self) -> usize {
        size_of::<Self>()
            + match self {
                Self::Text(text) => text.len(),
                Self::Image { data, .. } | Self::Audio { data, .. } => data.len(),
                Self::Resource(contents) => {
                    contents.uri.len()
                        + match &contents.body {
                            ResourceBody::Text(text) => text.len(),
                            ResourceBody::Blob(bytes) => bytes.len(),
                        }
                }
                Self::ResourceLink { uri, name, .. } => uri.len() + name.len(),
            }
    }
}

impl ToolResult {
    /// Its size in memory in bytes.
    pub(super) fn held_bytes(&self) -> usize {
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
    pub fn write(&self, result: &mut ResultWriter<'_>) {
        let revision = result.revision();
        let rules = revision.rules();
        result.with("content", |out| {
            out.push(b'[');
            match (&self.structured, self.content.is_empty()) {
                (Some(json), true) => Content::text(json.as_str()).write(out, revision),
                _ => write_all(out, &self.content, |content, out| {
                    content.write(out, revision)
                }),
            }
            out.push(b']');
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

fn write_all<T>(out: &mut Vec<u8>, items: &[T], write: impl Fn(&T, &mut Vec<u8>)) {
    for (i, item) in items.iter().enumerate() {
        if i > 0 {
            out.push(b',');
        }
        write(item, out);
    }
}

/// Writes the members of a `ReadResourceResult`.
pub(super) fn write_contents(contents: &[ResourceContents], result: &mut ResultWriter<'_>) {
    result.with("contents", |out| {
        out.push(b'[');
        write_all(out, contents, ResourceContents::write);
        out.push(b']');
    });
    if result.revision().rules().cache_hints {
        result.raw("ttlMs", "0");
        result.raw("cacheScope", "\"private\"");
    }
}

/// A rendered prompt.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PromptResult {
    /// What the prompt is for.
    pub description: Option<String>,
    /// Its messages.
    pub messages: Vec<(Role, Content)>,
}

impl PromptResult {
    /// Creates a prompt with one user message.
    pub fn user(text: impl Into<String>) -> Self {
        Self {
            description: None,
            messages: vec![(Role::User, Content::text(text))],
        }
    }

    pub(super) fn write(&self, result: &mut ResultWriter<'_>) {
        if let Some(description) = &self.description {
            result.string("description", description);
        }
        let revision = result.revision();
        let system = match result.profile().overlay().system_role {
            true => "\"system\"",
            false => "\"user\"",
        };
        result.with("messages", |out| {
            out.push(b'[');
            write_all(out, &self.messages, |(role, content), out| {
                let mut object = ObjectWriter::begin(out);
                object.raw(
                    "role",
                    Some(match role {
                        Role::User => "\"user\"",
                        Role::Assistant => "\"assistant\"",
                        Role::System => system,
                    }),
                );
                content.write(object.key("content"), revision);
                object.end();
            });
            out.push(b']');
        });
    }
}
