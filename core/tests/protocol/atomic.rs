//! Tools that are undone where they fail, and tools whose results are kept.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcpbolt::mcp::Revision;
use mcpbolt::policy::Policy;
use mcpbolt::server::{
    Arguments, CacheScope, Context, HandlerError, Json, Results, Server, Steps, Tool, ToolResult,
};
use serde_json::{Value, json};

use crate::wire::Wire;

type Log = Arc<Mutex<Vec<String>>>;

/// Takes two steps, then ends as it is told to.
fn booking(log: &Log) -> Server {
    let log = log.clone();
    let book = move |arguments: Arguments, context: Context, steps: Steps| {
        let log = log.clone();
        async move {
            for step in ["room", "car"] {
                log.lock().unwrap().push(format!("take {step}"));
                let log = log.clone();
                steps.taken(move || {
                    log.lock().unwrap().push(format!("give {step}"));
                    assert_ne!(step, "car", "one that fails leaves the others their turn");
                });
            }
            let params: Value = serde_json::from_str(&arguments.0)?;
            match params["end"].as_str().unwrap_or_default() {
                "typed" => Err(HandlerError::typed("CONFLICT", "taken")),
                "failed" => Ok(ToolResult::error("no")),
                "panic" => panic!("no"),
                "late" => {
                    context.sleep(Duration::from_secs(3600)).await;
                    Ok(ToolResult::text("late"))
                }
                _ => Ok(ToolResult::text("booked")),
            }
        }
    };
    let tool = Tool::new("stay.book").description("Books a stay.");
    let policy = Policy::new().tool_timeout(Duration::from_secs(10));
    let server = Server::builder("hotel", "1").actions(true).policy(policy);
    server.atomic_tool(tool, book).build().unwrap()
}

/// R-ACT-18, R-ACT-23: what does not fit the output schema is no good end, and is not kept.
#[test]
fn a_result_that_does_not_fit_is_a_failure() {
    let schema = json!({"type": "object", "properties": {"price": {"type": "number"}}});
    let undone = Arc::new(AtomicU32::new(0));
    let (undo, runs) = (undone.clone(), Arc::new(AtomicU32::new(0)));
    let run = runs.clone();
    let results = Results::new(Duration::from_secs(3600), CacheScope::Public);
    let server = Server::builder("shop", "1")
        .actions(true)
        .atomic_tool(
            Tool::new("price.set").output_schema(&schema),
            move |_: Arguments, _: Context, steps: Steps| {
                let undo = undo.clone();
                steps.taken(move || {
                    undo.fetch_add(1, Ordering::Relaxed);
                });
                async { Json(json!({"price": "seven"})) }
            },
        )
        .kept_tool(
            Tool::new("price.get").output_schema(&schema),
            &results,
            move |_: Arguments, _: Context| {
                run.fetch_add(1, Ordering::Relaxed);
                async { Json(json!({"price": "seven"})) }
            },
        );
    let mut wire = Wire::new(server.build().unwrap());
    for action in ["price.set", "price.get", "price.get"] {
        let answer = wire.act(&json!({"action": action, "params": {}}).to_string());
        assert_eq!(answer["status"], "error", "{action}: {answer}");
    }
    assert_eq!(undone.load(Ordering::Relaxed), 1);
    assert_eq!(runs.load(Ordering::Relaxed), 2);
}

