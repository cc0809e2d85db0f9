//! Extensions of programs, and changes while they run.

use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use mcpbolt::client::{Client, block_on};
use mcpbolt::error::RequestError;
use mcpbolt::mcp::{Era, Revision};
use mcpbolt::server::{
    Arguments, Context, HandlerError, Prompt, PromptResult, RegistryError, Resource,
    ResourceContents, Server, Tool, schemars, serde,
};
use serde_json::{Value, json};

use crate::asks::with_clients;
use crate::server;
use crate::wire::Wire;

const ID: &str = "com.example/ranking";

#[derive(serde::Deserialize, schemars::JsonSchema)]
#[serde(crate = "mcpbolt::server::serde")]
#[schemars(crate = "mcpbolt::server::schemars")]
struct Explain {
    document: u32,
}

fn ranking() -> mcpbolt::server::Builder {
    server(1).extension(ID, r#"{"depth":3}"#).extension_method(
        ID,
        "com.example/explain",
        |explain: Explain, context: Context| async move {
            match explain.document {
                7 => Ok(json!({"because": context.extension(ID).unwrap_or("?")})),
                8 => Ok(json!("no object")),
                _ => Err(HandlerError::invalid("no such document")),
            }
        },
    )
}

/// R-EXT-04: methods of an extension, for who declared it.
#[test]
fn an_extension_has_methods_of_its_own() {
    let server = ranking().build().unwrap();
    let declare = |builder: mcpbolt::client::ClientBuilder| builder.extension(ID, r#"{"b":1}"#);
    with_clients(&server, Revision::ALL, declare, |revision, client| {
        let ask = |document: Value| {
            let params = json!({ "document": document });
            block_on(client.ask_extension::<Value>(ID, "com.example/explain", &params))
        };
        if revision.era() == Era::Handshake {
            assert_eq!(client.extension(ID), None);
            assert!(matches!(ask(json!(7)), Err(RequestError::Unsupported(_))));
            return;
        }
        assert_eq!(client.extension(ID), Some(r#"{"depth":3}"#));
        assert_eq!(ask(json!(7)).unwrap()["because"], r#"{"b":1}"#);
        for (document, code) in [(json!(9), -32602), (json!("x"), -32602), (json!(8), -32603)] {
            assert_eq!(ask(document).unwrap_err().code(), Some(code));
        }
    });
    // Clients that did not declare it cannot use it, neither here nor by hand.
    let client = block_on(Client::builder("x", "1").connect(&server)).unwrap();
    let refused = block_on(client.ask_extension::<Value>(ID, "com.example/explain", &json!({})));
    assert!(matches!(refused, Err(RequestError::Unsupported(_))));
    for revision in Revision::ALL {
        let mut wire = Wire::open(&server, revision, json!({}));
        let answer = wire.ask(revision, "com.example/explain", json!({"document": 7}));
        let error = &answer["error"];
        match revision.era() {
            Era::Handshake => assert_eq!(error["code"], -32601),
            Era::Stateless => {
                assert_eq!(error["code"], -32021);
                let required = json!({"requiredCapabilities": {"extensions": {ID: {}}}});
                assert_eq!(error["data"], required);
            }
        }
    }
}

#[test]
fn a_method_belongs_to_an_extension_and_to_no_other() {
    let method = |id: &str, name: &str| {
        let made = |_: Arguments, _| async { Ok(json!({})) };
        ranking()
            .extension_method(id, name, made)
            .build()
            .unwrap_err()
    };
    assert!(matches!(
        method("com.example/other", "a/b"),
        RegistryError::Extension(_)
    ));
    for taken in ["com.example/explain", "tools/list"] {
        assert!(
            matches!(method(ID, taken), RegistryError::Duplicate(_)),
            "{taken}"
        );
    }
    assert!(matches!(method(ID, ""), RegistryError::EmptyName));
}

/// R-EXT-04: notifications of an extension, both ways.
#[test]
fn an_extension_has_notifications_of_its_own() {
    let (tell, told) = mpsc::channel();
    let tell = Mutex::new(tell);
    let server = ranking().on_extension_notice("notifications/clicked", move |params, handle| {
        tell.lock().unwrap().send(params.to_owned()).unwrap();
        handle
            .notify("notifications/ranked", Some(r#"{"n":2}"#))
            .unwrap();
    });
    let mut wire = Wire::open(&server.build().unwrap(), Revision::V2026_07_28, json!({}));
    let heard = wire.say(r#"{"jsonrpc":"2.0","method":"notifications/clicked","params":{"n":1}}"#);
    assert_eq!(
        told.recv_timeout(Duration::from_secs(30)).unwrap(),
        r#"{"n":1}"#
    );
    let ranked = json!({"jsonrpc": "2.0", "method": "notifications/ranked", "params": {"n": 2}});
    assert_eq!(heard, [ranked]);
    assert!(
        wire.say(r#"{"jsonrpc":"2.0","method":"notifications/other"}"#)
            .is_empty()
    );
}

/// Adds one of each kind, and takes it away again if `stays` does not hold.
fn churn(server: &Server, name: &str, stays: bool) {
    let uri = format!("a:{name}");
    let template = format!("{uri}:{{x}}");
    let read = |uri: String| async { Ok(ResourceContents::text(uri, "")) };
    let grown = server.change(|offer| {
        offer
            .tool(Tool::new(name), |_: Arguments, _| async { "new" })
            .resource(Resource::new(&uri, "r"), move |uri, _| read(uri))
            .resource_template(Resource::new(&template, "t"), move |uri, _, _| read(uri))
            .prompt(Prompt::new(name), |_, _| async {
                Ok(PromptResult::user("Hi"))
            })
    });
    grown.unwrap();
    if !stays {
        let shrunk = server.change(|offer| {
            let offer = offer.remove_tool(name).remove_prompt(name);
            offer
                .remove_resource(&uri)
                .remove_resource_template(&template)
        });
        shrunk.unwrap();
    }
}

/// R-TOL-07, R-RES-09, R-PRM-07: many changes between two looks at the queue are told once.
#[test]
fn what_changes_again_before_it_is_told_is_told_once() {
    let server = server(1).list_changes().build().unwrap();
    let methods = |heard: Vec<Value>| -> Vec<String> {
        let mut all: Vec<_> = heard
            .iter()
            .map(|said| said["method"].as_str().unwrap().to_owned())
            .collect();
        all.sort_unstable();
        all
    };
    let once = [
        "notifications/prompts/list_changed",
        "notifications/resources/list_changed",
        "notifications/tools/list_changed",
    ];
    for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
        let mut wire = Wire::open(&server, revision, json!({}));
        let streams = match revision.era() {
            Era::Handshake => 1,
            Era::Stateless => {
                let filter = json!({"toolsListChanged": true, "promptsListChanged": true, "resourcesListChanged": true});
                for id in ["1", "2"] {
                    let meta = json!({mcpbolt::mcp::meta::PROTOCOL_VERSION: revision.name(), mcpbolt::mcp::meta::CLIENT_CAPABILITIES: {}});
                    let params = json!({"notifications": filter, "_meta": meta});
                    let line = json!({"jsonrpc": "2.0", "id": id, "method": "subscriptions/listen", "params": params});
                    assert_eq!(wire.say(&line.to_string()).len(), 1);
                }
                2
            }
        };
        let expected: Vec<_> = once
            .iter()
            .flat_map(|method| vec![*method; streams])
            .collect();
        for _ in 0..3 {
            (0..100).for_each(|_| churn(&server, "new", false));
            assert_eq!(methods(wire.hear()), expected, "{revision}");
            assert!(wire.hear().is_empty());
        }
        // Notifications after the change show the change.
        churn(&server, "last", true);
        assert_eq!(methods(wire.hear()), expected);
        let tools = wire.ask(revision, "tools/list", json!({}))["result"]["tools"].clone();
        assert_eq!(tools.as_array().unwrap().last().unwrap()["name"], "last");
        let away = server.change(|offer| {
            let offer = offer.remove_tool("last").remove_prompt("last");
            offer
                .remove_resource("a:last")
                .remove_resource_template("a:last:{x}")
        });
        away.unwrap();
    }
}

/// A call that was accepted for a tool which is another by now is never carried out by that other.
#[test]
fn what_comes_and_goes_is_never_taken_for_something_else() {
    let server = server(0).list_changes().build().unwrap();
    let stop = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let (changes, ends) = (server.clone(), stop.clone());
    let churns = std::thread::spawn(move || {
        let mut round = 0_u64;
        while !ends.load(std::sync::atomic::Ordering::Relaxed) {
            for name in ["a", "b"] {
                let changed = changes.change(|offer| {
                    let offer = offer.remove_tool("a").remove_tool("b");
                    offer.tool(Tool::new(name), move |_: Arguments, _| async move { name })
                });
                changed.unwrap();
            }
            round += 1;
        }
        round
    });
    let client = block_on(Client::builder("x", "1").connect(&server)).unwrap();
    let mut answered = 0;
    for n in 0..1000 {
        let name = ["a", "b"][n % 2];
        match client.call_tool(name, &json!({})).wait() {
            Ok(result) => {
                assert_eq!(result.text(), name);
                answered += 1;
            }
            Err(RequestError::Peer(error)) => {
                assert!(matches!(error.code, -32602 | -32601), "{error:?}");
            }
            Err(other) => panic!("{other}"),
        }
    }
    stop.store(true, std::sync::atomic::Ordering::Relaxed);
    assert!(churns.join().unwrap() > 0 && answered > 0);
}
