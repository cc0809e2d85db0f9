//! Waiting within the carrier, and its limits: nothing waits for ever.

use std::sync::{Mutex, mpsc};
use std::time::Duration;

use mcpbolt::client::Client;
use mcpbolt::error::RequestError;
use mcpbolt::io::http::HttpClientOptions;
use mcpbolt::limits::Limits;
use mcpbolt::mcp::Revision;
use mcpbolt::model::Elicited;
use serde_json::json;

use super::PATIENCE;
use super::scripted::{Scripted, opening};
use super::serving::builder;

/// One request at a time.
fn single() -> HttpClientOptions {
    HttpClientOptions {
        max_concurrent: Some(1),
        ..HttpClientOptions::default()
    }
}

/// A call that waits for an answer of this side ends although very much waits for the call.
#[test]
fn what_waits_for_a_call_does_not_hold_up_what_the_call_waits_for() {
    let (queued, all) = mpsc::channel();
    let (answered, answer) = mpsc::channel();
    let (all, answer) = (Mutex::new(all), Mutex::new(answer));
    let server = Scripted::handshake("2025-11-25", move |request, wire| {
        match (&*request.verb, request.method()) {
            ("POST", "tools/call") if request.body["params"]["name"] == "ask" => {
                wire.events();
                all.lock().unwrap().recv_timeout(PATIENCE).unwrap();
                let form = json!({"type": "object", "properties": {"name": {"type": "string"}}});
                let params = json!({"message": "Who?", "requestedSchema": form});
                let ask = json!({"jsonrpc": "2.0", "id": 1, "method": "elicitation/create", "params": params});
                wire.raw(format!("data: {ask}\n\n"));
                let answer = answer.lock().unwrap().recv_timeout(PATIENCE).unwrap();
                wire.raw(format!("data: {}\n\n", request.said(answer)));
                wire.close();
            }
            ("POST", "tools/call") => wire.json(&request.said("fine")),
            ("POST", "") => {
                let name = request.body["result"]["content"]["name"].as_str();
                answered
                    .send(if name == Some("Ada") { "Ada" } else { "?" })
                    .unwrap();
                wire.answer(202, "", "");
            }
            _ => wire.answer(405, "", ""),
        }
    });
    let asked = builder(Revision::V2025_11_25).on_form(|_, _| async {
        let content = json!({"name": "Ada"});
        Ok(Elicited::Accepted(content.as_object().unwrap().clone()))
    });
    let client = server.with(asked, single());
    let call = |name, arguments| {
        let call = client.call_tool(name, &arguments).timeout(PATIENCE * 2);
        call.send().unwrap()
    };
    let asking = call("ask", json!({}));
    let text = "x".repeat(64 << 10);
    let waiting: Vec<_> = (0..200)
        .map(|_| call("any", json!({"text": text})))
        .collect();
    // All of them have arrived where they wait.
    std::thread::sleep(Duration::from_millis(100));
    queued.send(()).unwrap();
    assert_eq!(wait(asking).unwrap(), "Ada");
    for call in waiting {
        assert_eq!(wait(call).unwrap(), "fine");
    }
}

/// Waiting requests have a limit, too.
#[test]
fn too_much_that_waits_is_refused() {
    let (go_on, told) = mpsc::channel();
    let told = Mutex::new(told);
    let server = Scripted::stateless(move |request, wire| {
        if request.header("mcp-name") == Some("first") {
            told.lock().unwrap().recv_timeout(PATIENCE).unwrap();
        }
        wire.json(&request.said("fine"));
    });
    let limits = Limits {
        output_mark_bytes: 16 << 10,
        output_cap_bytes: 256 << 10,
        ..Limits::NETWORK
    };
    let client = server.with(builder(Revision::V2026_07_28).limits(limits), single());
    let text = "x".repeat(64 << 10);
    let call = |name| {
        let call = client.call_tool(name, &json!({"text": text}));
        let call = call.timeout(PATIENCE).send().unwrap();
        // It arrives where it waits: nothing is refused before.
        std::thread::sleep(Duration::from_millis(30));
        call
    };
    let mut calls = vec![call("first")];
    calls.extend((0..8).map(|_| call("any")));
    go_on.send(()).unwrap();
    let outcomes: Vec<_> = calls.into_iter().map(wait).collect();
    let (taken, refused) = outcomes.split_at(5);
    assert!(
        taken.iter().all(|it| it.as_deref() == Ok("fine")),
        "{outcomes:?}"
    );
    let overloaded = Err(RequestError::Overloaded);
    assert!(refused.iter().all(|it| *it == overloaded), "{outcomes:?}");
}

