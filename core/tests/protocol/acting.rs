//! Clients of the action dialect: what they do beside sending a request.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use mcpbolt::client::{ActionFailure, BreakerPolicy, Client, RetryPolicy, block_on};
use mcpbolt::connection::{OpeningMode, Trace};
use mcpbolt::error::RequestError;
use mcpbolt::server::{Arguments, HandlerError, Json, Server, Tool};
use serde_json::json;

use crate::actions_server::{builder, server};

fn client(server: &Server) -> Client {
    let builder = Client::builder("test", "1").opening(OpeningMode::Actions);
    block_on(builder.connect(server)).unwrap()
}

const SOON: RetryPolicy = RetryPolicy {
    tries: 3,
    base: Duration::from_millis(1),
    longest: Duration::from_secs(1),
};

/// R-ACT-02, R-ACT-03: what is sent has an action, params and an id of its own.
#[test]
fn what_is_sent() {
    let seen: Arc<std::sync::Mutex<Vec<String>>> = Arc::default();
    let sees = seen.clone();
    let trace = Trace::new(move |way, frame| {
        if way == mcpbolt::connection::Direction::Out {
            sees.lock().unwrap().push(frame.to_owned());
        }
    });
    let builder = Client::builder("test", "1")
        .opening(OpeningMode::Actions)
        .trace(trace);
    let client = block_on(builder.connect(&server("sent"))).unwrap();
    let sum = client
        .action("calculator.add", &json!({"a": 1, "b": 2}))
        .context("c")
        .tool("calculator")
        .metadata(&json!({"client_id": "me", "request_id": "mine"}))
        .wait()
        .unwrap();
    assert_eq!(sum.data()["result"], 3.0);
    client
        .action("mcp.health_check", &json!({}))
        .wait()
        .unwrap();
    let seen: Vec<serde_json::Value> = seen
        .lock()
        .unwrap()
        .iter()
        .map(|it| serde_json::from_str(it).unwrap())
        .collect();
    assert_eq!(seen.len(), 2, "no opening: {seen:?}");
    assert_eq!(
        (&seen[0]["action"], &seen[0]["context"], &seen[0]["tool"]),
        (&json!("calculator.add"), &json!("c"), &json!("calculator"))
    );
    assert_eq!(seen[0]["metadata"]["client_id"], "me");
    assert_eq!(seen[0]["metadata"]["protocol_version"], "1.0.0");
    assert_eq!(seen[1]["params"], json!({}));
    assert_ne!(
        seen[0]["metadata"]["request_id"],
        seen[1]["metadata"]["request_id"]
    );
}

/// R-ACT-26: parts are gathered in their order, and shown as they come.
#[test]
fn parts_are_gathered() {
    let client = client(&server("text"));
    let shown: Arc<std::sync::Mutex<Vec<String>>> = Arc::default();
    let shows = shown.clone();
    let call = client.action("llm.generate", &json!({"prompt": "a story"}));
    let answer = call
        .on_partial(move |part| shows.lock().unwrap().push(part.to_owned()))
        .wait()
        .unwrap();
    assert_eq!(answer.joined("token"), "Once upon a time");
    assert_eq!(answer.data()["full_text"], "Once upon a time");
    assert_eq!(*shown.lock().unwrap(), answer.partials);
    let whole = client
        .action("llm.generate", &json!({"prompt": "a story"}))
        .wait()
        .unwrap();
    assert!(whole.partials.is_empty() && whole.data() == answer.data());
}

