//! The client that the official conformance suite asks for, on Streamable HTTP. The suite says in
//! the environment which scenario it plays, and passes the server's URL last:
//!
//! ```text
//! conformance client --command target/debug/examples/conformance_client --suite all
//! ```

use std::env;
use std::error::Error;

use mcpbolt::client::{Client, ClientBuilder, block_on};
use mcpbolt::io::http::HttpClientOptions;
use mcpbolt::mcp::{Era, Revision, Revisions, extension};
use mcpbolt::model::Tool;
use mcpbolt::model::{Elicitation, Elicited};
use serde_json::{Map, Value, json};

/// Scenarios about skills.
const SKILLS: &str = "sep-2640";

type Outcome = Result<(), Box<dyn Error>>;

fn main() -> Outcome {
    let url = env::args().next_back().unwrap_or_default();
    let scenario = env::var("MCP_CONFORMANCE_SCENARIO").unwrap_or_default();
    let client = block_on(builder(&scenario).http(&url, HttpClientOptions::default()))?;
    block_on(play(&client, &scenario))
}

/// A client of the revision that is played. Older suites name none, and know no probe; the
/// extensions are those of the newest.
fn builder(scenario: &str) -> ClientBuilder {
    let revision = env::var("MCP_CONFORMANCE_PROTOCOL_VERSION").unwrap_or_default();
    let revisions = match Revision::parse(&revision) {
        _ if scenario.starts_with(SKILLS) => Revisions::ALL,
        Some(revision) if revision.era() == Era::Stateless => Revisions::ALL,
        Some(revision) => Revisions::only(revision),
        None => Revision::ALL
            .into_iter()
            .filter(|revision| revision.era() == Era::Handshake)
            .collect(),
    };
    Client::builder("mcpbolt-conformance", env!("CARGO_PKG_VERSION"))
        .revisions(revisions)
        .extension(extension::SKILLS, "{}")
        .on_form(|form, _| async move { Ok(Elicited::Accepted(filled(&form))) })
}

/// A form as a user sends it who changes nothing, and fills in what has to be.
fn filled(form: &Elicitation) -> Map<String, Value> {
    let Elicitation::Form { schema, .. } = form else {
        return Map::new();
    };
    let required = schema["required"].as_array().cloned().unwrap_or_default();
    let fields = schema["properties"].as_object().into_iter().flatten();
    fields
        .filter_map(|(name, field)| match field.get("default") {
            Some(default) => Some((name.clone(), default.clone())),
            None if required.contains(&json!(name)) => Some((name.clone(), example(field))),
            None => None,
        })
        .collect()
}

/// Something that fits a plain schema.
fn example(schema: &Value) -> Value {
    if let Some(first) = schema["enum"].get(0) {
        return first.clone();
    }
    match schema["type"].as_str() {
        Some("integer" | "number") => json!(1),
        Some("boolean") => json!(true),
        Some("array") => json!([]),
        Some("object") => arguments(schema),
        _ => json!("test"),
    }
}

/// Arguments that fit a schema: what it requires.
fn arguments(schema: &Value) -> Value {
    let required = schema["required"].as_array().into_iter().flatten();
    let all = required.filter_map(|name| {
        let name = name.as_str()?;
        Some((name.to_owned(), example(&schema["properties"][name])))
    });
    Value::Object(all.collect())
}

async fn play(client: &Client, scenario: &str) -> Outcome {
    if scenario.starts_with(SKILLS) {
        return skills(client, scenario).await;
    }
    if client.capabilities()["tools"].is_object() {
        let tools = client.list_tools().await?;
        match scenario {
            "http-custom-headers" => planned(client).await?,
            "json-schema-2020-12-preservation" => echoed(client, &tools).await?,
            // Only what is done with the list counts.
            "json-schema-ref-no-deref" => {}
            _ => {
                for tool in &tools {
                    let arguments = arguments(&tool.input_schema.read()?);
                    client.call_tool(&tool.name, &arguments).await?;
                }
            }
        }
    }
    if client.capabilities()["resources"].is_object() {
        for resource in client.list_resources().await? {
            client.read_resource(&resource.uri).await?;
        }
    }
    if client.capabilities()["prompts"].is_object() {
        for prompt in client.list_prompts().await? {
            let fields = prompt.arguments.iter();
            let arguments: Vec<_> = fields.map(|field| (&*field.name, "test")).collect();
            client.get_prompt(&prompt.name, &arguments).await?;
        }
    }
    Ok(())
}

/// The calls that the suite names.
async fn planned(client: &Client) -> Outcome {
    let context = env::var("MCP_CONFORMANCE_CONTEXT").unwrap_or_default();
    let context: Value = serde_json::from_str(&context)?;
    for call in context["toolCalls"].as_array().into_iter().flatten() {
        let name = call["name"].as_str().unwrap_or_default();
        client.call_tool(name, &call["arguments"]).await?;
    }
    Ok(())
}

/// Hands a schema back as it came.
async fn echoed(client: &Client, tools: &[Tool]) -> Outcome {
    let named = |tool: &&Tool| tool.name == "json_schema_2020_12_tool";
    let tool = tools.iter().find(named).ok_or("the tool is not there")?;
    let schema = json!({ "schema": tool.input_schema });
    client.call_tool("json_schema_echo", &schema).await?;
    Ok(())
}

/// Loads skills, which are not what their entries say.
async fn skills(client: &Client, scenario: &str) -> Outcome {
    for skill in client.list_skills().await? {
        if scenario != "sep-2640-client-no-prefetch" {
            client.load_skill(&skill).await?;
        }
    }
    Ok(())
}
