//! A server on rmcp, with everything that ../../../features.py looks at.
//!
//! `server [ADDRESS]`

#![allow(deprecated)] // sampling, roots and logging, which earlier revisions have

use std::collections::{HashSet, VecDeque};
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use rmcp::model::*;
use rmcp::service::{RequestContext, SubscriptionContext};
use rmcp::task_manager::{TaskManager, TaskOptions};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{ErrorData, RoleServer, ServerHandler, ServiceExt};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, from_value, json, to_value};
use tokio::sync::broadcast::{self, Receiver, Sender};

static ACTIVE: AtomicI64 = AtomicI64::new(0);
static STARTED: AtomicI64 = AtomicI64::new(0);
static FINISHED: AtomicI64 = AtomicI64::new(0);
const GREETING: &str = "test://greeting";
const PIXEL: &str = "test://pixel";
const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";
const EXTENSION: &str = "example.com/interop";
const LEVELS: [&str; 4] = ["debug", "info", "warning", "error"];
const PAGE: usize = 5;

type Context = RequestContext<RoleServer>;
/// The outcome of a tool: its result, a question to the client first, or the fault of its arguments.
enum Ended {
    Result(Value),
    Asks(Value),
    Wrong(String),
}
use Ended::{Asks, Result as Done, Wrong};
type Outcome = Result<Ended, ErrorData>;

/// Counts a `sleep` handler for as long as it lives.
struct Sleeper;

impl Sleeper {
    fn new() -> Self {
        ACTIVE.fetch_add(1, Relaxed);
        STARTED.fetch_add(1, Relaxed);
        Self
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        ACTIVE.fetch_sub(1, Relaxed);
    }
}

fn invalid(message: impl Into<std::borrow::Cow<'static, str>>) -> ErrorData {
    ErrorData::invalid_params(message, None)
}

fn broken(error: impl std::fmt::Display) -> ErrorData {
    ErrorData::internal_error(error.to_string(), None)
}

/// A value of rmcp's from its JSON.
fn made<T: DeserializeOwned>(value: Value) -> Result<T, ErrorData> {
    from_value(value).map_err(broken)
}

fn text(text: impl Into<Value>) -> Value {
    json!({"resultType": "complete", "content": [{"type": "text", "text": text.into()}]})
}

fn tools() -> Vec<Value> {
    let schema = |properties: Value| {
        let required: Vec<_> = properties
            .as_object()
            .into_iter()
            .flat_map(Map::keys)
            .collect();
        json!({"type": "object", "properties": properties, "required": required})
    };
    let (string, integer) = (json!({"type": "string"}), json!({"type": "integer"}));
    let takes = [
        ("echo", json!({"text": string})),
        ("sleep", json!({"ms": integer})),
        ("progress", json!({"n": integer})),
        ("ask_model", json!({"text": string})),
        ("ask_user", json!({"message": string})),
    ];
    let plain = [
        "stats",
        "log",
        "touch",
        "context",
        "ask_tools",
        "ask_page",
        "ask_roots",
        "interview",
        "job",
    ];
    let add = json!({
        "name": "add", "title": "Addition", "annotations": {"readOnlyHint": true},
        "icons": [{"src": "https://example.com/icon.png", "mimeType": "image/png"}],
        "inputSchema": schema(json!({"a": integer, "b": integer})),
        "outputSchema": schema(json!({"sum": integer})),
    });
    let others = takes.into_iter().chain(plain.map(|name| (name, json!({}))));
    let others =
        others.map(|(name, properties)| json!({"name": name, "inputSchema": schema(properties)}));
    [add].into_iter().chain(others).collect()
}

/// The questions of one call: requests in the handshake era; later the call ends with each that
/// has no answer yet, and the client keeps the answers there are as the state.
struct Rounds<'a> {
    context: &'a Context,
    answers: Map<String, Value>,
    modern: bool,
}

/// The answer to a question, or what the call ends with.
macro_rules! answered {
    ($asked:expr) => {
        match $asked.await? {
            Ok(answer) => answer,
            Err(ends) => return Ok(Asks(ends)),
        }
    };
}

