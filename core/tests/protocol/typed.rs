//! Results of tools as values of the program's own types.

use std::collections::BTreeMap;

use mcpbolt::client::{CallError, Client, block_on};
use mcpbolt::error::RequestError;
use mcpbolt::mcp::{Revision, Revisions};
use mcpbolt::server::{Arguments, Builder, Server, Tool, ToolResult};
use mcpbolt::testing::TestClient;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// A server with a tool that returns its argument `give`: a result as JSON.
fn gives() -> Builder {
    let schema =
        json!({"type": "object", "properties": {"sum": {"type": "integer"}}, "required": ["sum"]});
    let give = |Arguments(json): Arguments, _| async move {
        let given: Value = serde_json::from_str(&json).unwrap();
        let mut result = match given.get("error") {
            Some(text) => ToolResult::error(text.as_str().unwrap()),
            None => ToolResult::text(given["text"].as_str().unwrap_or_default()),
        };
        if given.get("text").is_none() && given.get("error").is_none() {
            result.content.clear();
        }
        result.structured = given.get("structured").map(Value::to_string);
        result
    };
    Server::builder("s", "1")
        .tool(Tool::new("give"), give)
        .tool(Tool::new("sum").output_schema(schema), give)
}

#[derive(Debug, PartialEq, Deserialize)]
struct Sum {
    sum: i64,
}

#[derive(Debug, PartialEq, Deserialize)]
struct Bill {
    items: Vec<Sum>,
}

#[derive(Debug, PartialEq, Deserialize)]
#[serde(untagged)]
enum Either {
    Sum(Sum),
    Text(String),
}

async fn called<T: DeserializeOwned>(client: &Client, given: Value) -> Result<T, CallError> {
    client.call("give", &given).await
}

fn value<T: DeserializeOwned>(client: &Client, given: Value) -> T {
    block_on(called(client, given)).unwrap()
}

fn error<T: DeserializeOwned + std::fmt::Debug>(client: &Client, given: Value) -> String {
    block_on(called::<T>(client, given))
        .unwrap_err()
        .to_string()
}

fn with_clients(mut check: impl FnMut(Revision, &Client)) {
    let server = gives().build().unwrap();
    for revision in Revision::ALL {
        let builder = Client::builder("c", "1").revisions(Revisions::only(revision));
        let client = block_on(builder.connect(&server)).unwrap();
        check(revision, &client);
    }
}

/// In every revision: before 2025-06-18 structured content travels as text.
#[test]
fn a_result_is_read_from_structured_content_or_else_from_text() {
    with_clients(|_, client| {
        let three = Sum { sum: 3 };
        assert_eq!(
            value::<Sum>(client, json!({"structured": {"sum": 3}})),
            three
        );
        assert_eq!(value::<Sum>(client, json!({"text": "{\"sum\": 3}"})), three);
        let either = value::<Either>(client, json!({"text": "{\"sum\": 3}"}));
        assert_eq!(either, Either::Sum(three));
        let either = value::<Either>(client, json!({"text": "three"}));
        assert_eq!(either, Either::Text("three".to_owned()));
        assert_eq!(value::<i64>(client, json!({"text": "3"})), 3);
        assert_eq!(value::<String>(client, json!({"text": "3"})), "3");
        assert_eq!(value::<String>(client, json!({"text": "\"3\""})), "\"3\"");
        assert_eq!(value::<String>(client, json!({"text": "{}"})), "{}");
        assert_eq!(
            value::<Option<bool>>(client, json!({"text": "true"})),
            Some(true)
        );
        assert_eq!(value::<Vec<u8>>(client, json!({"text": "[1, 2]"})), [1, 2]);
        assert_eq!(
            value::<Value>(client, json!({"text": "{\"a\": 1}"})),
            json!({"a": 1})
        );
        value::<()>(client, json!({}));
        assert_eq!(value::<Option<i64>>(client, json!({})), None);
        assert_eq!(value::<String>(client, json!({})), "");
        let map = value::<BTreeMap<String, u8>>(client, json!({"structured": {"a": 1}}));
        assert_eq!(map, BTreeMap::from([("a".to_owned(), 1)]));
    });
}

/// Servers of Python wrap values that are no objects in the member `result`.
#[test]
fn a_wrapped_value_is_unwrapped_only_if_the_whole_is_not_a_value_of_the_type() {
    with_clients(|revision, client| {
        if !revision.rules().structured_content {
            return;
        }
        assert_eq!(
            value::<i64>(client, json!({"structured": {"result": 3}})),
            3
        );
        let list = value::<Vec<Sum>>(client, json!({"structured": {"result": [{"sum": 1}]}}));
        assert_eq!(list, [Sum { sum: 1 }]);
        let whole = value::<Value>(client, json!({"structured": {"result": 3}}));
        assert_eq!(whole, json!({"result": 3}));
        let two = json!({"structured": {"result": 3, "more": 4}});
        assert!(error::<i64>(client, two).contains("structuredContent: invalid type: map"));
        let other = error::<i64>(client, json!({"structured": {"result": "three"}}));
        assert!(other.contains("structuredContent.result: invalid type: string"));
    });
}

