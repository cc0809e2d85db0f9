//! Access to entries and data: guards, states, secrets, names.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use mcpbolt::client::{Client, block_on};
use mcpbolt::connection::Principal;
use mcpbolt::mcp::{Era, ErrorKind, LogLevel, Method, Revision, Revisions};
use mcpbolt::model::Elicitation;
use mcpbolt::policy::Policy;
use mcpbolt::server::{
    Arguments, CacheScope, Context, HandlerError, Prompt, PromptResult, Resource, ResourceContents,
    Server, Tool,
};
use serde_json::{Value, json};

use crate::server;
use crate::wire::Wire;

const NEWEST: Revision = Revision::V2026_07_28;

fn code(answer: &Value) -> i64 {
    answer["error"]["code"].as_i64().unwrap_or_default()
}

async fn note(uri: String) -> Result<ResourceContents, HandlerError> {
    Ok(ResourceContents::text(uri, "text"))
}

/// R-TOL-03, R-RES-13, R-CCH-10: what lists and caches show may be shown to all; what is done with
/// it is asked of the guard each time.
#[test]
fn a_guard_judges_every_access() {
    let server = server(1)
        .cache_lists(Duration::from_secs(3600), CacheScope::Public)
        .subscriptions()
        .resource(Resource::new("open:1", "open"), |uri, _| note(uri))
        .resource(Resource::new("secret:1", "secret"), |uri, _| note(uri))
        .resource_template(Resource::new("secret:{x}", "more"), |uri, _, _| note(uri))
        .prompt(
            Prompt::new("secret").argument("a", "A", false),
            |_, _| async { Ok(PromptResult::user("x")) },
        )
        .completion(|_, _| async { Ok(Vec::new()) })
        .guard(|access| match (access.name, access.principal) {
            ("panic", _) => panic!("a guard"),
            (name, Some("ada")) | (name @ "open:1", _) => {
                assert!(!name.is_empty());
                Ok(())
            }
            _ if access.method == Method::ReadResource => Err(HandlerError::not_found("no")),
            _ => Err(HandlerError::protocol(
                ErrorKind::InvalidRequest,
                "not for you",
            )),
        });
    let server = server.build().unwrap();
    let prompt = json!({"type": "ref/prompt", "name": "secret"});
    let accesses = [
        ("tools/call", json!({"name": "tool-0"})),
        ("resources/read", json!({"uri": "secret:1"})),
        ("resources/read", json!({"uri": "secret:2"})),
        ("prompts/get", json!({"name": "secret"})),
        (
            "completion/complete",
            json!({"ref": prompt, "argument": {"name": "a", "value": ""}}),
        ),
        ("resources/subscribe", json!({"uri": "secret:1"})),
    ];
    for (revision, principal) in Revision::ALL
        .into_iter()
        .flat_map(|revision| [None, Some("eve"), Some("ada")].map(|who| (revision, who)))
    {
        let mut wire = Wire::open(&server, revision, json!({}));
        if let Some(principal) = principal {
            wire.connection.set_principal(principal);
        }
        let listed = wire.ask(revision, "resources/list", json!({}));
        assert_eq!(listed["result"]["resources"].as_array().unwrap().len(), 2);
        if revision == NEWEST {
            assert_eq!(listed["result"]["cacheScope"], "public");
        }
        for (method, params) in &accesses {
            if *method == "resources/subscribe" && revision == NEWEST {
                continue;
            }
            let answer = wire.ask(revision, method, params.clone());
            let refused = match (principal, *method) {
                (Some("ada"), _) => 0,
                (_, "resources/read") => ErrorKind::ResourceNotFound.code(revision),
                _ => -32600,
            };
            assert_eq!(code(&answer), refused, "{revision} {principal:?} {method}");
        }
        let open = wire.ask(revision, "resources/read", json!({"uri": "open:1"}));
        assert_eq!(open["result"]["contents"][0]["text"], "text");
        let panics = wire.ask(revision, "tools/call", json!({"name": "panic"}));
        assert_eq!(code(&panics), -32603);
    }
    // Streams of 2026-07-28 are acknowledged without what is not admitted.
    for (principal, uris) in [
        ("eve", json!(["open:1"])),
        ("ada", json!(["open:1", "secret:1"])),
    ] {
        let mut wire = Wire::open(&server, NEWEST, json!({}));
        wire.connection.set_principal(principal);
        let filter = json!({"resourceSubscriptions": ["open:1", "secret:1"]});
        let begun = wire.begin("subscriptions/listen", json!({ "notifications": filter }));
        assert_eq!(
            begun[0]["params"]["notifications"]["resourceSubscriptions"],
            uris
        );
    }
}

