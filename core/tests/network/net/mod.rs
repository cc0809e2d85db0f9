//! Servers and clients on sockets: TCP, Unix and WebSocket.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test: panicking is the report"
)]

mod carriers;
#[cfg(unix)]
mod files;
mod frames;
mod openings;
mod results;
mod shares;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use mcpbolt::client::{Client, ClientBuilder, block_on};
use mcpbolt::io::{Address, ConnectOptions, ServeOptions, Serving};
use mcpbolt::model::Elicitation;
use mcpbolt::server::{Arguments, Context, HandlerError, Server, Tool};
use serde_json::{Value, json};

/// No test waits longer for anything.
const PATIENCE: Duration = Duration::from_secs(20);

/// A server at work; ends with the test.
struct Served {
    serving: Serving,
    /// Calls of `sleep` that are under way.
    sleepers: Arc<AtomicUsize>,
}

impl Served {
    fn begin(address: &str, options: ServeOptions) -> Self {
        let sleepers = Arc::default();
        let server = server(&sleepers);
        let serving = server.serve(address).options(options).start().unwrap();
        Self { serving, sleepers }
    }

    fn address(&self) -> &Address {
        self.serving.address()
    }

    fn client(&self, builder: ClientBuilder) -> Client {
        block_on(builder.open(self.address(), ConnectOptions::default())).unwrap()
    }

    fn until_sleepers_are(&self, count: usize) {
        until(|| self.sleepers.load(Ordering::SeqCst) == count);
    }

    fn end(&self) {
        self.serving.stop();
        self.serving.wait();
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.end();
    }
}

fn until(mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < PATIENCE, "waited for too long");
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn text(arguments: &Arguments) -> String {
    let arguments: Value = serde_json::from_str(&arguments.0).unwrap();
    arguments["text"].as_str().unwrap_or_default().to_owned()
}

/// Counts itself while it is there.
struct Counted(Arc<AtomicUsize>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

fn server(sleepers: &Arc<AtomicUsize>) -> Server {
    let sleepers = sleepers.clone();
    Server::builder("test", "1.0.0")
        .page_size(std::num::NonZeroUsize::MIN.saturating_add(1))
        .list_changes()
        .tool(Tool::new("echo"), |arguments: Arguments, _| async move {
            text(&arguments)
        })
        .tool(
            Tool::new("steps"),
            |_: Arguments, context: Context| async move {
                for step in 1..=3 {
                    context.progress(f64::from(step), Some(3.0), None);
                }
                "done"
            },
        )
        .tool(Tool::new("sleep"), move |_: Arguments, context: Context| {
            sleepers.fetch_add(1, Ordering::SeqCst);
            let counted = Counted(sleepers.clone());
            async move {
                context.sleep(Duration::from_secs(60)).await;
                drop(counted);
                "slept"
            }
        })
        .tool(
            Tool::new("ask"),
            |_: Arguments, context: Context| async move {
                let form = json!({"type": "object", "properties": {"name": {"type": "string"}}});
                let answer = context.elicit(Elicitation::form("Who?", form)).await?;
                Ok::<_, HandlerError>(format!("{answer:?}"))
            },
        )
        .build()
        .unwrap()
}

/// A folder of its own, which ends with the test.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("mcpbolt-net-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir(&path).unwrap();
        Self(path)
    }

    fn join(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    fn address(&self, name: &str) -> String {
        format!("unix:{}", self.join(name).display())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
