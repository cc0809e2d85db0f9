//! Asks the client's model.

use mcpbolt::mcp::ErrorKind;
use mcpbolt::model::Sampling;
use mcpbolt::prelude::*;
use serde_json::json;
use tracing_subscriber::EnvFilter;

const INSTRUCTIONS: &str = "This is a demo server that requests sampling from clients. It provides tools that use LLM capabilities.

IMPORTANT: This server requires a client that supports the 'sampling/createMessage' method. Without sampling support, the tools will return errors.";

/// Ask a question to the LLM through sampling
#[tool]
async fn ask_llm(
    /// The question to ask the LLM
    question: String,
    context: Context,
) -> Result<String, HandlerError> {
    let preferences = json!({
        "hints": [{"name": "claude"}],
        "costPriority": 0.3,
        "speedPriority": 0.8,
        "intelligencePriority": 0.7,
    });
    let sampling = Sampling {
        model_preferences: Some(preferences),
        temperature: Some(0.7),
        ..Sampling::user(&*question, 150).system_prompt("You are a helpful assistant.")
    };
    let sampled = context.sample(sampling).await.map_err(|error| {
        let why = format!("Sampling request failed: {error}");
        HandlerError::protocol(ErrorKind::Internal, why)
    })?;
    tracing::debug!("Response: {sampled:?}");
    Ok(format!(
        "Question: {question}\nAnswer: {}",
        sampled.to_text()
    ))
}

fn main() -> anyhow::Result<()> {
    tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::from_default_env())
        .with_writer(std::io::stderr)
        .init();
    let server = Server::builder("sampling", "1.0.0").instructions(INSTRUCTIONS);
    Ok(server.with(handlers![ask_llm]).build()?.run()?)
}
