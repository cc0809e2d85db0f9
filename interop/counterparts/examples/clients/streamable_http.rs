//! A client on Streamable HTTP: `streamable_http http://localhost:8000/mcp`.

use anyhow::Result;
use mcpbolt::client::Client;
use mcpbolt::io::ConnectOptions;
use serde_json::json;
use tracing_subscriber::EnvFilter;

#[tokio::main]
async fn main() -> Result<()> {
    tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::try_from_default_env().unwrap_or_else(|_| "info".into()))
        .init();

    let address = std::env::args().nth(1);
    let address = address.as_deref().unwrap_or("http://localhost:8000/mcp");
    let client = Client::builder("test http client", "0.0.1")
        .open(&address.parse()?, ConnectOptions::default())
        .await
        .inspect_err(|error| tracing::error!("client error: {error:?}"))?;
    tracing::info!("Connected to server: {:#?}", client.handle().peer());

    let tools = client.list_tools().await?;
    tracing::info!("Available tools: {tools:#?}");

    let result = client.call_tool("increment", &json!({})).await?;
    tracing::info!("Tool result: {result:#?}");
    Ok(())
}