#[test]
fn an_error_names_the_tool_the_type_and_the_place() {
    with_clients(|revision, client| {
        let place = match revision.rules().structured_content {
            true => "structuredContent",
            false => "text",
        };
        let given = json!({"structured": {"items": [{"sum": 1}, {"sum": "two"}]}});
        assert_eq!(
            error::<Bill>(client, given),
            format!(
                "tool \"give\": the result is not a `protocol::typed::Bill`: {place}.items[1].sum: invalid type: \
                 string \"two\", expected i64"
            )
        );
        assert_eq!(
            error::<Sum>(client, json!({"structured": {}})),
            format!(
                "tool \"give\": the result is not a `protocol::typed::Sum`: {place}: missing field `sum`"
            )
        );
        assert_eq!(
            error::<i64>(client, json!({"text": "three"})),
            "tool \"give\": the result is not a `i64`: text: invalid value: string \"three\", expected a whole \
             number of 64 bits"
        );
        for text in ["{\"sum\": 1}\n{\"sum\": 2}", "{\"sum\": 1} or so"] {
            assert_eq!(
                error::<Sum>(client, json!({ "text": text })),
                "tool \"give\": the result is not a `protocol::typed::Sum`: text: it goes on after the value"
            );
        }
        assert_eq!(
            error::<Sum>(client, json!({})),
            "tool \"give\": the result is not a `protocol::typed::Sum`: it has neither structured content nor text"
        );
        let failed = block_on(called::<Sum>(client, json!({"error": "b is zero"}))).unwrap_err();
        assert_eq!(failed.to_string(), "tool \"give\" failed: b is zero");
        assert!(matches!(&failed, CallError::Failed { result, .. } if result.is_error));
        let unknown = client.call::<Sum>("none", &json!({})).wait().unwrap_err();
        assert_eq!(unknown.tool(), "none");
        assert!(matches!(
            &unknown,
            CallError::Request {
                error: RequestError::Peer(_),
                ..
            }
        ));
        let misuse = client.call::<Sum>("give", &json!([])).wait().unwrap_err();
        assert_eq!(
            misuse.to_string(),
            "tool \"give\": arguments must be a JSON object"
        );
    });
}

/// A tool's own server never sends what does not fit, so the client learns of another schema than the server's.
#[test]
fn a_result_is_checked_against_the_schema_of_a_listed_tool() {
    with_clients(|revision, client| {
        let bad = json!({"structured": {"sum": "3"}});
        let text = || client.call::<Value>("give", &bad).wait();
        // Not listed: only the type decides.
        assert_eq!(text().unwrap(), json!({"sum": "3"}));
        let mut listed = block_on(client.list_tools()).unwrap();
        if !revision.rules().structured_content {
            return;
        }
        let schema = listed[1].output_schema.clone();
        assert_eq!(listed[1].name, "sum");
        listed[0].output_schema = schema;
        client.learn_tools(&listed);
        assert_eq!(
            text().unwrap_err().to_string(),
            "tool \"give\": the peer's answer is not valid: the structured content of tool \"give\" does not fit \
             its output schema: \"3\" is not of type \"integer\" at /sum"
        );
        let sum = client
            .call::<Sum>("give", &json!({"structured": {"sum": 3}}))
            .wait();
        assert_eq!(sum.unwrap(), Sum { sum: 3 });
        let none = client
            .call::<Sum>("give", &json!({"text": "{\"sum\":3}"}))
            .wait();
        let none = none.unwrap_err().to_string();
        assert!(
            none.ends_with("tool \"give\" sent no structured content, but has an output schema"),
            "{none}"
        );
    });
}

#[test]
fn the_test_client_reads_values_and_shows_why_it_cannot() {
    let server = gives().build().unwrap();
    let (good, bad) = block_on(async {
        let test = TestClient::new(&server).await.unwrap();
        let good = test.call("give", json!({"structured": {"sum": 3}})).await;
        (good, test.call("give", json!({"text": "three"})).await)
    });
    assert_eq!(good.expect_value::<Sum>(), Sum { sum: 3 });
    let panic = std::panic::catch_unwind(|| bad.expect_value::<i64>()).unwrap_err();
    assert_eq!(
        panic.downcast_ref::<String>().unwrap(),
        "the call of give with {\"text\":\"three\"}: tool \"give\": the result is not a `i64`: text: invalid \
         value: string \"three\", expected a whole number of 64 bits"
    );
}
