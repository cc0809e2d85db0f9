//! A server to measure and test against: `echo`, `resize`, `sleep`, `progress`, `stats` and,
//! with `MCP_TOOLS=N`, N more tools that make the list long. With `MCP_INLINE=1`, `echo` runs on the
//! thread that reads, as is best for what takes no time.
//!
//! ```text
//! cargo run --release --example diagnostic
//! cargo run --release --example diagnostic --features http -- http://127.0.0.1:8000/mcp
//! ```
//!
//! | variable | adds |
//! |---|---|
//! | `MCP_TARGETS=1` | what attacks aim at: the tools `touch` and `job`, templates of resources, subscriptions |
//! | `MCP_ACTIONS=0` | nothing: the action dialect is left as it is by default |
//! | `MCP_KEYS=alice:key-a,bob:key-b` | a verifier that knows these clients by their API keys |
//! | `MCP_JWT=SECRET` | beside these keys, tokens that this secret signs by HS256; needs the feature `jwt` |
//! | `MCP_QUOTA=N` | N calls of tools a day for each client |
//! | `MCP_OPENING=N` | N seconds within which a connection must begin to speak, and the headers of a request arrive |
//! | `MCP_TLS=CERTIFICATE,KEY` | the files, in PEM, of an `https:` or `wss:` address |

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use mcpbolt::limits::Quota;
use mcpbolt::policy::Policy;
use mcpbolt::server::{
    Arguments, Builder, Context, Resource, ResourceContents, Server, TaskSupport, Tool,
    schemars::JsonSchema, serde::Deserialize,
};
use serde_json::json;

#[derive(Deserialize, JsonSchema)]
struct Echo {
    text: String,
}

#[derive(Deserialize, JsonSchema)]
struct Resize {
    text: String,
    n: usize,
}

#[derive(Deserialize, JsonSchema)]
struct Sleep {
    ms: u64,
}

#[derive(Deserialize, JsonSchema)]
struct Progress {
    n: u32,
}

#[derive(Deserialize, JsonSchema)]
struct Nothing {}

/// How the handlers fare, so that a leak after a cancellation, or a call that should not have been,
/// shows.
#[derive(Default)]
struct Sleeps {
    touched: AtomicU64,
    started: AtomicU64,
    finished: AtomicU64,
    cancelled: AtomicU64,
}

/// Counts a handler that is dropped before its end as cancelled.
struct Sleeping(Arc<Sleeps>, bool);

