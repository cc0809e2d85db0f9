//! Blocks of content, in results, prompts and conversations with a model.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use serde_json::Map;

use super::Other;
#[cfg(feature = "server")]
use super::object_writer::ObjectWriter;
#[cfg(feature = "server")]
use crate::mcp::Revision;

/// Bytes as base64, their form in messages.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Base64(String);

impl Base64 {
    /// Encodes bytes.
    pub fn encode(bytes: impl AsRef<[u8]>) -> Self {
        Self(STANDARD.encode(bytes))
    }

    /// Decodes the bytes; `None` if a peer sent something that is not base64.
    pub fn decode(&self) -> Option<Vec<u8>> {
        STANDARD.decode(&self.0).ok()
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// One block of content.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Content {
    /// Text.
    Text {
        /// The text.
        text: String,
        /// All other members.
        #[serde(flatten)]
        other: Other,
    },
    /// An image.
    #[serde(rename_all = "camelCase")]
    Image {
        /// Its bytes.
        data: Base64,
        /// Its MIME type.
        mime_type: String,
        /// All other members.
        #[serde(flatten)]
        other: Other,
    },
    /// A sound (from 2025-03-26 on; a server sends it as an embedded resource before).
    #[serde(rename_all = "camelCase")]
    Audio {
        /// Its bytes.
        data: Base64,
        /// Its MIME type.
        mime_type: String,
        /// All other members.
        #[serde(flatten)]
        other: Other,
    },
    /// An embedded resource, with its contents.
    Resource {
        /// The contents.
        resource: ResourceContents,
        /// All other members.
        #[serde(flatten)]
        other: Other,
    },
    /// A link to a resource that clients may read (from 2025-06-18 on; a server sends it as text
    /// before).
    #[serde(rename_all = "camelCase")]
    ResourceLink {
        /// The URI it is read at.
        uri: String,
        /// Its name.
        name: String,
        /// Its MIME type.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mime_type: Option<String>,
        /// All other members.
        #[serde(flatten)]
        other: Other,
    },
    /// The model calls a tool, in a conversation (from 2025-11-25 on).
    ToolUse {
        /// The id of the call, which its result repeats.
        id: String,
        /// The tool's name.
        name: String,
        /// The arguments.
        input: Other,
        /// All other members.
        #[serde(flatten)]
        other: Other,
    },
    /// The result of a tool call, in a conversation (from 2025-11-25 on).
    #[serde(rename_all = "camelCase")]
    ToolResult {
        /// The id of the call.
        tool_use_id: String,
        /// Blocks of content.
        content: Vec<Content>,
        /// All other members, including `structuredContent` and `isError`.
        #[serde(flatten)]
        other: Other,
    },
    /// A block of a type that this version does not know, unchanged.
    #[serde(untagged)]
    Unknown(Other),
}

impl From<&str> for Content {
    fn from(text: &str) -> Self {
        Self::text(text)
    }
}

impl From<String> for Content {
    fn from(text: String) -> Self {
        Self::text(text)
    }
}

impl Content {
    /// A block of text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text {
            text: text.into(),
            other: Map::new(),
        }
    }

    /// An image.
    pub fn image(bytes: impl AsRef<[u8]>, mime_type: impl Into<String>) -> Self {
        Self::Image {
            data: Base64::encode(bytes),
            mime_type: mime_type.into(),
            other: Map::new(),
        }
    }

    /// A sound.
    pub fn audio(bytes: impl AsRef<[u8]>, mime_type: impl Into<String>) -> Self {
        Self::Audio {
            data: Base64::encode(bytes),
            mime_type: mime_type.into(),
            other: Map::new(),
        }
    }

    /// An embedded resource.
    pub fn resource(resource: ResourceContents) -> Self {
        Self::Resource {
            resource,
            other: Map::new(),
        }
    }

    /// A link to the resource with this URI and name.
    pub fn link(uri: impl Into<String>, name: impl Into<String>) -> Self {
        Self::ResourceLink {
            uri: uri.into(),
            name: name.into(),
            mime_type: None,
            other: Map::new(),
        }
    }

    /// The text of a block of text.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text { text, .. } => Some(text),
            _ => None,
        }
    }

    /// The texts of all blocks of text, joined by newlines.
    pub fn join_texts(blocks: &[Self]) -> String {
        let texts: Vec<_> = blocks.iter().filter_map(Self::as_text).collect();
        texts.join("\n")
    }

    /// Its size in memory in bytes, approximately.
    #[cfg(feature = "server")]
    pub(crate) fn held_bytes(&self) -> usize {
        let own = match self {
            Self::Text { text, .. } => text.len(),
            Self::Image { data, .. } | Self::Audio { data, .. } => data.0.len(),
            Self::Resource { resource, .. } => {
                let (ResourceBody::Text(body) | ResourceBody::Blob(Base64(body))) = &resource.body;
                resource.uri.len() + body.len()
            }
            Self::ResourceLink { uri, name, .. } => uri.len() + name.len(),
            other => serde_json::to_string(other).map_or(0, |json| json.len()),
        };
        size_of::<Self>() + own
    }

    /// Writes the block as JSON, in the form that the revision has for it.
    #[cfg(feature = "server")]
    pub(crate) fn write(&self, out: &mut Vec<u8>, revision: Revision) {
        let rules = revision.rules();
        let mut object = ObjectWriter::begin(out);
        let other = match self {
            Self::Text { text, other } => {
                object.raw("type", Some("\"text\""));
                object.string("text", text);
                other
            }
            Self::Audio {
                data, mime_type, ..
            } if !rules.annotations => {
                object.raw("type", Some("\"resource\""));
                let body = ResourceBody::Blob(data.clone());
                let mut contents = ResourceContents::new("audio:inline", body);
                contents.mime_type = Some(mime_type.clone());
                contents.write(object.key("resource"));
                return object.end();
            }
            Self::Image {
                data,
                mime_type,
                other,
            }
            | Self::Audio {
                data,
                mime_type,
                other,
            } => {
                let is_image = matches!(self, Self::Image { .. });
                object.string("type", if is_image { "image" } else { "audio" });
                object.string("data", &data.0);
                object.string("mimeType", mime_type);
                other
            }
            Self::Resource { resource, other } => {
                object.raw("type", Some("\"resource\""));
                resource.write(object.key("resource"));
                other
            }
            Self::ResourceLink { uri, name, .. } if !rules.resource_links => {
                object.raw("type", Some("\"text\""));
                object.string("text", &format!("{name}: {uri}"));
                return object.end();
            }
            Self::ResourceLink {
                uri,
                name,
                mime_type,
                other,
            } => {
                object.raw("type", Some("\"resource_link\""));
                object.string("uri", uri);
                object.string("name", name);
                object.optional("mimeType", mime_type.as_deref());
                other
            }
            Self::Unknown(members) => members,
            Self::ToolUse { .. } | Self::ToolResult { .. } => {
                if let Ok(serde_json::Value::Object(members)) = serde_json::to_value(self) {
                    object.others(&members);
                }
                return object.end();
            }
        };
        object.others(other);
        object.end();
    }
}

