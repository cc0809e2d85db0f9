//! Results of a server. Members without a field of their own are kept in `other` (R-RPC-13).

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::model::{Content, Other};

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
    pub other: Other,
}

impl CallToolResult {
    /// The text blocks, joined by line breaks.
    pub fn text(&self) -> String {
        Content::join_texts(&self.content)
    }
}

/// A rendered prompt.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GetPromptResult {
    /// The purpose of the prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Its messages.
    pub messages: Vec<PromptMessage>,
    /// All other members.
    #[serde(flatten)]
    pub other: Other,
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
    pub other: Other,
}