impl Rounds<'_> {
    async fn ask(
        &self,
        name: &str,
        method: &str,
        params: Value,
    ) -> Result<Result<Value, Value>, ErrorData> {
        if let Some(answer) = self.answers.get(name) {
            return Ok(Ok(answer.clone()));
        }
        let mut request = json!({"method": method, "params": params});
        if params.is_null() {
            request = json!({"method": method});
        }
        if self.modern {
            let state = Value::Object(self.answers.clone()).to_string();
            return Ok(Err(json!({
                "resultType": "input_required", "inputRequests": {name: request}, "requestState": state,
            })));
        }
        let request: ServerRequest = made(request)?;
        let result = self
            .context
            .peer
            .send_request(request)
            .await
            .map_err(broken)?;
        to_value(result).map(Ok).map_err(broken)
    }

    async fn model(&self, said: &Value) -> Result<Result<Value, Value>, ErrorData> {
        let message = json!({"role": "user", "content": {"type": "text", "text": said}});
        let params = json!({"messages": [message], "maxTokens": 100});
        let answer = self.ask("model", "sampling/createMessage", params).await?;
        Ok(answer.map(|answer| answer["content"]["text"].clone()))
    }

    async fn user(&self, message: &Value) -> Result<Result<Value, Value>, ErrorData> {
        let properties = json!({"name": {"type": "string"}});
        let form = json!({"type": "object", "properties": properties, "required": ["name"]});
        let params = json!({"mode": "form", "message": message, "requestedSchema": form});
        self.ask("user", "elicitation/create", params).await
    }

    /// The outcome of a tool that asks.
    async fn run(&self, tool: &str, args: &Value) -> Outcome {
        Ok(Done(text(match tool {
            "ask_model" => answered!(self.model(&args["text"])),
            "ask_tools" => {
                let message =
                    json!({"role": "user", "content": {"type": "text", "text": "How warm is it?"}});
                let weather = json!({"name": "weather", "inputSchema": {"type": "object"}});
                let params = json!({"messages": [message], "maxTokens": 100, "tools": [weather]});
                let said = answered!(self.ask("model", "sampling/createMessage", params));
                let uses = said["content"]["name"]
                    .as_str()
                    .or(said["content"][0]["name"].as_str());
                format!("uses {}", uses.unwrap_or("nothing")).into()
            }
            "ask_user" => {
                let said = answered!(self.user(&args["message"]));
                match said["content"]["name"].as_str() {
                    Some(name) => format!("accept {name}").into(),
                    None => said["action"].clone(),
                }
            }
            "ask_page" => {
                let url = "https://example.com/sign-in";
                let params = json!({"mode": "url", "message": "Sign in.", "url": url, "elicitationId": "errand-1"});
                answered!(self.ask("page", "elicitation/create", params))["action"].clone()
            }
            "ask_roots" => {
                answered!(self.ask("roots", "roots/list", Value::Null))["roots"][0]["uri"].clone()
            }
            "interview" => {
                let name = answered!(self.user(&"Who?".into()))["content"]["name"].clone();
                answered!(self.model(&name))
            }
            other => return Err(invalid(format!("unknown tool {other}"))),
        })))
    }
}

struct Server {
    tasks: TaskManager,
    level: Mutex<String>,
    subscribed: Mutex<HashSet<String>>,
    changes: Sender<()>,
    /// For who is told that it listens before its `listen` runs.
    listening: Mutex<VecDeque<Receiver<()>>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn is_modern(context: &Context) -> bool {
    context
        .protocol_version()
        .is_some_and(|version| !version.has_initialize())
}

impl Server {
    async fn touch(&self, context: &Context) -> Result<(), ErrorData> {
        if is_modern(context) {
            return self.changes.send(()).map(drop).or(Ok(()));
        }
        context
            .peer
            .notify_tool_list_changed()
            .await
            .map_err(broken)?;
        if lock(&self.subscribed).contains(GREETING) {
            let updated = made(json!({"uri": GREETING}))?;
            context
                .peer
                .notify_resource_updated(updated)
                .await
                .map_err(broken)?;
        }
        Ok(())
    }

    /// A task for who knows what that is.
    async fn job(&self, context: &Context) -> Result<CallToolResponse, ErrorData> {
        let work = async {
            tokio::time::sleep(Duration::from_millis(30)).await;
            CallToolResult::success(vec![ContentBlock::text("done")])
        };
        if !context
            .client_capabilities()
            .is_some_and(|declared| declared.supports_tasks())
        {
            return Ok(work.await.into());
        }
        let options = TaskOptions::new().with_poll_interval_ms(10);
        let task = self.tasks.spawn(options, |task| {
            task.set_status_message("at work");
            Box::pin(async { Ok(work.await) })
        });
        Ok(CallToolResponse::Task(CreateTaskResult::new(task)))
    }

    async fn log(&self, context: &Context) -> Result<(), ErrorData> {
        let wanted = json!(context.meta)["io.modelcontextprotocol/logLevel"]
            .as_str()
            .map(str::to_owned);
        let wanted = wanted.unwrap_or_else(|| lock(&self.level).clone());
        for level in LEVELS.into_iter().skip_while(|level| *level != wanted) {
            let message = json!({"level": level, "logger": "interop", "data": {"level": level}});
            context
                .peer
                .notify_logging_message(made(message)?)
                .await
                .map_err(broken)?;
        }
        Ok(())
    }

