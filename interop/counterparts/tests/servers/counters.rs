//! The counter: on a pipe, on HTTP, and as a service of hyper.

use std::time::Duration;

use rmcp::model::{CallToolRequest, CallToolRequestParams};
use rmcp::service::{PeerRequestOptions, ServiceError};
use serde_json::{Value, json};

use crate::peer::{OnHttp, Peer, REVISIONS, Running, ask, call, names, spawned, text};

/// Checks all but the counting itself.
async fn check(client: &Running, revision: &str) {
    let info = client.peer_info().unwrap();
    let instructions = info.instructions.as_deref().unwrap();
    assert!(instructions.starts_with("This server provides counter tools and prompts."));
    let tools = [
        "decrement",
        "echo",
        "get_session_id",
        "get_value",
        "increment",
        "long_task",
        "say_hello",
        "sum",
    ];
    assert_eq!(names(client, "tools/list", "tools").await, tools);
    let listed = ask(client, "tools/list", Value::Null).await;
    assert_eq!(listed["_meta"]["tool_meta_key"], "tool_meta_value");
    assert_eq!(text(client, "say_hello", json!({})).await, "hello");
    let said = json!({"list": [1, {"a": null}], "text": "x"});
    let echoed = text(client, "echo", said.clone()).await;
    assert_eq!(echoed, said.to_string());
    let sum = text(client, "sum", json!({"a": -2, "b": 44})).await;
    assert_eq!(sum, "42");
    check_prompts(client).await;
    check_resources(client, revision).await;
    check_long_task(client).await;
}

async fn check_prompts(client: &Running) {
    let listed = ask(client, "prompts/list", Value::Null).await;
    assert_eq!(listed["_meta"]["router_meta_key"], "router_meta_value");
    let prompts = listed["prompts"].as_array().unwrap();
    let named = |name: &str| {
        prompts
            .iter()
            .find(|prompt| prompt["name"] == name)
            .unwrap()
    };
    let example = named("example_prompt");
    assert_eq!(example["_meta"], json!({"meta_key": "meta_value"}));
    let argument = json!({
        "name": "message", "description": "A message to put in the prompt", "required": true,
    });
    assert_eq!(example["arguments"], json!([argument]));
    let strategy = &named("counter_analysis")["arguments"][1];
    assert_eq!(strategy["name"], "strategy");
    assert_ne!(strategy["required"], true);
    let params = json!({"name": "example_prompt", "arguments": {"message": "Hi"}});
    let prompt = ask(client, "prompts/get", params).await;
    let expected = "This is an example prompt with your message here: 'Hi'";
    assert_eq!(prompt["messages"][0]["content"]["text"], expected);
    let params = json!({"name": "counter_analysis", "arguments": {"goal": "-7"}});
    let prompt = ask(client, "prompts/get", params).await;
    let description = "Counter analysis for reaching -7 from 0";
    assert_eq!(prompt["description"], description, "{prompt}");
    assert_eq!(prompt["messages"][0]["role"], "assistant");
    let facts = prompt["messages"][1]["content"]["text"].as_str().unwrap();
    assert!(facts.contains("Difference: -7\nStrategy preference: careful\n\nPlease"));
    let params = json!({"name": "counter_analysis", "arguments": {"goal": "many"}});
    let refused = ask(client, "prompts/get", params).await;
    assert_eq!(refused["error"]["code"], -32602);
}

async fn check_resources(client: &Running, revision: &str) {
    let expected = ["cwd", "memo-name"];
    let listed = names(client, "resources/list", "resources").await;
    assert_eq!(listed, expected);
    let templates = ask(client, "resources/templates/list", Value::Null).await;
    assert_eq!(templates["resourceTemplates"], json!([]));
    let memo = "Business Intelligence Memo\n\nAnalysis has revealed 5 key insights ...";
    for (uri, text) in [
        ("str:////Users/to/some/path/", "/Users/to/some/path/"),
        ("memo://insights", memo),
    ] {
        let read = ask(client, "resources/read", json!({"uri": uri})).await;
        assert_eq!(read["contents"][0]["text"], text);
        assert_eq!(read["contents"][0]["mimeType"], "text/plain");
    }
    let missing = ask(client, "resources/read", json!({"uri": "memo://none"})).await;
    let code = if revision < "2026" { -32002 } else { -32602 };
    assert_eq!(missing["error"]["code"], code, "{missing}");
    assert_eq!(missing["error"]["data"]["uri"], "memo://none");
}

/// It takes ten seconds; the client waits less.
async fn check_long_task(client: &Running) {
    let request = CallToolRequest::new(CallToolRequestParams::new("long_task"));
    let patience = PeerRequestOptions::with_timeout(Duration::from_millis(100));
    let call = client.send_cancellable_request(request.into(), patience);
    let answer = call.await.unwrap().await_response().await;
    assert!(matches!(answer, Err(ServiceError::Timeout { .. })));
}

async fn counts(client: &Running) {
    for (tool, value) in [
        ("increment", "1"),
        ("increment", "2"),
        ("decrement", "1"),
        ("get_value", "1"),
    ] {
        assert_eq!(text(client, tool, json!({})).await, value);
    }
}

#[tokio::test]
async fn a_pipe_has_one_counter() {
    for revision in REVISIONS {
        let client = spawned("counter_stdio", revision, Peer::default()).await;
        check(&client, revision).await;
        counts(&client).await;
        let id = text(&client, "get_session_id", json!({})).await;
        assert_eq!(id, "no session (not running over streamable HTTP?)");
        let wrong = call(&client, "sum", json!({"a": "one", "b": 1})).await;
        assert!(wrong["isError"] == true || wrong["error"].is_object());
    }
}

#[tokio::test]
async fn each_session_has_a_counter_of_its_own() {
    for (name, address) in [
        ("counter_streamhttp", "http://127.0.0.1:0/mcp"),
        ("counter_hyper_streamable_http", "127.0.0.1:0"),
    ] {
        let server = OnHttp::start(name, address);
        let mut ids = Vec::new();
        for _ in 0..2 {
            let client = server.client(REVISIONS[0], Peer::default()).await;
            check(&client, REVISIONS[0]).await;
            counts(&client).await;
            ids.push(text(&client, "get_session_id", json!({})).await);
        }
        assert!(ids[0] != ids[1] && ids[0].len() >= 16, "{ids:?}");
        // Requests of 2026-07-28 have no session: each has a counter of its own.
        let client = server.client(REVISIONS[1], Peer::default()).await;
        check(&client, REVISIONS[1]).await;
        for _ in 0..2 {
            assert_eq!(text(&client, "increment", json!({})).await, "1");
        }
    }
}
