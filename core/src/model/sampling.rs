//! Sampling: the client's model continues a conversation of the server.

use std::collections::BTreeSet;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

use super::tool::Tool;
use super::{Content, Other, declared};
use crate::error::RequestError;
use crate::mcp::Revision;

/// Most messages of one conversation in which the model calls tools (R-SMP-09).
pub const MAX_TOOL_ROUNDS: usize = 100;

/// The author of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// The user.
    User,
    /// The model.
    Assistant,
    /// The system, in the prompts of a [profile](crate::mcp::Profile) with that role; elsewhere its
    /// messages are sent as the user's (R-PRM-06).
    #[serde(skip)]
    System,
}

impl Role {
    /// A message of this author, for a prompt of several messages.
    ///
    /// ```
    /// use mcpbolt::model::{Content, Role};
    /// assert_eq!(Role::User.says("Hello!"), (Role::User, Content::text("Hello!")));
    /// ```
    pub fn says(self, content: impl Into<Content>) -> (Self, Content) {
        (self, content.into())
    }
}

/// A conversation for the client's model to continue: the params of `sampling/createMessage`.
///
/// ```
/// use mcpbolt::model::Sampling;
/// let sampling = Sampling::user("Summarise this in a sentence: …", 200).system_prompt("Be brief.");
/// assert_eq!(sampling.messages.len(), 1);
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Sampling {
    /// The conversation so far.
    pub messages: Vec<SamplingMessage>,
    /// The most tokens to generate; the model may generate fewer (R-SMP-05).
    pub max_tokens: u64,
    /// The system prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_prompt: Option<String>,
    /// The sampling temperature.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// Sequences that stop the generation.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stop_sequences: Vec<String>,
    /// The server's preferences for the model: `ModelPreferences`. Advice only (R-SMP-06).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_preferences: Option<Value>,
    /// Tools that the model may use (from 2025-11-25 on).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<Tool>>,
    /// Whether the model must use a tool: `ToolChoice`; absent means that it may (R-SMP-12).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_choice: Option<Value>,
    /// All other members.
    #[serde(flatten)]
    pub other: Other,
}

/// One message of a conversation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SamplingMessage {
    /// The author.
    pub role: Role,
    /// The content; before 2025-11-25, a single block.
    #[serde(with = "one_or_many")]
    pub content: Vec<Content>,
    /// All other members.
    #[serde(flatten)]
    pub other: Other,
}

/// The model's message: the result of `sampling/createMessage`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Sampled {
    /// The author.
    pub role: Role,
    /// The content; before 2025-11-25, a single block.
    #[serde(with = "one_or_many")]
    pub content: Vec<Content>,
    /// The model's name.
    pub model: String,
    /// Why generation stopped: `endTurn`, `stopSequence`, `maxTokens`, `toolUse` or another word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_reason: Option<String>,
    /// All other members.
    #[serde(flatten)]
    pub other: Other,
}

impl SamplingMessage {
    /// A message with one text block.
    pub fn text(role: Role, text: impl Into<String>) -> Self {
        Self {
            role,
            content: vec![Content::text(text)],
            other: Map::new(),
        }
    }
}

impl Sampled {
    /// A message of the model `model` with one text block, which stopped with `endTurn`.
    pub fn text(model: impl Into<String>, text: impl Into<String>) -> Self {
        Self {
            role: Role::Assistant,
            content: vec![Content::text(text)],
            model: model.into(),
            stop_reason: Some("endTurn".to_owned()),
            other: Map::new(),
        }
    }

    /// The text blocks, joined by newlines.
    pub fn to_text(&self) -> String {
        Content::join_texts(&self.content)
    }
}

impl Sampling {
    /// A conversation that begins with `text` from the user.
    pub fn user(text: impl Into<String>, max_tokens: u64) -> Self {
        Self {
            messages: vec![SamplingMessage::text(Role::User, text)],
            max_tokens,
            system_prompt: None,
            temperature: None,
            stop_sequences: Vec::new(),
            model_preferences: None,
            tools: None,
            tool_choice: None,
            other: Map::new(),
        }
    }

