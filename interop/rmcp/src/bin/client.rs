//! A client on rmcp, driven by the steps of ../../../scripts.py.
//!
//! `client REVISION CARRIER SERVER...`

#![allow(deprecated)] // sampling, roots and logging, which earlier revisions have

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rmcp::model::*;
use rmcp::service::{
    ClientLifecycleMode, ClientServiceExt, NotificationContext, PeerRequestOptions, RequestContext,
    RunningService, ServiceError, Subscription,
};
use rmcp::transport::{StreamableHttpClientTransport, TokioChildProcess};
use rmcp::{ClientHandler, ErrorData, RoleClient};
use serde::de::DeserializeOwned;
use serde_json::{Value, from_value, json, to_value};
use tokio::time::sleep;

type Failure = Box<dyn std::error::Error + Send + Sync>;
type Running = RunningService<RoleClient, Client>;

/// After this, whatever a call made the server tell has been handled.
const SETTLED: Duration = Duration::from_millis(100);
/// The session in which handlers call tools themselves.
static RUNNING: Mutex<Option<Arc<Running>>> = Mutex::new(None);

fn running() -> Result<Arc<Running>, Failure> {
    let running = RUNNING.lock().unwrap_or_else(PoisonError::into_inner);
    running.clone().ok_or_else(|| "not connected".into())
}

/// Offers one revision, and keeps what the server tells.
#[derive(Clone)]
struct Client {
    revision: ProtocolVersion,
    heard: Arc<Mutex<Vec<String>>>,
    seen: Arc<Mutex<Vec<(f64, Option<f64>)>>>,
}

impl Client {
    fn hear(&self, what: String) {
        self.heard
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(what);
    }