impl Drop for Sleeping {
    fn drop(&mut self) {
        let ended = if self.1 {
            &self.0.finished
        } else {
            &self.0.cancelled
        };
        ended.fetch_add(1, Relaxed);
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let sleeps = Arc::new(Sleeps::default());
    let counts = sleeps.clone();
    let touches = sleeps.clone();
    let mut server = Server::builder("mcpbolt-diagnostic", env!("CARGO_PKG_VERSION"));
    if said("MCP_ACTIONS").as_deref() != Some("0") {
        server = server.actions(true);
    }
    let echo = Tool::new("echo").description("Returns the text.");
    server = match std::env::var("MCP_INLINE").is_ok_and(|inline| inline == "1") {
        true => server.inline_tool(echo, |echo: Echo| echo.text),
        false => server.tool(echo, |echo: Echo, _| async { echo.text }),
    };
    server = server
        .tool(Tool::new("resize").description("Returns n bytes."), |resize: Resize, _| async move {
            // As much as fits into 16 bytes.
            let head = &resize.text[..resize.text.floor_char_boundary(16)];
            head.to_owned() + &"x".repeat(resize.n.saturating_sub(head.len()))
        })
        .tool(Tool::new("sleep").description("Waits."), move |sleep: Sleep, context: Context| {
            let sleeps = sleeps.clone();
            async move {
                sleeps.started.fetch_add(1, Relaxed);
                let mut sleeping = Sleeping(sleeps, false);
                context.sleep(Duration::from_millis(sleep.ms)).await;
                sleeping.1 = true;
                "slept"
            }
        })
        .tool(
            Tool::new("progress").description("Reports n times."),
            |progress: Progress, context: Context| async move {
                for i in 1..=progress.n {
                    context.progress(i.into(), Some(progress.n.into()), None);
                }
                "done"
            },
        )
        .tool(Tool::new("stats").description("Counts sleepers."), move |_: Nothing, _| {
            let count = |counter: &AtomicU64| counter.load(Relaxed);
            let (started, finished, cancelled) =
                (count(&counts.started), count(&counts.finished), count(&counts.cancelled));
            let active = started - finished - cancelled;
            let touched = count(&counts.touched);
            async move {
                json!({"active": active, "started": started, "finished": finished, "cancelled": cancelled, "touched": touched})
                    .to_string()
            }
        });
    if said("MCP_TARGETS").as_deref() == Some("1") {
        server = targets(server, touches);
    }
    if let Some(policy) = policy()? {
        server = server.policy(policy);
    }
    let more = std::env::var("MCP_TOOLS")
        .ok()
        .and_then(|count| count.parse().ok())
        .unwrap_or(0);
    for i in 0..more {
        let tool = Tool::new(format!("tool_{i:03}"))
            .description(format!(
                "Dummy tool number {i}, here to make the list long."
            ))
            .input_schema(json!({
                "type": "object",
                "properties": {
                    "path": {"type": "string", "description": "Where to look"},
                    "limit": {"type": "integer", "description": "How many at most"},
                    "verbose": {"type": "boolean", "description": "Say more"},
                },
                "required": ["path"],
            }));
        server = server.tool(tool, |arguments: Arguments, _| async move {
            let arguments: serde_json::Value =
                serde_json::from_str(&arguments.0).unwrap_or_default();
            arguments["path"].as_str().unwrap_or_default().to_owned()
        });
    }
    let server = server.build()?;
    let mut arguments = std::env::args().skip(1);
    match arguments.next() {
        Some(address) if address != "stdio:" => on(&server, &address)?,
        _ => {
            server.serve_stdio().wait()?;
        }
    }
    // A wedged handler ends with the process.
    Ok(())
}

fn said(variable: &str) -> Option<String> {
    std::env::var(variable).ok()
}

/// Adds the targets of attacks: a tool whose calls are counted, another that goes on as a task, resources
/// with names in their URIs, and subscriptions.
fn targets(server: Builder, sleeps: Arc<Sleeps>) -> Builder {
    server
        .subscriptions()
        .tool(
            Tool::new("touch").description("Counts its calls."),
            move |_: Nothing, _| {
                sleeps.touched.fetch_add(1, Relaxed);
                // On stdio, this line tells the attacker what ran even if the connection is broken.
                eprintln!("touched");
                async { "touched" }
            },
        )
        .tool(
            Tool::new("job")
                .description("A task.")
                .task_support(TaskSupport::Optional),
            |job: Sleep, context: Context| async move {
                context.begin_task();
                context.sleep(Duration::from_millis(job.ms)).await;
                "done"
            },
        )
        .resource(Resource::new("memo:note", "note"), |uri, _| async move {
            Ok(ResourceContents::text(uri, "a note"))
        })
        .resource_template(
            Resource::new("file:///docs/{name}", "docs"),
            |uri, variables, _| async move {
                Ok(ResourceContents::text(
                    uri,
                    format!("name={}", variables["name"]),
                ))
            },
        )
        .resource_template(
            Resource::new("notes://{name}/text", "notes"),
            |uri, variables, _| async move {
                Ok(ResourceContents::text(
                    uri,
                    format!("name={}", variables["name"]),
                ))
            },
        )
}

/// The keys and the quota of the environment.
fn policy() -> Result<Option<Policy>, Box<dyn std::error::Error>> {
    let (keys, quota) = (said("MCP_KEYS"), said("MCP_QUOTA"));
    if keys.is_none() && quota.is_none() {
        return Ok(None);
    }
    let mut policy = Policy::new();
    if let Some(keys) = keys {
        let pairs = keys.split(',').filter_map(|pair| pair.split_once(':'));
        let keys: serde_json::Map<_, _> = pairs
            .map(|(client, key)| (key.to_owned(), json!({"client": client})))
            .collect();
        let mut clients = json!({"keys": keys});
        if let Some(secret) = said("MCP_JWT") {
            clients["jwt"] = json!({
                "algorithm": "HS256",
                "key": secret,
                "issuer": "https://issuer.example",
                "audience": "https://server.example/mcp",
            });
        }
        policy = Policy::from_json(&clients.to_string())?;
    }
    if let Some(calls) = quota {
        let period = Duration::from_secs(24 * 60 * 60);
        let calls = calls.parse()?;
        policy = policy.quota(Quota { calls, period });
    }
    Ok(Some(policy))
}

#[cfg(feature = "http")]
fn on(server: &Server, address: &str) -> Result<(), Box<dyn std::error::Error>> {
    let mut options = mcpbolt::io::ServeOptions::default();
    if let Some(seconds) = said("MCP_OPENING") {
        options.http.header_timeout = Duration::from_secs(seconds.parse()?);
    }
    let files = said("MCP_TLS").unwrap_or_default();
    options.tls = files
        .split_once(',')
        .map(|(certificate, key)| mcpbolt::io::TlsOptions {
            certificate: certificate.into(),
            key: key.into(),
            clients: None,
        });
    let serving = server.serve(address).options(options).start()?;
    eprintln!("diagnostic listens on {}", serving.address());
    serving.wait();
    Ok(())
}

#[cfg(not(feature = "http"))]
fn on(_: &Server, _: &str) -> Result<(), &'static str> {
    Err("this was built without the feature http")
}
