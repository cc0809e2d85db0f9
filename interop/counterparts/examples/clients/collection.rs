//! Ten clients in a map, each with a server of its own.

use std::collections::HashMap;

use anyhow::Result;
use mcpbolt::client::Client;
use mcpbolt::io::ChildCommand;
use serde_json::json;
use tracing_subscriber::EnvFilter;

#[tokio::main]
async fn main() -> Result<()> {
    tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::try_from_default_env().unwrap_or_else(|_| "info".into()))
        .init();

    let mut clients = HashMap::new();
    for index in 0..10 {
        let command = ChildCommand::new("uvx").arg("mcp-server-git");
        clients.insert(index, Client::spawn(command).await?);
    }
    for (index, client) in &clients {
        tracing::info!("Server {index}: {}", client.server_info());
        let tools = client.list_tools().await?;
        tracing::info!("Available tools: {}", tools.len());
        let arguments = json!({ "repo_path": "." });
        let result = client.call_tool("git_status", &arguments).await?;
        tracing::info!("Tool result: {}", result.text());
    }
    Ok(())
}
