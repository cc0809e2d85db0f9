//! A server and a client on TCP.
#![allow(clippy::print_stdout, reason = "a program for a terminal")]

#[path = "calculator.rs"]
pub(crate) mod calculator;

use calculator::calculator;
use mcpbolt::client::Client;
use mcpbolt::io::{Address, ConnectOptions};

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let serving = calculator()?.serve("tcp:127.0.0.1:0").start()?;
    client(serving.address()).await
}

pub(crate) async fn client(address: &Address) -> anyhow::Result<()> {
    let client = Client::builder("tcp", "1.0.0")
        .open(address, ConnectOptions::default())
        .await?;
    println!("{:?}", client.list_tools().await?);
    Ok(())
}
