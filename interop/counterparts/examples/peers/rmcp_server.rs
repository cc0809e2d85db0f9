//! The servers of rmcp's examples that the clients here talk to, in one program on rmcp, each tool as it stands
//! there: `rmcp_server`, or `rmcp_server http`, which prints its address.
#![allow(clippy::print_stdout, reason = "a program for a terminal")]

use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::Duration;

use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use rmcp::model::*;
use rmcp::service::{RequestContext, SubscriptionContext};
use rmcp::task_manager::{TaskManager, TaskOptions};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{ErrorData, RoleServer, ServerHandler, ServiceExt};
use serde_json::{Value, json};

type Context = RequestContext<RoleServer>;

/// rmcp waits for seconds there.
const PAUSE: Duration = Duration::from_millis(20);

#[derive(Clone)]
struct Examples {
    counter: Arc<AtomicI32>,
    tasks: TaskManager,
}

fn broken(error: impl std::fmt::Display) -> ErrorData {
    ErrorData::internal_error(error.to_string(), None)
}

fn text(text: impl Into<String>) -> CallToolResult {
    CallToolResult::success(vec![ContentBlock::text(text)])
}

async fn stream_processor(context: &Context) -> Result<CallToolResult, ErrorData> {
    let token = json!(context.meta)["progressToken"].clone();
    let token = serde_json::from_value(token).map_err(broken)?;
    for (done, chunk) in (1..).zip(["11111", "22222", "33333", "44444", "55555"]) {
        let progress =
            ProgressNotificationParam::new(ProgressToken(Clone::clone(&token)), done.into())
                .with_total(5.0)
                .with_message(chunk);
        context
            .peer
            .notify_progress(progress)
            .await
            .map_err(broken)?;
        tokio::time::sleep(PAUSE).await;
    }
    Ok(text("Processed 5 records successfully"))
}

#[expect(deprecated, reason = "sampling is a request in earlier revisions only")]
async fn ask_llm(context: &Context, question: &str) -> Result<CallToolResult, ErrorData> {
    let asked = CreateMessageRequestParams::new(vec![SamplingMessage::user_text(question)], 150)
        .with_system_prompt("You are a helpful assistant.");
    let response = context.peer.create_message(asked).await.map_err(broken)?;
    let answer = json!(response)["content"]["text"].clone();
    let answer = answer.as_str().unwrap_or("No text response");
    Ok(text(format!("Question: {question}\nAnswer: {answer}")))
}

impl ServerHandler for Examples {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_tool_list_changed()
            .enable_tasks()
            .build();
        ServerConfig::new(capabilities)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: Context,
    ) -> Result<ListToolsResult, ErrorData> {
        let names = [
            "stream_processor",
            "ask_llm",
            "quick_echo",
            "slow_sum",
            "increment",
            "sum",
        ];
        let object: JsonObject = json!({"type": "object"})
            .as_object()
            .cloned()
            .unwrap_or_default();
        let object = Arc::new(object);
        let tools = names.map(|name| Tool::new(name, "as in rmcp's examples", object.clone()));
        Ok(ListToolsResult::with_all_items(tools.to_vec()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: Context,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = Value::Object(request.arguments.unwrap_or_default());
        let said = |name: &str| arguments[name].as_str().unwrap_or_default().to_owned();
        let sum = ["a", "b"]
            .iter()
            .filter_map(|name| arguments[*name].as_i64())
            .sum::<i64>();
        let result = match &*request.name {
            "stream_processor" => stream_processor(&context).await?,
            "ask_llm" => ask_llm(&context, &said("question")).await?,
            "quick_echo" => text(said("message")),
            "increment" => text((self.counter.fetch_add(1, Ordering::Relaxed) + 1).to_string()),
            "sum" => text(sum.to_string()),
            "slow_sum"
                if context
                    .client_capabilities()
                    .is_some_and(|declared| declared.supports_tasks()) =>
            {
                let options = TaskOptions::new().with_poll_interval_ms(10);
                let task = self.tasks.spawn(options, move |_| {
                    Box::pin(async move {
                        tokio::time::sleep(PAUSE).await;
                        Ok(text(sum.to_string()))
                    })
                });
                return Ok(CallToolResponse::Task(CreateTaskResult::new(task)));
            }
            "slow_sum" => text(sum.to_string()),
            other => return Err(broken(format!("Unknown tool: {other}"))),
        };
        Ok(result.into())
    }

    async fn get_task(
        &self,
        request: GetTaskParams,
        _: Context,
    ) -> Result<GetTaskResult, ErrorData> {
        Ok(GetTaskResult::new(self.tasks.get_task(&request.task_id)?))
    }

    fn accepted_subscription_filter(
        &self,
        requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        Some(requested.supported_by(&self.get_info().capabilities))
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        for _ in 0..2 {
            tokio::time::sleep(PAUSE).await;
            context
                .sink()
                .notify_tool_list_changed()
                .await
                .map_err(broken)?;
        }
        Ok(())
    }
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let server = Examples {
        counter: Arc::default(),
        tasks: TaskManager::new(),
    };
    if std::env::args().nth(1).is_none() {
        server
            .serve(rmcp::transport::stdio())
            .await?
            .waiting()
            .await?;
        return Ok(());
    }
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    println!("http://{}/mcp", listener.local_addr()?);
    let config = StreamableHttpServerConfig::default();
    let make = move || Ok(server.clone());
    let service =
        StreamableHttpService::new(make, Arc::new(LocalSessionManager::default()), config);
    loop {
        let stream = TokioIo::new(listener.accept().await?.0);
        let served = hyper::server::conn::http1::Builder::new()
            .serve_connection(stream, TowerToHyperService::new(service.clone()));
        tokio::spawn(served);
    }
}