    /// Sets the system prompt.
    #[must_use]
    pub fn system_prompt(mut self, text: impl Into<String>) -> Self {
        self.system_prompt = Some(text.into());
        self
    }

    /// Checks that a client with these capabilities may be asked this in that revision.
    ///
    /// # Errors
    /// The client did not declare what the request needs (R-CAP-05, R-SMP-02), the revision cannot
    /// express it, a priority is not between 0 and 1, or the tool calls and results do not match
    /// (R-SMP-03, R-SMP-04).
    pub fn check(&self, revision: Revision, capabilities: &str) -> Result<(), RequestError> {
        declared(capabilities, &["sampling"], "sampling")?;
        let rules = revision.rules();
        let blocks = || self.messages.iter().flat_map(|message| &message.content);
        if self.tools.is_some() || self.tool_choice.is_some() || blocks().any(is_of_tools) {
            declared(capabilities, &["sampling", "tools"], "sampling.tools")?;
            if !rules.sampling_tools {
                return Err(RequestError::Unsupported("sampling.tools"));
            }
        }
        if !self.preferences().is_valid() {
            return Err(RequestError::Misuse("priorities lie between 0 and 1"));
        }
        let context = self.other.get("includeContext").and_then(Value::as_str);
        if rules.sampling_tools && context.is_some_and(|context| context != "none") {
            declared(capabilities, &["sampling", "context"], "sampling.context")?;
        }
        let one_block = |message: &SamplingMessage| message.content.len() == 1;
        if !rules.sampling_tools && !self.messages.iter().all(one_block) {
            let why = "before 2025-11-25 a message to be sampled has one block of content";
            return Err(RequestError::Misuse(why));
        }
        let is_sound = |block: &Content| matches!(block, Content::Audio { .. });
        if !rules.annotations && blocks().any(is_sound) {
            return Err(RequestError::Misuse("2024-11-05 has no audio"));
        }
        self.check_uses()
    }

    /// Checks that each tool call is followed by its results and nothing else. R-SMP-03, R-SMP-04.
    fn check_uses(&self) -> Result<(), RequestError> {
        let rounds = self.messages.iter().filter(|message| {
            let mut blocks = message.content.iter();
            blocks.any(|block| matches!(block, Content::ToolUse { .. }))
        });
        // R-SMP-09: the conversation itself tells how often the model has called tools.
        if rounds.count() > MAX_TOOL_ROUNDS {
            let why = "the model has called tools again and again";
            return Err(RequestError::Misuse(why));
        }
        let mut open = BTreeSet::new();
        for message in &self.messages {
            let mut results = BTreeSet::new();
            let mut uses = BTreeSet::new();
            let mut others = false;
            for block in &message.content {
                match block {
                    Content::ToolUse { id, .. } => drop(uses.insert(id)),
                    Content::ToolResult { tool_use_id, .. } => drop(results.insert(tool_use_id)),
                    _ => others = true,
                }
            }
            if results != open || !results.is_empty() && (others || !uses.is_empty()) {
                let why = "each use of a tool is followed by a message of the results and no more";
                return Err(RequestError::Misuse(why));
            }
            open = uses;
        }
        match open.is_empty() {
            true => Ok(()),
            false => Err(RequestError::Misuse("a use of a tool lacks its result")),
        }
    }
}

fn is_of_tools(block: &Content) -> bool {
    matches!(block, Content::ToolUse { .. } | Content::ToolResult { .. })
}

/// Serializes one block alone and several as an array; reads both.
mod one_or_many {
    use super::*;

    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Either {
        Many(Vec<Content>),
        One(Content),
    }