/// Who may not read a resource for want of a scope hears of no change of it.
#[test]
fn streams_of_changes_need_the_scopes_of_what_they_watch() {
    let server = server(0)
        .subscriptions()
        .resource(Resource::new("open:1", "open"), |uri, _| note(uri))
        .resource(Resource::new("secret:1", "secret"), |uri, _| note(uri))
        .policy(Policy::new().resource_scope("secret:*", "secrets"));
    let server = server.build().unwrap();
    for (scopes, uris) in [
        (vec![], json!(["open:1"])),
        (vec!["secrets"], json!(["open:1", "secret:1"])),
    ] {
        let mut wire = Wire::open(&server, NEWEST, json!({}));
        let who = Principal::new("ada").with_scopes(scopes);
        wire.connection.set_principal(who);
        let filter = json!({"resourceSubscriptions": ["open:1", "secret:1"]});
        let begun = wire.begin("subscriptions/listen", json!({ "notifications": filter }));
        let acknowledged = &begun[0]["params"]["notifications"]["resourceSubscriptions"];
        assert_eq!(*acknowledged, uris);
    }
}

/// R-MRT-09, R-ELI-12: what a client keeps for a server is for who got it, and may be for once.
#[test]
fn a_state_is_bound_to_who_got_it_and_to_one_use() {
    let ask = |_: Arguments, context: Context| async move {
        let form = json!({"type": "object", "properties": {"name": {"type": "string"}}});
        let answer = context.elicit(Elicitation::form("Who?", form)).await?;
        Ok::<_, HandlerError>(format!("{:?} {answer:?}", context.principal()))
    };
    let server = |once: bool| {
        let server = server(0).tool(Tool::new("ask"), ask);
        let server = if once {
            server.single_use_states()
        } else {
            server
        };
        server.build().unwrap()
    };
    let capabilities = json!({"elicitation": {"form": {}}});
    let wire = |server: &Server, principal: Option<&str>| {
        let mut wire = Wire::open(server, NEWEST, capabilities.clone());
        if let Some(principal) = principal {
            wire.connection.set_principal(principal);
        }
        wire
    };
    let call = |wire: &mut Wire, more: Value| {
        let mut params = json!({"name": "ask", "arguments": {}});
        let members = params.as_object_mut().unwrap();
        members.extend(more.as_object().unwrap().clone());
        wire.ask(NEWEST, "tools/call", params)
    };
    for once in [false, true] {
        let server = server(once);
        let [mut ada, mut again, mut eve, mut nobody] =
            [Some("ada"), Some("ada"), Some("eve"), None].map(|who| wire(&server, who));
        let question = call(&mut ada, json!({}))["result"].clone();
        let key = question["inputRequests"]
            .as_object()
            .unwrap()
            .keys()
            .next()
            .unwrap()
            .clone();
        let answers = json!({ key: {"action": "accept", "content": {"name": "x"}} });
        let answered = json!({"inputResponses": answers, "requestState": question["requestState"]});
        for other in [&mut eve, &mut nobody] {
            assert_eq!(code(&call(other, answered.clone())), -32602);
        }
        // From another connection of the same person, too.
        let done = call(&mut again, answered.clone());
        let text = done["result"]["content"][0]["text"].as_str().unwrap();
        assert!(text.starts_with("Some(\"ada\") Accepted"), "{text}");
        let second = call(&mut ada, answered.clone());
        assert_eq!(code(&second), if once { -32602 } else { 0 }, "{second}");
        // The same question, asked twice in one second, is two.
        let states = [(); 2].map(|()| call(&mut ada, json!({}))["result"]["requestState"].clone());
        for state in states {
            let answered = json!({"inputResponses": answers, "requestState": state});
            assert_eq!(code(&call(&mut ada, answered)), 0);
        }
    }
}