/// A server that takes no answer has a while, as for anything else.
#[test]
fn a_word_that_is_not_taken_is_given_up() {
    let (tell, told) = mpsc::channel();
    let told = Mutex::new(told);
    let server = Scripted::handshake("2025-11-25", move |request, wire| {
        match (&*request.verb, request.method()) {
            ("POST", "tools/call") => {
                wire.events();
                for id in ["deaf", "fine"] {
                    let ping = json!({"jsonrpc": "2.0", "id": id, "method": "ping"});
                    wire.raw(format!("data: {ping}\n\n"));
                }
                told.lock().unwrap().recv_timeout(PATIENCE).unwrap();
                wire.raw(format!("data: {}\n\n", request.said("heard")));
                wire.close();
            }
            ("POST", _) if request.body["id"] == "deaf" => wire.until_gone(),
            ("POST", _) => {
                tell.send(()).unwrap();
                wire.answer(202, "", "");
            }
            _ => wire.answer(405, "", ""),
        }
    });
    let limits = Limits {
        request_timeout: Duration::from_millis(200),
        ..Limits::NETWORK
    };
    let client = server.with(builder(Revision::V2025_11_25).limits(limits), single());
    let call = client.call_tool("any", &json!({})).timeout(PATIENCE);
    assert_eq!(call.wait().unwrap().text(), "heard");
}

/// R-ERA-07: a probe that is never answered does not take the place of what follows it.
#[test]
fn a_probe_that_is_never_answered_gives_way() {
    let server = Scripted::serve(|request, wire| match request.method() {
        "server/discover" => wire.until_gone(),
        "initialize" => wire.json(&request.result(opening("2025-11-25"))),
        "notifications/initialized" => wire.answer(202, "", ""),
        "tools/call" => wire.json(&request.said("fine")),
        _ => wire.answer(405, "", ""),
    });
    let limits = Limits {
        probe_timeout: Duration::from_millis(100),
        handshake_timeout: Duration::from_secs(5),
        ..Limits::NETWORK
    };
    let client = server.with(Client::builder("test", "1").limits(limits), single());
    assert_eq!(client.revision(), Some(Revision::V2025_11_25));
    let call = client.call_tool("any", &json!({})).timeout(PATIENCE);
    assert_eq!(call.wait().unwrap().text(), "fine");
}

/// A stream that goes on behind the answer takes the place of a request for a while only,
/// however often it shows a sign of life.
#[test]
fn a_stream_that_goes_on_and_on_behind_its_answer_is_left() {
    let server = Scripted::stateless(|request, wire| match request.header("mcp-name") {
        Some("on and on") => {
            wire.events();
            wire.raw(format!("data: {}\n\n", request.said("done")));
            while wire.writes(": still there\n\n") {
                std::thread::sleep(Duration::from_millis(100));
            }
        }
        _ => wire.json(&request.said("fine")),
    });
    let client = server.with(builder(Revision::V2026_07_28), single());
    for (name, text) in [("on and on", "done"), ("next", "fine")] {
        let call = client.call_tool(name, &json!({})).timeout(PATIENCE / 2);
        assert_eq!(call.wait().unwrap().text(), text);
    }
}

fn wait(call: mcpbolt::client::PendingCall) -> Result<String, RequestError> {
    mcpbolt::client::block_on(call).map(|result| result.text())
}