/// The contents of one resource.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ResourceContents {
    /// The URI.
    pub uri: String,
    /// The MIME type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// The contents.
    #[serde(flatten)]
    pub body: ResourceBody,
    /// All other members.
    #[serde(flatten)]
    pub other: Other,
}

/// Text, or bytes (R-RES-02).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ResourceBody {
    /// Text.
    Text(String),
    /// Bytes.
    Blob(Base64),
}

impl ResourceContents {
    /// Creates contents without a MIME type.
    pub fn new(uri: impl Into<String>, body: ResourceBody) -> Self {
        Self {
            uri: uri.into(),
            mime_type: None,
            body,
            other: Map::new(),
        }
    }

    /// Creates text contents.
    pub fn text(uri: impl Into<String>, text: impl Into<String>) -> Self {
        Self::new(uri, ResourceBody::Text(text.into()))
    }

    /// Creates binary contents.
    pub fn blob(
        uri: impl Into<String>,
        bytes: impl AsRef<[u8]>,
        mime_type: impl Into<String>,
    ) -> Self {
        Self {
            mime_type: Some(mime_type.into()),
            ..Self::new(uri, ResourceBody::Blob(Base64::encode(bytes)))
        }
    }

    /// The text of text contents.
    pub fn as_text(&self) -> Option<&str> {
        match &self.body {
            ResourceBody::Text(text) => Some(text),
            ResourceBody::Blob(_) => None,
        }
    }

    /// The bytes of binary contents.
    pub fn as_blob(&self) -> Option<&Base64> {
        match &self.body {
            ResourceBody::Text(_) => None,
            ResourceBody::Blob(bytes) => Some(bytes),
        }
    }

    #[cfg(feature = "server")]
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        let mut object = ObjectWriter::begin(out);
        object.string("uri", &self.uri);
        object.optional("mimeType", self.mime_type.as_deref());
        match &self.body {
            ResourceBody::Text(text) => object.string("text", text),
            ResourceBody::Blob(bytes) => object.string("blob", &bytes.0),
        }
        object.others(&self.other);
        object.end();
    }
}
