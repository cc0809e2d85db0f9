//! The matrix: what a client of each era gets from a server of each era through a front is what it gets directly.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use mcpbolt::chain::{External, Front};
use mcpbolt::client::{Client, ClientBuilder, block_on};
use mcpbolt::connection::RequestOptions;
use mcpbolt::mcp::{LogLevel, Revision, Revisions};
use mcpbolt::model::{Elicitation, Elicited, Root, Sampled, Sampling};
use mcpbolt::server::{Arguments, Context, HandlerError, Resource, ResourceContents, Server, Tool};
use serde_json::{Value, json};

/// A server with one tool for each feature.
fn server() -> Server {
    Server::builder("far", "1.0.0")
        .tool(Tool::new("echo"), |arguments: Arguments, _| async move {
            arguments.0.to_string()
        })
        .tool(
            Tool::new("steps"),
            |_: Arguments, context: Context| async move {
                for step in 1..=3 {
                    context.progress(f64::from(step), Some(3.0), Some("on the way"));
                }
                "done"
            },
        )
        .tool(
            Tool::new("ask"),
            |_: Arguments, context: Context| async move {
                let fields = json!({"name": {"type": "string"}});
                let form =
                    Elicitation::form("Who?", json!({"type": "object", "properties": fields}));
                Ok::<_, HandlerError>(match context.elicit(form).await? {
                    Elicited::Accepted(content) => content["name"].as_str().unwrap().to_owned(),
                    _ => "nobody".to_owned(),
                })
            },
        )
        .tool(
            Tool::new("sample"),
            |_: Arguments, context: Context| async move {
                let sampled = context.sample(Sampling::user("Say it", 10)).await?;
                Ok::<_, HandlerError>(sampled.to_text())
            },
        )
        .tool(
            Tool::new("roots"),
            |_: Arguments, context: Context| async move {
                Ok::<_, HandlerError>(context.roots().await?.len().to_string())
            },
        )
        .tool(
            Tool::new("log"),
            |_: Arguments, context: Context| async move {
                context.log(LogLevel::Warning, Some("far"), &json!("a warning"));
                "logged"
            },
        )
        .resource(Resource::new("file:///a", "a"), |uri, _| async {
            Ok(ResourceContents::text(uri, "contents"))
        })
        .subscriptions()
        .list_changes()
        .build()
        .unwrap()
}

fn client(revision: Revision) -> ClientBuilder {
    Client::builder("near", "1.0.0")
        .revisions(Revisions::only(revision))
        .on_form(|_, _| async {
            Ok(Elicited::Accepted(
                json!({"name": "Ada"}).as_object().unwrap().clone(),
            ))
        })
        .on_sampling(|_, _| async { Ok(Sampled::text("a-model", "said")) })
        .roots([Root::new("file:///root")])
}

fn front(server: &Server, revision: Revision) -> Front {
    let external = External::server("far", server).revisions(Revisions::only(revision));
    Front::new(external)
}

fn pairs() -> impl Iterator<Item = (Revision, Revision)> {
    Revision::ALL
        .into_iter()
        .flat_map(|near| Revision::ALL.map(|far| (near, far)))
}

fn text(client: &Client, tool: &str, arguments: &Value) -> String {
    client.call_tool(tool, arguments).wait().unwrap().text()
}

/// R-CHN-06, R-CHN-09, R-CHN-17: each side has its own revision.
#[test]
fn tools_are_listed_and_called() {
    let server = server();
    for (near, far) in pairs() {
        let client = block_on(client(near).connect_chain(&front(&server, far))).unwrap();
        assert_eq!(client.revision(), Some(near));
        assert_eq!(client.server_info()["name"], "far", "{near} on {far}");
        let tools = block_on(client.list_tools()).unwrap();
        assert_eq!(tools.len(), 6, "{near} on {far}");
        let said = text(&client, "echo", &json!({"a": 1}));
        assert_eq!(said, r#"{"a":1}"#, "{near} on {far}");
        let read = block_on(client.read_resource("file:///a")).unwrap();
        assert_eq!(read[0].as_text(), Some("contents"));
        let error = block_on(client.read_resource("file:///b")).unwrap_err();
        assert!(error.is_resource_not_found(), "{near} on {far}: {error}");
    }
}

/// R-CHN-12, R-CHN-13.
#[test]
fn the_client_is_asked_through_the_front() {
    let server = server();
    for (near, far) in pairs() {
        let client = block_on(client(near).connect_chain(&front(&server, far))).unwrap();
        assert_eq!(
            text(&client, "sample", &json!({})),
            "said",
            "{near} on {far}"
        );
        assert_eq!(text(&client, "roots", &json!({})), "1", "{near} on {far}");
        if near.rules().elicitation && far.rules().elicitation {
            assert_eq!(text(&client, "ask", &json!({})), "Ada", "{near} on {far}");
        }
    }
}

/// R-CHN-07.
#[test]
fn progress_arrives_before_the_answer() {
    let server = server();
    for (near, far) in pairs() {
        let client = block_on(client(near).connect_chain(&front(&server, far))).unwrap();
        let steps: Arc<Mutex<Vec<f64>>> = Arc::default();
        let seen = steps.clone();
        let call = client
            .call_tool("steps", &json!({}))
            .on_progress(move |progress| seen.lock().unwrap().push(progress.progress));
        assert_eq!(call.wait().unwrap().text(), "done");
        let steps = steps.lock().unwrap().clone();
        // Reports that wait for room are merged; the last one always arrives.
        assert_eq!(steps.last(), Some(&3.0), "{near} on {far}: {steps:?}");
    }
}

/// Waits for what another thread does.
fn until(what: &str, mut is_done: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_done() {
        assert!(begun.elapsed() < Duration::from_secs(30), "{what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// R-CHN-12, R-CHN-13, R-LOG-07.
#[test]
fn changes_and_log_messages_are_heard() {
    for (near, far) in pairs() {
        let server = server();
        let heard: Arc<Mutex<Vec<String>>> = Arc::default();
        let noted = heard.clone();
        let builder = client(near).on_raw_notice(move |method, _| {
            noted.lock().unwrap().push(method.to_owned());
        });
        let client = block_on(builder.connect_chain(&front(&server, far))).unwrap();
        let has = |method: &str| heard.lock().unwrap().iter().any(|it| it == method);
        block_on(client.subscribe("file:///a")).unwrap();
        until(&format!("an update, {near} on {far}"), || {
            server.resource_updated("file:///a");
            has("notifications/resources/updated")
        });
        let stateless = near == Revision::NEWEST;
        let _stream = stateless.then(|| {
            let interests = mcpbolt::client::Interests {
                tools: true,
                ..Default::default()
            };
            block_on(client.listen(interests)).unwrap()
        });
        let mut number = 0;
        until(&format!("a change, {near} on {far}"), || {
            number += 1;
            let tool = Tool::new(format!("new-{number}"));
            server
                .change(|it| it.tool(tool, |_: Arguments, _| async { "" }))
                .unwrap();
            has("notifications/tools/list_changed")
        });
        if stateless {
            let meta = json!({"io.modelcontextprotocol/logLevel": "info"});
            let params = json!({"name": "log", "arguments": {}, "_meta": meta}).to_string();
            let options = RequestOptions::default();
            block_on(
                client
                    .request("tools/call", Some(&params), options)
                    .unwrap(),
            )
            .unwrap();
        } else {
            block_on(client.set_log_level(LogLevel::Info)).unwrap();
            text(&client, "log", &json!({}));
        }
        until(&format!("a log message, {near} on {far}"), || {
            has("notifications/message")
        });
    }
}
