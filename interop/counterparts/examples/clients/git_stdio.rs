//! A client of the server `mcp-server-git`, which `uvx` installs and starts.

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

    let client = Client::spawn(ChildCommand::new("uvx").arg("mcp-server-git")).await?;
    tracing::info!("Connected to server: {:#?}", client.handle().peer());

    let tools = client.list_tools().await?;
    tracing::info!("Available tools: {tools:#?}");

    let arguments = json!({ "repo_path": "." });
    let result = client.call_tool("git_status", &arguments).await?;
    tracing::info!("Tool result: {result:#?}");
    Ok(())
}
