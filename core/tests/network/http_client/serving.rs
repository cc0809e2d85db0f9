//! A server of this crate on a port of its own.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use mcpbolt::client::{Client, ClientBuilder, block_on};
use mcpbolt::io::http::{HttpClientOptions, HttpOptions};
use mcpbolt::io::{self, Address, ServeOptions, Workers, WorkersConfig};
use mcpbolt::mcp::{Revision, Revisions};
use mcpbolt::model::Elicitation;
use mcpbolt::server::{Arguments, Context, HandlerError, Resource, ResourceContents, Server, Tool};
use serde_json::{Value, json};

pub struct Serving {
    serving: io::Serving,
    pub server: Server,
    pub sleepers: Arc<AtomicUsize>,
}

/// Counts itself while it is there.
struct Counted(Arc<AtomicUsize>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Serving {
    pub fn begin() -> Self {
        Self::with(HttpOptions::default())
    }

    pub fn with(options: HttpOptions) -> Self {
        Self::at("127.0.0.1:0".parse().unwrap(), options)
    }

    pub fn at(address: SocketAddr, options: HttpOptions) -> Self {
        Self::speaking(Revisions::ALL, address, options)
    }

    /// One that speaks these revisions alone.
    pub fn speaking(revisions: Revisions, address: SocketAddr, options: HttpOptions) -> Self {
        let sleepers = Arc::<AtomicUsize>::default();
        let server = server(&sleepers, revisions);
        let workers = Arc::new(Workers::new(WorkersConfig::default()));
        let options = HttpOptions {
            grace: Duration::from_millis(100),
            ..options
        };
        let options = ServeOptions {
            http: options,
            ..ServeOptions::default()
        };
        let address = format!("http://{address}/mcp").parse().unwrap();
        let serving = io::serve(server.hosting(workers), &address, options).unwrap();
        Self {
            serving,
            server,
            sleepers,
        }
    }

    pub fn address(&self) -> SocketAddr {
        let Address::Http(url) = self.serving.address() else {
            panic!("no HTTP");
        };
        url.authority().parse().unwrap()
    }

    pub fn url(&self) -> String {
        format!("http://{}/mcp", self.address())
    }

    /// Ends it, and waits until it has ended.
    pub fn end(self) {
        self.serving.stop();
        self.serving.wait();
    }

    pub fn client(&self, revision: Revision) -> Client {
        self.open(builder(revision))
    }

    pub fn open(&self, builder: ClientBuilder) -> Client {
        block_on(builder.http(&self.url(), HttpClientOptions::default())).unwrap()
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.serving.stop();
    }
}

pub fn builder(revision: Revision) -> ClientBuilder {
    Client::builder("test", "1.0.0").revisions(Revisions::only(revision))
}

fn text(arguments: &Arguments) -> String {
    let arguments: Value = serde_json::from_str(&arguments.0).unwrap();
    arguments["text"].as_str().unwrap_or_default().to_owned()
}

fn server(sleepers: &Arc<AtomicUsize>, revisions: Revisions) -> Server {
    let sleepers = sleepers.clone();
    Server::builder("test", "1.0.0")
        .revisions(revisions)
        .page_size(std::num::NonZeroUsize::MIN.saturating_add(1))
        .list_changes()
        .subscriptions()
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
        .tool(
            Tool::new("away"),
            |_: Arguments, context: Context| async move {
                context.release_stream(Duration::from_millis(70));
                context.sleep(Duration::from_millis(100)).await;
                "back"
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
            Tool::new("placed").input_schema(json!({"type": "object", "properties": {
                "region": {"type": "string", "x-mcp-header": "Region"},
                "in": {"type": "object", "properties": {"floor": {"type": "integer", "x-mcp-header": "Floor"}}},
                "lit": {"type": "boolean", "x-mcp-header": "Lit"},
            }})),
            |_: Arguments, _| async { "placed" },
        )
        .tool(
            Tool::new("ask"),
            |_: Arguments, context: Context| async move {
                let form = json!({"type": "object", "properties": {"name": {"type": "string"}}});
                let answer = context.elicit(Elicitation::form("Who?", form)).await?;
                Ok::<_, HandlerError>(format!("{answer:?}"))
            },
        )
        .resource(Resource::new("a:b", "b"), |uri, _| async {
            Ok(ResourceContents::text(uri, "contents"))
        })
        .build()
        .unwrap()
}
