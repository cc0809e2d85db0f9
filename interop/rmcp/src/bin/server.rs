//! A server on rmcp with the diagnostic tools, one resource and one prompt: the interop clients
//! are proved on it, and our own clients drive it.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};
use std::time::Duration;

use rmcp::model::*;
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler, ServiceExt};
use serde_json::{Value, json};

static ACTIVE: AtomicI64 = AtomicI64::new(0);
static STARTED: AtomicI64 = AtomicI64::new(0);
static FINISHED: AtomicI64 = AtomicI64::new(0);
const GREETING: &str = "test://greeting";

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

fn tool(name: &'static str, properties: &[(&str, &str)]) -> Tool {
    let required: Vec<_> = properties.iter().map(|(name, _)| *name).collect();
    let members: JsonObject = properties
        .iter()
        .map(|(name, kind)| ((*name).to_owned(), json!({ "type": kind })))
        .collect();
    let mut schema = JsonObject::new();
    schema.insert("type".into(), "object".into());
    schema.insert("properties".into(), members.into());
    schema.insert("required".into(), json!(required));
    Tool::new(name, name, Arc::new(schema))
}

fn invalid(message: impl Into<std::borrow::Cow<'static, str>>) -> ErrorData {
    ErrorData::invalid_params(message, None)
}

#[derive(Clone)]
struct Server;

impl Server {
    async fn run(
        name: &str,
        args: &JsonObject,
        context: &RequestContext<RoleServer>,
    ) -> Result<Result<String, String>, ErrorData> {
        let int = |key: &str| args.get(key).and_then(Value::as_u64);
        let string = |key: &str| args.get(key).and_then(Value::as_str);
        Ok(match name {
            "echo" => string("text")
                .map(str::to_owned)
                .ok_or("text: a string".into()),
            "resize" => match (string("text"), int("n")) {
                (Some(text), Some(n)) => {
                    let rest = (n as usize).saturating_sub(16);
                    Ok(text
                        .chars()
                        .take(16)
                        .chain(std::iter::repeat_n('x', rest))
                        .collect())
                }
                _ => Err("text: a string; n: an integer".into()),
            },
            "sleep" => match int("ms") {
                Some(ms) => {
                    let _sleeper = Sleeper::new();
                    tokio::select! {
                        () = tokio::time::sleep(Duration::from_millis(ms)) => {}
                        () = context.ct.cancelled() => {
                            return Err(ErrorData::internal_error("cancelled", None));
                        }
                    }
                    FINISHED.fetch_add(1, Relaxed);
                    Ok("slept".into())
                }
                None => Err("ms: an integer".into()),
            },
            "progress" => match (int("n"), context.meta.get_progress_token()) {
                (Some(n), token) => {
                    for i in 1..=n {
                        let Some(token) = token.clone() else { break };
                        let param =
                            ProgressNotificationParam::new(token, i as f64).with_total(n as f64);
                        let sent = context.peer.notify_progress(param).await;
                        sent.map_err(|e| ErrorData::internal_error(e.to_string(), None))?;
                    }
                    Ok("done".into())
                }
                _ => Err("n: an integer".into()),
            },
            "stats" => {
                let (active, started) = (ACTIVE.load(Relaxed), STARTED.load(Relaxed));
                let finished = FINISHED.load(Relaxed);
                let cancelled = started - active - finished;
                Ok(json!({
                    "active": active, "started": started,
                    "finished": finished, "cancelled": cancelled,
                })
                .to_string())
            }
            other => return Err(invalid(format!("unknown tool {other}"))),
        })
    }
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(
            ServerCapabilities::builder()
                .enable_tools()
                .enable_resources()
                .enable_prompts()
                .build(),
        )
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(vec![
            tool("echo", &[("text", "string")]),
            tool("resize", &[("text", "string"), ("n", "integer")]),
            tool("sleep", &[("ms", "integer")]),
            tool("progress", &[("n", "integer")]),
            tool("stats", &[]),
        ]))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let args = request.arguments.unwrap_or_default();
        match Self::run(&request.name, &args, &context).await? {
            Ok(text) => Ok(CallToolResult::success(vec![ContentBlock::text(text)]).into()),
            Err(wrong) => {
                let since = ProtocolVersion::V_2025_11_25;
                if context
                    .protocol_version()
                    .is_some_and(|v| v.as_str() < since.as_str())
                {
                    return Err(invalid(wrong));
                }
                Ok(CallToolResult::error(vec![ContentBlock::text(wrong)]).into())
            }
        }
    }

    async fn list_resources(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        Ok(ListResourcesResult::with_all_items(vec![Resource::new(
            GREETING, "greeting",
        )]))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        if request.uri != GREETING {
            return Err(ErrorData::resource_not_found("no such resource", None));
        }
        let contents = vec![ResourceContents::text("hello", GREETING)];
        Ok(ReadResourceResult::new(contents).into())
    }

    async fn list_prompts(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let who = PromptArgument::new("who").with_required(true);
        let greet = Prompt::new("greet", None::<String>, Some(vec![who]));
        Ok(ListPromptsResult::with_all_items(vec![greet]))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _context: RequestContext<RoleServer>,
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
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    Server
        .serve(rmcp::transport::stdio())
        .await?
        .waiting()
        .await?;
    Ok(())
}
