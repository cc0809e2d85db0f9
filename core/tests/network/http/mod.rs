//! Servers on Streamable HTTP, over real sockets.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test: panicking is the report"
)]

mod actions;
mod again;
mod broken_off;
#[cfg(all(feature = "resource-server", feature = "tracing"))]
mod canary;
#[cfg(feature = "compression")]
mod compression;
mod credentials;
mod gate;
mod heads;
mod hostile;
mod metrics;
#[cfg(feature = "resource-server")]
mod resource_server;
mod sessions;
#[cfg(feature = "sealing")]
mod shared_sessions;
mod shares;
mod standing;
mod tokio_handlers;
mod wire;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use mcpbolt::chain::{External, Front};
use mcpbolt::io::ServeOptions;
use mcpbolt::io::http::{HttpOptions, HttpServer};
use mcpbolt::limits::{Limits, Rate};
use mcpbolt::mcp::TaskSupport;
use mcpbolt::model::Elicitation;
use mcpbolt::policy::Policy;
use mcpbolt::server::{
    Arguments, CacheScope, Context, HandlerError, Resource, ResourceContents, Server, Tool,
};
use serde_json::{Value, json};

use wire::{PATIENCE, Wire, ask, envelope, headers, post, request};

/// A server on a port of its own; ends with the test.
struct Serving {
    at: SocketAddr,
    server: Server,
    stop: Option<tokio::sync::oneshot::Sender<()>>,
    thread: Option<thread::JoinHandle<()>>,
    sleepers: Arc<AtomicUsize>,
}

impl Serving {
    fn begin(options: HttpOptions) -> Self {
        let sleepers = Arc::new(AtomicUsize::new(0));
        let server = server(&sleepers);
        Self {
            sleepers,
            ..Self::of(server, options)
        }
    }

    fn of(server: Server, options: HttpOptions) -> Self {
        let (stop, stopped) = tokio::sync::oneshot::channel();
        let (tell, told) = std::sync::mpsc::channel();
        let serves = server.clone();
        let thread = thread::spawn(move || {
            let runtime = tokio::runtime::Runtime::new().unwrap();
            runtime.block_on(async move {
                let http = HttpServer::bind(&serves, "127.0.0.1:0", options)
                    .await
                    .unwrap();
                tell.send(http.local_addr().unwrap()).unwrap();
                http.run(async { drop(stopped.await) }).await;
            });
        });
        Self {
            at: told.recv().unwrap(),
            server,
            stop: Some(stop),
            thread: Some(thread),
            sleepers: Arc::default(),
        }
    }

    fn stop(&mut self) {
        drop(self.stop.take());
    }

    fn end(mut self) {
        self.stop();
        self.thread.take().unwrap().join().unwrap();
    }
}

fn text(arguments: &Arguments) -> String {
    let arguments: Value = serde_json::from_str(&arguments.0).unwrap();
    arguments["text"].as_str().unwrap_or_default().to_owned()
}