    fn heard(&self) -> Vec<String> {
        std::mem::take(&mut *self.heard.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn broken(error: impl std::fmt::Display) -> ErrorData {
    ErrorData::internal_error(error.to_string(), None)
}

/// The model: see scripts.py.
fn model(
    asked: Value,
) -> Pin<Box<dyn Future<Output = Result<CreateMessageResult, Failure>> + Send>> {
    Box::pin(async move { said(&asked).await })
}

async fn said(asked: &Value) -> Result<CreateMessageResult, Failure> {
    if asked["tools"].is_array() {
        let uses =
            json!({"type": "tool_use", "id": "1", "name": asked["tools"][0]["name"], "input": {}});
        let said =
            json!({"role": "assistant", "model": "m", "stopReason": "toolUse", "content": uses});
        return Ok(from_value(said)?);
    }
    let content = &asked["messages"][0]["content"];
    let text = content["text"]
        .as_str()
        .or(content[0]["text"].as_str())
        .unwrap_or_default();
    let depth: u32 = text
        .strip_prefix("nest ")
        .and_then(|n| n.parse().ok())
        .unwrap_or(0);
    let said = if depth == 0 {
        format!("said {text}")
    } else {
        let nested = json!({"text": format!("nest {}", depth - 1)});
        let answer = running()?
            .call_tool(params(json!({"name": "ask_model", "arguments": nested}))?)
            .await?;
        format!(
            "({})",
            to_value(&answer)?["content"][0]["text"]
                .as_str()
                .unwrap_or_default()
        )
    };
    let content = json!({"type": "text", "text": said});
    Ok(from_value(
        json!({"role": "assistant", "model": "m", "content": content}),
    )?)
}

impl ClientHandler for Client {
    fn get_info(&self) -> ClientConfig {
        let capabilities = json!({
            "roots": {}, "sampling": {"tools": {}}, "elicitation": {"form": {}, "url": {}},
            "extensions": {"example.com/interop": {"version": 2}, TASKS_EXTENSION_ID: {}},
        });
        let info = Implementation::new("interop-rmcp", "1");
        ClientConfig::new(from_value(capabilities).unwrap_or_default(), info)
            .with_protocol_version(self.revision.clone())
    }

    async fn create_message(
        &self,
        params: CreateMessageRequestParams,
        _context: RequestContext<RoleClient>,
    ) -> Result<CreateMessageResult, ErrorData> {
        model(to_value(params).map_err(broken)?)
            .await
            .map_err(broken)
    }

    async fn list_roots(
        &self,
        _context: RequestContext<RoleClient>,
    ) -> Result<ListRootsResult, ErrorData> {
        from_value(json!({"roots": [{"uri": "file:///interop"}]})).map_err(broken)
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        _context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let asked = to_value(request).map_err(broken)?;
        let answer = match asked["message"].as_str() {
            _ if asked["url"].is_string() => json!({"action": "accept"}),
            Some("Who?") => json!({"action": "accept", "content": {"name": "Ada"}}),
            Some("No?") => json!({"action": "decline"}),
            _ => json!({"action": "cancel"}),
        };
        from_value(answer).map_err(broken)
    }

    async fn on_progress(
        &self,
        params: ProgressNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.push((params.progress, params.total));
    }

    async fn on_logging_message(
        &self,
        params: LoggingMessageNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        self.hear(
            to_value(params.level)
                .ok()
                .and_then(|l| l.as_str().map(str::to_owned))
                .unwrap_or_default(),
        );
    }

    async fn on_resource_updated(
        &self,
        params: ResourceUpdatedNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        self.hear(format!("resources/updated {}", params.uri));
    }

    async fn on_tool_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.hear("tools/list_changed".into());
    }
}

fn params<T: DeserializeOwned>(value: Value) -> Result<T, ServiceError> {
    from_value(value).map_err(|error| ServiceError::McpError(broken(error)))
}

fn told(result: &CallToolResult) -> Value {
    let result = json!(result);
    json!({
        "text": result["content"][0]["text"], "is_error": result["isError"] == true,
        "structured": result["structuredContent"], "meta": result["_meta"],
    })
}

async fn call(running: &Running, step: &Value) -> Result<Value, ServiceError> {
    let mut asked = json!({"name": step["tool"], "arguments": step["arguments"]});
    if step["meta"].is_object() {
        asked["_meta"] = step["meta"].clone();
    }
    let asked: CallToolRequestParams = params(asked)?;
    let limit = step["timeout_ms"].as_u64().map(Duration::from_millis);
    if limit.is_some() || step["cancel_ms"].is_u64() {
        let options = limit.map_or_else(
            PeerRequestOptions::no_options,
            PeerRequestOptions::with_timeout,
        );
        let handle = running
            .send_cancellable_request(CallToolRequest::new(asked).into(), options)
            .await?;
        if let Some(ms) = step["cancel_ms"].as_u64() {
            sleep(Duration::from_millis(ms)).await;
            handle.cancel(None).await?;
            return Ok(json!({"ended": "cancelled"}));
        }
        return Ok(match handle.await_response().await {
            Err(ServiceError::Timeout { .. }) => json!({"ended": "timed out"}),
            other => json!({"ended": format!("{other:?}")}),
        });
    }
    let mut outcome = told(&running.call_tool(asked).await?);
    if step["progress"] == true {
        // Notifications are handled by tasks of their own, beside the answer.
        sleep(SETTLED).await;
        let mut seen = running
            .service()
            .seen
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        seen.sort_by(|a, b| a.0.total_cmp(&b.0));
        outcome["seen"] = json!(seen);
    }
    Ok(outcome)
}

async fn task(running: &Running, step: &Value) -> Result<Value, ServiceError> {
    let asked = params(json!({"name": step["tool"], "arguments": step["arguments"]}))?;
    let created = match running.call_tool_once(asked).await? {
        CallToolResponse::Task(created) => created.task,
        other => return Ok(json!({"no_task": format!("{other:?}")})),
    };
    loop {
        sleep(Duration::from_millis(
            created.poll_interval_ms.unwrap_or(10),
        ))
        .await;
        let asked = GetTaskParams::new(created.task_id.clone());
        let task = running.get_task(asked).await?.task;
        if task.status().is_terminal() {
            let task = json!(task);
            return Ok(
                json!({"text": task["result"]["content"][0]["text"], "status": task["status"]}),
            );
        }
    }
}

async fn many(running: &Arc<Running>, step: &Value) -> Result<Value, ServiceError> {
    let argument = step["argument"].as_str().unwrap_or_default();
    let calls: Vec<_> = (0..step["count"].as_u64().unwrap_or(0))
        .map(|i| {
            let (running, step) = (running.clone(), step.clone());
            let arguments = json!({ argument: format!("call {i}") });
            tokio::spawn(async move {
                call(
                    &running,
                    &json!({"tool": step["tool"], "arguments": arguments}),
                )
                .await
            })
        })
        .collect();
    let mut answers = Vec::new();
    for call in calls {
        let answer = call
            .await
            .map_err(|error| ServiceError::McpError(broken(error)))??;
        answers.push(answer["text"].clone());
    }
    Ok(json!({ "answers": answers }))
}

/// A list by that method, with all its pages; its items are named by that member.
async fn list(running: &Running, of: &str, name: &str) -> Result<Value, ServiceError> {
    let (mut items, mut pages, mut cursor) = (Vec::new(), 0, None);
    while pages == 0 || cursor.is_some() {
        let page = Some(PaginatedRequestParams::default().with_cursor(cursor.take()));
        let page = match of {
            "tools" => json!(running.list_tools(page).await?),
            "resources" => json!(running.list_resources(page).await?),
            "resourceTemplates" => json!(running.list_resource_templates(page).await?),
            _ => json!(running.list_prompts(page).await?),
        };
        items.extend(page[of].as_array().into_iter().flatten().cloned());
        cursor = page["nextCursor"].as_str().map(str::to_owned);
        pages += 1;
    }
    let names: Vec<_> = items.iter().map(|item| item[name].clone()).collect();
    Ok(json!({"names": names, "pages": pages, "items": items}))
}

async fn logs(running: &Running, step: &Value, modern: bool) -> Result<Value, ServiceError> {
    let mut step = step.clone();
    if modern {
        step["meta"] = json!({"io.modelcontextprotocol/logLevel": step["level"]});
    } else {
        running
            .set_level(params(json!({"level": step["level"]}))?)
            .await?;
    }
    running.service().heard();
    call(running, &step).await?;
    sleep(SETTLED).await;
    Ok(json!({"levels": running.service().heard()}))
}

/// Collects the messages of a separate stream until no more come.
async fn drain(subscription: &mut Subscription, client: &Client) -> Result<(), ServiceError> {
    while let Ok(next) = tokio::time::timeout(SETTLED, subscription.next()).await {
        match next? {
            Some(ServerNotification::ToolListChangedNotification(_)) => {
                client.hear("tools/list_changed".into())
            }
            Some(ServerNotification::ResourceUpdatedNotification(updated)) => {
                client.hear(format!("resources/updated {}", updated.params.uri));
            }
            Some(_) => {}
            None => break,
        }
    }
    Ok(())
}

async fn listen(running: &Running, step: &Value, modern: bool) -> Result<Value, ServiceError> {
    let client = running.service();
    let about = || params(json!({"uri": step["uris"][0]}));
    client.heard();
    if modern {
        let wanted = json!({"toolsListChanged": true, "resourceSubscriptions": step["uris"]});
        let mut subscription = running.listen(params(wanted)?).await?;
        call(running, step).await?;
        drain(&mut subscription, client).await?;
        subscription.cancel().await?;
    } else {
        running.subscribe(about()?).await?;
        call(running, step).await?;
        sleep(SETTLED).await;
    }
    let mut during = client.heard();
    if !modern {
        running
            .unsubscribe(params(json!({"uri": step["uris"][0]}))?)
            .await?;
    }
    call(running, step).await?;
    sleep(SETTLED).await;
    let mut after = client.heard();
    for heard in [&mut during, &mut after] {
        heard.sort();
        heard.dedup();
    }
    Ok(json!({"heard": during, "after": after}))
}

async fn complete(running: &Running, step: &Value) -> Result<Value, ServiceError> {
    let of = match step["prompt"].as_str() {
        Some(name) => json!({"type": "ref/prompt", "name": name}),
        None => json!({"type": "ref/resource", "uri": step["template"]}),
    };
    let argument = json!({"name": step["argument"], "value": step["value"]});
    let found = json!(
        running
            .complete(params(json!({"ref": of, "argument": argument}))?)
            .await?
    );
    Ok(json!({"values": found["completion"]["values"]}))
}

async fn outcome(
    running: &Arc<Running>,
    step: &Value,
    modern: bool,
) -> Result<Value, ServiceError> {
    Ok(match step["do"].as_str().unwrap_or_default() {
        "info" => {
            let info = running.peer_info();
            let info = info.as_deref();
            json!({
                "revision": info.map(|i| i.protocol_version.as_str()),
                "name": info.and_then(|i| i.server_info.as_ref()).map(|i| &i.name),
                "extensions": info.and_then(|i| i.capabilities.extensions.as_ref()),
            })
        }
        "tools" | "pages" => list(running, "tools", "name").await?,
        "resources" => list(running, "resources", "uri").await?,
        "templates" => list(running, "resourceTemplates", "uriTemplate").await?,
        "prompts" => list(running, "prompts", "name").await?,
        "read" => {
            let read = json!(
                running
                    .read_resource(params(json!({"uri": step["uri"]}))?)
                    .await?
            );
            let first = &read["contents"][0];
            json!({"text": first["text"], "blob": first["blob"], "mime": first["mimeType"]})
        }
        "prompt" => {
            let asked = json!({"name": step["name"], "arguments": step["arguments"]});
            let prompt = json!(running.get_prompt(params(asked)?).await?);
            json!({"text": prompt["messages"][0]["content"]["text"]})
        }
        "complete" => complete(running, step).await?,
        "ping" => {
            running
                .send_request(ClientRequest::PingRequest(PingRequest::default()))
                .await?;
            json!({})
        }
        "request" => {
            let method = step["method"].as_str().unwrap_or_default();
            let request = ClientRequest::CustomRequest(CustomRequest::new(method, None));
            running.send_request(request).await?;
            json!({})
        }
        "call" => call(running, step).await?,
        "task" => task(running, step).await?,
        "many" => many(running, step).await?,
        "logs" => logs(running, step, modern).await?,
        "listen" => listen(running, step, modern).await?,
        other => json!({"unknown": other}),
    })
}

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let mut arguments = std::env::args().skip(1);
    let revision: ProtocolVersion = from_value(arguments.next().into())?;
    let carrier = arguments.next();
    let server = arguments.next().ok_or("no server")?;
    let modern = !revision.has_initialize();
    let lifecycle = if modern {
        let preferred_versions = vec![revision.clone()];
        ClientLifecycleMode::Discover { preferred_versions }
    } else {
        ClientLifecycleMode::Initialize
    };
    let client = Client {
        revision,
        heard: Arc::default(),
        seen: Arc::default(),
    };
    let steps: Vec<Value> = serde_json::from_reader(std::io::stdin())?;
    let connected = if carrier.as_deref() == Some("stdio") {
        let mut command = tokio::process::Command::new(server);
        command.args(arguments);
        let transport = TokioChildProcess::new(command)?;
        client.serve_with_lifecycle(transport, lifecycle).await?
    } else {
        let transport = StreamableHttpClientTransport::from_uri(server);
        client.serve_with_lifecycle(transport, lifecycle).await?
    };
    let connected = Arc::new(connected);
    *RUNNING.lock().unwrap_or_else(PoisonError::into_inner) = Some(connected.clone());
    for step in steps.iter().take_while(|step| step["do"] != "close") {
        let outcome = match outcome(&connected, step, modern).await {
            Ok(outcome) => outcome,
            Err(ServiceError::McpError(error)) => {
                json!({"code": error.code.0, "message": error.message})
            }
            Err(other) => json!({"failed": other.to_string()}),
        };
        println!("{outcome}");
    }
    let began = Instant::now();
    RUNNING
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .take();
    Arc::into_inner(connected)
        .ok_or("a handler still runs")?
        .close()
        .await?;
    println!("{}", json!({"ms": began.elapsed().as_millis() as u64}));
    Ok(())
}
