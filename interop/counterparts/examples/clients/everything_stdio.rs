//! A client of the official server that has every feature, which `npx` installs and starts.

use anyhow::Result;
use mcpbolt::client::Client;
use mcpbolt::io::ChildCommand;
use serde_json::json;
use tracing_subscriber::EnvFilter;

const DOCUMENT: &str = "demo://resource/static/document/architecture.md";

#[tokio::main]
async fn main() -> Result<()> {
    tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::try_from_default_env().unwrap_or_else(|_| "info".into()))
        .init();

    let command = ChildCommand::new("npx").args(["-y", "@modelcontextprotocol/server-everything"]);
    let client = Client::spawn(command).await?;
    tracing::info!("Connected to server: {:#?}", client.handle().peer());

    let tools = client.list_tools().await?;
    tracing::info!("Available tools: {tools:#?}");

    let message = json!({ "message": "hi from mcpbolt" });
    let result = client.call_tool("echo", &message).await?;
    tracing::info!("Tool result for echo: {result:#?}");

    let long = json!({ "duration": 3, "steps": 1 });
    let tool = "trigger-long-running-operation";
    let result = client.call_tool(tool, &long).await?;
    tracing::info!("Tool result for {tool}: {result:#?}");

    let resources = client.list_resources().await?;
    tracing::info!("Available resources: {resources:#?}");

    let resource = client.read_resource(DOCUMENT).await?;
    tracing::info!("Resource: {resource:#?}");

    let prompts = client.list_prompts().await?;
    tracing::info!("Available prompts: {prompts:#?}");

    let prompt = client.get_prompt("simple-prompt", &[]).await?;
    tracing::info!("Prompt - simple: {prompt:#?}");

    let place = [("city", "Dallas"), ("state", "Texas")];
    let prompt = client.get_prompt("args-prompt", &place).await?;
    tracing::info!("Prompt - args: {prompt:#?}");

    let templates = client.list_resource_templates().await?;
    tracing::info!("Available resource templates: {templates:#?}");
    Ok(())
}
