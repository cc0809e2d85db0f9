//! Our client in Rust driven by the steps of ../../../scripts.py, which says what the steps
//! and their outcomes are.
//!
//! `interop-client REVISION CARRIER SERVER...`

use std::error::Error;
use std::future::IntoFuture;
use std::mem;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

use mcpbolt::client::{CallToolResult, Client, Interests, Notice, Pages, Started, block_on};
use mcpbolt::connection::{OpeningMode, RequestOptions};
use mcpbolt::error::RequestError;
use mcpbolt::handler::HandlerError;
use mcpbolt::io::{
    ChildCommand, ConnectOptions, Running, Workers, WorkersConfig, wait_for_clients,
};
use mcpbolt::mcp::{Era, LogLevel, Revision, Revisions, meta};
use mcpbolt::model::{CompletionTarget, Elicitation, Elicited, Root, Sampled, Sampling};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Map, Value, json};

/// After this, whatever a call made the server tell has been told.
const SETTLED: Duration = Duration::from_millis(100);

type Failure = Box<dyn Error + Send + Sync>;
type Heard = Arc<Mutex<Vec<String>>>;

const ROOT: &str = "file:///interop";
const EXTENSION: &str = "example.com/interop";

/// Where the server is.
enum Place {
    Child(Box<ChildCommand>),
    At(String),
}

