//! A chat, and the model that answers in it.

use std::collections::BTreeMap;
use std::io::{self, Write};

use anyhow::{Context, Result, ensure};
use mcpbolt::client::Client;
use mcpbolt::model::Tool;
use serde_json::json;

use crate::config::Config;
use crate::model::{CompletionRequest, CompletionResponse, Message, ToolDefinition, ToolFunction};

const OPENAI: &str = "https://api.openai.com/v1/chat/completions";
const SYSTEM: &str = "you are a assistant, you can help user to complete various tasks.";
const FORMAT: &str = "\nif you need to call tool, please use the following format:\n\
                      Tool: <tool name>\nInputs: <inputs>\n";

/// A model at an address of the OpenAI kind.
pub struct Model {
    key: String,
    url: String,
    name: String,
    client: reqwest::Client,
}

impl Model {
    pub fn new(config: &Config, name: Option<String>) -> Result<Self> {
        let key = config.openai_key.clone();
        let key = key.map_or_else(|| std::env::var("OPENAI_API_KEY"), Ok);
        let url = config.chat_url.as_deref().unwrap_or(OPENAI);
        println!("use api address: {url}");
        let name = name.or_else(|| config.model_name.clone());
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut client = reqwest::Client::builder();
        if config.proxy != Some(true) {
            client = client.no_proxy();
        }
        Ok(Self {
            key: key.context("no key: set openai_key or OPENAI_API_KEY")?,
            url: url.to_owned(),
            name: name.unwrap_or_else(|| "gpt-4o-mini".to_owned()),
            client: client.build()?,
        })
    }

    async fn complete(&self, request: &CompletionRequest<'_>) -> Result<CompletionResponse> {
        let request = self
            .client
            .post(&self.url)
            .bearer_auth(&self.key)
            .json(request);
        let response = request.send().await?;
        let (status, text) = (response.status(), response.text().await?);
        ensure!(status.is_success(), "API Error: {text}");
        println!("Received response: {text}");
        Ok(serde_json::from_str(&text)?)
    }
}

pub struct ChatSession {
    model: Model,
    tools: BTreeMap<String, (Tool, Client)>,
    messages: Vec<Message>,
}

impl ChatSession {
    pub fn new(model: Model) -> Self {
        Self {
            model,
            tools: BTreeMap::new(),
            messages: Vec::new(),
        }
    }

    pub async fn add_tools(&mut self, client: &Client) -> Result<()> {
        for tool in client.list_tools().await? {
            println!("add tool: {}", tool.name);
            self.tools.insert(tool.name.clone(), (tool, client.clone()));
        }
        Ok(())
    }

    /// Describes the tools in words, for a model that cannot call them.
    fn described(&self) -> String {
        let mut prompt = format!("{SYSTEM} you have the following tools to use:\n");
        for (name, (tool, _)) in &self.tools {
            let description = tool.description.as_deref().unwrap_or_default();
            let schema = &tool.input_schema;
            prompt +=
                &format!("\ntool name: {name}\ndescription: {description}\nparameters: {schema}\n");
        }
        prompt + FORMAT
    }

    pub async fn chat(&mut self, support_tool: bool) -> Result<()> {
        let prompt = if support_tool {
            SYSTEM.to_owned()
        } else {
            self.described()
        };
        self.messages.push(Message::system(prompt));
        println!("welcome to use simple chat client, use 'exit' to quit");
        loop {
            print!("> ");
            io::stdout().flush()?;
            let mut input = String::new();
            if io::stdin().read_line(&mut input)? == 0 || input.trim() == "exit" {
                return Ok(());
            }
            if input.trim().is_empty() {
                continue;
            }
            self.messages.push(Message::user(input.trim()));
            let tools = self.tools.values().filter(|_| support_tool);
            let request = CompletionRequest {
                model: &self.model.name,
                messages: &self.messages,
                temperature: 0.7,
                tools: tools.map(|(tool, _)| definition(tool)).collect(),
            };
            let response = self.model.complete(&request).await?;
            let choice = response.choices.into_iter().next();
            let message = choice.context("the model gave no choice")?.message;
            println!("AI > {}", message.content);
            for function in functions(message) {
                println!("tool call: {function:?}");
                self.call(&function).await;
            }
        }
    }

    async fn call(&mut self, function: &ToolFunction) {
        let Some((_, client)) = self.tools.get(&function.name) else {
            return println!("tool not found: {}", function.name);
        };
        let arguments = serde_json::from_str(&function.arguments).unwrap_or(json!({}));
        let said = match client.call_tool(&function.name, &arguments).await {
            Ok(result) if result.is_error => "tool call failed, mcp call error".to_owned(),
            Ok(result) => format!("call tool result: {}", result.text()),
            Err(error) => format!("tool call failed: {error}"),
        };
        println!("{said}");
        self.messages.push(Message::user(said));
    }
}

fn definition(tool: &Tool) -> ToolDefinition<'_> {
    ToolDefinition {
        name: &tool.name,
        description: tool.description.as_deref().unwrap_or_default(),
        parameters: &tool.input_schema,
    }
}

/// The calls in a message: its tool calls, or a call in words.
fn functions(message: Message) -> Vec<ToolFunction> {
    if !message.tool_calls.is_empty() {
        let calls = message.tool_calls.into_iter();
        return calls
            .filter(|call| call.kind == "function")
            .map(|call| call.function)
            .collect();
    }
    let Some((_, call)) = message.content.split_once("Tool:") else {
        return Vec::new();
    };
    let (name, arguments) = call.split_once("Inputs:").unwrap_or((call, ""));
    vec![ToolFunction {
        name: name.trim().to_owned(),
        arguments: arguments.trim().to_owned(),
    }]
}
