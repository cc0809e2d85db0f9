//! A call that its server turns into a task: `task_stdio SERVER ARGUMENTS`.

use std::time::Duration;

use anyhow::{Context, Result, bail};
use mcpbolt::client::{Client, Started};
use mcpbolt::io::ChildCommand;
use serde_json::json;
use tracing_subscriber::EnvFilter;

#[tokio::main]
async fn main() -> Result<()> {
    tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::try_from_default_env().unwrap_or_else(|_| "info".into()))
        .init();

    let mut words = std::env::args().skip(1);
    let program = words.next().context("which server? a command")?;
    let client = Client::builder("tasks", "1.0.0")
        .tasks()
        .spawn(ChildCommand::new(program).args(words))
        .await?;

    let message = json!({ "message": "hi from mcpbolt" });
    let echo = client.call_tool("quick_echo", &message).await?;
    tracing::info!("quick_echo -> {echo:#?}");

    let numbers = json!({ "a": 40, "b": 2 });
    let task = match client.call_tool("slow_sum", &numbers).start().await? {
        Started::Task(task) => task,
        Started::Done(result) => {
            tracing::info!("slow_sum answered synchronously -> {result:#?}");
            return Ok(());
        }
        other => bail!("unexpected response: {other:?}"),
    };
    tracing::info!("slow_sum materialized as task {}", task.id());

    loop {
        let info = task.info().await?;
        tracing::info!("status = {:?}", info.status);
        if info.status.is_terminal() {
            break;
        }
        let pause = info.poll_interval.unwrap_or(Duration::from_millis(500));
        tokio::time::sleep(pause).await;
    }
    tracing::info!("slow_sum result -> {:#?}", task.result().await?);
    Ok(())
}
