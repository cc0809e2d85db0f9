//! Tells clients that listen (2026-07-28) of a change every two seconds.

use std::thread;
use std::time::Duration;

use mcpbolt::mcp::{Revision, Revisions};
use mcpbolt::server::{Change, Server};
use tracing_subscriber::EnvFilter;

fn main() -> anyhow::Result<()> {
    tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::from_default_env())
        .init();
    let address = std::env::args().nth(1);
    let address = address.as_deref().unwrap_or("http://127.0.0.1:8000/mcp");
    let server = Server::builder("subscriptions", "1.0.0")
        .revisions(Revisions::only(Revision::V2026_07_28))
        .list_changes()
        .build()?;
    let registry = server.registry();
    thread::spawn(move || {
        loop {
            thread::sleep(Duration::from_secs(2));
            registry.tell(Change::Tools);
        }
    });
    Ok(server.run_at(address)?)
}
