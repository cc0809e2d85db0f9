//! Results of a server. Members without a field of their own are kept in `other` (R-RPC-13).

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A tool as the server lists it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolInfo {
    /// The name by which the tool is called.
    pub name: String,
    /// A description for the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// JSON Schema of its arguments.
    #[serde(default)]
    pub input_schema: Value,
    /// JSON Schema of its structured content.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
    /// All other members.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// A resource as the server lists it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ResourceInfo {
    /// The URI it is read at.
    pub uri: String,
    /// Its name.
    #[serde(default)]
    pub name: String,
    /// Its MIME type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// All other members.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// A resource template as the server lists it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ResourceTemplateInfo {
    /// The URI template (RFC 6570).
    pub uri_template: String,
    /// Its name.
    #[serde(default)]
    pub name: String,
    /// All other members.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// A prompt as the server lists it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PromptInfo {
    /// The name by which the prompt is requested.
    pub name: String,
    /// The arguments it takes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub arguments: Vec<PromptArgument>,
    /// All other members.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// An argument of a prompt.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PromptArgument {
    /// Its name.
    pub name: String,
    /// Whether the prompt needs it.
    #[serde(default)]
    pub required: bool,
    /// All other members.
    #[serde(flatten)]
    pub other: Map<String, Value>,
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
        other: Map<String, Value>,
    },
    /// An image, in base64.
    #[serde(rename_all = "camelCase")]
    Image {
        /// Base64.
        data: String,
        /// Its MIME type.
        mime_type: String,
        /// All other members.
        #[serde(flatten)]
        other: Map<String, Value>,
    },
    /// A sound, in base64.
    #[serde(rename_all = "camelCase")]
    Audio {
        /// Base64.
        data: String,
        /// Its MIME type.
        mime_type: String,
        /// All other members.
        #[serde(flatten)]
        other: Map<String, Value>,
    },
    /// An embedded resource, with its contents.
    Resource {
        /// The contents.
        resource: ResourceContents,
        /// All other members.
        #[serde(flatten)]
        other: Map<String, Value>,
    },
    /// A link to a resource.
    ResourceLink {
        /// The URI it is read at.
        uri: String,
        /// Its name.
        name: String,
        /// All other members.
        #[serde(flatten)]
        other: Map<String, Value>,
    },
    /// A type of content that this client does not know, unchanged.
    #[serde(untagged)]
    Unknown(Map<String, Value>),
}

/// The contents of one resource: `text`, or `blob` in base64.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ResourceContents {
    /// The URI.
    pub uri: String,
    /// The MIME type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// Text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Base64.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blob: Option<String>,
    /// All other members.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// The result of a tool.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CallToolResult {
    /// Blocks of content; empty when the server omitted them (R-TOL-06).
    #[serde(default)]
    pub content: Vec<Content>,
    /// Structured content.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub structured_content: Option<Value>,
    /// Whether the tool failed.
    #[serde(default)]
    pub is_error: bool,
    /// All other members.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

impl CallToolResult {
    /// The text blocks, joined by line breaks.
    pub fn text(&self) -> String {
        let text = |content: &Content| match content {
            Content::Text { text, .. } => Some(text.clone()),
            _ => None,
        };
        self.content
            .iter()
            .filter_map(text)
            .collect::<Vec<_>>()
            .join("\n")
    }
}

/// A rendered prompt.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GetPromptResult {
    /// What the prompt is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Its messages.
    pub messages: Vec<PromptMessage>,
    /// All other members.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// One message of a prompt.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PromptMessage {
    /// The speaker: `user` or `assistant`.
    pub role: String,
    /// The content of the message.
    pub content: Content,
    /// All other members.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// The prompt or resource template that an argument belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "type")]
pub enum CompletionTarget<'a> {
    /// A prompt.
    #[serde(rename = "ref/prompt")]
    Prompt {
        /// Its name.
        name: &'a str,
    },
    /// A resource template.
    #[serde(rename = "ref/resource")]
    Resource {
        /// Its URI template.
        uri: &'a str,
    },
}

/// Values for an argument, best first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Completions {
    /// The values; a server sends 100 at most (R-CMP-02).
    pub values: Vec<String>,
    /// The total number, if the server knows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<u64>,
    /// Whether there are more than these.
    #[serde(default)]
    pub has_more: bool,
}