    async fn run(
        &self,
        name: &str,
        args: &Value,
        context: &Context,
        rounds: Rounds<'_>,
    ) -> Outcome {
        let wrong = |what: &str| Ok(Wrong(what.to_owned()));
        Ok(Done(match name {
            "echo" if args["text"].is_string() => text(args["text"].clone()),
            "echo" => return wrong("text: a string"),
            "sleep" => {
                let _sleeper = Sleeper::new();
                tokio::select! {
                    () = tokio::time::sleep(Duration::from_millis(args["ms"].as_u64().unwrap_or(0))) => {}
                    () = context.ct.cancelled() => return Err(broken("cancelled")),
                }
                FINISHED.fetch_add(1, Relaxed);
                text("slept")
            }
            "progress" => {
                let n = args["n"].as_u64().unwrap_or(0);
                for i in 1..=n {
                    let Some(token) = context.meta.get_progress_token() else {
                        break;
                    };
                    let step = ProgressNotificationParam::new(token, i as f64).with_total(n as f64);
                    context.peer.notify_progress(step).await.map_err(broken)?;
                }
                text("done")
            }
            "stats" => {
                let active = ACTIVE.load(Relaxed);
                let (started, finished) =
                    (STARTED.swap(active, Relaxed), FINISHED.swap(0, Relaxed));
                let cancelled = started - active - finished;
                let stats = json!({
                    "active": active, "started": started, "finished": finished, "cancelled": cancelled,
                });
                text(stats.to_string())
            }
            "add" => {
                let sum = args["a"].as_i64().unwrap_or(0) + args["b"].as_i64().unwrap_or(0);
                let mut result = text(sum.to_string());
                result["structuredContent"] = json!({"sum": sum});
                result
            }
            "log" => self.log(context).await.map(|()| text("logged"))?,
            "touch" => self.touch(context).await.map(|()| text("touched"))?,
            "context" => {
                let meta = json!(context.meta);
                let given: Map<_, _> = meta
                    .as_object()
                    .into_iter()
                    .flatten()
                    .filter(|(key, _)| *key == "traceparent" || key.starts_with("example.com/"))
                    .map(|(key, value)| (key.clone(), value.clone()))
                    .collect();
                let extension =
                    &meta["io.modelcontextprotocol/clientCapabilities"]["extensions"][EXTENSION];
                let mut result = text(json!({"meta": given, "extension": extension}).to_string());
                result["_meta"] = json!({"example.com/seen": true});
                result
            }
            other => return rounds.run(other, args).await,
        }))
    }
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let capabilities = json!({
            "tools": {"listChanged": true}, "resources": {"subscribe": true}, "prompts": {},
            "completions": {}, "logging": {}, "extensions": {EXTENSION: {"version": 1}, TASKS_EXTENSION_ID: {}},
        });
        ServerConfig::new(from_value(capabilities).unwrap_or_default())
            .with_server_info(Implementation::new("rmcp", "1"))
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        _context: Context,
    ) -> Result<ListToolsResult, ErrorData> {
        let at = request
            .and_then(|r| r.cursor)
            .and_then(|c| c.parse().ok())
            .unwrap_or(0);
        let tools = tools();
        let page: Vec<_> = tools.iter().skip(at).take(PAGE).collect();
        let mut result = json!({"resultType": "complete", "tools": page, "ttlMs": 60_000, "cacheScope": "public"});
        if at + PAGE < tools.len() {
            result["nextCursor"] = (at + PAGE).to_string().into();
        }
        made(result)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: Context,
    ) -> Result<CallToolResponse, ErrorData> {
        if request.name == "job" {
            return self.job(&context).await;
        }
        let request = to_value(request).map_err(broken)?;
        let state = request["requestState"].as_str().unwrap_or("{}");
        let mut answers: Map<_, _> = serde_json::from_str(state).map_err(broken)?;
        answers.extend(
            request["inputResponses"]
                .as_object()
                .cloned()
                .unwrap_or_default(),
        );
        let rounds = Rounds {
            context: &context,
            answers,
            modern: is_modern(&context),
        };
        let name = request["name"].as_str().unwrap_or_default();
        match self
            .run(name, &request["arguments"], &context, rounds)
            .await?
        {
            Done(result) => Ok(made::<CallToolResult>(result)?.into()),
            Asks(ends) => Ok(CallToolResponse::InputRequired(made(ends)?)),
            Wrong(why) => {
                let since = ProtocolVersion::V_2025_11_25;
                if context
                    .protocol_version()
                    .is_some_and(|v| v.as_str() < since.as_str())
                {
                    return Err(invalid(why));
                }
                Ok(CallToolResult::error(vec![ContentBlock::text(why)]).into())
            }
        }
    }

    async fn get_task(
        &self,
        request: GetTaskParams,
        _context: Context,
    ) -> Result<GetTaskResult, ErrorData> {
        Ok(GetTaskResult::new(self.tasks.get_task(&request.task_id)?))
    }

