//! The notifications to clients: updates of resources, changes of lists, log messages.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use mcpbolt::client::{Client, ClientBuilder, Interests, Notice, block_on};
use mcpbolt::connection::RequestOptions;
use mcpbolt::error::RequestError;
use mcpbolt::mcp::{Era, LogLevel, Method, Revision};
use mcpbolt::server::{
    Arguments, Context, Prompt, PromptResult, RegistryError, Resource, ResourceContents, Server,
    Tool,
};
use serde_json::{Value, json};

use crate::asks::{call, with_clients};
use crate::wire::Wire;
use crate::{in_each_revision, server};

/// The notifications that the last client got, in words.
#[derive(Clone, Default)]
struct Told(Arc<Mutex<Words>>);

#[derive(Default)]
struct Words {
    /// Counts the clients: one that is gone may still hear something.
    client: usize,
    words: Vec<String>,
}

impl Told {
    fn listen(&self, builder: ClientBuilder) -> ClientBuilder {
        let told = self.0.clone();
        let mut state = told.lock().unwrap();
        state.words.clear();
        state.client += 1;
        let client = state.client;
        drop(state);
        builder.on_notice(move |notice| {
            let word = match notice {
                Notice::ResourceUpdated { uri } => uri,
                Notice::Log { level, data, .. } => format!("{} {data}", level.name()),
                other => format!("{other:?}"),
            };
            let mut state = told.lock().unwrap();
            if state.client == client {
                state.words.push(word);
            }
        })
    }

