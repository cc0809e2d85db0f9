//! A calculator on stdin and stdout.

#[path = "../shared/calculator.rs"]
mod calculator;

use calculator::Calculator;
use mcpbolt::prelude::*;
use tracing_subscriber::EnvFilter;

fn main() -> anyhow::Result<()> {
    tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::from_default_env())
        .with_writer(std::io::stderr)
        .init();
    let server = Server::builder("calculator", "1.0.0").with(Calculator);
    Ok(server.build()?.run()?)
}
