//! Calls of a tool that asks the client's model.

use mcpbolt::client::ClientBuilder;
use mcpbolt::model::{Content, Sampled};
use serde_json::json;

use super::answer;
use super::failure::Failure;
use super::link::Link;
use super::texts::mark;

/// The tool of `mcpbolt serve` that asks the model.
pub const TOOL: &str = "test_sampling";

/// Calls of a tool with a `prompt`, which it passes to the client's model; its answer must contain what the model said.
#[derive(Debug)]
pub struct Samplings {
    tool: String,
}

impl Samplings {
    pub fn new(tool: String) -> Self {
        Self { tool }
    }

    pub async fn one(&self, link: &Link<'_>, number: u64) -> Result<(), Failure> {
        let prompt = mark(number);
        let params = json!({"name": self.tool, "arguments": {"prompt": prompt}}).to_string();
        let answer = link.converse("tools/call", Some(&params)).await?;
        match answer::text(&answer)?.contains(&said(&prompt)) {
            true => Ok(()),
            false => Err(Failure::wrong("the answer is not what the model said")),
        }
    }
}

/// The model's answer to a prompt.
fn said(prompt: &str) -> String {
    format!("the model heard {prompt}")
}

/// A client with a model.
pub fn with_model(client: ClientBuilder) -> ClientBuilder {
    client.on_sampling(|sampling, _| async move {
        let prompt = sampling.messages.last();
        let prompt = prompt.map(|message| Content::join_texts(&message.content));
        Ok(Sampled::text("load", said(&prompt.unwrap_or_default())))
    })
}
