//! A slow tool that goes on as a task for clients that support tasks.

use std::time::Duration;

use mcpbolt::mcp::TaskSupport;
use mcpbolt::prelude::*;
use tracing_subscriber::EnvFilter;

const INSTRUCTIONS: &str = "Task demo server (SEP-2663). `slow_sum` runs as a task for clients that declare the tasks extension.";

/// Sum two numbers after a 2-second delay
#[tool(task_support = TaskSupport::Optional)]
async fn slow_sum(a: i32, b: i32, context: Context) -> i64 {
    context.begin_task();
    tokio::time::sleep(Duration::from_secs(2)).await;
    i64::from(a) + i64::from(b)
}

/// Echo a message back immediately
#[tool]
fn quick_echo(message: String) -> String {
    message
}

fn main() -> anyhow::Result<()> {
    tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::from_default_env())
        .with_writer(std::io::stderr)
        .init();
    let server = Server::builder("task-demo", "1.0.0").instructions(INSTRUCTIONS);
    Ok(server
        .with(handlers![slow_sum, quick_echo])
        .build()?
        .run()?)
}
