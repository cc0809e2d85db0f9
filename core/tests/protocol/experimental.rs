//! The features that one profile declares as `experimental`: batches, results in pieces, advice on caches. And calls
//! that wait for approval.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcpbolt::client::{BatchRequest, Client, block_on};
use mcpbolt::connection::Trace;
use mcpbolt::mcp::{Profile, Revision};
use mcpbolt::policy::{Permissions, Policy};
use mcpbolt::server::{
    Arguments, Builder, CacheScope, Content, Context, HandlerError, Results, Server, Tool,
};
use serde_json::{Value, json};

use crate::wire::Wire;

const OLD: Revision = Revision::V2024_11_05;

fn server(profile: Profile) -> Builder {
    Server::builder("batches", "1")
        .actions(true)
        .profile(profile)
        .experimental("batch", r#"{"maxSize":4,"timeout":1000}"#)
        .experimental("streaming", r#"{"tools":true}"#)
        .experimental("caching", r#"{"ttl":3600000,"maxSize":1}"#)
        .tool(Tool::new("echo"), |arguments: Arguments, _| async move {
            arguments.0.to_string()
        })
        .tool(
            Tool::new("steps"),
            |_: Arguments, context: Context| async move {
                context.progress(1.0, None, None);
                "done"
            },
        )
        .tool(
            Tool::new("slow"),
            |_: Arguments, context: Context| async move {
                context.sleep(Duration::from_secs(3600)).await;
                "late"
            },
        )
        .tool(
            Tool::new("tell"),
            |_: Arguments, context: Context| async move {
                let Some(mut pieces) = context.begin_pieces(&[Content::text("one")]) else {
                    return "one two three";
                };
                pieces.send(&[Content::text("two")]);
                pieces.end(&[Content::text("three")]);
                "nobody hears this"
            },
        )
}

fn open(server: &Server) -> Wire {
    Wire::open(server, OLD, json!({}))
}

fn batch(wire: &mut Wire, requests: Value) -> Value {
    wire.ask(OLD, "batch/execute", json!({"requests": requests}))
}

fn call(name: &str) -> Value {
    json!({"method": "tools/call", "params": {"name": name, "arguments": {"to": name}}})
}

/// R-B3X-01, R-B3X-02, R-B3X-03: as many answers as requests, in their order, each of its own.
#[test]
fn requests_that_come_as_one_are_answered_as_one() {
    let server = server(Profile::Extended).build().unwrap();
    let mut wire = open(&server);
    let mut named = call("echo");
    named["id"] = 0.into();
    named["jsonrpc"] = "2.0".into();
    let answer = batch(
        &mut wire,
        json!([named, call("nothing"), {"method": "initialize"}, {"method": "tools/list"}]),
    );
    let responses = &answer["result"]["responses"];
    assert_eq!(responses.as_array().unwrap().len(), 4, "{answer}");
    assert_eq!(responses[0]["id"], 0);
    assert_eq!(responses[0]["jsonrpc"], "2.0");
    assert_eq!(
        responses[0]["result"]["content"][0]["text"],
        r#"{"to":"echo"}"#
    );
    assert_eq!(
        responses[1],
        json!({"code": -32003, "message": "Unknown tool: nothing", "data": {"tool": "nothing"}})
    );
    assert_eq!(responses[2]["code"], -32600);
    assert_eq!(responses[3]["result"]["tools"].as_array().unwrap().len(), 4);
    assert_eq!(wire.connection.in_flight(), 0);
    assert_eq!(
        batch(&mut wire, json!([]))["result"],
        json!({"responses": []})
    );
    assert_eq!(batch(&mut wire, json!(7))["error"]["code"], -32602);
}

/// R-CAP-09, R-B3X-02, R-B3X-04: outside of the profile both sides declare it, and errors stand in
/// responses; the newest revision has none.
#[test]
fn batches_are_served_where_they_are_declared() {
    let server = server(Profile::Official).build().unwrap();
    let undeclared = batch(&mut open(&server), json!([]));
    assert_eq!(undeclared["error"]["code"], -32601, "{undeclared}");
    let mut wire = Wire::open(&server, OLD, json!({"experimental": {"batch": {}}}));
    let answer = batch(&mut wire, json!([call("nothing"), call("echo")]));
    assert_eq!(
        answer["result"]["responses"][0]["error"]["code"], -32602,
        "{answer}"
    );
    let too_many = batch(&mut wire, json!(vec![call("echo"); 5]));
    assert_eq!(too_many["error"]["code"], -32602);
    assert_eq!(too_many["error"]["data"], json!({"maxSize": 4}));
    let newest = Revision::V2026_07_28;
    let mut wire = Wire::open(&server, newest, json!({"experimental": {"batch": {}}}));
    let answer = wire.ask(newest, "batch/execute", json!({"requests": []}));
    assert_eq!(answer["error"]["code"], -32601);
    let plain = Server::builder("s", "1")
        .actions(true)
        .profile(Profile::Extended)
        .build()
        .unwrap();
    assert_eq!(batch(&mut open(&plain), json!([]))["error"]["code"], -32601);
}

/// R-B3X-04: what is not done in time gets an error; what is done keeps its result.
#[test]
fn the_time_of_a_batch_is_bounded() {
    let server = server(Profile::Extended).build().unwrap();
    let mut wire = open(&server);
    let requests = json!([call("slow"), call("echo")]);
    assert!(
        wire.begin("batch/execute", json!({"requests": requests}))
            .is_empty()
    );
    let early = wire.hear_until(|wire| wire.connection.in_flight() == 2);
    assert!(early.is_empty(), "{early:?}");
    assert!(wire.pass(Duration::from_millis(900)).is_empty());
    let answers = wire.pass(Duration::from_millis(200));
    let responses = &answers[0]["result"]["responses"];
    assert_eq!(responses[0]["code"], -32004, "{answers:?}");
    assert_eq!(
        responses[1]["result"]["content"][0]["text"],
        r#"{"to":"echo"}"#
    );
    assert_eq!(wire.connection.in_flight(), 0);
}

/// R-B3X-05: a cancel ends all elements; progress comes by itself; permissions hold for each.
#[test]
fn elements_are_requests_like_others() {
    let mut permissions = Permissions::all();
    permissions.tools.denied.push("echo".into());
    let ended = Arc::new(Mutex::new(Vec::new()));
    let sink = ended.clone();
    let policy = Policy::new().permissions(permissions).audit(move |event| {
        sink.lock()
            .unwrap()
            .push((event.name.to_owned(), event.outcome.name()));
    });
    let server = server(Profile::Extended).policy(policy).build().unwrap();
    let mut wire = open(&server);
    let mut steps = call("steps");
    steps["params"]["_meta"] = json!({"progressToken": "t"});
    let answer = batch(&mut wire, json!([steps, call("echo")]));
    let responses = &answer["result"]["responses"];
    assert_eq!(responses[0]["result"]["content"][0]["text"], "done");
    assert_eq!(responses[1]["code"], -32005, "{answer}");
    let progress = wire
        .lines
        .iter()
        .filter(|line| line.contains("notifications/progress"));
    assert_eq!(progress.count(), 1, "{:?}", wire.lines);

    let requests = json!([call("slow"), call("slow")]);
    wire.begin("batch/execute", json!({"requests": requests}));
    let said = wire.say(
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"begun"}}"#,
    );
    assert!(said.is_empty(), "{said:?}");
    let waited = std::time::Instant::now();
    while ended
        .lock()
        .unwrap()
        .iter()
        .filter(|(name, _)| name == "slow")
        .count()
        < 2
    {
        assert!(waited.elapsed() < Duration::from_secs(30), "{ended:?}");
        std::thread::sleep(Duration::from_millis(1));
        wire.hear();
    }
    assert_eq!(wire.connection.in_flight(), 0);
    assert!(
        ended
            .lock()
            .unwrap()
            .contains(&("slow".into(), "cancelled"))
    );
}

fn client(profile: Profile) -> Client {
    let server = server(profile).build().unwrap();
    block_on(Client::builder("c", "1").profile(profile).connect(&server)).unwrap()
}

/// R-B3X-02: both forms of an error are read.
#[test]
fn a_client_sends_batches_and_reads_their_answers() {
    let client = client(Profile::Extended);
    let request = |name: &str| BatchRequest {
        method: "tools/call".into(),
        params: Some(json!({"name": name})),
    };
    let answers = block_on(client.batch(&[request("echo"), request("nothing")])).unwrap();
    assert_eq!(answers[0].as_ref().unwrap()["content"][0]["text"], "{}");
    assert_eq!(answers[1].as_ref().unwrap_err().code, -32003);
}

/// R-XST-01, R-XST-02: the first piece is the result, the others follow it, the last says so.
#[test]
fn a_result_comes_in_pieces_to_who_asks_for_it() {
    let server = server(Profile::Extended).build().unwrap();
    let mut wire = open(&server);
    let whole = wire.ask(OLD, "tools/call", json!({"name": "tell"}));
    assert_eq!(whole["result"]["content"][0]["text"], "one two three");
    let asked = json!({"name": "tell", "_experimental": {"stream": true}});
    let first = wire.ask(OLD, "tools/call", asked.clone());
    assert_eq!(first["result"]["content"][0]["text"], "one");
    assert_eq!(first["result"]["_experimental"]["hasMore"], true);
    let id = &first["result"]["_experimental"]["streamId"];
    let of_stream = |wire: &Wire| -> Vec<Value> {
        let lines = wire
            .lines
            .iter()
            .filter(|line| line.contains("_experimental/stream"));
        lines
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    };
    wire.hear_until(|wire| of_stream(wire).len() == 2);
    let rest = of_stream(&wire);
    let piece = |seq: u64, text: &str, has_more: bool| {
        json!({"jsonrpc": "2.0", "method": "notifications/_experimental/stream", "params": {
            "streamId": id, "seq": seq, "content": [{"type": "text", "text": text}], "hasMore": has_more}})
    };
    assert_eq!(rest, [piece(1, "two", true), piece(2, "three", false)]);

    let official = self::server(Profile::Official).build().unwrap();
    let mut wire = open(&official);
    let undeclared = wire.ask(OLD, "tools/call", asked);
    assert_eq!(undeclared["result"]["content"][0]["text"], "one two three");
}

/// R-XST-01, R-XST-02: in order, at a client that asks for it.
#[test]
fn a_client_asks_for_pieces() {
    let server = server(Profile::Extended).build().unwrap();
    let heard = Arc::new(Mutex::new(Vec::new()));
    let sink = heard.clone();
    let client = Client::builder("c", "1")
        .profile(Profile::Extended)
        .on_raw_notice(move |method, params| {
            let params: Value = serde_json::from_str(params.unwrap_or("{}")).unwrap();
            sink.lock()
                .unwrap()
                .push((method.to_owned(), params["seq"].clone()));
        });
    let client = block_on(client.connect(&server)).unwrap();
    let first = client
        .call_tool("tell", &json!({}))
        .in_pieces()
        .wait()
        .unwrap();
    assert_eq!(first.text(), "one");
    assert_eq!(first.other["_experimental"]["hasMore"], true);
    let begun = std::time::Instant::now();
    while heard.lock().unwrap().len() < 2 {
        assert!(begun.elapsed() < Duration::from_secs(30));
        std::thread::sleep(Duration::from_millis(1));
    }
    let piece = |seq: u64| ("notifications/_experimental/stream".to_owned(), json!(seq));
    assert_eq!(*heard.lock().unwrap(), [piece(1), piece(2)]);
}

/// R-XST-03: a list is kept as long as its server advises, where no revision says otherwise.
#[test]
fn a_client_keeps_lists_as_it_is_advised() {
    for (profile, asked) in [(Profile::Extended, 1), (Profile::Chain, 3)] {
        let lists = Arc::new(AtomicUsize::new(0));
        let count = lists.clone();
        let server = server(profile).build().unwrap();
        let trace = Trace::new(move |_, frame| {
            count.fetch_add(usize::from(frame.contains("tools/list")), Ordering::Relaxed);
        });
        let client = Client::builder("c", "1").profile(profile).trace(trace);
        let client = block_on(client.connect(&server)).unwrap();
        for _ in 0..3 {
            assert_eq!(block_on(client.list_tools()).unwrap().len(), 4);
        }
        assert_eq!(lists.load(Ordering::Relaxed), asked, "{profile}");
    }
}

/// R-S14-05: arguments are cleaned before a tool, who approves or what keeps results sees them, for
/// clients of MCP and of actions alike; or refused.
#[test]
fn arguments_are_cleaned_before_a_tool_sees_them() {
    let said = |Arguments(json): Arguments| json.to_string();
    let schema = r#"{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}"#;
    let results = Results::new(Duration::from_secs(60), CacheScope::Public);
    let runs = Arc::new(AtomicUsize::new(0));
    let count = runs.clone();
    let server = Server::builder("s", "1")
        .actions(true)
        .tool(
            Tool::new("say").input_schema(schema),
            move |given, _| async move { said(given) },
        )
        .inline_tool(Tool::new("now").input_schema(schema), said)
        .kept_tool(
            Tool::new("keep").input_schema(schema),
            &results,
            move |given, _| {
                count.fetch_add(1, Ordering::Relaxed);
                async move { said(given) }
            },
        )
        .tool(
            Tool::new("raw").input_schema(schema),
            move |given, _| async move { said(given) },
        )
        .sanitise(
            ["say", "now", "keep"],
            |pending, context: Context| async move {
                context.sleep(Duration::ZERO).await;
                let mut arguments: Value = serde_json::from_str(&pending.arguments)?;
                match arguments["text"].as_str().map(str::trim) {
                    Some("evil") => return Err(HandlerError::typed("NOT_HERE", "no evil")),
                    Some("gone") => return Ok("{}".to_owned()),
                    Some("broken") => return Ok("[1]".to_owned()),
                    text => arguments["text"] = text.into(),
                }
                Ok(arguments.to_string())
            },
        )
        .approval(["say"], |pending, _| async move {
            pending.arguments == r#"{"text":"a"}"#
        })
        .build()
        .unwrap();
    for revision in Revision::ALL {
        let mut wire = Wire::open(&server, revision, json!({}));
        let mut ask = |name: &str, text: &str| {
            let params = json!({"name": name, "arguments": {"text": text}});
            wire.ask(revision, "tools/call", params)["result"].take()
        };
        for name in ["say", "now", "keep"] {
            let answer = ask(name, "  a\n");
            assert_eq!(answer["content"][0]["text"], r#"{"text":"a"}"#, "{answer}");
            for (text, why) in [
                ("evil", "no evil"),
                ("gone", "text"),
                ("broken", "the new arguments are not a JSON object"),
            ] {
                let refused = ask(name, text);
                assert_eq!(refused["isError"], true, "{refused}");
                assert!(refused.to_string().contains(why), "{refused}");
            }
        }
        let answer = ask("raw", " evil ");
        assert_eq!(answer["content"][0]["text"], r#"{"text":" evil "}"#);
        let refused = ask("say", "b");
        assert_eq!(refused["content"][0]["text"], "the call was not approved");
    }
    assert_eq!(runs.load(Ordering::Relaxed), 1, "the same clean arguments");
    let mut wire = Wire::new(server);
    let mut act = |name: &str, text: &str| {
        let call = json!({"action": name, "params": {"text": text}, "metadata": {"request_id": 1}});
        wire.act(&call.to_string())
    };
    let answer = act("now", " a ");
    assert_eq!(
        answer["data"]["content"][0]["text"], r#"{"text":"a"}"#,
        "{answer}"
    );
    assert_eq!(act("say", "evil")["error"]["type"], "NOT_HERE");
    assert_eq!(act("say", "gone")["error"]["type"], "VALIDATION_ERROR");
}

/// R-S14-05: a misspelt name would leave a sensitive tool to anybody.
#[test]
fn calls_are_looked_at_only_of_tools_that_there_are() {
    let offer = || {
        Server::builder("s", "1")
            .actions(true)
            .tool(Tool::new("erase"), |_: Arguments, _| async { "erased" })
    };
    let approve = |_, _| async { true };
    let clean = |pending: mcpbolt::server::ProposedCall, _| async move { Ok(pending.arguments) };
    let errors = [
        offer().approval(["erase", "earse"], approve).build(),
        offer().sanitise(["earse"], clean).build(),
    ];
    for built in errors {
        let error = built.unwrap_err().to_string();
        assert_eq!(
            error,
            "no tool is called \"earse\", but a layer, an approval or a sanitiser is for it"
        );
    }
    assert!(offer().approval(["*", "erase"], approve).build().is_ok());
    let later = offer().list_changes().approval(["later"], approve);
    assert!(later.build().is_ok());
}

/// R-S14-05: who is asked before a sensitive call decides; others are called at once.
#[test]
fn a_sensitive_call_waits_for_approval() {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let sink = asked.clone();
    let server = Server::builder("s", "1")
        .actions(true)
        .tool(Tool::new("erase"), |_: Arguments, _| async { "erased" })
        .inline_tool(Tool::new("format"), |_: Arguments| "formatted")
        .tool(Tool::new("look"), |_: Arguments, _| async { "seen" })
        .approval(["erase", "format"], move |pending, context: Context| {
            sink.lock()
                .unwrap()
                .push((pending.tool, pending.arguments.clone()));
            async move {
                context.sleep(Duration::ZERO).await;
                pending.arguments.contains("please")
            }
        })
        .build()
        .unwrap();
    for revision in Revision::ALL {
        let mut wire = Wire::open(&server, revision, json!({}));
        let mut ask = |name: &str, word: &str| {
            let params = json!({"name": name, "arguments": {"word": word}});
            wire.ask(revision, "tools/call", params)["result"].take()
        };
        for (name, done) in [("erase", "erased"), ("format", "formatted")] {
            let refused = ask(name, "now");
            assert_eq!(refused["isError"], true, "{refused}");
            assert_eq!(ask(name, "please")["content"][0]["text"], done);
        }
        assert_eq!(ask("look", "now")["content"][0]["text"], "seen");
    }
    let asked = asked.lock().unwrap();
    assert_eq!(asked.len(), 4 * 5);
    assert_eq!(asked[0], ("erase".into(), r#"{"word":"now"}"#.into()));
}
