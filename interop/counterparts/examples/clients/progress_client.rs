//! Follows the progress of a call, on stdio and on HTTP.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use anyhow::Result;
use clap::{Parser, ValueEnum};
use mcpbolt::client::Client;
use mcpbolt::io::{Address, ConnectOptions};
use serde_json::json;
use tracing_subscriber::EnvFilter;

#[derive(Clone, Copy, Debug, PartialEq, ValueEnum)]
enum Transport {
    Stdio,
    Http,
    All,
}

#[derive(Parser)]
#[command(name = "progress-test-client")]
#[command(about = "Progress Notification Test Client")]
struct Args {
    /// Transport type to test
    #[arg(short, long, value_enum, default_value_t = Transport::Stdio)]
    transport: Transport,

    /// Number of records to process
    #[arg(short, long, default_value_t = 10)]
    records: u32,

    /// Command of the server on stdio
    #[arg(
        long,
        default_value = "stdio:target/debug/examples/servers_progress_demo stdio"
    )]
    command: Address,

    /// HTTP server URL
    #[arg(long, default_value = "http://127.0.0.1:8001/mcp")]
    http_url: Address,
}

async fn process(address: &Address, records: u32) -> Result<()> {
    let client = Client::builder("progress-test-client", "1.0.0")
        .open(address, ConnectOptions::default())
        .await?;
    tracing::info!("Connected to server: {}", client.server_info()["name"]);

    let tools = client.list_tools().await?;
    let names: Vec<_> = tools.iter().map(|tool| &tool.name).collect();
    tracing::info!("Available tools: {names:?}");

    tracing::info!("Starting to process {records} records...");
    let (start, count) = (Instant::now(), Arc::new(AtomicU32::new(0)));
    let counted = count.clone();
    let result = client
        .call_tool("stream_processor", &json!({}))
        .on_progress(move |news| {
            let number = counted.fetch_add(1, Ordering::Relaxed) + 1;
            tracing::info!(
                "Progress update [{number}]: {}/{} - {} (elapsed: {:.1}s)",
                news.progress,
                news.total.unwrap_or(0.0),
                news.message.unwrap_or_default(),
                start.elapsed().as_secs_f64()
            );
        })
        .await?;
    tracing::info!("Processing completed: {}", result.text());
    let count = count.load(Ordering::Relaxed);
    tracing::info!("Total progress notifications received: {count}");
    tracing::info!("Total time elapsed: {:.2}s", start.elapsed().as_secs_f64());
    Ok(())
}

async fn test(transport: Transport, args: &Args) -> Result<()> {
    tracing::info!("Testing {transport:?} Transport");
    let address = match transport {
        Transport::Http => &args.http_url,
        _ => &args.command,
    };
    process(address, args.records)
        .await
        .inspect(|()| tracing::info!("{transport:?} transport test completed successfully!"))
        .inspect_err(|error| tracing::error!("{transport:?} test failed: {error}"))
}

#[tokio::main]
async fn main() -> Result<()> {
    let args = Args::parse();
    tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::try_from_default_env().unwrap_or_else(|_| "info".into()))
        .init();
    if args.transport != Transport::All {
        return test(args.transport, &args).await;
    }

    let mut results = Vec::new();
    for transport in [Transport::Stdio, Transport::Http] {
        results.push((transport, test(transport, &args).await.is_ok()));
        tokio::time::sleep(Duration::from_secs(2)).await;
    }
    tracing::info!("Test Results Summary");
    for (transport, passed) in results {
        let status = if passed { "PASSED" } else { "FAILED" };
        tracing::info!("  {:<10}: {status}", format!("{transport:?}"));
    }
    Ok(())
}
