//! A counter on stdin and stdout.

#[path = "../shared/counter.rs"]
mod counter;

use tracing_subscriber::EnvFilter;

fn main() -> anyhow::Result<()> {
    tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::from_default_env())
        .with_writer(std::io::stderr)
        .init();
    Ok(counter::server()?.run()?)
}