    async fn list_resources(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: Context,
    ) -> Result<ListResourcesResult, ErrorData> {
        let greeting = json!({"uri": GREETING, "name": "greeting", "mimeType": "text/plain"});
        let pixel = json!({"uri": PIXEL, "name": "pixel", "mimeType": "image/png"});
        Ok(ListResourcesResult::with_all_items(vec![
            made(greeting)?,
            made(pixel)?,
        ]))
    }

    async fn list_resource_templates(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: Context,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let item = json!({"uriTemplate": "test://item/{id}", "name": "item"});
        Ok(ListResourceTemplatesResult::with_all_items(vec![made(
            item,
        )?]))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _context: Context,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let uri = request.uri;
        let contents = if uri == GREETING {
            json!({"uri": uri, "mimeType": "text/plain", "text": "hello"})
        } else if uri == PIXEL {
            json!({"uri": uri, "mimeType": "image/png", "blob": PNG})
        } else if let Some(item) = uri.strip_prefix("test://item/") {
            json!({"uri": uri, "mimeType": "text/plain", "text": format!("item {}", item.replace("%20", " "))})
        } else {
            return Err(ErrorData::resource_not_found("no such resource", None));
        };
        Ok(ReadResourceResult::new(vec![made(contents)?]).into())
    }

    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        _context: Context,
    ) -> Result<(), ErrorData> {
        lock(&self.subscribed).insert(request.uri);
        Ok(())
    }

    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        _context: Context,
    ) -> Result<(), ErrorData> {
        lock(&self.subscribed).remove(&request.uri);
        Ok(())
    }

    fn accepted_subscription_filter(
        &self,
        requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        lock(&self.listening).push_back(self.changes.subscribe());
        Some(requested.clone())
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let early = lock(&self.listening).pop_front();
        let mut changes = early.unwrap_or_else(|| self.changes.subscribe());
        loop {
            tokio::select! {
                () = context.cancelled() => return Ok(()),
                _ = changes.recv() => {
                    context.sink().notify_tool_list_changed().await.map_err(broken)?;
                    context.sink().notify_resource_updated(GREETING).await.map_err(broken)?;
                }
            }
        }
    }

    async fn set_level(
        &self,
        request: SetLevelRequestParams,
        _context: Context,
    ) -> Result<(), ErrorData> {
        *lock(&self.level) = json!(request.level).as_str().unwrap_or_default().to_owned();
        Ok(())
    }

    async fn list_prompts(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: Context,
    ) -> Result<ListPromptsResult, ErrorData> {
        let who = PromptArgument::new("who").with_required(true);
        let greet = Prompt::new("greet", None::<String>, Some(vec![who]));
        Ok(ListPromptsResult::with_all_items(vec![greet]))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _context: Context,
    ) -> Result<GetPromptResponse, ErrorData> {
        let args = request.arguments.unwrap_or_default();
        match args.get("who").and_then(Value::as_str) {
            Some(who) if request.name == "greet" => {
                let message = PromptMessage::new_text(Role::User, format!("Greet {who}."));
                Ok(GetPromptResult::new(vec![message]).into())
            }
            _ => Err(invalid("no such prompt, or no `who`")),
        }
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        _context: Context,
    ) -> Result<CompleteResult, ErrorData> {
        let fits = |name: &&str| name.starts_with(&request.argument.value);
        let values: Vec<_> = ["Ada", "Adele", "Grace"].into_iter().filter(fits).collect();
        made(json!({"resultType": "complete", "completion": {"values": values}}))
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let server = Arc::new(Server {
        tasks: TaskManager::new(),
        level: Mutex::new("debug".into()),
        subscribed: Mutex::default(),
        changes: broadcast::channel(16).0,
        listening: Mutex::default(),
    });
    match std::env::args().nth(1) {
        Some(address) => listen(server, &address).await,
        None => {
            let serving = server.serve(rmcp::transport::stdio()).await?;
            serving.waiting().await?;
            Ok(())
        }
    }
}

/// Serves there until the process ends, on whatever path.
async fn listen(server: Arc<Server>, address: &str) -> Result<(), Box<dyn std::error::Error>> {
    let at = address.trim_start_matches("http://").split('/').next();
    let listener = tokio::net::TcpListener::bind(at.unwrap_or_default()).await?;
    let config = StreamableHttpServerConfig::default();
    let make = move || Ok(server.clone());
    let sessions = Arc::new(LocalSessionManager::default());
    let service = TowerToHyperService::new(StreamableHttpService::new(make, sessions, config));
    loop {
        let connection = TokioIo::new(listener.accept().await?.0);
        let served = hyper::server::conn::http1::Builder::new()
            .serve_connection(connection, service.clone());
        tokio::spawn(served);
    }
}
