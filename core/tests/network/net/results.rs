//! Results that are not what the revisions say of them, from a server that gives whatever it likes.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;

use mcpbolt::client::{Client, block_on};
use mcpbolt::connection::{OpeningMode, RequestOptions};
use mcpbolt::error::RequestError;
use mcpbolt::io::ConnectOptions;
use serde_json::{Value, json};

/// Answers each request of two connections with the result that it asks for.
fn obliging() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("tcp:{}", listener.local_addr().unwrap());
    thread::spawn(move || {
        for stream in listener.incoming().take(2) {
            thread::spawn(|| oblige(stream.unwrap()));
        }
    });
    address
}

fn oblige(mut stream: TcpStream) {
    for line in BufReader::new(stream.try_clone().unwrap()).lines() {
        let Ok(line) = line else { break };
        let asked: Value = serde_json::from_str(&line).unwrap();
        let result = match asked["method"].as_str() {
            Some("initialize") => json!({
                "protocolVersion": "2025-11-25",
                "capabilities": {"tools": {}, "prompts": {}, "resources": {}, "completions": {}},
                "serverInfo": {"name": "obliging", "version": "1"},
            }),
            // Arguments of prompts are texts.
            _ => match asked["params"]["arguments"]["result"].as_str() {
                Some(result) => serde_json::from_str(result).unwrap(),
                None => json!({}),
            },
        };
        let answer = json!({"jsonrpc": "2.0", "id": asked["id"], "result": result});
        if asked.get("id").is_some() && writeln!(stream, "{answer}").is_err() {
            break;
        }
    }
}

/// R-S14-05, R-TOL-06: who wants results checked is told what is wrong with one; who does not gets it
/// as it came.
#[test]
fn a_malformed_result_is_refused_where_that_is_wanted() {
    let address = obliging().parse().unwrap();
    let open = |builder: mcpbolt::client::ClientBuilder| {
        let opening = builder.opening(OpeningMode::Handshake);
        block_on(opening.open(&address, ConnectOptions::default())).unwrap()
    };
    let checking = open(Client::builder("test", "1").check_results());
    let trusting = open(Client::builder("test", "1"));
    for (method, result, why) in [
        (
            "tools/call",
            json!({"content": [{"type": "text", "text": "x"}]}),
            None,
        ),
        (
            "tools/call",
            json!({}),
            Some("tools/call: content: it is missing"),
        ),
        (
            "tools/call",
            json!({"content": [{"type": "text", "text": 7}]}),
            Some("tools/call: content[0].text: not a string"),
        ),
        (
            "tools/call",
            json!({"content": "x"}),
            Some("tools/call: content: not an array"),
        ),
        (
            "tools/list",
            json!({"tools": [{"inputSchema": {"type": "object"}}]}),
            Some("tools/list: tools[0].name: it is missing"),
        ),
        (
            "resources/read",
            json!({"contents": [{"uri": "a:b"}]}),
            Some("resources/read: contents[0]: it has not either text or blob"),
        ),
        (
            "prompts/get",
            json!({"messages": {}}),
            Some("prompts/get: messages: not an array"),
        ),
        ("no/such_method", json!({"content": 7}), None),
    ] {
        let params =
            json!({"name": "x", "uri": "a:b", "arguments": {"result": result.to_string()}});
        let params = params.to_string();
        let ask = |client: &Client| {
            let asking = client.request(method, Some(&params), RequestOptions::default());
            block_on(asking.unwrap()).map(|answer| {
                serde_json::from_str::<Value>(answer.as_ref().result().unwrap()).unwrap()
            })
        };
        assert_eq!(ask(&trusting).as_ref(), Ok(&result), "{method}");
        match why {
            None => assert_eq!(ask(&checking).as_ref(), Ok(&result), "{method}"),
            Some(why) => {
                let error = ask(&checking).unwrap_err();
                assert!(matches!(error, RequestError::BadResult(_)), "{error:?}");
                let told = format!("the peer's answer is not valid: the result of {why}");
                assert_eq!(error.to_string(), told);
            }
        }
    }
    let typed = checking.call_tool("x", &json!({})).wait().unwrap_err();
    assert!(
        typed.to_string().contains("content: it is missing"),
        "{typed}"
    );
    let forgiven = trusting.call_tool("x", &json!({})).wait().unwrap();
    assert!(forgiven.content.is_empty());
}
