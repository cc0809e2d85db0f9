//! Small programs that are written with the attributes, each called by a client.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    reason = "tests: panicking is the report"
)]

mod calculator;
mod extracts;
mod fallible;
mod memos;
mod reviewer;
mod shop;
mod visits;

use mcpbolt::client::{Client, block_on};
use mcpbolt::model::CompletionTarget;
use mcpbolt::server::{Builder, Server};
use serde_json::{Value, json};

fn client(server: &Server) -> Client {
    block_on(Client::builder("me", "1").connect(server)).unwrap()
}

fn schema(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

#[test]
fn a_tool_is_described_by_its_function() {
    let client = client(&calculator::server().unwrap());
    let tools = block_on(client.list_tools()).unwrap();
    assert_eq!(tools[0].name, "add");
    assert_eq!(tools[0].description.as_deref(), Some("Adds two numbers."));
    let hints = tools[0].annotations.as_deref().unwrap();
    assert_eq!(hints, r#"{"readOnlyHint":true,"openWorldHint":false}"#);
    assert_eq!(
        schema(&tools[1].input_schema),
        json!({
            "type": "object",
            "properties": {
                "a": {"type": "number", "format": "double", "description": "The dividend."},
                "b": {"type": "number", "format": "double", "description": "The divisor; not zero.", "default": 1.0},
            },
            "required": ["a"],
        })
    );
    let call = |name, arguments| client.call_tool(name, &arguments).wait().unwrap();
    assert_eq!(call("add", json!({"a": 1, "b": 2.5})).text(), "3.5");
    assert_eq!(call("divide", json!({"a": 3})).text(), "3");
    let failed = call("divide", json!({"a": 3, "b": 0}));
    assert!(failed.is_error);
    assert_eq!(failed.text(), "b is zero");
}

#[test]
fn the_order_of_parameters_is_kept() {
    let client = client(&shop::server().unwrap());
    let tools = block_on(client.list_tools()).unwrap();
    let schema = &*tools[0].input_schema;
    assert!(schema.find("title") < schema.find("copies"), "{schema}");
    assert!(!schema.contains("context"), "{schema}");
}

#[test]
fn a_method_shares_its_value_with_other_calls() {
    let client = client(&shop::server().unwrap());
    let tools = block_on(client.list_tools()).unwrap();
    let output = schema(tools[0].output_schema.as_deref().unwrap());
    assert_eq!(output["required"], json!(["title", "copies", "left"]));
    let call = |arguments| client.call_tool("order", &arguments).wait().unwrap();
    assert_eq!(
        call(json!({"title": "Emma"})).text(),
        r#"{"title":"Emma","copies":1,"left":2}"#
    );
    let failed = call(json!({"title": "Emma", "copies": 3}));
    assert!(failed.is_error);
    assert_eq!(failed.text(), "too few are left");
    let refused = call(json!({"title": "Emma", "copies": "x"}));
    assert!(
        refused.is_error && refused.text().contains("copies"),
        "{}",
        refused.text()
    );
    let found = client
        .call_tool("search", &json!({"start": "E"}))
        .wait()
        .unwrap();
    assert_eq!(found.text(), "Emma\n");
}

#[test]
fn a_resource_is_read_by_its_variables() {
    let client = client(&memos::server().unwrap());
    let memo = block_on(client.read_resource("memo://7")).unwrap();
    assert_eq!(memo[0].as_text(), Some("Buy milk."));
    assert_eq!(memo[0].mime_type.as_deref(), Some("text/plain"));
    let all = block_on(client.read_resource("memo://all")).unwrap();
    assert_eq!(all[0].as_text(), Some("[7,70]"));
    assert_eq!(all[0].mime_type.as_deref(), Some("application/json"));
    for missing in ["memo://8", "memo://x"] {
        let error = block_on(client.read_resource(missing)).unwrap_err();
        println!("{error}");
    }
    let target = CompletionTarget::resource("memo://{id}");
    let completed = block_on(client.complete(&target, ("id", "7"), &[])).unwrap();
    assert_eq!(completed.values, ["7", "70"]);
}

#[test]
fn a_prompt_converts_texts_and_completes_its_arguments() {
    let client = client(&reviewer::server().unwrap());
    let prompts = block_on(client.list_prompts()).unwrap();
    let arguments = prompts[0].arguments.iter();
    let arguments: Vec<_> = arguments.map(|one| (&*one.name, one.required)).collect();
    assert_eq!(
        arguments,
        [("code", true), ("language", false), ("findings", false)]
    );
    assert_eq!(
        prompts[0].arguments[0].description.as_deref(),
        Some("The code.")
    );

    let get = |arguments: &[(&str, &str)]| {
        let made = block_on(client.get_prompt("review", arguments));
        let text =
            |message: mcpbolt::client::PromptMessage| message.content.as_text().unwrap().to_owned();
        made.map(|prompt| prompt.messages.into_iter().map(text).collect::<Vec<_>>())
    };
    let messages = get(&[("code", "fn"), ("findings", "5")]).unwrap();
    assert_eq!(messages, ["Review this code:\nfn", "I name 5 findings."]);
    let error = get(&[("code", "fn"), ("findings", "many")])
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("\"findings\": invalid value: string \"many\", expected a whole number"),
        "{error}"
    );

    let target = CompletionTarget::prompt("review");
    let completed = block_on(client.complete(&target, ("language", "r"), &[])).unwrap();
    assert_eq!(completed.values, ["Rust", "ruby"]);
    let completed = block_on(client.complete(&target, ("findings", "1"), &[])).unwrap();
    assert_eq!(completed.values, ["11", "12", "13", "14", "15"]);
    let context = [("language", "Rust")];
    let completed = block_on(client.complete(&target, ("findings", "1"), &context)).unwrap();
    assert_eq!(completed.values, ["11", "12"]);
    let completed = block_on(client.complete(&target, ("code", "1"), &[])).unwrap();
    assert!(completed.values.is_empty());
}

#[test]
fn a_handler_takes_state_the_caller_and_all_parameters_in_one_type() {
    let error = extracts::server(false).unwrap_err().to_string();
    assert!(
        error.contains("\"price\" takes a State<") && error.contains("Prices"),
        "{error}"
    );
    let client = client(&extracts::server(true).unwrap());
    let tools = block_on(client.list_tools()).unwrap();
    let schema = schema(&tools[0].input_schema);
    assert_eq!(schema["required"], json!(["title"]));
    assert_eq!(
        schema["properties"]["title"]["description"],
        "The book's title."
    );
    assert_eq!(schema["properties"]["type"]["default"], "paperback");
    let call = |arguments| client.call_tool("price", &arguments).wait().unwrap();
    let answer = call(json!({"title": "Emma", "copies": 2}));
    assert_eq!(
        answer.text(),
        "Emma for anybody: 15 (paperback, 2026-07-28)"
    );
    let failed = call(json!({"title": "Emma", "type": "stone"}));
    assert!(failed.is_error);
    assert_eq!(failed.text(), "stone is not sold");
}

#[test]
fn a_type_with_parameters_of_its_own_has_tools() {
    let server = Server::builder("reader", "1.0.0").with(extracts::Reader(extracts::Fixed));
    let client = client(&server.build().unwrap());
    let names = block_on(client.list_tools())
        .unwrap()
        .into_iter()
        .map(|tool| tool.name);
    assert_eq!(names.collect::<Vec<_>>(), ["read", "read.shared"]);
    let call = |name, arguments| client.call_tool(name, &arguments).wait().unwrap();
    assert_eq!(call("read", json!({})).text(), "fixed");
    assert_eq!(call("read", json!({"suffix": "!"})).text(), "fixed!");
    assert_eq!(
        call("read.shared", json!({"parts": ["?", "!"]})).text(),
        "fixed?!"
    );
}

#[test]
fn handlers_come_and_go_while_clients_are_connected() {
    let server = Server::builder("prices", "1.0.0").list_changes();
    let server = server.with(reviewer::Reviewer).build().unwrap();
    let client = client(&server);
    let added = server.change(|offer| offer.with(mcpbolt::handlers![extracts::price]));
    assert!(added.unwrap_err().to_string().contains("State<"));
    let add = |offer: Builder| offer.with(mcpbolt::handlers![calculator::add]);
    server.change(add).unwrap();
    let sum = client
        .call_tool("add", &json!({"a": 1, "b": 2}))
        .wait()
        .unwrap();
    assert_eq!(sum.text(), "3");

    let again = |offer: Builder| offer.remove_prompt("review").with(reviewer::Reviewer);
    server.change(again).unwrap();
    let target = CompletionTarget::prompt("review");
    let completed = block_on(client.complete(&target, ("language", "p"), &[])).unwrap();
    assert_eq!(completed.values, ["python"]);
}

#[test]
fn a_session_has_a_value_of_its_own() {
    use visits::Visits;

    let own = Server::builder("visits", "1.0.0").per_session(Visits::default);
    let shared = Server::builder("visits", "1.0.0").with(Visits::default());
    for (server, later) in [(own.build().unwrap(), 0), (shared.build().unwrap(), 5)] {
        for before in [0, later] {
            let client = client(&server);
            let tools = block_on(client.list_tools()).unwrap();
            let count = tools.iter().find(|tool| tool.name == "count").unwrap();
            assert!(count.output_schema.is_some());
            let call = |name| client.call_tool(name, &json!({})).wait().unwrap().text();
            assert_eq!(call("visit"), (before + 1).to_string());
            assert_eq!(call("visit"), (before + 2).to_string());
            assert_eq!(call("count"), json!({"visits": before + 3}).to_string());
            let read = block_on(client.read_resource("visits://so-far")).unwrap();
            assert_eq!(read[0].as_text(), Some((before + 3).to_string().as_str()));
            let prompt = block_on(client.get_prompt("greet", &[("name", "Ada")])).unwrap();
            let greeting = format!("Greet Ada, visitor {}.", before + 4);
            assert_eq!(prompt.messages[0].content.as_text(), Some(&*greeting));
            let greet = CompletionTarget::prompt("greet");
            let named = block_on(client.complete(&greet, ("name", ""), &[])).unwrap();
            assert_eq!(named.values, [format!("visitor {}", before + 5)]);
        }
    }
}
