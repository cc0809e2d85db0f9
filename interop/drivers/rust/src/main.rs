//! Our client in Rust as a driver of the scripts in ../../scripts.py, which says what the steps
//! and their outcomes are.
//!
//! `interop-driver REVISION -- COMMAND [ARGUMENT...]`

use std::error::Error;
use std::future::IntoFuture;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcpbolt::client::{CallToolResult, Client, ClientHost, block_on};
use mcpbolt::connection::Opening;
use mcpbolt::error::RequestError;
use mcpbolt::io::{ChildCommand, Running};
use mcpbolt::mcp::{Era, Revision, Revisions};
use serde_json::{Value, json};

type Failure = Box<dyn Error + Send + Sync>;

/// Starts the server, and opens the connection.
fn start(revision: Revision, command: ChildCommand) -> Result<(Client, Running), Failure> {
    let mut config = Client::config("interop-rust", "1");
    config.revisions = Revisions::only(revision);
    if revision.era() == Era::Handshake {
        config.opening = Opening::Handshake;
    }
    let running = command
        .spawn()?
        .connect(Arc::new(config), |_| ClientHost::new())?;
    let client = block_on(Client::open(running.handle().clone()))?;
    Ok((client, running))
}

fn told(result: &CallToolResult) -> Value {
    json!({ "text": result.text(), "is_error": result.is_error })
}

fn call(client: &Client, step: &Value) -> Result<Value, RequestError> {
    let tool = step["tool"].as_str().unwrap_or_default();
    let call = client.call_tool(tool, &step["arguments"]);
    if let Some(ms) = step["timeout_ms"].as_u64() {
        return match call.timeout(Duration::from_millis(ms)).wait() {
            Err(RequestError::TimedOut) => Ok(json!({ "ended": "timed out" })),
            other => other.map(|result| told(&result)),
        };
    }
    if let Some(ms) = step["cancel_ms"].as_u64() {
        let calling = call.send()?;
        std::thread::sleep(Duration::from_millis(ms));
        calling.cancel(Some("told to"));
        return Ok(json!({ "ended": "cancelled" }));
    }
    if step["progress"] != true {
        return Ok(told(&call.wait()?));
    }
    let seen = Arc::new(Mutex::new(Vec::new()));
    let keep = seen.clone();
    let call = call.on_progress(move |progress| {
        if let Ok(mut seen) = keep.lock() {
            seen.push(json!([
                progress.progress as u64,
                progress.total.map(|n| n as u64)
            ]));
        }
    });
    let mut outcome = told(&call.wait()?);
    outcome["seen"] = seen.lock().map_or(Value::Null, |seen| seen.clone().into());
    Ok(outcome)
}

fn many(client: &Client, step: &Value) -> Result<Value, RequestError> {
    let (tool, argument) = (step["tool"].as_str(), step["argument"].as_str());
    let (tool, argument) = (tool.unwrap_or_default(), argument.unwrap_or_default());
    let calls: Result<Vec<_>, _> = (0..step["count"].as_u64().unwrap_or(0))
        .map(|i| {
            client
                .call_tool(tool, &json!({ argument: format!("call {i}") }))
                .send()
        })
        .collect();
    let answers: Result<Vec<_>, _> = calls?.into_iter().map(block_on).collect();
    let texts: Vec<_> = answers?.iter().map(CallToolResult::text).collect();
    Ok(json!({ "answers": texts }))
}

fn run<T>(request: impl IntoFuture<Output = Result<T, RequestError>>) -> Result<T, RequestError> {
    block_on(request)
}

fn prompt(client: &Client, step: &Value) -> Result<Value, RequestError> {
    let arguments: Vec<_> = step["arguments"]
        .as_object()
        .into_iter()
        .flatten()
        .filter_map(|(key, value)| Some((key.as_str(), value.as_str()?)))
        .collect();
    let name = step["name"].as_str().unwrap_or_default();
    let prompt = run(client.get_prompt(name, &arguments))?;
    Ok(json!({ "text": prompt.messages.first().map(|m| json!(m.content)["text"].clone()) }))
}

fn outcome(client: &Client, step: &Value) -> Result<Value, RequestError> {
    Ok(match step["do"].as_str().unwrap_or_default() {
        "info" => {
            let revision = client.revision().map(|revision| revision.name());
            json!({ "revision": revision, "name": client.server_info()["name"] })
        }
        "tools" => {
            let tools = run(client.list_tools())?;
            json!({ "names": tools.iter().map(|t| &t.name).collect::<Vec<_>>() })
        }
        "resources" => {
            let resources = run(client.list_resources())?;
            json!({ "names": resources.iter().map(|r| &r.uri).collect::<Vec<_>>() })
        }
        "prompts" => {
            let prompts = run(client.list_prompts())?;
            json!({ "names": prompts.iter().map(|p| &p.name).collect::<Vec<_>>() })
        }
        "read" => {
            let contents = run(client.read_resource(step["uri"].as_str().unwrap_or_default()))?;
            json!({ "text": contents.first().and_then(|c| c.text.clone()) })
        }
        "prompt" => prompt(client, step)?,
        "ping" => run(client.ping()).map(|()| json!({}))?,
        "call" => call(client, step)?,
        "many" => many(client, step)?,
        other => json!({ "unknown": other }),
    })
}

fn main() -> Result<(), Failure> {
    let mut arguments = std::env::args().skip(1);
    let revision = arguments.next().and_then(|name| Revision::parse(&name));
    let command = ChildCommand::new(arguments.nth(1).ok_or("no command")?).args(arguments);
    let steps: Vec<Value> = serde_json::from_reader(std::io::stdin())?;
    let (client, running) = start(revision.ok_or("no such revision")?, command)?;
    for step in steps.iter().take_while(|step| step["do"] != "close") {
        let outcome = outcome(&client, step).unwrap_or_else(|error| match error.code() {
            Some(code) => json!({ "code": code }),
            None => json!({ "failed": error.to_string() }),
        });
        println!("{outcome}");
    }
    let exit = running.shutdown()?;
    let strays = client.handle().stray_count();
    println!(
        "{}",
        json!({ "step": format!("{:?}", exit.step), "strays": strays })
    );
    Ok(())
}
