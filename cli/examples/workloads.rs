//! The tools that `mcpbolt load --workload KIND` calls, to try it with, or to measure a machine:
//! `mcpbolt load --workload echo -- target/debug/examples/workloads`.
//!
//! It serves at the address that is its first argument, or on stdin and stdout.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use mcpbolt::model::Sampling;
use mcpbolt::server::{
    Context, HandlerError, Resource, ResourceContents, Server, Tool, schemars, serde,
};

#[derive(serde::Deserialize, schemars::JsonSchema)]
#[serde(crate = "mcpbolt::server::serde")]
#[schemars(crate = "mcpbolt::server::schemars")]
struct Echo {
    text: String,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
#[serde(crate = "mcpbolt::server::serde")]
#[schemars(crate = "mcpbolt::server::schemars")]
struct Sleep {
    ms: u64,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
#[serde(crate = "mcpbolt::server::serde")]
#[schemars(crate = "mcpbolt::server::schemars")]
struct Progress {
    n: u32,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
#[serde(crate = "mcpbolt::server::serde")]
#[schemars(crate = "mcpbolt::server::schemars")]
struct Prompt {
    prompt: String,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
#[serde(crate = "mcpbolt::server::serde")]
#[schemars(crate = "mcpbolt::server::schemars")]
struct Nothing {}

/// A call of `sleep`; it counts as long as it exists, so a cancelled one no longer does.
struct Sleeping(Arc<AtomicU64>);

impl Drop for Sleeping {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let active = Arc::new(AtomicU64::new(0));
    let started = Arc::new(AtomicU64::new(0));
    let counted = (active.clone(), started.clone());
    let server = Server::builder("workloads", "1.0.0")
        .subscriptions()
        .resource(Resource::new("memo:note", "note"), |uri, _| async move {
            Ok(ResourceContents::text(uri, "a note"))
        })
        .inline_tool(
            Tool::new("echo").description("Returns the text."),
            |echo: Echo| echo.text,
        )
        .tool(
            Tool::new("sleep").description("Waits."),
            move |sleep: Sleep, context: Context| {
                active.fetch_add(1, Relaxed);
                started.fetch_add(1, Relaxed);
                let sleeping = Sleeping(active.clone());
                async move {
                    context.sleep(Duration::from_millis(sleep.ms)).await;
                    drop(sleeping);
                    "slept"
                }
            },
        )
        .tool(
            Tool::new("stats")
                .description("Counts the calls of sleep that run, and that have started."),
            move |_: Nothing, _| {
                let (active, started) = (counted.0.load(Relaxed), counted.1.load(Relaxed));
                async move { format!("{{\"active\":{active},\"started\":{started}}}") }
            },
        )
        .tool(
            Tool::new("progress").description("Reports n times."),
            |progress: Progress, context: Context| async move {
                for done in 1..=progress.n {
                    context.progress(done.into(), Some(progress.n.into()), None);
                }
                "done"
            },
        )
        .tool(
            Tool::new("test_sampling").description("Asks the client's model."),
            |asked: Prompt, context: Context| async move {
                let said = context.sample(Sampling::user(asked.prompt, 100)).await?;
                Ok::<_, HandlerError>(said.to_text())
            },
        )
        .build()?;
    Ok(server.run()?)
}
