//! Results of a server. Members without a field of their own are kept in `other` (R-RPC-13).

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::mcp::meta;
use crate::model::{Content, Other, PromptResult, Role, ToolResult};

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

/// The result as a server sends it on: without the members of `_meta` that the protocol defines, which tell about
/// the server that it comes from, and without members that no revision defines. Numbers of more than 64 bits are
/// rounded.
impl From<CallToolResult> for ToolResult {
    fn from(mut result: CallToolResult) -> Self {
        let mut own = result.other.remove("_meta");
        if let Some(Value::Object(members)) = &mut own {
            members.retain(|key, _| !key.starts_with(meta::PREFIX));
        }
        let own = own.filter(|own| *own != json!({}));
        Self {
            content: result.content,
            structured: result.structured_content.map(|json| json.to_string()),
            is_error: result.is_error,
            meta: own.map(|own| own.to_string()),
        }
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

/// The prompt as a server sends it on.
impl From<GetPromptResult> for PromptResult {
    fn from(prompt: GetPromptResult) -> Self {
        let role = |role: &str| match role {
            "assistant" => Role::Assistant,
            "system" => Role::System,
            _ => Role::User,
        };
        let messages = prompt.messages.into_iter();
        Self {
            description: prompt.description,
            messages: messages
                .map(|message| (role(&message.role), message.content))
                .collect(),
        }
    }
}