    pub fn serialize<S: Serializer>(blocks: &[Content], to: S) -> Result<S::Ok, S::Error> {
        match blocks {
            [block] => block.serialize(to),
            blocks => blocks.serialize(to),
        }
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Content>, D::Error> {
        Ok(match Either::deserialize(from)? {
            Either::Many(blocks) => blocks,
            Either::One(block) => vec![block],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn with_tools(messages: Value) -> Result<(), RequestError> {
        let sampling = json!({ "messages": messages, "maxTokens": 1 });
        let sampling: Sampling = serde_json::from_value(sampling).unwrap();
        let capabilities = r#"{"sampling":{"tools":{}}}"#;
        sampling.check(Revision::V2025_11_25, capabilities)
    }

    /// R-SMP-03, R-SMP-04.
    #[test]
    fn each_use_of_a_tool_is_followed_by_its_results() {
        let user = json!({"role": "user", "content": {"type": "text", "text": "?"}});
        let uses = json!({"role": "assistant", "content": [
            {"type": "tool_use", "id": "1", "name": "a", "input": {}},
            {"type": "tool_use", "id": "2", "name": "a", "input": {}},
        ]});
        let result = |id: &str| json!({"type": "tool_result", "toolUseId": id, "content": []});
        let results = json!({"role": "user", "content": [result("2"), result("1")]});
        let half = json!({"role": "user", "content": [result("1")]});
        let mixed = json!({"role": "user", "content": [
            result("1"), result("2"), {"type": "text", "text": "!"}
        ]});
        assert_eq!(with_tools(json!([user, uses, results, user])), Ok(()));
        for wrong in [
            json!([user, uses]),
            json!([user, uses, user]),
            json!([user, uses, half]),
            json!([user, uses, mixed]),
            json!([user, results]),
        ] {
            let verdict = with_tools(wrong.clone());
            assert!(matches!(verdict, Err(RequestError::Misuse(_))), "{wrong}");
        }
    }

    /// R-SMP-09: an endless loop of tool calls ends, on both sides.
    #[test]
    fn a_loop_of_tools_has_an_end() {
        let rounds = |count: usize| {
            let round = |n: usize| {
                let id = n.to_string();
                let uses = json!({"type": "tool_use", "id": id, "name": "a", "input": {}});
                let result = json!({"type": "tool_result", "toolUseId": id, "content": []});
                [
                    json!({"role": "assistant", "content": [uses]}),
                    json!({"role": "user", "content": [result]}),
                ]
            };
            with_tools((0..count).flat_map(round).collect())
        };
        assert_eq!(rounds(MAX_TOOL_ROUNDS), Ok(()));
        let endless = rounds(MAX_TOOL_ROUNDS + 1);
        assert!(
            matches!(endless, Err(RequestError::Misuse(_))),
            "{endless:?}"
        );
    }

    /// R-CAP-05, R-SMP-02.
    #[test]
    fn what_a_client_did_not_declare_is_not_asked() {
        let plain = Sampling::user("?", 1);
        let mut tools = plain.clone();
        tools.tools = Some(Vec::new());
        let mut context = plain.clone();
        context
            .other
            .insert("includeContext".into(), "thisServer".into());
        let newest = Revision::V2026_07_28;
        let unsupported = |name| Err(RequestError::Unsupported(name));
        assert_eq!(plain.check(newest, "{}"), unsupported("sampling"));
        let sampling = r#"{"sampling":{}}"#;
        assert_eq!(plain.check(newest, sampling), Ok(()));
        assert_eq!(tools.check(newest, sampling), unsupported("sampling.tools"));
        assert_eq!(
            context.check(newest, sampling),
            unsupported("sampling.context")
        );
        let more = r#"{"sampling":{"tools":{},"context":{}}}"#;
        assert_eq!(tools.check(newest, more), Ok(()));
        assert_eq!(context.check(newest, more), Ok(()));
        let older = tools.check(Revision::V2025_06_18, more);
        assert_eq!(older, unsupported("sampling.tools"));
    }

    /// R-SMP-07, R-PRM-05, R-SMP-10.
    #[test]
    fn there_are_two_roles_and_blocks_keep_their_meta() {
        let message = |role: &str| {
            let result =
                json!({"type": "tool_result", "toolUseId": "1", "content": [], "_meta": {"a": 1}});
            json!({"role": role, "content": [result]})
        };
        for role in ["user", "assistant"] {
            let read: SamplingMessage = serde_json::from_value(message(role)).unwrap();
            let again = serde_json::to_value(&read).unwrap();
            let content = &again["content"];
            let block = content.get(0).unwrap_or(content);
            assert_eq!(block["_meta"], json!({"a": 1}), "{again}");
        }
        assert!(serde_json::from_value::<SamplingMessage>(message("system")).is_err());
    }
}