/// R-ACT-23: what a handler saw before something was forgotten is not kept after.
#[test]
fn what_was_under_way_when_it_was_forgotten_is_not_kept() {
    let results = Results::new(Duration::from_secs(3600), CacheScope::Public);
    let runs = Arc::new(AtomicU32::new(0));
    let (stale, run) = (results.clone(), runs.clone());
    let price = move |_: Arguments, _: Context| {
        let first = run.fetch_add(1, Ordering::Relaxed) == 0;
        let stale = stale.clone();
        async move {
            if first {
                stale.forget("price.get");
            }
            "7"
        }
    };
    let server = Server::builder("shop", "1").actions(true).kept_tool(
        Tool::new("price.get"),
        &results,
        price,
    );
    let mut wire = Wire::new(server.build().unwrap());
    for expected in [1, 2, 2] {
        wire.act(r#"{"action":"price.get","params":{}}"#);
        assert_eq!(runs.load(Ordering::Relaxed), expected);
    }
}

/// R-ACT-18: however an atomic action fails, it is undone, the last step first; it says so in its
/// description and its schema.
#[test]
fn what_fails_is_undone() {
    let all = ["take room", "take car"];
    let undone = ["take room", "take car", "give car", "give room"];
    for (end, kind, expected) in [
        ("good", "", &all[..]),
        ("typed", "CONFLICT", &undone),
        ("failed", "INTERNAL_SERVER_ERROR", &undone),
        ("panic", "INTERNAL_SERVER_ERROR", &undone),
        ("late", "TIMEOUT_ERROR", &undone),
    ] {
        let log = Log::default();
        let mut wire = Wire::new(booking(&log));
        let line = json!({"action": "stay.book", "params": {"end": end}}).to_string();
        let answer = match end {
            "late" => {
                assert_eq!(wire.say(&line), [0; 0]);
                wire.hear_until(|_| log.lock().unwrap().len() == 2);
                let heard = wire.pass(Duration::from_secs(20));
                // The handler is dropped where it runs.
                wire.hear_until(|_| log.lock().unwrap().len() == 4);
                heard[0].clone()
            }
            _ => wire.act(&line),
        };
        assert_eq!(
            answer["error"]["type"].as_str().unwrap_or(""),
            kind,
            "{end}: {answer}"
        );
        assert_eq!(*log.lock().unwrap(), expected, "{end}");
    }
    let mut wire = Wire::new(booking(&Log::default()));
    let shown = wire.act(r#"{"action":"mcp.get_schema","params":{"action_name":"stay.book"}}"#);
    let shown = &shown["data"]["actions"]["stay.book"];
    assert_eq!(shown["atomic"], "transactional");
    let described = "Books a stay. Atomic: what it did is undone where it fails.";
    assert_eq!(shown["description"], described);
}

/// The same of a call of MCP.
#[test]
fn a_call_of_the_tool_is_undone_too() {
    let log = Log::default();
    let mut wire = Wire::new(booking(&log));
    let params = json!({"name": "stay.book", "arguments": {"end": "failed"}});
    let answer = wire.ask(Revision::V2026_07_28, "tools/call", params);
    assert_eq!(answer["result"]["isError"], true);
    assert_eq!(log.lock().unwrap().len(), 4);
}

/// R-ACT-23: the same call gets the same answer until it is forgotten; failures are not kept, and
/// what is one client's is not another's.
#[test]
fn results_are_kept_until_they_are_forgotten() {
    for (scope, principals, runs) in [
        (CacheScope::Public, ["ada", "bob"], 1),
        (CacheScope::Private, ["ada", "bob"], 2),
        (CacheScope::Private, ["ada", "ada"], 1),
        (CacheScope::Private, ["", ""], 4),
    ] {
        let results = Results::new(Duration::from_secs(3600), scope);
        let count = Arc::new(AtomicU32::new(0));
        let counted = count.clone();
        let price = move |arguments: Arguments, _: Context| {
            let count = counted.fetch_add(1, Ordering::Relaxed);
            let bad = arguments.0.contains("bad");
            async move {
                match bad {
                    true => Err(HandlerError::typed("RESOURCE_NOT_FOUND", "no such thing")),
                    false => Ok(Json(json!({ "price": count }))),
                }
            }
        };
        let server = Server::builder("shop", "1").actions(true).kept_tool(
            Tool::new("price.get"),
            &results,
            price,
        );
        let server = server.build().unwrap();
        let open = |who: &str| {
            let mut wire = Wire::new(server.clone());
            if !who.is_empty() {
                wire.connection.set_principal(who);
            }
            wire
        };
        let ask = |wire: &mut Wire, params: Value| {
            wire.act(&json!({"action": "price.get", "params": params}).to_string())
        };
        for who in principals {
            let mut wire = open(who);
            let first = ask(&mut wire, json!({"of": "tea"}));
            assert_eq!(first["status"], "success");
            let params = json!({"name": "price.get", "arguments": {"of": "tea"}});
            let second = wire.ask(Revision::V2026_07_28, "tools/call", params);
            if !who.is_empty() || scope == CacheScope::Public {
                assert_eq!(second["result"]["structuredContent"], first["data"]);
            }
        }
        assert_eq!(
            count.load(Ordering::Relaxed),
            runs,
            "{scope:?} {principals:?}"
        );
        let mut wire = open("ada");
        let asked = |wire: &mut Wire, params: Value| {
            let before = count.load(Ordering::Relaxed);
            ask(wire, params);
            count.load(Ordering::Relaxed) - before
        };
        asked(&mut wire, json!({"of": "tea"}));
        assert_eq!(asked(&mut wire, json!({"of": "tea"})), 0);
        assert_eq!(asked(&mut wire, json!({"of": "salt"})), 1);
        assert_eq!(asked(&mut wire, json!({"of": "bad"})), 1);
        assert_eq!(asked(&mut wire, json!({"of": "bad"})), 1);
        results.forget("price.other");
        assert_eq!(asked(&mut wire, json!({"of": "tea"})), 0);
        results.forget("price.get");
        assert_eq!(asked(&mut wire, json!({"of": "tea"})), 1);
        results.forget_all();
        assert_eq!(asked(&mut wire, json!({"of": "tea"})), 1);
    }
}