    /// Waits for the next one.
    fn next(&self) -> String {
        let begun = Instant::now();
        loop {
            let mut state = self.0.lock().unwrap();
            if !state.words.is_empty() {
                return state.words.remove(0);
            }
            drop(state);
            assert!(begun.elapsed() < Duration::from_secs(30), "nothing is told");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn is_empty(&self) -> bool {
        self.0.lock().unwrap().words.is_empty()
    }
}

fn library() -> mcpbolt::server::Builder {
    let read = |uri: String| async { Ok(ResourceContents::text(uri, "contents")) };
    server(1)
        .resource(Resource::new("a:1", "one"), move |uri, _| read(uri))
        .resource_template(Resource::new("b:{x}", "some"), move |uri, _, _| read(uri))
}

/// R-RES-06, R-RES-07.
#[test]
fn who_subscribed_is_told_until_it_is_enough() {
    let server = library().subscriptions().build().unwrap();
    let told = Told::default();
    let listen = |builder| told.listen(builder);
    with_clients(&server, Revision::ALL, listen, |revision, client| {
        assert_eq!(
            client.capabilities()["resources"],
            json!({"subscribe": true})
        );
        let subscribe = |uri| block_on(client.subscribe(uri));
        server.resource_updated("a:1");
        for uri in ["a:1", "a:1", "b:2"] {
            subscribe(uri).unwrap();
        }
        let unknown = subscribe("c:3");
        match revision.era() {
            Era::Handshake => assert_eq!(unknown.unwrap_err().code(), Some(-32002)),
            // It is left out of what is acknowledged (R-SUB-03).
            Era::Stateless => unknown.unwrap(),
        }
        for uri in ["b:3", "b:2", "a:1"] {
            server.resource_updated(uri);
        }
        assert_eq!([told.next(), told.next()], ["b:2", "a:1"], "once each");
        for _ in 0..2 {
            block_on(client.unsubscribe("a:1")).unwrap();
        }
        block_on(client.ping()).unwrap();
        server.resource_updated("a:1");
        server.resource_updated("b:2");
        assert_eq!(told.next(), "b:2");
        // Every notification has come before this answer.
        block_on(client.ping()).unwrap();
        assert!(told.is_empty());
    });
}

/// R-CAP-03, R-RES-07.
#[test]
fn nobody_subscribes_where_that_is_not_offered() {
    let server = library().build().unwrap();
    with_clients(
        &server,
        Revision::ALL,
        |builder| builder,
        |revision, client| {
            let error = block_on(client.subscribe("a:1")).unwrap_err();
            assert!(matches!(error, RequestError::Unsupported(_)), "{error}");
            if revision.era() == Era::Handshake {
                let options = mcpbolt::connection::RequestOptions::default();
                let params = Some(r#"{"uri":"a:1"}"#);
                let asked = client
                    .handle()
                    .request("resources/subscribe", params, options);
                assert_eq!(block_on(asked.unwrap()).unwrap_err().code(), Some(-32601));
            }
        },
    );
}

/// Offers everything there is once more.
fn grow(server: &Server) -> Result<(), RegistryError> {
    server.change(|offer| {
        offer
            .tool(Tool::new("new"), |_: Arguments, _| async { "new" })
            .resource(Resource::new("a:2", "two"), |uri, _| async {
                Ok(ResourceContents::text(uri, "new"))
            })
            .prompt(Prompt::new("greet"), |_, _| async {
                Ok(PromptResult::user("Hi"))
            })
    })
}

fn shrink(server: &Server) -> Result<(), RegistryError> {
    server.change(|offer| {
        offer
            .remove_tool("new")
            .remove_resource("a:2")
            .remove_prompt("greet")
    })
}

/// R-TOL-02, R-TOL-07, R-RES-09, R-PRM-07.
#[test]
fn lists_change_while_clients_are_connected() {
    let server = library().list_changes().build().unwrap();
    let told = Told::default();
    let listen = |builder| told.listen(builder);
    with_clients(&server, Revision::ALL, listen, |revision, client| {
        assert_eq!(client.capabilities()["tools"], json!({"listChanged": true}));
        // There the client says what it wants to hear.
        let listening = (revision.era() == Era::Stateless).then(|| {
            let interests = Interests {
                tools: true,
                prompts: true,
                resources: true,
                ..Interests::default()
            };
            block_on(client.listen(interests)).unwrap()
        });
        let names = || {
            let tools = block_on(client.list_tools()).unwrap();
            tools.into_iter().map(|tool| tool.name).collect::<Vec<_>>()
        };
        let counts = || {
            let resources = block_on(client.list_resources()).unwrap().len();
            (resources, block_on(client.list_prompts()).unwrap().len())
        };
        assert_eq!((names(), counts()), (vec!["tool-0".into()], (1, 0)));
        grow(&server).unwrap();
        let heard = [told.next(), told.next(), told.next()];
        assert_eq!(
            heard,
            ["ToolsChanged", "PromptsChanged", "ResourcesChanged"]
        );
        assert_eq!(
            (names(), counts()),
            (vec!["tool-0".into(), "new".into()], (2, 1))
        );
        assert_eq!(call(client, "new", &json!({})), Ok("new".into()));
        assert_eq!(block_on(client.read_resource("a:2")).unwrap().len(), 1);
        assert_eq!(
            block_on(client.get_prompt("greet", &[]))
                .unwrap()
                .messages
                .len(),
            1
        );
        // A failed change changes nothing and notifies nobody.
        let twice = grow(&server).unwrap_err();
        assert!(matches!(twice, RegistryError::Duplicate(_)), "{twice}");
        shrink(&server).unwrap();
        assert_eq!(told.next(), "ToolsChanged");
        assert_eq!(
            (told.next(), told.next()),
            ("PromptsChanged".into(), "ResourcesChanged".into())
        );
        assert_eq!((names(), counts()), (vec!["tool-0".into()], (1, 0)));
        let gone = call(client, "new", &json!({})).unwrap_err();
        assert!(gone.contains("unknown tool"), "{gone}");
        assert!(told.is_empty());
        drop(listening);
        // The server knows all earlier messages when it answers.
        block_on(client.list_tools()).unwrap();
        grow(&server).unwrap();
        shrink(&server).unwrap();
        block_on(client.list_tools()).unwrap();
        if revision.era() == Era::Stateless {
            assert!(told.is_empty(), "R-SUB-08");
        }
    });
}

#[test]
fn a_list_without_promises_does_not_change() {
    let server = library().build().unwrap();
    assert!(matches!(grow(&server), Err(RegistryError::Fixed)));
}

/// A tool may leave while it is called: the call is finished.
#[test]
fn a_tool_that_takes_itself_away_still_answers() {
    let own: Arc<Mutex<Option<Server>>> = Arc::default();
    let server = own.clone();
    let last = Tool::new("last");
    let built = library().list_changes().tool(last, move |_: Arguments, _| {
        let server = server.lock().unwrap().clone().unwrap();
        async move {
            server.change(|offer| offer.remove_tool("last"))?;
            Ok::<_, mcpbolt::server::HandlerError>("gone")
        }
    });
    let built = built.build().unwrap();
    *own.lock().unwrap() = Some(built.clone());
    let client = block_on(Client::builder("test", "1").connect(&built)).unwrap();
    assert_eq!(call(&client, "last", &json!({})), Ok("gone".into()));
    assert!(
        call(&client, "last", &json!({}))
            .unwrap_err()
            .contains("unknown tool")
    );
    own.lock().unwrap().take();
}

/// R-LOG-01, R-LOG-02, R-LOG-03.
#[test]
fn log_messages_come_from_the_level_that_is_asked_for() {
    let server = server(0).tool(
        Tool::new("log"),
        |_: Arguments, context: Context| async move {
            for level in [LogLevel::Debug, LogLevel::Warning, LogLevel::Emergency] {
                context.log(level, Some("test"), &json!({"level": level.name()}));
            }
            "logged"
        },
    );
    let server = server.build().unwrap();
    let told = Told::default();
    let listen = |builder| told.listen(builder);
    with_clients(&server, Revision::ALL, listen, |revision, client| {
        let none = json!({});
        let run = |call: mcpbolt::client::CallTool| {
            assert_eq!(call.wait().unwrap().text(), "logged");
        };
        if revision.era() == Era::Stateless {
            run(client.call_tool("log", &none));
            assert!(told.is_empty());
            let error = block_on(client.set_log_level(LogLevel::Error)).unwrap_err();
            assert!(matches!(error, RequestError::Unsupported(_)));
            let level = json!({ mcpbolt::mcp::meta::LOG_LEVEL: "emergency" });
            run(client.call_tool("log", &none).meta(&level));
        } else {
            block_on(client.set_log_level(LogLevel::Error)).unwrap();
            run(client.call_tool("log", &none));
        }
        assert_eq!(told.next(), r#"emergency {"level":"emergency"}"#);
        assert!(told.is_empty());
    });
}

/// R-PAG-01.
#[test]
fn lists_come_page_by_page() {
    let size = std::num::NonZeroUsize::new(2).unwrap();
    let server = server(5).page_size(size).build().unwrap();
    with_clients(
        &server,
        Revision::ALL,
        |builder| builder,
        |_, client| {
            let mut pages = client.tool_pages();
            let mut sizes = Vec::new();
            while let Some(page) = block_on(pages.next()) {
                sizes.push(page.unwrap().len());
            }
            assert_eq!(sizes, [2, 2, 1]);
            assert!(block_on(pages.next()).is_none());
            let mut prompts = client.prompt_pages();
            let error = block_on(prompts.next()).unwrap().unwrap_err();
            assert_eq!(error, RequestError::Unsupported("prompts"));
            assert!(block_on(prompts.next()).is_none());
        },
    );
}

/// R-SUB-01 to R-SUB-05, R-SUB-08, R-SUB-09, R-SUB-11, R-SUB-12, as they stand on the wire, R-CAN-08.
#[test]
fn a_stream_says_whose_it_is_from_its_acknowledgement_to_its_end() {
    let mut world = Wire::new(library().subscriptions().list_changes().build().unwrap());
    let ask = |world: &mut Wire, id: &str, filter: &str| {
        let meta = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;
        let params = format!("{{\"notifications\":{filter},{meta}}}");
        world.say(&format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"subscriptions/listen\",\"params\":{params}}}"
        ))
    };
    let told = |id: serde_json::Value, method: &str, mut params: serde_json::Value| {
        params["_meta"] = json!({ mcpbolt::mcp::meta::SUBSCRIPTION_ID: id });
        json!({"jsonrpc": "2.0", "method": method, "params": params})
    };
    let refused = ask(&mut world, "1", "7");
    assert_eq!(refused[0]["error"]["code"], -32602);
    let filter = r#"{"toolsListChanged":true,"promptsListChanged":false,"resourceSubscriptions":["a:1","c:1"]}"#;
    let acknowledged =
        json!({"notifications": {"toolsListChanged": true, "resourceSubscriptions": ["a:1"]}});
    let first = ask(&mut world, "\"1\"", filter);
    let acknowledgement = "notifications/subscriptions/acknowledged";
    assert_eq!(first, [told(json!("1"), acknowledgement, acknowledged)]);
    let second = ask(&mut world, "1", r#"{"promptsListChanged":true}"#);
    let prompts = json!({"notifications": {"promptsListChanged": true}});
    assert_eq!(second, [told(json!(1), acknowledgement, prompts)]);
    grow(&world.server).unwrap();
    world.server.resource_updated("a:1");
    world.server.resource_updated("b:1");
    let heard = [
        told(json!("1"), "notifications/tools/list_changed", json!({})),
        told(json!(1), "notifications/prompts/list_changed", json!({})),
        told(
            json!("1"),
            "notifications/resources/updated",
            json!({"uri": "a:1"}),
        ),
    ];
    assert_eq!(world.hear(), heard);
    let cancelled =
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"1"}}"#;
    assert!(world.say(cancelled).is_empty());
    world.server.resource_updated("a:1");
    assert!(world.hear().is_empty());
    world.drain();
    let end = world.hear();
    assert_eq!(end[0]["id"], 1);
    let result = &end[0]["result"];
    assert_eq!(result["resultType"], "complete");
    assert_eq!(result["_meta"][mcpbolt::mcp::meta::SUBSCRIPTION_ID], 1);
    assert_eq!(end[1]["method"], "notifications/cancelled");
    assert_eq!(end[1]["params"], json!({"requestId": 1}));
    assert_eq!(end.len(), 2);
    assert!(world.connection.is_closed(), "an open stream delays no end");
}

#[test]
fn each_page_of_a_list_has_the_meta_of_its_list() {
    let meta = json!({"example.com/shelf": "left"});
    let server = server(3).page_size(2.try_into().unwrap());
    let server = server.list_meta(Method::ListTools, &meta).build().unwrap();
    in_each_revision(&server, |revision, client| {
        let listed = |method: &str, params: Option<&str>| -> Value {
            let asked = client.request(method, params, RequestOptions::default());
            let answer = block_on(asked.unwrap()).unwrap();
            serde_json::from_str(answer.as_ref().result().unwrap()).unwrap()
        };
        let first = listed("tools/list", None);
        let second = json!({"cursor": first["nextCursor"]}).to_string();
        for page in [&first, &listed("tools/list", Some(&second))] {
            assert_eq!(page["_meta"]["example.com/shelf"], "left", "{page}");
            // R-MET-06
            let name = &page["_meta"]["io.modelcontextprotocol/serverInfo"]["name"];
            assert_eq!(name.is_string(), revision.era() == Era::Stateless, "{page}");
        }
    });
    for (method, meta, named) in [
        (Method::ListTools, json!([]), "tools/list"),
        (Method::CallTool, meta, "tools/call"),
    ] {
        let refused = Server::builder("test", "1").list_meta(method, meta).build();
        let error = refused.unwrap_err().to_string();
        assert!(error.contains(named) && error.contains("_meta"), "{error}");
    }
}
