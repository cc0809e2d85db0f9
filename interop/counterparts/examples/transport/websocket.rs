//! A server and a client on WebSocket.

#[path = "calculator.rs"]
mod calculator;

use calculator::calculator;
use mcpbolt::client::Client;
use mcpbolt::io::{Address, ConnectOptions};
use tracing_subscriber::EnvFilter;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::from_default_env().add_directive(tracing::Level::INFO.into()))
        .init();
    let serving = calculator()?.serve("ws://127.0.0.1:0/mcp").start()?;
    client(serving.address()).await
}

pub(crate) async fn client(address: &Address) -> anyhow::Result<()> {
    let client = Client::builder("websocket", "1.0.0")
        .open(address, ConnectOptions::default())
        .await?;
    tracing::info!("{:#?}", client.list_tools().await?);
    Ok(())
}
