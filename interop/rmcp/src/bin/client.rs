//! Drives a stdio server with rmcp's client.
//!
//! `client REVISION -- COMMAND [ARGUMENT...]`: one JSON object a line for each check, as the
//! clients in the other languages print them.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rmcp::model::*;
use rmcp::service::{
    ClientLifecycleMode, ClientServiceExt, NotificationContext, Peer, PeerRequestOptions,
    RunningService, ServiceError,
};
use rmcp::transport::TokioChildProcess;
use rmcp::{ClientHandler, RoleClient};
use serde_json::{Value, json};

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Offers one revision and keeps the progress that arrives.
#[derive(Clone)]
struct Client {
    revision: ProtocolVersion,
    seen: Arc<Mutex<Vec<(f64, Option<f64>)>>>,
}

impl ClientHandler for Client {
    fn get_info(&self) -> ClientConfig {
        ClientConfig::new(
            ClientCapabilities::default(),
            Implementation::new("interop-rmcp", "1"),
        )
        .with_protocol_version(self.revision.clone())
    }

    async fn on_progress(
        &self,
        params: ProgressNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        if let Ok(mut seen) = self.seen.lock() {
            seen.push((params.progress, params.total));
        }
    }
}

fn say(check: &str, mut facts: Value) {
    facts["check"] = check.into();
    println!("{facts}");
}

fn tool(name: &'static str, arguments: Value) -> CallToolRequestParams {
    let arguments = arguments.as_object().cloned().unwrap_or_default();
    CallToolRequestParams::new(name).with_arguments(arguments)
}

fn text_of(result: &CallToolResult) -> Result<String, Failure> {
    let text = result.content.first().and_then(|block| block.as_text());
    match text {
        Some(text) if result.is_error != Some(true) => Ok(text.text.clone()),
        _ => Err(format!("not a text: {result:?}").into()),
    }
}

/// What came of a request that ought to fail.
fn outcome<T>(answer: Result<T, ServiceError>, is_error: impl Fn(&T) -> Option<bool>) -> Value {
    match answer {
        Ok(result) => json!({ "is_error": is_error(&result) }),
        Err(ServiceError::McpError(error)) => {
            json!({ "code": error.code.0, "message": error.message })
        }
        Err(other) => json!({ "message": other.to_string() }),
    }
}

type Running = RunningService<RoleClient, Client>;

async fn call(running: &Running, name: &'static str, args: Value) -> Result<String, Failure> {
    text_of(&running.call_tool(tool(name, args)).await?)
}

async fn stats(running: &Running) -> Result<Value, Failure> {
    Ok(serde_json::from_str(
        &call(running, "stats", json!({})).await?,
    )?)
}

async fn errors(running: &Running, modern: bool) {
    let unknown = running.call_tool(tool("no_such_tool", json!({}))).await;
    say("unknown_tool", outcome(unknown, |r| r.is_error));
    let bad = running.call_tool(tool("echo", json!({ "text": 7 }))).await;
    say("bad_arguments", outcome(bad, |r| r.is_error));
    let method = ClientRequest::CustomRequest(CustomRequest::new("no/such_method", None));
    let unknown = running.send_request(method).await;
    say("unknown_method", outcome(unknown, |_| None));
    if !modern {
        let ping = ClientRequest::PingRequest(PingRequest::default());
        say("ping", outcome(running.send_request(ping).await, |_| None));
    }
}

async fn cancel(running: &Running) -> Result<(), Failure> {
    let before = stats(running).await?;
    let sleep = CallToolRequest::new(tool("sleep", json!({ "ms": 60_000 })));
    let handle = running
        .send_cancellable_request(sleep.into(), PeerRequestOptions::no_options())
        .await?;
    tokio::time::sleep(Duration::from_millis(300)).await;
    let during = stats(running).await?;
    handle.cancel(None).await?;
    tokio::time::sleep(Duration::from_millis(300)).await;
    let after = stats(running).await?;
    say(
        "cancel",
        json!({ "before": before, "during": during, "after": after }),
    );
    Ok(())
}

async fn concurrent(peer: &Peer<RoleClient>) -> Result<(), Failure> {
    let calls: Vec<_> = (0..300)
        .map(|i| {
            let peer = peer.clone();
            tokio::spawn(async move {
                let text = format!("call {i}");
                let answer = peer
                    .call_tool_once(tool("echo", json!({ "text": text })))
                    .await;
                match answer {
                    Ok(CallToolResponse::Complete(r)) => text_of(&r).is_ok_and(|t| t == text),
                    _ => false,
                }
            })
        })
        .collect();
    let mut wrong = Vec::new();
    for (i, call) in calls.into_iter().enumerate() {
        if !call.await? {
            wrong.push(i);
        }
    }
    say("concurrent", json!({ "wrong": wrong }));
    Ok(())
}

async fn checks(running: &Running, modern: bool) -> Result<(), Failure> {
    let info = running.peer_info().ok_or("no server info")?;
    say(
        "connect",
        json!({
            "revision": info.protocol_version.as_str(),
            "name": info.server_info.as_ref().map(|i| &i.name),
        }),
    );
    let tools = running.list_tools(None).await?.tools;
    let names: Vec<_> = tools.iter().map(|tool| &tool.name).collect();
    say("list", json!({ "tools": names }));
    let texts: serde_json::Map<String, Value> = serde_json::from_reader(std::io::stdin())?;
    for (of, text) in &texts {
        let same = call(running, "echo", json!({ "text": text })).await? == *text;
        say("echo", json!({ "of": of, "same": same }));
    }
    let args = json!({ "text": "0123456789abcdefgh", "n": 100_000 });
    let same =
        call(running, "resize", args).await? == format!("0123456789abcdef{}", "x".repeat(99_984));
    say("resize", json!({ "same": same }));
    errors(running, modern).await;
    let text = call(running, "progress", json!({ "n": 20 })).await?;
    // Notifications are handled by tasks of their own, beside the answer.
    tokio::time::sleep(Duration::from_millis(50)).await;
    let mut seen = running
        .service()
        .seen
        .lock()
        .map_err(|e| e.to_string())?
        .clone();
    seen.sort_by(|a, b| a.0.total_cmp(&b.0));
    say("progress", json!({ "text": text, "seen": seen }));
    cancel(running).await?;
    concurrent(running.peer()).await
}

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let mut arguments = std::env::args().skip(1);
    let revision: ProtocolVersion = serde_json::from_value(arguments.next().into())?;
    let mut command = tokio::process::Command::new(arguments.nth(1).ok_or("no command")?);
    command.args(arguments);
    let modern = !revision.has_initialize();
    let lifecycle = if modern {
        ClientLifecycleMode::Discover {
            preferred_versions: vec![revision.clone()],
        }
    } else {
        ClientLifecycleMode::Initialize
    };
    let client = Client {
        revision,
        seen: Arc::default(),
    };
    let transport = TokioChildProcess::new(command)?;
    let mut running = client.serve_with_lifecycle(transport, lifecycle).await?;
    checks(&running, modern).await?;
    let began = Instant::now();
    running.close().await?;
    say("close", json!({ "seconds": began.elapsed().as_secs_f64() }));
    Ok(())
}