/// R-LOG-05.
#[test]
fn no_secret_is_logged() {
    let log = |_: Arguments, context: Context| async move {
        let data =
            json!({"user": "ada", "tokens": 7, "login": {"password": "hunter2", "api_key": ["k"]}});
        context.log(LogLevel::Error, None, &data);
        context.log(LogLevel::Error, None, &json!("plain"));
        "logged"
    };
    let server = server(0).tool(Tool::new("log"), log).build().unwrap();
    let mut wire = Wire::open(&server, Revision::V2025_11_25, json!({}));
    let mut heard = wire.begin("tools/call", json!({"name": "log"}));
    heard.extend(wire.hear_until(|wire| wire.connection.in_flight() == 0));
    let data: Vec<_> = heard.iter().map(|said| &said["params"]["data"]).collect();
    let masked =
        json!({"user": "ada", "tokens": 7, "login": {"password": "***", "api_key": "***"}});
    assert_eq!(data[..2], [&masked, &json!("plain")]);
}

/// R-MET-07: whatever a client calls itself, it is answered in the same bytes.
#[test]
fn a_name_changes_nothing() {
    let server = server(2).list_changes().build().unwrap();
    for revision in Revision::ALL {
        let answers = |info: Value| {
            let mut wire = Wire::open_as(&server, revision, json!({}), &info);
            let asked = [
                ("tools/list", json!({})),
                ("tools/call", json!({"name": "tool-1"})),
                ("tools/call", json!({"name": "nobody"})),
                ("prompts/list", json!({})),
            ];
            let answer = |(method, mut params): (&str, Value)| {
                if revision.era() == Era::Stateless {
                    params["_meta"][mcpbolt::mcp::meta::CLIENT_INFO] = info.clone();
                }
                wire.ask(revision, method, params).to_string()
            };
            asked.map(answer)
        };
        let plain = answers(json!({"name": "a", "version": "1"}));
        for other in [
            json!({"name": "admin", "version": "999", "title": "Root", "icons": []}),
            json!({"name": "", "version": ""}),
            json!({"name": "mcpbolt", "version": "1", "principal": "ada"}),
        ] {
            assert_eq!(answers(other.clone()), plain, "{revision} {other}");
        }
    }
}

/// R-CCH-05: what one client may keep, no other is given.
#[test]
fn nothing_that_is_kept_is_shared() {
    let asked = Arc::new(AtomicUsize::new(0));
    for scope in [CacheScope::Private, CacheScope::Public] {
        let server = server(1).cache_lists(Duration::from_secs(3600), scope);
        let server = server.build().unwrap();
        let connect = || {
            let asked = asked.clone();
            let trace = mcpbolt::connection::Trace::new(move |_, line| {
                let is_request = line.contains("\"method\":\"tools/list\"");
                asked.fetch_add(usize::from(is_request), Ordering::Relaxed);
            });
            let builder = Client::builder("x", "1").revisions(Revisions::only(NEWEST));
            block_on(builder.trace(trace).connect(&server)).unwrap()
        };
        let clients = [connect(), connect()];
        asked.store(0, Ordering::Relaxed);
        for count in 1..=2 {
            for _ in 0..3 {
                block_on(clients[count - 1].list_tools()).unwrap();
                assert_eq!(asked.load(Ordering::Relaxed), count, "{scope:?}");
            }
        }
    }
}