/// R-ACT-16, R-ACT-17: what became of each operation of a batch.
#[test]
fn a_batch_tells_of_each_operation() {
    let client = client(&server("batch"));
    let operations = || {
        [
            ("file_system.write", json!({"path": "/x", "content": ""})),
            ("calculator.add", json!({"a": 1, "b": 2})),
        ]
    };
    let all = client.action_batch(operations(), true).wait().unwrap();
    assert_eq!(all.data()["success_count"], 1);
    let results = all.results();
    let denied = results[0].as_ref().unwrap_err();
    assert_eq!(denied.spelling, "PERMISSION_DENIED");
    assert_eq!(denied.message, "Write access denied to /x");
    assert_eq!(denied.code, Some(403));
    assert_eq!(results[1].as_deref(), Ok(r#"{"result":3.0}"#));
    let stopped = client.action_batch(operations(), false).wait().unwrap();
    assert_eq!(stopped.results().len(), 1);
}

/// R-ACT-05, R-ACT-31: errors are what the server says, in its spelling and in the dialect's.
#[test]
fn errors_are_told_apart() {
    let client = client(&server("errors"));
    let failed = client
        .action("file_system.write", &json!({"path": "/x"}))
        .wait()
        .unwrap_err();
    let ActionFailure::Answered(error) = &failed else {
        panic!("{failed:?}");
    };
    assert_eq!(error.spelling, "PERMISSION_DENIED");
    assert_eq!(
        error.kind(),
        Some(mcpbolt::action::ErrorType::AuthorizationFailed)
    );
    assert_eq!(failed.for_people(), "You are not allowed to do this.");
    assert_eq!(
        failed.to_string(),
        "PERMISSION_DENIED: Write access denied to /x"
    );
}

/// The seed's duty of clients: what cannot be right is not sent, once the schemas are known.
#[test]
fn params_are_checked_before_they_are_sent() {
    let client = client(&server("schemas"));
    let wrong = json!({"a": "one", "b": 2});
    let sent = client.action("calculator.add", &wrong).wait();
    assert!(matches!(sent, Err(ActionFailure::Answered(_))), "{sent:?}");
    let schemas = block_on(client.action_schemas()).unwrap();
    assert!(schemas["calculator.add"].contains("params_schema"));
    let kept = client.action("calculator.add", &wrong).wait();
    assert!(matches!(kept, Err(ActionFailure::Invalid(_))), "{kept:?}");
    assert!(
        client
            .action("calculator.add", &json!({"a": 1, "b": 2}))
            .wait()
            .is_ok()
    );
    let refused = client.action("calculator.add", &json!([])).wait();
    assert!(matches!(
        refused,
        Err(ActionFailure::Invalid(_) | ActionFailure::Request(RequestError::Misuse(_)))
    ));
}

/// R-S14-05: what a server gives back is held against what it has told of it.
#[test]
fn data_are_checked_before_they_are_given_back() {
    let told = json!({"actions": {
        "coin.toss": {"data_schema": {"type": "object", "required": ["side"]}},
        "coin.spend": {"data_schema": {"type": "object"}},
    }});
    let server = Server::builder("liar", "1")
        .actions(true)
        .tool(Tool::new("mcp.get_schema"), move |_: Arguments, _| {
            let told = Json(told.clone());
            async { told }
        })
        .tool(Tool::new("coin.toss"), |_: Arguments, _| async {
            Json(json!({"face": 1}))
        })
        .tool(Tool::new("coin.spend"), |_: Arguments, _| async {
            Json(json!({"face": 1}))
        });
    let client = client(&server.build().unwrap());
    assert!(client.action("coin.toss", &json!({})).wait().is_ok());
    block_on(client.action_schemas()).unwrap();
    let misfit = client.action("coin.toss", &json!({})).wait();
    assert!(
        matches!(misfit, Err(ActionFailure::BadData(_))),
        "{misfit:?}"
    );
    assert!(client.action("coin.spend", &json!({})).wait().is_ok());
}

/// R-ACT-29, R-ACT-12: no answer is longer than the server says, and the caller has the whole: of a call,
/// of a stream, of a tool that gives text. Expired data are gone.
#[test]
fn data_that_are_too_long_are_referred_to() {
    use mcpbolt::connection::ActOptions;

    let rows = json!({"rows": vec!["\"é\n"; 5000]});
    let (longest, ttl) = (8192, Duration::from_secs(3));
    let given = rows.clone();
    let server = Server::builder("archive", "1")
        .actions(true)
        .references(longest, ttl)
        .tool(
            Tool::new("rows.read"),
            move |_: Arguments, context: mcpbolt::server::Context| {
                context.partial(&json!({"reading": true}));
                let given = Json(given.clone());
                async { given }
            },
        )
        .tool(Tool::new("text.read"), |_: Arguments, _| async {
            "x".repeat(30_000)
        })
        .tool(Tool::new("row.read"), |_: Arguments, _| async {
            Json(json!({"row": 1}))
        })
        .tool(Tool::new("mock.read"), |_: Arguments, _| async {
            Json(json!({"mcp.reference": {"id": "nothing", "bytes": 9}}))
        })
        .tool(Tool::new("odd.read"), |_: Arguments, _| async {
            Json(json!({"mcp.reference": {"id": "nothing", "bytes": u64::MAX}}))
        });
    let server = server.build().unwrap();
    let client = client(&server);
    let read = |name: &str| client.action(name, &json!({}));
    assert_eq!(read("rows.read").wait().unwrap().data(), rows);
    let streamed = read("rows.read").streamed().wait().unwrap();
    assert_eq!(
        (streamed.data(), &*streamed.partials[0]),
        (rows.clone(), r#"{"reading":true}"#)
    );
    let text = read("text.read").wait().unwrap().data();
    assert_eq!(text["content"][0]["text"].as_str().unwrap().len(), 30_000);
    assert_eq!(read("row.read").wait().unwrap().data(), json!({"row": 1}));
    let schemas = block_on(client.action_schemas()).unwrap();
    assert!(schemas.contains_key("mcp.get_data"));
    // As it is said.
    let say = |name: &str, params: serde_json::Value| -> serde_json::Value {
        let said = client
            .handle()
            .act(name, &params.to_string(), ActOptions::default());
        let said = block_on(said.unwrap()).unwrap();
        assert!(said.bytes().len() < longest + 512, "{}", said.bytes().len());
        serde_json::from_slice(said.bytes()).unwrap()
    };
    let said = say("rows.read", json!({}));
    let reference = &said["data"]["mcp.reference"];
    assert_eq!(reference["bytes"], rows.to_string().len());
    let part = say(
        "mcp.get_data",
        json!({"reference": reference["id"], "offset": 4005}),
    );
    let next = part["data"]["next_offset"].as_u64().unwrap() as usize;
    assert_eq!(part["data"]["part"], rows.to_string()[4005..next]);
    for (params, kind) in [
        (json!({"reference": "nothing"}), "RESOURCE_NOT_FOUND"),
        (
            json!({"reference": reference["id"], "offset": 1_u64 << 40}),
            "RESOURCE_NOT_FOUND",
        ),
        (
            json!({"reference": reference["id"], "offset": -1}),
            "VALIDATION_ERROR",
        ),
        (json!({"reference": 7}), "VALIDATION_ERROR"),
        (json!({}), "VALIDATION_ERROR"),
    ] {
        assert_eq!(
            say("mcp.get_data", params.clone())["error"]["type"],
            kind,
            "{params}"
        );
    }
    std::thread::sleep(ttl);
    let late = say("mcp.get_data", json!({"reference": reference["id"]}));
    assert_eq!(late["error"]["type"], "RESOURCE_NOT_FOUND");
    assert_eq!(late["error"]["details"]["reference"], reference["id"]);
    // From a server whose references lead nowhere, or to more data than there can be.
    let nothing = read("mock.read").wait();
    assert!(
        matches!(&nothing, Err(ActionFailure::Answered(error)) if error.spelling == "RESOURCE_NOT_FOUND"),
        "{nothing:?}"
    );
    let endless = read("odd.read").wait();
    assert!(
        matches!(
            &endless,
            Err(ActionFailure::Request(RequestError::BadAnswer(_)))
        ),
        "{endless:?}"
    );
    // It is there where the server says so alone.
    let plain = self::client(&self::server("plain"))
        .action("mcp.get_data", &json!({"reference": "x"}))
        .wait();
    assert!(
        matches!(&plain, Err(ActionFailure::Answered(error)) if error.spelling == "ACTION_NOT_FOUND"),
        "{plain:?}"
    );
}

/// A server that fails so often with that type, and how often it was asked.
fn failing(
    kind: &'static str,
    times: usize,
    details: serde_json::Value,
) -> (Server, Arc<AtomicUsize>) {
    let asked = Arc::new(AtomicUsize::new(0));
    let counts = asked.clone();
    let tool = move |_: Arguments, _| {
        let (n, details) = (counts.fetch_add(1, Ordering::SeqCst), details.clone());
        async move {
            match n < times {
                true => Err(HandlerError::typed(kind, "not now").with_data(&details)),
                false => Ok(Json(json!({"asked": n + 1}))),
            }
        }
    };
    let server = builder("failing")
        .tool(Tool::new("try"), tool)
        .build()
        .unwrap();
    (server, asked)
}

/// R-ACT-35: what may pass is tried again, three times in all; nothing else is.
#[test]
fn what_may_pass_is_tried_again() {
    for (kind, times, tries) in [
        ("RATE_LIMIT_EXCEEDED", 2, 3),
        ("DEPENDENCY_ERROR", 2, 3),
        ("TIMEOUT_ERROR", 1, 2),
        ("TIMEOUT_ERROR", 9, 3),
        ("VALIDATION_ERROR", 9, 1),
        ("AUTHENTICATION_FAILED", 9, 1),
        ("AUTHORIZATION_FAILED", 9, 1),
        ("RESOURCE_NOT_FOUND", 9, 1),
        ("ACTION_NOT_FOUND", 9, 1),
        ("MY_OWN", 9, 1),
    ] {
        let (server, asked) = failing(kind, times, json!({}));
        let outcome = client(&server).action("try", &json!({})).retry(SOON).wait();
        assert_eq!(asked.load(Ordering::SeqCst), tries, "{kind}");
        assert_eq!(outcome.is_ok(), times < tries, "{kind}: {outcome:?}");
    }
    let (server, asked) = failing(
        "RATE_LIMIT_EXCEEDED",
        1,
        json!({"retry_after_seconds": 0.2}),
    );
    let begun = Instant::now();
    client(&server)
        .action("try", &json!({}))
        .retry(SOON)
        .wait()
        .unwrap();
    assert!(
        begun.elapsed() >= Duration::from_millis(200),
        "what the server asks for is heeded"
    );
    assert_eq!(asked.load(Ordering::SeqCst), 2);
    let (server, asked) = failing(
        "RATE_LIMIT_EXCEEDED",
        1,
        json!({"retry_after_seconds": 3600}),
    );
    assert!(
        client(&server)
            .action("try", &json!({}))
            .retry(SOON)
            .wait()
            .is_err()
    );
    assert_eq!(asked.load(Ordering::SeqCst), 1, "nobody waits so long");
}

/// R-ACT-36: a server that keeps failing is left alone, and asked again later.
#[test]
fn a_server_that_keeps_failing_is_left_alone() {
    let (server, asked) = failing("DEPENDENCY_ERROR", 4, json!({}));
    let client = client(&server);
    let policy = BreakerPolicy {
        failures: 3,
        pause: Duration::from_millis(300),
    };
    let call = || {
        client
            .action("try", &json!({}))
            .retry(RetryPolicy::NEVER)
            .breaker(policy)
            .wait()
    };
    for _ in 0..3 {
        assert!(matches!(call(), Err(ActionFailure::Answered(_))));
    }
    assert_eq!(call(), Err(ActionFailure::BreakerOpen));
    assert_eq!(asked.load(Ordering::SeqCst), 3);
    std::thread::sleep(Duration::from_millis(310));
    assert!(
        matches!(call(), Err(ActionFailure::Answered(_))),
        "one goes through"
    );
    assert_eq!(call(), Err(ActionFailure::BreakerOpen));
    std::thread::sleep(Duration::from_millis(310));
    assert!(call().is_ok() && call().is_ok());
}

/// Another action where the first one fails; not where the call itself is wrong.
#[test]
fn a_fallback_is_called_where_the_first_fails() {
    let client = client(&server("fallback"));
    let add = || client.action("calculator.add", &json!({"a": 1, "b": 2}));
    let missing = client
        .action("nothing", &json!({}))
        .or(add())
        .wait()
        .unwrap();
    assert_eq!(missing.data()["result"], 3.0);
    let wrong = client.action("calculator.add", &json!({})).or(add()).wait();
    assert!(wrong.is_err());
}

/// R-ACT-26: who takes the parts of a call takes those of its fallback, unless that has a taker of
/// its own.
#[test]
fn the_parts_of_a_fallback_are_handed_on() {
    type Shown = Arc<std::sync::Mutex<Vec<String>>>;
    let client = client(&server("text"));
    let taker = |shown: &Shown| {
        let shows = shown.clone();
        move |part: &str| shows.lock().unwrap().push(part.to_owned())
    };
    let story = || client.action("llm.generate", &json!({"prompt": "a story"}));
    let missing = |name: &str| client.action(name, &json!({}));
    let shown = Shown::default();
    let call = missing("nothing").on_partial(taker(&shown));
    let answer = call.or(missing("neither").or(story())).wait().unwrap();
    assert_eq!(answer.joined("token"), "Once upon a time");
    assert_eq!(*shown.lock().unwrap(), answer.partials);
    let (shown, own) = (Shown::default(), Shown::default());
    let call = missing("nothing").on_partial(taker(&shown));
    let answer = call.or(story().on_partial(taker(&own))).wait().unwrap();
    assert!(shown.lock().unwrap().is_empty());
    assert_eq!(*own.lock().unwrap(), answer.partials);
}

/// A call without an answer ends, without a message of MCP.
#[test]
fn a_call_times_out() {
    let sleep = |_: Arguments, context: mcpbolt::server::Context| async move {
        context.sleep(Duration::from_secs(60)).await;
        "late"
    };
    let server = builder("slow")
        .tool(Tool::new("sleep"), sleep)
        .build()
        .unwrap();
    let client = client(&server);
    let call = client
        .action("sleep", &json!({}))
        .timeout(Duration::from_millis(50));
    let outcome = call.retry(RetryPolicy::NEVER).wait();
    assert_eq!(outcome, Err(ActionFailure::Request(RequestError::TimedOut)));
    assert!(client.action("mcp.health_check", &json!({})).wait().is_ok());
}
