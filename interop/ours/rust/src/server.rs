//! Our server in Rust, with everything that ../../../../features.py looks at.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use mcpbolt::io::ServeOptions;
use mcpbolt::mcp::{LogLevel, TaskSupport};
use mcpbolt::model::{Elicitation, Elicited, Sampling};
use mcpbolt::server::schemars::JsonSchema;
use mcpbolt::server::serde::Deserialize;
use mcpbolt::server::{
    Arguments, Builder, CacheScope, Context, HandlerError, Prompt, PromptResult, Resource,
    ResourceContents, Server, TaskLimits, Tool, ToolResult,
};
use serde_json::{Map, Value, json};
use signal_hook::consts::SIGTERM;
use signal_hook::iterator::Signals;

const GREETING: &str = "test://greeting";
const PIXEL: &str = "test://pixel";
const ITEM: &str = "test://item/{id}";
const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";
const EXTENSION: &str = "example.com/interop";

type Outcome = Result<String, HandlerError>;

/// Arguments of the tools; each has its own.
macro_rules! arguments {
    ($($name:ident { $($field:ident: $type:ty),* })*) => {$(
        #[derive(Deserialize, JsonSchema)]
        #[serde(crate = "mcpbolt::server::serde")]
        #[schemars(crate = "mcpbolt::server::schemars")]
        struct $name { $($field: $type),* }
    )*};
}

arguments! {
    Text { text: String }
    Message { message: String }
    Milliseconds { ms: u64 }
    Count { n: u32 }
    Two { a: i64, b: i64 }
}

/// How the handlers of `sleep` fare.
#[derive(Default)]
struct Sleeps {
    started: AtomicU64,
    finished: AtomicU64,
    cancelled: AtomicU64,
}

/// Counts a handler that is dropped before its end as cancelled.
struct Sleeping(Arc<Sleeps>, bool);

