//! A client whose model a server may use: `sampling_stdio SERVER ARGUMENTS`.

use anyhow::{Context, Result};
use mcpbolt::client::Client;
use mcpbolt::connection::OpeningMode;
use mcpbolt::io::ChildCommand;
use mcpbolt::model::{Sampled, SamplingMessage};
use serde_json::json;
use tracing_subscriber::EnvFilter;

/// Stands for a call of a model.
fn mock_llm_response(_messages: &[SamplingMessage], _system_prompt: Option<&str>) -> String {
    "It just a mock response".to_owned()
}

#[tokio::main]
async fn main() -> Result<()> {
    tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::try_from_default_env().unwrap_or_else(|_| "info".into()))
        .init();

    let mut words = std::env::args().skip(1);
    let program = words.next().context("which server? a command")?;
    // In 2026-07-28 no server sends requests, and those on rmcp do not ask in another way by themselves.
    let client = Client::builder("sampling", "1.0.0")
        .opening(OpeningMode::Handshake)
        .on_sampling(|asked, _| async move {
            tracing::info!("Received sampling request with {asked:?}");
            let text = mock_llm_response(&asked.messages, asked.system_prompt.as_deref());
            Ok(Sampled::text("mock_llm", text))
        })
        .spawn(ChildCommand::new(program).args(words))
        .await
        .inspect_err(|error| tracing::error!("client error: {error:?}"))?;
    tracing::info!("Connected to server: {:#?}", client.handle().peer());

    let tools = client.list_tools().await?;
    tracing::info!("Available tools: {tools:#?}");

    tracing::info!("Testing ask_llm tool...");
    let question = json!({ "question": "Hello world" });
    match client.call_tool("ask_llm", &question).await {
        Ok(result) => tracing::info!("Ask LLM result: {result:#?}"),
        Err(error) => tracing::error!("Ask LLM error: {error}"),
    }
    Ok(())
}
