//! No request of 2026-07-28 leaves state behind for the next, whoever sends it.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use http_body_util::BodyExt;
use hyper::Request;
use mcpbolt::io::http::{HttpOptions, HttpService, Principal};
use mcpbolt::mcp::LogLevel;
use mcpbolt::server::{Arguments, Context, Server, Tool};
use serde_json::{Value, json};

use super::call;
use super::wire::{headers, request};

/// A server whose handlers leave their contexts behind.
fn service(left: &Arc<Mutex<Vec<Context>>>) -> HttpService {
    let left = left.clone();
    let server = Server::builder("again", "1.0.0")
        .tool(
            Tool::new("who"),
            |_: Arguments, context: Context| async move {
                context.principal().unwrap_or("nobody").to_owned()
            },
        )
        .tool(Tool::new("leave"), move |_: Arguments, context: Context| {
            left.lock().unwrap().push(context);
            async { "left" }
        })
        .tool(
            Tool::new("rest"),
            |_: Arguments, context: Context| async move {
                context.sleep(Duration::from_millis(50)).await;
                "rested"
            },
        )
        .build()
        .unwrap();
    HttpService::new(&server, HttpOptions::default()).unwrap()
}

async fn asked(service: &HttpService, who: Option<&str>, message: &Value) -> String {
    let mut builder = Request::post("/mcp");
    for (name, value) in headers(message) {
        builder = builder.header(name, value);
    }
    let mut asks = builder.body(message.to_string()).unwrap();
    if let Some(who) = who {
        asks.extensions_mut().insert(Principal::new(who));
    }
    let answer = service.respond(asks).await;
    let body = answer.into_body().collect().await.unwrap().to_bytes();
    String::from_utf8(body.to_vec()).unwrap()
}

fn text(answer: &str) -> Value {
    let answer: Value = serde_json::from_str(answer).unwrap_or_else(|_| panic!("{answer}"));
    answer["result"]["content"][0]["text"].clone()
}

/// R-SES-07 in spirit: nobody is taken for the one before.
#[tokio::test]
async fn everybody_is_who_they_are() {
    let service = service(&Arc::default());
    for round in 0..200 {
        for who in [Some("alice"), None, Some("bob")] {
            let answer = asked(&service, who, &call(round, "who", json!({}))).await;
            assert_eq!(text(&answer), who.unwrap_or("nobody"), "round {round}");
        }
    }
}

/// A context outlives its call: what is said with it is heard by nobody.
#[tokio::test]
async fn what_is_said_too_late_is_said_to_nobody() {
    let left = Arc::new(Mutex::new(Vec::new()));
    let service = service(&left);
    let mut progress = call(1, "leave", json!({}));
    progress["params"]["_meta"]["progressToken"] = json!("t");
    progress["params"]["_meta"]["io.modelcontextprotocol/logLevel"] = json!("debug");
    for _ in 0..20 {
        assert_eq!(text(&asked(&service, None, &progress).await), "left");
        let says = |context: &Context| {
            context.progress(0.5, None, None);
            context.log(LogLevel::Error, None, &json!("too late"));
            let _ = context.connection().notify("notifications/message", None);
        };
        left.lock().unwrap().iter().for_each(says);
        // The same ids and tokens, while those before speak.
        let mut next = progress.clone();
        next["params"]["name"] = json!("rest");
        let (answer, ()) = tokio::join!(asked(&service, None, &next), async {
            tokio::time::sleep(Duration::from_millis(10)).await;
            left.lock().unwrap().iter().for_each(says);
        });
        assert_eq!(text(&answer), "rested");
    }
    assert_eq!(left.lock().unwrap().len(), 20);
}

/// Bad ones between good ones change nothing for those.
#[tokio::test]
async fn an_error_leaves_nothing_behind() {
    let service = service(&Arc::default());
    for round in 0..50 {
        let unknown = asked(&service, None, &request(round, "no/such", json!({}))).await;
        assert!(unknown.contains("-32601"), "{unknown}");
        let mut misnamed = call(round, "who", json!({}));
        misnamed["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] =
            json!("1999-01-01");
        let refused = asked(&service, None, &misnamed).await;
        assert!(
            refused.contains("-32020") || refused.contains("-32022"),
            "{refused}"
        );
        let answer = asked(&service, None, &call(round, "who", json!({}))).await;
        assert_eq!(text(&answer), "nobody");
    }
}