impl Drop for Sleeping {
    fn drop(&mut self) {
        let Self(sleeps, finished) = self;
        let ended = if *finished {
            &sleeps.finished
        } else {
            &sleeps.cancelled
        };
        ended.fetch_add(1, Relaxed);
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let server = Server::builder("rust", "1")
        .list_changes()
        .subscriptions()
        .extension(EXTENSION, r#"{"version":1}"#)
        .task_limits(TaskLimits {
            poll_interval: Duration::from_millis(10),
            ..TaskLimits::default()
        })
        .cache_lists(Duration::from_secs(60), CacheScope::Public);
    let server = match NonZeroUsize::new(5) {
        Some(items) => server.page_size(items),
        None => server,
    };
    let server = offers(asking(working(server))).build()?;
    let changing = server.clone();
    let tool = Tool::new("touch").description("Changes the tools and a resource.");
    server.change(|offer| {
        offer.tool(tool, move |_: Arguments, _| {
            let server = changing.clone();
            async move { touch(&server) }
        })
    })?;
    match std::env::args().nth(1) {
        None => server.serve_stdio().wait().map(drop)?,
        Some(address) => serve(&server, &address)?,
    }
    Ok(())
}

/// Serves there, pages of other origins of this machine, too, until it is told to end.
fn serve(server: &Server, address: &str) -> Result<(), Box<dyn std::error::Error>> {
    let mut options = ServeOptions::default();
    options.http.cors = true;
    let mut signals = Signals::new([SIGTERM])?;
    let serving = server.serve(address).options(options).start()?;
    signals.forever().next();
    serving.stop();
    serving.wait();
    Ok(())
}

fn touch(server: &Server) -> Outcome {
    let extra = Tool::new("extra").description("Comes and goes.");
    server.change(|offer| offer.tool(extra, |_: Arguments, _| async { "" }))?;
    server.change(|offer| offer.remove_tool("extra"))?;
    server.resource_updated(GREETING);
    Ok("touched".into())
}

/// Tools that need nobody.
fn working(server: Builder) -> Builder {
    let sleeps = Arc::new(Sleeps::default());
    let counts = sleeps.clone();
    let tool = |name: &str| Tool::new(name).description(name);
    let icon = json!([{"src": "https://example.com/icon.png", "mimeType": "image/png"}]);
    let integer = json!({"sum": {"type": "integer"}});
    let add = tool("add")
        .title("Addition")
        .icons(icon)
        .annotations(json!({"readOnlyHint": true}))
        .output_schema(json!({"type": "object", "properties": integer, "required": ["sum"]}));
    server
        .tool(tool("echo"), |echo: Text, _| async { echo.text })
        .tool(tool("sleep"), move |sleep: Milliseconds, context: Context| {
            let sleeps = sleeps.clone();
            async move {
                sleeps.started.fetch_add(1, Relaxed);
                let mut sleeping = Sleeping(sleeps, false);
                context.sleep(Duration::from_millis(sleep.ms)).await;
                sleeping.1 = true;
                "slept"
            }
        })
        .tool(tool("stats"), move |_: Arguments, _| {
            let taken = |counter: &AtomicU64| counter.swap(0, Relaxed);
            let (finished, cancelled) = (taken(&counts.finished), taken(&counts.cancelled));
            let started = taken(&counts.started);
            let active = started - finished - cancelled;
            counts.started.store(active, Relaxed);
            async move {
                json!({"active": active, "started": started, "finished": finished, "cancelled": cancelled})
                    .to_string()
            }
        })
        .tool(tool("progress"), |progress: Count, context: Context| async move {
            for i in 1..=progress.n {
                context.progress(i.into(), Some(progress.n.into()), None);
            }
            "done"
        })
        .tool(tool("job").task_support(TaskSupport::Optional), |_: Arguments, context: Context| async move {
            context.begin_task();
            context.task_message("at work");
            context.sleep(Duration::from_millis(30)).await;
            "done"
        })
        .tool(add, |two: Two, _| async move {
            ToolResult::structured(&json!({"sum": two.a + two.b}))
                .unwrap_or_else(|error| ToolResult::error(error.to_string()))
        })
        .tool(tool("log"), |_: Arguments, context: Context| async move {
            for level in [LogLevel::Debug, LogLevel::Info, LogLevel::Warning, LogLevel::Error] {
                context.log(level, Some("interop"), &json!({"level": level.name()}));
            }
            "logged"
        })
        .tool(tool("context"), |_: Arguments, context: Context| async move {
            let extension = context.extension(EXTENSION).unwrap_or("null");
            let all: Map<String, Value> = serde_json::from_str(context.meta().unwrap_or("{}"))?;
            let own = |(key, _): &(String, Value)| {
                key == "traceparent" || key.starts_with("example.com/")
            };
            let given: Map<_, _> = all.into_iter().filter(own).collect();
            let text = format!(r#"{{"extension":{extension},"meta":{}}}"#, Value::from(given));
            Ok::<_, serde_json::Error>(
                ToolResult::text(text).with_meta(json!({"example.com/seen": true})),
            )
        })
}

/// Tools that ask the client.
fn asking(server: Builder) -> Builder {
    let tool = |name: &str| Tool::new(name).description("Asks the client.");
    server
        .tool(
            tool("ask_model"),
            |ask: Text, context: Context| async move {
                Outcome::Ok(
                    context
                        .sample(Sampling::user(ask.text, 100))
                        .await?
                        .to_text(),
                )
            },
        )
        .tool(
            tool("ask_tools"),
            |_: Arguments, context: Context| async move {
                let mut question = Sampling::user("How warm is it?", 100);
                question.tools = Some(vec![Tool::new("weather")]);
                let said = serde_json::to_value(context.sample(question).await?.content)?;
                Outcome::Ok(format!(
                    "uses {}",
                    said[0]["name"].as_str().unwrap_or("nothing")
                ))
            },
        )
        .tool(
            tool("ask_user"),
            |ask: Message, context: Context| async move {
                Outcome::Ok(match context.elicit(name_form(&ask.message)).await? {
                    Elicited::Accepted(form) => {
                        format!("accept {}", form["name"].as_str().unwrap_or("?"))
                    }
                    Elicited::Declined => "decline".into(),
                    Elicited::Cancelled => "cancel".into(),
                })
            },
        )
        .tool(
            tool("ask_page"),
            |_: Arguments, context: Context| async move {
                let page = Elicitation::url("Sign in.", "https://example.com/sign-in", "errand-1");
                Outcome::Ok(match context.elicit(page).await? {
                    Elicited::Accepted(_) => "accept".into(),
                    other => format!("{other:?}"),
                })
            },
        )
        .tool(
            tool("ask_roots"),
            |_: Arguments, context: Context| async move {
                let uris: Vec<_> = context
                    .roots()
                    .await?
                    .into_iter()
                    .map(|root| root.uri)
                    .collect();
                Outcome::Ok(uris.join(" "))
            },
        )
        .tool(
            tool("interview"),
            |_: Arguments, context: Context| async move {
                let Elicited::Accepted(form) = context.elicit(name_form("Who?")).await? else {
                    return Outcome::Ok("nobody".into());
                };
                let name = form["name"].as_str().unwrap_or("?");
                Ok(context.sample(Sampling::user(name, 100)).await?.to_text())
            },
        )
}

fn name_form(message: &str) -> Elicitation {
    let properties = json!({"name": {"type": "string"}});
    Elicitation::form(
        message,
        json!({"type": "object", "properties": properties, "required": ["name"]}),
    )
}

/// Resources, a prompt and completion.
fn offers(server: Builder) -> Builder {
    server
        .resource(
            Resource::new(GREETING, "greeting").mime_type("text/plain"),
            |uri, _| async move {
                let mut contents = ResourceContents::text(uri, "hello");
                contents.mime_type = Some("text/plain".into());
                Ok(contents)
            },
        )
        .resource(
            Resource::new(PIXEL, "pixel").mime_type("image/png"),
            |uri, _| async move {
                use base64::Engine as _;
                let bytes = base64::engine::general_purpose::STANDARD.decode(PNG);
                Ok(ResourceContents::blob(uri, bytes.unwrap_or_default(), "image/png"))
            },
        )
        .resource_template(Resource::new(ITEM, "item"), |uri, variables, _| async move {
            Ok(ResourceContents::text(uri, format!("item {}", variables["id"])))
        })
        .prompt(
            Prompt::new("greet").argument("who", "Whom", true),
            |arguments, _| async move { Ok(PromptResult::user(format!("Greet {}.", arguments["who"]))) },
        )
        .completion(|request, _| async move {
            let names = ["Ada", "Adele", "Grace"].map(str::to_owned);
            let fits = |name: &String| name.starts_with(&request.value);
            Ok(names.into_iter().filter(fits).collect::<Vec<_>>())
        })
}
