//! Reports progress while it processes a stream of data: `progress_demo [stdio|http|ADDRESS]`.

use std::time::Duration;

use mcpbolt::mcp::ErrorKind;
use mcpbolt::prelude::*;
use tracing_subscriber::EnvFilter;

const INSTRUCTIONS: &str = "This server demonstrates progress notifications during long-running operations. \
    Use the tools to see real-time progress updates for batch processing";

struct ProgressDemo {
    data: &'static [&'static str],
}

#[tools]
impl ProgressDemo {
    /// Process data stream with progress updates
    #[tool]
    async fn stream_processor(&self, context: Context) -> Result<String, HandlerError> {
        if !context.reply_to().wants_progress() {
            return Err(HandlerError::protocol(
                ErrorKind::Internal,
                "No progress token",
            ));
        }
        let mut counter = 0;
        for chunk in self.data {
            counter += 1;
            context.progress(counter.into(), Some(5.0), Some(chunk));
            tracing::debug!("Processed record: {chunk}");
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        Ok(format!("Processed {counter} records successfully"))
    }
}

fn main() -> anyhow::Result<()> {
    tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::from_default_env())
        .with_writer(std::io::stderr)
        .init();
    let data = &["11111", "22222", "33333", "44444", "55555"];
    let server = Server::builder("progress-demo", "1.0.0")
        .instructions(INSTRUCTIONS)
        .with(ProgressDemo { data })
        .build()?;
    let mode = std::env::args().nth(1);
    let mode = mode.or_else(|| std::env::var("TRANSPORT_MODE").ok());
    let address = match mode.as_deref().unwrap_or("stdio") {
        "stdio" => "stdio:",
        "http" | "streamhttp" | "all" => "http://127.0.0.1:8001/mcp",
        address => address,
    };
    Ok(server.run_at(address)?)
}
