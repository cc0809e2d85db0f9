//! A counter at an address, by default on HTTP.

#[path = "../shared/counter.rs"]
mod counter;

use tracing_subscriber::EnvFilter;

fn main() -> anyhow::Result<()> {
    tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::from_default_env())
        .init();
    let address = std::env::args().nth(1);
    let address = address.as_deref().unwrap_or("http://127.0.0.1:8000/mcp");
    Ok(counter::server()?.run_at(address)?)
}