/// Reaches the server, and opens the connection; a child process comes with a way to end it.
/// Its notifications go to `heard`.
fn start(
    revision: Revision,
    place: Place,
    heard: Heard,
) -> Result<(Client, Option<Running>), Failure> {
    let mut builder = Client::builder("interop-rust", "1").revisions(Revisions::only(revision));
    if revision.era() == Era::Handshake {
        builder = builder.opening(OpeningMode::Handshake);
    }
    builder = builder
        .on_sampling_with_tools(|sampling, context| async move {
            model(&sampling, context.client()).await
        })
        .on_form(|form, _| async move { Ok(user(&form)) })
        .on_page(|_, _| async { Ok(Elicited::Accepted(Map::new())) })
        .roots([Root::new(ROOT)])
        .extension(EXTENSION, r#"{"version":2}"#)
        .tasks()
        .on_notice(move |notice| {
            heard
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .extend(tell(&notice))
        });
    let command = match place {
        Place::Child(command) => *command,
        Place::At(url) => {
            let options = ConnectOptions::default();
            return Ok((block_on(builder.open(&url.parse()?, options))?, None));
        }
    };
    let (config, prepared) = builder.prepare()?;
    let mut made = None;
    let running = command.spawn()?.connect(Arc::new(config), |handle| {
        let workers = Arc::new(Workers::new(WorkersConfig::default()));
        let (client, host) = prepared.connect(handle.clone(), workers);
        made = Some(client);
        host
    })?;
    let client = made.ok_or("no connection")?;
    block_on(client.handle().opened())?;
    Ok((client, Some(running)))
}

/// The part of a notification that the steps check.
fn tell(notice: &Notice<'_>) -> Option<String> {
    match notice {
        Notice::ToolsChanged => Some("tools/list_changed".into()),
        Notice::ResourceUpdated { uri } => Some(format!("resources/updated {uri}")),
        Notice::Log { level, .. } => Some(level.name().into()),
        _ => None,
    }
}

/// The model: see scripts.py.
async fn model(sampling: &Sampling, client: &Client) -> Result<Sampled, HandlerError> {
    if let Some(tool) = sampling.tools.as_ref().and_then(|tools| tools.first()) {
        let uses = json!({"type": "tool_use", "id": "1", "name": tool.name, "input": {}});
        let said =
            json!({"role": "assistant", "model": "m", "stopReason": "toolUse", "content": uses});
        return Ok(serde_json::from_value(said)?);
    }
    let last = sampling
        .messages
        .last()
        .map(|message| json!(message.content[0]));
    let last = last.unwrap_or_default();
    let text = last["text"].as_str().unwrap_or_default();
    let depth: u32 = text
        .strip_prefix("nest ")
        .and_then(|n| n.parse().ok())
        .unwrap_or(0);
    Ok(Sampled::text(
        "m",
        if depth == 0 {
            format!("said {text}")
        } else {
            let call =
                client.call_tool("ask_model", &json!({"text": format!("nest {}", depth - 1)}));
            format!("({})", call.await?.text())
        },
    ))
}

fn user(form: &Elicitation) -> Elicited {
    match form {
        Elicitation::Form { message, .. } if message == "Who?" => {
            Elicited::Accepted(Map::from_iter([("name".to_owned(), "Ada".into())]))
        }
        Elicitation::Form { message, .. } if message == "No?" => Elicited::Declined,
        _ => Elicited::Cancelled,
    }
}

fn told(result: &CallToolResult) -> Value {
    json!({
        "text": result.text(), "is_error": result.is_error,
        "structured": result.structured_content, "meta": result.other.get("_meta"),
    })
}

fn call(client: &Client, step: &Value) -> Result<Value, RequestError> {
    let tool = step["tool"].as_str().unwrap_or_default();
    let mut call = client.call_tool(tool, &step["arguments"]);
    if step["meta"].is_object() {
        call = call.meta(&step["meta"]);
    }
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

/// A list with all its pages; its items are named by that member.
fn list<T: Serialize + DeserializeOwned>(
    mut pages: Pages<T>,
    name: &str,
) -> Result<Value, RequestError> {
    let (mut items, mut count) = (Vec::new(), 0);
    while let Some(page) = block_on(pages.next()) {
        count += 1;
        items.extend(page?.iter().map(|item| json!(item)));
    }
    let names: Vec<_> = items.iter().map(|item| item[name].clone()).collect();
    Ok(json!({ "names": names, "pages": count, "items": items }))
}

fn complete(client: &Client, step: &Value) -> Result<Value, RequestError> {
    let text = |key: &str| step[key].as_str().unwrap_or_default();
    let target = match step["prompt"].as_str() {
        Some(name) => CompletionTarget::prompt(name),
        None => CompletionTarget::resource(text("template")),
    };
    let found = run(client.complete(&target, (text("argument"), text("value")), &[]))?;
    Ok(json!({ "values": found.values }))
}

fn taken(heard: &Heard) -> Vec<String> {
    let mut heard = mem::take(&mut *heard.lock().unwrap_or_else(PoisonError::into_inner));
    heard.sort();
    heard.dedup();
    heard
}

fn is_stateless(client: &Client) -> bool {
    client
        .revision()
        .is_some_and(|revision| revision.era() == Era::Stateless)
}

fn logs(client: &Client, step: &Value, heard: &Heard) -> Result<Value, RequestError> {
    let mut step = step.clone();
    if is_stateless(client) {
        step["meta"] = json!({ meta::LOG_LEVEL: step["level"] });
    } else {
        let level = LogLevel::parse(step["level"].as_str().unwrap_or_default());
        run(client.set_log_level(level.unwrap_or(LogLevel::Info)))?;
    }
    taken(heard);
    call(client, &step)?;
    sleep(SETTLED);
    Ok(json!({ "levels": mem::take(&mut *heard.lock().unwrap_or_else(PoisonError::into_inner)) }))
}

fn listen(client: &Client, step: &Value, heard: &Heard) -> Result<Value, RequestError> {
    let uris: Vec<_> = step["uris"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let interests = Interests {
        tools: true,
        uris: uris.iter().map(ToString::to_string).collect(),
        ..Interests::default()
    };
    let listening = match is_stateless(client) {
        true => Some(run(client.listen(interests))?),
        false => uris
            .iter()
            .try_for_each(|uri| run(client.subscribe(uri)))
            .map(|()| None)?,
    };
    call(client, step)?;
    sleep(SETTLED);
    let during = taken(heard);
    match listening {
        Some(listening) => drop(listening),
        None => uris
            .iter()
            .try_for_each(|uri| run(client.unsubscribe(uri)))?,
    }
    call(client, step)?;
    sleep(SETTLED);
    Ok(json!({ "heard": during, "after": taken(heard) }))
}

fn task(client: &Client, step: &Value) -> Result<Value, RequestError> {
    let tool = step["tool"].as_str().unwrap_or_default();
    match run(client.call_tool(tool, &step["arguments"]).start())? {
        Started::Task(task) => {
            let text = run(task.result())?.text();
            Ok(json!({ "text": text, "status": run(task.info())?.status.name() }))
        }
        other => Ok(json!({ "no_task": format!("{other:?}") })),
    }
}

fn outcome(client: &Client, step: &Value, heard: &Heard) -> Result<Value, RequestError> {
    Ok(match step["do"].as_str().unwrap_or_default() {
        "info" => json!({
            "revision": client.revision().map(|revision| revision.name()),
            "name": client.server_info()["name"],
            "extensions": client.capabilities()["extensions"],
        }),
        "tools" => list(client.tool_pages(), "name")?,
        "pages" => list(client.tool_pages(), "name")?,
        "resources" => list(client.resource_pages(), "uri")?,
        "templates" => list(client.resource_template_pages(), "uriTemplate")?,
        "prompts" => list(client.prompt_pages(), "name")?,
        "read" => {
            let contents = run(client.read_resource(step["uri"].as_str().unwrap_or_default()))?;
            let first = contents.first();
            json!({
                "text": first.and_then(|c| c.as_text()), "blob": first.and_then(|c| c.as_blob()),
                "mime": first.and_then(|c| c.mime_type.clone()),
            })
        }
        "prompt" => prompt(client, step)?,
        "complete" => complete(client, step)?,
        "ping" => run(client.ping()).map(|()| json!({}))?,
        "call" => call(client, step)?,
        "many" => many(client, step)?,
        "logs" => logs(client, step, heard)?,
        "listen" => listen(client, step, heard)?,
        "task" => task(client, step)?,
        "request" => {
            let method = step["method"].as_str().unwrap_or_default();
            let request = client
                .handle()
                .request(method, None, RequestOptions::default());
            run(request?).map(|_| json!({}))?
        }
        other => json!({ "unknown": other }),
    })
}

fn main() -> Result<(), Failure> {
    let mut arguments = std::env::args().skip(1);
    let revision = arguments.next().and_then(|name| Revision::parse(&name));
    let carrier = arguments.next();
    let server = arguments.next().ok_or("no server")?;
    let place = match carrier.as_deref() {
        Some("stdio") => Place::Child(Box::new(ChildCommand::new(server).args(arguments))),
        _ => Place::At(server),
    };
    let steps: Vec<Value> = serde_json::from_reader(std::io::stdin())?;
    let heard = Heard::default();
    let (client, running) = start(revision.ok_or("no such revision")?, place, heard.clone())?;
    for step in steps.iter().take_while(|step| step["do"] != "close") {
        let outcome = outcome(&client, step, &heard).unwrap_or_else(|error| match error.code() {
            Some(code) => json!({ "code": code }),
            None => json!({ "failed": error.to_string() }),
        });
        println!("{outcome}");
    }
    let began = Instant::now();
    let exit = running.map(Running::shutdown).transpose()?;
    let handle = client.handle().clone();
    drop(client);
    wait_for_clients(Duration::from_secs(5));
    let closed = json!({
        "step": exit.map(|exit| format!("{:?}", exit.step)), "strays": handle.stray_count(),
        "ms": began.elapsed().as_millis() as u64,
    });
    println!("{closed}");
    Ok(())
}