/// Counts itself while it is there.
struct Counted(Arc<AtomicUsize>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

fn server(sleepers: &Arc<AtomicUsize>) -> Server {
    let (sleepers, tellers) = (sleepers.clone(), sleepers.clone());
    Server::builder("test", "1.0.0")
        .list_changes()
        .subscriptions()
        .tool(Tool::new("echo"), |arguments: Arguments, _| async move {
            text(&arguments)
        })
        .tool(
            Tool::new("steps"),
            |_: Arguments, context: Context| async move {
                for step in 1..=3 {
                    context.progress(f64::from(step), Some(3.0), None);
                }
                "done"
            },
        )
        .tool(
            Tool::new("rest").task_support(TaskSupport::Optional),
            |_: Arguments, context: Context| async move {
                context.begin_task();
                let begun = Instant::now();
                let wanted = Duration::from_millis(200);
                context.sleep(wanted).await;
                match begun.elapsed() >= wanted {
                    true => "rested",
                    false => "woken",
                }
            },
        )
        .tool(
            Tool::new("away"),
            |_: Arguments, context: Context| async move {
                context.release_stream(Duration::from_millis(70));
                context.sleep(Duration::from_millis(100)).await;
                "back"
            },
        )
        .tool(
            Tool::new("slowly"),
            |_: Arguments, context: Context| async move {
                context.progress(1.0, None, None);
                context.sleep(Duration::from_millis(200)).await;
                "slowly done"
            },
        )
        .tool(Tool::new("sleep"), move |_: Arguments, context: Context| {
            sleepers.fetch_add(1, Ordering::SeqCst);
            let counted = Counted(sleepers.clone());
            async move {
                context.sleep(Duration::from_secs(60)).await;
                drop(counted);
                "slept"
            }
        })
        .tool(Tool::new("tell"), move |_: Arguments, context: Context| {
            tellers.fetch_add(1, Ordering::SeqCst);
            let counted = Counted(tellers.clone());
            async move {
                let long = "x".repeat(4 << 10);
                for step in 1..=10_000 {
                    context.progress(f64::from(step), None, Some(&long));
                    if step % 100 == 0 {
                        context.sleep(Duration::from_millis(1)).await;
                    }
                }
                drop(counted);
                "told"
            }
        })
        .tool(
            Tool::new("placed").input_schema(json!({"type": "object", "properties": {
                "region": {"type": "string", "x-mcp-header": "Region"},
                "in": {"type": "object", "properties": {"floor": {"type": "integer", "x-mcp-header": "Floor"}}},
                "lit": {"type": "boolean", "x-mcp-header": "Lit"},
            }})),
            |_: Arguments, _| async { "placed" },
        )
        .tool(
            Tool::new("ask"),
            |_: Arguments, context: Context| async move {
                let form = json!({"type": "object", "properties": {"name": {"type": "string"}}});
                let answer = context.elicit(Elicitation::form("Who?", form)).await?;
                Ok::<_, HandlerError>(format!("{answer:?}"))
            },
        )
        .tool(
            Tool::new("later").task_support(TaskSupport::Optional),
            |_: Arguments, context: Context| async move {
                context.begin_task();
                context.sleep(Duration::from_secs(60)).await;
            },
        )
        .resource(Resource::new("a:b", "b"), |uri, _| async {
            Ok(ResourceContents::text(uri, "contents"))
        })
        .build()
        .unwrap()
}

fn call(id: impl Into<Value>, name: &str, arguments: Value) -> Value {
    request(
        id,
        "tools/call",
        json!({"name": name, "arguments": arguments}),
    )
}

fn until(what: &str, condition: impl Fn() -> bool) {
    let begun = Instant::now();
    while !condition() {
        assert!(begun.elapsed() < PATIENCE, "{what}");
        thread::sleep(Duration::from_millis(5));
    }
}

/// R-HTP-04, R-HTP-05, R-HTP-15, R-HTP-17, R-HTP-18, R-SSE-01, R-SSE-09.
#[test]
fn one_message_is_json_and_anything_before_the_answer_makes_it_events() {
    let serving = Serving::begin(HttpOptions::default());
    let plain = ask(serving.at, &call("a", "echo", json!({"text": "hi"})));
    assert_eq!(
        (plain.status, plain.header("content-type")),
        (200, "application/json")
    );
    assert_eq!(plain.json()["id"], "a");
    assert_eq!(plain.json()["result"]["content"][0]["text"], "hi");

    let mut steps = call(7, "steps", json!({}));
    steps["params"]["_meta"]["progressToken"] = 5.into();
    let answer = ask(serving.at, &steps);
    assert_eq!(answer.header("x-accel-buffering"), "no");
    let events = answer.events();
    let progress = |event: &Value| event["params"]["progress"].as_f64();
    assert_eq!(
        events[..3].iter().filter_map(progress).collect::<Vec<_>>(),
        [1.0, 2.0, 3.0]
    );
    assert_eq!(events[3]["result"]["content"][0]["text"], "done");
    assert_eq!((events.len(), answer.body.contains("id:")), (4, false));

    let notification = json!({"jsonrpc": "2.0", "method": "notifications/cancelled",
        "params": {"requestId": 1, "_meta": envelope(json!({}))}});
    let accepted = ask(serving.at, &notification);
    assert_eq!((accepted.status, &*accepted.body), (202, ""));
    serving.end();
}

/// R-HDR-11: who asks is what the carrier has proven; no header that a client writes makes anybody
/// another, nor a call another one.
#[test]
fn no_header_is_proof_of_authority() {
    let server = Server::builder("guarded", "1.0.0")
        .tool(Tool::new("open"), |_: Arguments, _| async { "open" })
        .tool(Tool::new("kept"), |_: Arguments, _| async { "kept" })
        .guard(|access| match (access.name, access.principal) {
            ("open", _) | (_, Some("ada")) => Ok(()),
            _ => Err(HandlerError::new("not for you")),
        })
        .build()
        .unwrap();
    let serving = Serving::of(server, HttpOptions::default());
    let ask_with = |name: &str, further: &[(&'static str, &str)]| {
        let message = call(1, name, json!({}));
        let mut all = headers(&message);
        for (name, value) in further {
            all.retain(|(own, _)| own != name);
            all.push((name, (*value).to_owned()));
        }
        let mut wire = Wire::open(serving.at);
        wire.send(&post(&all, &message.to_string()));
        wire.answer()
    };
    assert!(ask_with("open", &[]).json()["result"].is_object());
    let refused = ask_with("kept", &[]).json();
    assert!(refused["error"]["message"].is_string(), "{refused}");
    for claim in [
        ("Authorization", "Bearer ada"),
        ("Mcp-Param-Principal", "ada"),
        ("X-Forwarded-User", "ada"),
        ("Cookie", "principal=ada"),
    ] {
        assert_eq!(ask_with("kept", &[claim]).json(), refused, "{claim:?}");
    }
    let dressed = ask_with("kept", &[("Mcp-Name", "open")]);
    assert_eq!(
        (dressed.status, &dressed.json()["error"]["code"]),
        (400, &json!(-32020))
    );
    serving.end();
}

/// R-S14-05: who asks too often is told so by HTTP's own word, and when to come back; those whom nobody
/// knows share one rate.
#[test]
fn who_asks_too_often_is_told_so_by_the_status() {
    let rate = Rate {
        burst: 2,
        per_second: 0,
    };
    let server = Server::builder("rated", "1.0.0")
        .policy(Policy::new().rate(rate))
        .tool(Tool::new("open"), |_: Arguments, _| async { "open" })
        .build()
        .unwrap();
    let serving = Serving::of(server, HttpOptions::default());
    let asked: Vec<_> = (0..3)
        .map(|n| ask(serving.at, &call(n, "open", json!({}))))
        .collect();
    assert_eq!(
        asked.iter().map(|it| it.status).collect::<Vec<_>>(),
        [200, 200, 429]
    );
    // A rate of 0 has two in 366 days.
    let wait: u64 = asked[2].header("retry-after").parse().unwrap();
    assert!((15_000_000..16_000_000).contains(&wait), "{wait}");
    let data = &asked[2].json()["error"]["data"];
    assert_eq!(data, &json!({"retryAfter": wait}));
    serving.end();
}

/// R-ERR-18, R-HDR-01, R-HDR-02, R-HDR-04, R-ERA-05.
#[test]
fn headers_that_differ_from_the_message_are_refused() {
    let serving = Serving::begin(HttpOptions::default());
    let ask_with = |change: &[(&str, Option<&str>)]| {
        let message = call(9, "echo", json!({"text": "x"}));
        let mut all = headers(&message);
        for (name, value) in change {
            all.retain(|(own, _)| !own.eq_ignore_ascii_case(name));
            if let Some(value) = value {
                all.push((
                    Box::leak(name.to_string().into_boxed_str()),
                    value.to_string(),
                ));
            }
        }
        let mut wire = Wire::open(serving.at);
        wire.send(&post(&all, &message.to_string()));
        wire.answer()
    };
    assert_eq!(ask_with(&[]).status, 200);
    assert_eq!(
        ask_with(&[("mcp-method", Some("  tools/call\t"))]).status,
        200
    );
    assert_eq!(
        ask_with(&[("MCP-NAME", Some("=?base64?ZWNobw==?="))]).status,
        200
    );
    for change in [
        ("Mcp-Method", None),
        ("Mcp-Method", Some("Tools/Call")),
        ("Mcp-Method", Some("tools/list")),
        ("Mcp-Name", None),
        ("Mcp-Name", Some("Echo")),
        ("Mcp-Name", Some("=?base64?ZWNobw=?=")),
        ("Mcp-Name", Some("=?base64?ZWN*bw==?=")),
        ("MCP-Protocol-Version", None),
        ("MCP-Protocol-Version", Some("2025-11-25")),
    ] {
        let answer = ask_with(&[change]);
        let error = answer.json();
        assert_eq!(
            (answer.status, &error["error"]["code"]),
            (400, &json!(-32020)),
            "{change:?}"
        );
        assert_eq!(error["id"], 9, "{change:?}");
    }
    // The URI names the resource that is read, whatever else the params contain.
    let reads = request(9, "resources/read", json!({"uri": "a:b", "name": "a:c"}));
    for (name, status) in [("a:b", 200), ("a:c", 400)] {
        let mut all = headers(&reads);
        all.retain(|(own, _)| !own.eq_ignore_ascii_case("mcp-name"));
        all.push(("Mcp-Name", name.to_owned()));
        let mut wire = Wire::open(serving.at);
        wire.send(&post(&all, &reads.to_string()));
        assert_eq!(wire.answer().status, status, "{name}");
    }
    serving.end();
}

/// R-TSX-15: what a request says of a task it says in its headers, too.
#[test]
fn a_task_is_named_in_the_headers() {
    let serving = Serving::begin(HttpOptions::default());
    let ask_with = |method: &str, mut params: Value, name: Option<&str>| {
        let extensions = json!({"extensions": {"io.modelcontextprotocol/tasks": {}}});
        params["_meta"] = envelope(extensions);
        let message = request(1, method, params);
        let mut all = headers(&message);
        all.retain(|(own, _)| *own != "Mcp-Name");
        all.extend(name.map(|name| ("Mcp-Name", name.to_owned())));
        let mut wire = Wire::open(serving.at);
        wire.send(&post(&all, &message.to_string()));
        let answer = wire.answer();
        (answer.status, answer.json())
    };
    let later = json!({"name": "later", "arguments": {}});
    let (_, begun) = ask_with("tools/call", later, Some("later"));
    assert_eq!(begun["result"]["resultType"], "task", "{begun}");
    let id = begun["result"]["taskId"].as_str().unwrap();
    for (method, more) in [
        ("tasks/get", json!({})),
        ("tasks/update", json!({"inputResponses": {}})),
        ("tasks/cancel", json!({})),
    ] {
        let mut params = more;
        params["taskId"] = id.into();
        for wrong in [None, Some("other"), Some("")] {
            let (status, answer) = ask_with(method, params.clone(), wrong);
            let refused = (400, &json!(-32020));
            assert_eq!(
                (status, &answer["error"]["code"]),
                refused,
                "{method} {wrong:?}"
            );
        }
        let (status, answer) = ask_with(method, params, Some(id));
        assert_eq!(
            (status, answer.get("error")),
            (200, None),
            "{method} {answer}"
        );
    }
    serving.end();
}

/// R-TSX-01: a task goes on when the request that began it is answered.
#[test]
fn a_task_outlives_its_request() {
    let serving = Serving::begin(HttpOptions::default());
    let tasks = envelope(json!({"extensions": {"io.modelcontextprotocol/tasks": {}}}));
    let begin = json!({"name": "rest", "arguments": {}, "_meta": tasks});
    let begun = ask(serving.at, &request(1, "tools/call", begin)).json();
    let id = begun["result"]["taskId"]
        .as_str()
        .unwrap_or_else(|| panic!("{begun}"));
    let look = || {
        let params = json!({"taskId": id, "_meta": tasks});
        let message = request(2, "tasks/get", params);
        let mut all = headers(&message);
        all.push(("Mcp-Name", id.to_owned()));
        let mut wire = Wire::open(serving.at);
        wire.send(&post(&all, &message.to_string()));
        wire.answer().json()
    };
    until("it ends", || look()["result"]["status"] != "working");
    assert_eq!(
        look()["result"]["result"]["content"][0]["text"],
        "rested",
        "{}",
        look()
    );
    serving.end();
}

/// R-HDR-05, R-HDR-06, R-HDR-13.
#[test]
fn arguments_that_travel_in_headers_are_the_same_there() {
    let serving = Serving::begin(HttpOptions::default());
    let ask_with = |arguments: Value, said: &[(&'static str, &str)]| {
        let message = call(9, "placed", arguments);
        let mut all = headers(&message);
        all.extend(
            said.iter()
                .map(|(name, value)| (*name, (*value).to_owned())),
        );
        let mut wire = Wire::open(serving.at);
        wire.send(&post(&all, &message.to_string()));
        let answer = wire.answer();
        let code = answer.json()["error"]["code"].clone();
        assert_eq!((answer.status == 400), (code == -32020), "{answer:?}");
        answer.status
    };
    let (region, floor, lit) = ("Mcp-Param-Region", "MCP-PARAM-FLOOR", "mcp-param-lit");
    for (arguments, said, status) in [
        (json!({}), vec![], 200),
        (json!({"region": "eu"}), vec![(region, "eu")], 200),
        (
            json!({"region": "eu"}),
            vec![(region, "=?base64?ZXU=?=")],
            200,
        ),
        (
            json!({"region": "\u{e9}"}),
            vec![(region, "=?base64?w6k=?=")],
            200,
        ),
        (json!({"region": ""}), vec![(region, "")], 200),
        (json!({"in": {"floor": 42}}), vec![(floor, "42.0")], 200),
        (json!({"lit": true}), vec![(lit, "true")], 200),
        (json!({"region": "eu"}), vec![], 400),
        (json!({"region": "eu"}), vec![(region, "us")], 400),
        (json!({"region": "eu"}), vec![(region, "ZXU=")], 400),
        (
            json!({"region": "eu"}),
            vec![(region, "=?base64?ZXU?=")],
            400,
        ),
        (json!({}), vec![(region, "eu")], 400),
        (json!({"in": {"floor": 42}}), vec![(floor, "41")], 400),
        (json!({"lit": true}), vec![(lit, "True")], 400),
    ] {
        assert_eq!(
            ask_with(arguments.clone(), &said),
            status,
            "{arguments} {said:?}"
        );
    }
    serving.end();
}

/// R-ERR-30, R-ERA-03, R-ERA-04, R-ERA-06.
/// R-HDR-10: of tools that a client has listed, for however long the list is good.
#[test]
fn a_front_checks_arguments_that_travel_in_headers() {
    let region = json!({"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}});
    for ttl in [Duration::ZERO, Duration::from_secs(60)] {
        let far = Server::builder("far", "1").cache_lists(ttl, CacheScope::Public);
        let placed = Tool::new("placed").input_schema(region.clone());
        let far = far.tool(placed, |_: Arguments, _| async { "placed" });
        let front = Front::new(External::server("far", &far.build().unwrap()));
        let anywhere = "http://127.0.0.1:0/mcp".parse().unwrap();
        let serving = front.serve(&anywhere, ServeOptions::default()).unwrap();
        let address = serving.address().to_string();
        let at = address.strip_prefix("http://").unwrap();
        let at: SocketAddr = at.strip_suffix("/mcp").unwrap().parse().unwrap();
        for _ in 0..2 {
            let listed = ask(at, &request(1, "tools/list", json!({}))).json();
            assert_eq!(listed["result"]["tools"][0]["name"], "placed", "{listed}");
        }
        for (said, status) in [("eu", 200), ("us", 400)] {
            let message = call(2, "placed", json!({"region": "eu"}));
            let mut all = headers(&message);
            all.push(("Mcp-Param-Region", said.to_owned()));
            let mut wire = Wire::open(at);
            wire.send(&post(&all, &message.to_string()));
            assert_eq!(wire.answer().status, status, "{said}, {ttl:?}");
        }
    }
}

#[test]
fn the_status_says_what_kind_of_error_it_is() {
    let serving = Serving::begin(HttpOptions::default());
    let unknown = envelope(json!({}));
    let mut unknown = request(1, "tools/list", json!({"_meta": unknown}));
    unknown["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] = "1999-01-01".into();
    let mut all = headers(&unknown);
    all.retain(|(name, _)| *name != "MCP-Protocol-Version");
    all.push(("MCP-Protocol-Version", "1999-01-01".into()));
    let mut wire = Wire::open(serving.at);
    wire.send(&post(&all, &unknown.to_string()));
    let answer = wire.answer();
    assert_eq!(
        (answer.status, &answer.json()["error"]["code"]),
        (400, &json!(-32022))
    );
    let data = &answer.json()["error"]["data"];
    assert_eq!(
        data,
        &json!({"supported": ["2026-07-28"], "requested": "1999-01-01"})
    );

    for method in [
        "ping",
        "logging/setLevel",
        "resources/subscribe",
        "no/such",
        "tasks/result",
    ] {
        let answer = ask(serving.at, &request(1, method, json!({})));
        let code = &answer.json()["error"]["code"];
        assert_eq!((answer.status, code), (404, &json!(-32601)), "{method}");
    }
    for (message, status, code) in [
        (
            json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}),
            400,
            -32602,
        ),
        (call(1, "no_such_tool", json!({})), 200, -32602),
        (
            request(1, "resources/read", json!({"uri": "a:c"})),
            200,
            -32602,
        ),
        (json!([call(1, "echo", json!({}))]), 400, -32600),
        (
            json!({"jsonrpc": "1.0", "id": 1, "method": "tools/list"}),
            400,
            -32600,
        ),
        (
            json!({"jsonrpc": "2.0", "id": 1, "method": "initialize",
            "params": {"protocolVersion": "2025-11-25"}}),
            400,
            -32022,
        ),
    ] {
        let answer = ask(serving.at, &message);
        let error = &answer.json()["error"];
        assert_eq!(
            (answer.status, &error["code"]),
            (status, &json!(code)),
            "{message}"
        );
    }
    // An answer that nobody asked for, and what is no JSON: errors without an id.
    let mut wire = Wire::open(serving.at);
    let all = headers(&json!({}));
    for body in [
        r#"{"jsonrpc":"2.0","id":1,"result":{}}"#,
        "{\"jso",
        "",
        "\u{feff}{}",
    ] {
        wire.send(&post(&all, body));
        let answer = wire.answer();
        assert_eq!(answer.status, 400, "{body}");
        assert!(
            answer.json()["error"]["code"].is_i64() && answer.json().get("id").is_none(),
            "{body}"
        );
    }
    serving.end();
}

/// R-CAN-06: within 10 ms on a quiet machine.
#[test]
fn who_goes_away_cancels_what_it_asked() {
    let serving = Serving::begin(HttpOptions::default());
    let sleepers = || serving.sleepers.load(Ordering::SeqCst);
    let wires: Vec<_> = (0..20)
        .map(|_| {
            let message = call(1, "sleep", json!({}));
            let mut wire = Wire::open(serving.at);
            wire.send(&post(&headers(&message), &message.to_string()));
            wire
        })
        .collect();
    until("all of them sleep", || sleepers() == 20);
    drop(wires);
    until("all of them are cancelled", || sleepers() == 0);
    serving.end();
}

/// R-RPC-05: each POST is a scope of its own. 10,000 at a time are a bench's.
/// More than all buffers hold: whoever does not read it holds up who tells it no more than others.
#[test]
fn who_does_not_read_holds_up_no_handler() {
    let serving = Serving::begin(HttpOptions::default());
    let mut message = call(1, "tell", json!({}));
    message["params"]["_meta"]["progressToken"] = json!("t");
    let mut wire = Wire::open(serving.at);
    wire.send(&post(&headers(&message), &message.to_string()));
    until("it is being told", || {
        serving.sleepers.load(Ordering::SeqCst) == 1
    });
    until("it is told", || {
        serving.sleepers.load(Ordering::SeqCst) == 0
    });
    drop(wire);
    serving.end();
}

#[test]
fn the_same_id_is_every_request_its_own() {
    let serving = Serving::begin(HttpOptions::default());
    let at = serving.at;
    let threads: Vec<_> = (0..16)
        .map(|thread| {
            thread::spawn(move || {
                let mut wire = Wire::open(at);
                for i in 0..100 {
                    let text = format!("{thread} {i}");
                    let message = call(1, "echo", json!({"text": text}));
                    wire.send(&post(&headers(&message), &message.to_string()));
                    assert_eq!(wire.answer().json()["result"]["content"][0]["text"], text);
                }
            })
        })
        .collect();
    threads
        .into_iter()
        .for_each(|thread| thread.join().unwrap());
    serving.end();
}

/// R-MRT-01, R-MRT-02, R-MRT-14: a question ends the POST, its answer comes with the next.
#[test]
fn questions_travel_in_answers() {
    let serving = Serving::begin(HttpOptions::default());
    let meta = envelope(json!({"elicitation": {"form": {}}}));
    let mut message = request(
        1,
        "tools/call",
        json!({"name": "ask", "arguments": {}, "_meta": meta}),
    );
    let first = ask(serving.at, &message).json();
    assert_eq!(first["result"]["resultType"], "input_required");
    let questions = first["result"]["inputRequests"].as_object().unwrap();
    let (key, question) = questions.iter().next().unwrap();
    assert_eq!(question["method"], "elicitation/create");
    message["id"] = 2.into();
    message["params"]["inputResponses"] =
        json!({ key: {"action": "accept", "content": {"name": "Ada"}} });
    message["params"]["requestState"] = first["result"]["requestState"].clone();
    let second = ask(serving.at, &message).json();
    assert!(
        second["result"]["content"][0]["text"]
            .as_str()
            .unwrap()
            .contains("Ada")
    );
    message["params"]["requestState"] =
        format!("{}x", message["params"]["requestState"].as_str().unwrap()).into();
    assert_eq!(ask(serving.at, &message).json()["error"]["code"], -32602);
    serving.end();
}

/// R-SUB-01, R-SUB-02, R-SUB-05, R-SUB-09, R-SUB-13.
#[test]
fn a_stream_tells_of_changes_and_ends_with_the_server() {
    let mut serving = Serving::begin(HttpOptions {
        comment_interval: Duration::from_millis(50),
        ..HttpOptions::default()
    });
    let wanted =
        json!({"notifications": {"toolsListChanged": true, "resourceSubscriptions": ["a:b"]}});
    let message = request("s", "subscriptions/listen", wanted);
    let mut wire = Wire::open(serving.at);
    wire.send(&post(&headers(&message), &message.to_string()));
    assert_eq!(wire.begin().status, 200);
    let mut event = || loop {
        let chunk = wire.chunk();
        match chunk.strip_prefix("data: ") {
            Some(data) => return serde_json::from_str::<Value>(data).unwrap(),
            None => assert_eq!(chunk, ":\n\n"),
        }
    };
    assert_eq!(
        event()["method"],
        "notifications/subscriptions/acknowledged"
    );
    thread::sleep(Duration::from_millis(200));
    serving.server.resource_updated("a:b");
    assert_eq!(event()["params"]["uri"], "a:b");
    serving
        .server
        .change(|offer| offer.remove_tool("echo"))
        .unwrap();
    let changed = event();
    assert_eq!(changed["method"], "notifications/tools/list_changed");
    assert_eq!(
        changed["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"],
        "s"
    );
    serving.stop();
    assert_eq!(event()["id"], "s");
    serving.end();
}

/// R-HTP-19 and the limits of a body.
#[test]
fn bodies_are_bounded_in_size_and_time() {
    let serving = Serving::begin(HttpOptions {
        limits: Limits {
            max_message_bytes: 1000,
            stall_timeout: Duration::from_millis(300),
            ..Limits::NETWORK
        },
        ..HttpOptions::default()
    });
    let all = headers(&json!({}));
    let long = "x".repeat(2000);
    let mut wire = Wire::open(serving.at);
    wire.send(&post(&all, &long));
    assert_eq!(wire.answer().status, 413);
    // In chunks, whose sum nobody announced.
    let mut head = post(&all, "");
    head.truncate(head.len() - "Content-Length: 0\r\n\r\n".len());
    head.extend_from_slice(b"Transfer-Encoding: chunked\r\n\r\n");
    let mut wire = Wire::open(serving.at);
    wire.send(&head);
    wire.send(format!("7d0\r\n{long}\r\n0\r\n\r\n").as_bytes());
    assert_eq!(wire.answer().status, 413);
    // One that never ends.
    let mut wire = Wire::open(serving.at);
    wire.send(&head);
    wire.send(b"1\r\n{\r\n");
    assert_eq!(wire.answer().status, 408);
    // One that breaks off, and one longer than it said: the server lives.
    let mut wire = Wire::open(serving.at);
    let mut lying = post(&all, "{}");
    lying.extend_from_slice(b"garbage\r\n\r\n");
    wire.send(&lying);
    assert_eq!(wire.answer().status, 400);
    drop(wire);
    let mut wire = Wire::open(serving.at);
    wire.send(&post(&all, &"x".repeat(500))[..300]);
    drop(wire);
    let answer = ask(serving.at, &call(1, "echo", json!({"text": "alive"})));
    assert_eq!(answer.status, 200);
    serving.end();
}

/// A client that sends all of a refused body before it reads anything gets the answer, not a reset (RFC 9112,
/// section 9.6).
#[test]
fn a_refusal_arrives_although_the_body_is_still_sent() {
    let serving = Serving::begin(HttpOptions {
        limits: Limits {
            max_message_bytes: 1000,
            ..Limits::NETWORK
        },
        ..HttpOptions::default()
    });
    let mut request = post(&headers(&json!({})), &"x".repeat(16 << 20));
    let mut wire = Wire::open(serving.at);
    wire.send(&request);
    assert_eq!(wire.answer().status, 413);
    drop(wire);
    // Refused by its head alone.
    let at = request
        .windows(5)
        .position(|part| part == b"Host:")
        .unwrap();
    request.splice(at..at, *b"Origin: https://evil.example\r\n");
    let mut wire = Wire::open(serving.at);
    wire.send(&request);
    assert_eq!(wire.answer().status, 403);
    drop(wire);
    // A connection without a body that was refused does not keep the server from its end.
    let mut idle = Wire::open(serving.at);
    idle.send(b"GET /elsewhere HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert_eq!(idle.answer().status, 404);
    let begin = Instant::now();
    serving.end();
    assert!(begin.elapsed() < Duration::from_millis(900));
}

/// HTTP/1.1 pipelining (RFC 9112, 9.3.2): answers in the order of the requests.
#[test]
fn requests_may_be_pipelined() {
    let serving = Serving::begin(HttpOptions::default());
    let mut wire = Wire::open(serving.at);
    let mut all = Vec::new();
    for i in 0..50 {
        let message = call(i, "echo", json!({"text": i.to_string()}));
        all.extend(post(&headers(&message), &message.to_string()));
    }
    for part in all.chunks(777) {
        wire.send(part);
    }
    for i in 0..50 {
        assert_eq!(wire.answer().json()["id"], i);
    }
    serving.end();
}

/// Calls in flight when the server ends are answered; a call that never ends is given up.
#[test]
fn the_server_ends_within_its_grace() {
    let serving = Serving::begin(HttpOptions {
        grace: Duration::from_millis(300),
        ..HttpOptions::default()
    });
    let message = call(1, "sleep", json!({}));
    let mut wire = Wire::open(serving.at);
    wire.send(&post(&headers(&message), &message.to_string()));
    until("it sleeps", || serving.sleepers.load(Ordering::SeqCst) == 1);
    let begun = Instant::now();
    let sleepers = serving.sleepers.clone();
    serving.end();
    assert!(
        begun.elapsed() < Duration::from_millis(1500),
        "{:?}",
        begun.elapsed()
    );
    assert!(wire.is_closed());
    until("it is cancelled", || sleepers.load(Ordering::SeqCst) == 0);
}
