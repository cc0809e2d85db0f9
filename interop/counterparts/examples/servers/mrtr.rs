//! A call in several rounds (2026-07-28): the server answers with a question and a signed state, and the client
//! repeats the call with the answer. Server and client are in one process.
#![allow(clippy::print_stdout, reason = "what the program is for")]

use mcpbolt::client::Client;
use mcpbolt::connection::RequestOptions;
use mcpbolt::mcp::{Revision, Revisions};
use mcpbolt::model::{Elicitation, Elicited};
use mcpbolt::prelude::*;
use mcpbolt::server::RegistryError;
use serde_json::{Value, json};

/// Real deployments load a key of random bytes, the same for all processes that serve one client.
const STATE_KEY: [u8; 32] = *b"example-request-state-key-32-by!";

/// Tells the weather of a city.
#[tool]
async fn weather(context: Context) -> Result<String, HandlerError> {
    let city = json!({"city": {"type": "string"}});
    let form = json!({"type": "object", "properties": city, "required": ["city"]});
    let question = Elicitation::form("Which city do you want the weather for?", form);
    Ok(match context.named("city").elicit(question).await? {
        Elicited::Accepted(filled) => {
            let city = filled["city"].as_str().unwrap_or_default();
            format!("It is sunny in {city}.")
        }
        Elicited::Declined => "I cannot look up the weather without a city.".to_owned(),
        Elicited::Cancelled => "Weather lookup cancelled.".to_owned(),
    })
}

/// Only 2026-07-28 has rounds.
pub fn server() -> Result<Server, RegistryError> {
    Server::builder("weather", "1.0.0")
        .revisions(Revisions::only(Revision::V2026_07_28))
        .state_key(STATE_KEY)
        .with(handlers![weather])
        .build()
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let client = Client::builder("mrtr-example-client", "1.0.0")
        .on_form(|question, _| async move {
            if let Elicitation::Form { message, .. } = question {
                println!("  [client] server asked: {message}");
            }
            Ok(Elicited::accepted([("city", "Paris")]))
        })
        .connect(&server()?)
        .await?;
    println!("== auto mode (call_tool) ==");
    let result = client.call_tool("weather", &json!({})).await?;
    println!("  [client] final result: {}\n", result.text());

    println!("== manual mode (one request) ==");
    let params = r#"{"name": "weather"}"#;
    let once = client
        .handle()
        .request("tools/call", Some(params), RequestOptions::default())?;
    let answer = once.await?;
    let result: Value = serde_json::from_str(answer.as_ref().result().unwrap_or("{}"))?;
    match result["inputRequests"].as_object() {
        Some(questions) => println!(
            "  [client] server requested {} input(s); handling them yourself is up to you.",
            questions.len()
        ),
        None => println!("  [client] completed immediately: {result}"),
    }
    Ok(())
}
