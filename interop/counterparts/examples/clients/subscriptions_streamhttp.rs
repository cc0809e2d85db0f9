//! A client that listens to changes of the list of tools: `subscriptions_streamhttp http://127.0.0.1:8000/mcp`.
#![allow(clippy::print_stdout, reason = "a program for a terminal")]

use mcpbolt::client::{Client, Interests};
use mcpbolt::io::ConnectOptions;
use mcpbolt::mcp::{Revision, Revisions};
use tracing_subscriber::EnvFilter;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::try_from_default_env().unwrap_or_else(|_| "info".into()))
        .init();

    let address = std::env::args().nth(1);
    let address = address.as_deref().unwrap_or("http://127.0.0.1:8000/mcp");
    let client = Client::builder("subscriptions", "1.0.0")
        .revisions(Revisions::only(Revision::V2026_07_28))
        .on_notice(|notice| println!("notification: {notice:?}"))
        .open(&address.parse()?, ConnectOptions::default())
        .await?;
    let interests = Interests {
        tools: true,
        ..Interests::default()
    };
    let listening = client.listen(interests).await?;
    println!("accepted filter: {:?}", listening.acknowledged());
    tokio::select! {
        end = listening => println!("subscription ended: {end:?}"),
        _ = tokio::signal::ctrl_c() => {}
    }
    Ok(())
}
