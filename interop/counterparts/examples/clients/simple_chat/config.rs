//! The configuration file.

use std::collections::HashMap;
use std::path::Path;

use anyhow::Result;
use mcpbolt::client::Client;
use mcpbolt::io::{ChildCommand, ConnectOptions};
use serde::Deserialize;

#[derive(Debug, Deserialize)]
pub struct Config {
    pub openai_key: Option<String>,
    pub chat_url: Option<String>,
    pub mcp: Option<McpConfig>,
    pub model_name: Option<String>,
    pub proxy: Option<bool>,
    pub support_tool: Option<bool>,
}

#[derive(Debug, Deserialize)]
pub struct McpConfig {
    pub server: Vec<ServerConfig>,
}

#[derive(Debug, Deserialize)]
pub struct ServerConfig {
    pub name: String,
    #[serde(flatten)]
    pub transport: TransportConfig,
}

#[derive(Debug, Deserialize)]
#[serde(tag = "protocol", rename_all = "lowercase")]
pub enum TransportConfig {
    Streamable {
        url: String,
    },
    Stdio {
        command: String,
        #[serde(default)]
        args: Vec<String>,
        #[serde(default)]
        envs: HashMap<String, String>,
    },
}

impl TransportConfig {
    pub async fn start(&self) -> Result<Client> {
        let builder = Client::builder("simple-chat", "0.1.0");
        let client = match self {
            Self::Streamable { url } => {
                builder.open(&url.parse()?, ConnectOptions::default()).await
            }
            Self::Stdio {
                command,
                args,
                envs,
            } => {
                builder
                    .spawn(ChildCommand::new(command).args(args).envs(envs))
                    .await
            }
        };
        Ok(client?)
    }
}

impl Config {
    pub async fn load(path: &Path) -> Result<Self> {
        Ok(toml::from_str(&tokio::fs::read_to_string(path).await?)?)
    }
}
