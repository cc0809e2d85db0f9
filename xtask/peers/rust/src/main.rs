//! The diagnostic tools on rmcp's `ServerHandler`, over `stdio()` or, with PEER_PIPES=1, over
//! `stdio_pipes()`.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, JsonObject,
    ListToolsResult, PaginatedRequestParams, ProgressNotificationParam, ServerCapabilities,
    ServerConfig, Tool,
};
use rmcp::service::RequestContext;
use rmcp::transport::io::{stdio, stdio_pipes};
use rmcp::{ErrorData, RoleServer, ServerHandler, ServiceExt};
use serde_json::{Value, json};

static STARTED: AtomicU64 = AtomicU64::new(0);
static FINISHED: AtomicU64 = AtomicU64::new(0);
static CANCELLED: AtomicU64 = AtomicU64::new(0);

#[derive(Clone)]
struct Peer {
    tools: Vec<Tool>,
}

impl Peer {
    fn new() -> Self {
        let tool = |name: &'static str, arguments: &[(&str, &str)]| {
            let mut schema = JsonObject::new();
            let properties: JsonObject = arguments
                .iter()
                .map(|(key, kind)| ((*key).to_owned(), json!({ "type": kind })))
                .collect();
            let required: Vec<&str> = arguments.iter().map(|(key, _)| *key).collect();
            schema.insert("type".to_owned(), json!("object"));
            schema.insert("properties".to_owned(), properties.into());
            schema.insert("required".to_owned(), json!(required));
            Tool::new(name, format!("Diagnostic: {name}."), Arc::new(schema))
        };
        Self {
            tools: vec![
                tool("echo", &[("text", "string")]),
                tool("resize", &[("text", "string"), ("n", "integer")]),
                tool("sleep", &[("ms", "integer")]),
                tool("progress", &[("n", "integer")]),
                tool("stats", &[]),
            ],
        }
    }
}

fn text(arguments: &mut JsonObject) -> Result<String, ErrorData> {
    match arguments.remove("text") {
        Some(Value::String(text)) => Ok(text),
        _ => Err(ErrorData::invalid_params("text is not a string", None)),
    }
}

fn number(arguments: &JsonObject, name: &str) -> Result<u64, ErrorData> {
    let number = arguments.get(name).and_then(Value::as_u64);
    number.ok_or_else(|| ErrorData::invalid_params(format!("{name} is not a number"), None))
}

async fn sleep(ms: u64, context: &RequestContext<RoleServer>) -> Result<String, ErrorData> {
    STARTED.fetch_add(1, Relaxed);
    tokio::select! {
        () = tokio::time::sleep(Duration::from_millis(ms)) => {
            FINISHED.fetch_add(1, Relaxed);
            Ok("slept".to_owned())
        }
        () = context.ct.cancelled() => {
            CANCELLED.fetch_add(1, Relaxed);
            Err(ErrorData::internal_error("cancelled", None))
        }
    }
}

async fn progress(count: u64, context: &RequestContext<RoleServer>) -> Result<String, ErrorData> {
    if let Some(token) = context.meta.get_progress_token() {
        for done in 1..=count {
            let report =
                ProgressNotificationParam::new(token.clone(), done as f64).with_total(count as f64);
            let sent = context.peer.notify_progress(report).await;
            sent.map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
        }
    }
    Ok("done".to_owned())
}

fn stats() -> String {
    let (started, finished) = (STARTED.load(Relaxed), FINISHED.load(Relaxed));
    let cancelled = CANCELLED.load(Relaxed);
    let active = started - finished - cancelled;
    json!({ "active": active, "started": started, "finished": finished, "cancelled": cancelled })
        .to_string()
}

impl ServerHandler for Peer {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(self.tools.clone()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let mut arguments = request.arguments.unwrap_or_default();
        let answer = match &*request.name {
            "echo" => text(&mut arguments)?,
            "resize" => {
                let length = number(&arguments, "n")? as usize;
                let mut text = text(&mut arguments)?;
                text.truncate(16);
                text.extend(std::iter::repeat_n('x', length.saturating_sub(16)));
                text
            }
            "sleep" => sleep(number(&arguments, "ms")?, &context).await?,
            "progress" => progress(number(&arguments, "n")?, &context).await?,
            "stats" => stats(),
            other => return Err(ErrorData::invalid_params(format!("no tool {other}"), None)),
        };
        Ok(CallToolResult::success(vec![ContentBlock::text(answer)]).into())
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    if std::env::var_os("PEER_PIPES").is_some() {
        Peer::new().serve(stdio_pipes()).await?.waiting().await?;
    } else {
        Peer::new().serve(stdio()).await?.waiting().await?;
    }
    Ok(())
}
