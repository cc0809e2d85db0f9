//! Credentials in the metadata of a message, on carriers that do not know the peer.

use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::{Duration, Instant};

use mcpbolt::connection::{
    Answer, Batch, CallKey, Connection, Disposition, Framing, Host, IncomingRequest, Principal,
};
use mcpbolt::io::{Workers, WorkersConfig};
use mcpbolt::limits::{Rate, VERIFIER_TIMEOUT};
use mcpbolt::mcp::{ErrorKind, Revision};
use mcpbolt::policy::{ApiKeys, Credentials, Policy};
use mcpbolt::server::{
    Access, Arguments, Builder, Context, HandlerError, Server, ServerHost, Tool,
};
use mcpbolt::store::LocalStore;
use serde_json::{Value, json};

use crate::wire::Wire;

/// Alice may write, Bob only read.
fn verify(credentials: &Credentials<'_>) -> Result<Principal, String> {
    match credentials {
        Credentials::Bearer("t-alice") => Ok(Principal::new("alice").with_scopes(["notes:write"])),
        Credentials::Bearer("t-old") => Err("the token has expired".into()),
        other => ApiKeys::new().key("k-bob", "bob").verify(other),
    }
}

fn policy() -> Policy {
    let policy = Policy::new().scope("note.write", "notes:write");
    policy.verifier(verify)
}

/// The same, at once, by a question to somebody else, and with counts that are kept elsewhere.
fn policies() -> [Policy; 3] {
    let asks = policy().async_verifier(|credentials| {
        let verdict = verify(credentials);
        async move {
            asked_elsewhere().await;
            verdict
        }
    });
    let rate = Rate {
        burst: 1000,
        per_second: 1,
    };
    let counted = policy().rate(rate).share(Arc::new(LocalStore::new()));
    [policy(), asks, counted]
}

/// Waits for another thread.
async fn asked_elsewhere() {
    let mut is_asked = false;
    std::future::poll_fn(|cx| {
        if std::mem::replace(&mut is_asked, true) {
            return Poll::Ready(());
        }
        let waker = cx.waker().clone();
        std::thread::spawn(move || waker.wake());
        Poll::Pending
    })
    .await;
}

fn server(policy: Policy) -> Builder {
    let who = |_: Arguments, context: Context| async move {
        context.principal().unwrap_or("nobody").to_owned()
    };
    let token = r#"{"type":"object","properties":{"token":{"type":"string"}}}"#;
    Server::builder("notes", "1")
        .actions(true)
        .policy(policy)
        .tool(Tool::new("note.read"), who)
        .tool(Tool::new("note.write"), who)
        .tool(Tool::new("token.check").input_schema(token), who)
        .tool(
            Tool::new("open").input_schema(r#"{"type":"object","allOf":[{}]}"#),
            who,
        )
}

fn action(name: &str, auth: &Value) -> Value {
    let mut line = json!({"action": name, "params": {}, "metadata": {"request_id": 1}});
    if !auth.is_null() {
        line["metadata"]["auth"] = auth.clone();
    }
    line
}

fn alice() -> Value {
    json!({"type": "bearer", "token": "t-alice"})
}

fn bob() -> Value {
    json!({"type": "api_key", "key": "k-bob"})
}

fn outcome(answer: &Value) -> &str {
    let failed = answer["error"]["type"].as_str();
    failed.unwrap_or_else(|| answer["data"]["content"][0]["text"].as_str().unwrap())
}

/// R-AUX-01, R-AUX-03, R-ACT-30, R-ACT-40: each request says who asks, on one connection; an operation
/// of a batch is asked for by who asks for the batch.
#[test]
fn each_action_says_who_asks() {
    for policy in policies() {
        each_action_says_it(Wire::new(server(policy).build().unwrap()));
    }
}

fn each_action_says_it(mut wire: Wire) {
    for (auth, read, write) in [
        (alice(), "alice", "alice"),
        (bob(), "key:bob", "AUTHORIZATION_FAILED"),
        (
            Value::Null,
            "AUTHENTICATION_FAILED",
            "AUTHENTICATION_FAILED",
        ),
        (
            json!("k-bob"),
            "AUTHENTICATION_FAILED",
            "AUTHENTICATION_FAILED",
        ),
        (
            json!({"type": "bearer", "token": "t-old"}),
            "AUTHENTICATION_FAILED",
            "AUTHENTICATION_FAILED",
        ),
        (
            json!({"type": "api_key", "key": "k-eve"}),
            "AUTHENTICATION_FAILED",
            "AUTHENTICATION_FAILED",
        ),
    ] {
        for (name, expected) in [("note.read", read), ("note.write", write)] {
            let answer = wire.act(&action(name, &auth).to_string());
            assert_eq!(outcome(&answer), expected, "{name} by {auth}: {answer}");
            assert_eq!(answer["metadata"]["request_id"], 1);
        }
        let mut batch = action("batch.execute", &auth);
        let own = json!({"action": "note.read", "params": {}, "metadata": {"auth": alice()}});
        let noted = json!({"action": "note.read", "params": {}, "metadata": {"user": 1}});
        let bare = json!({"action": "note.read", "params": {}, "metadata": {}});
        let operations = json!([{"action": "note.read", "params": {}}, own, noted, bare]);
        batch["params"] = json!({"operations": operations, "continue_on_error": true});
        let answer = wire.act(&batch.to_string());
        let results = answer["data"]["results"].as_array().unwrap();
        let results: Vec<_> = results.iter().map(outcome).collect();
        assert_eq!(results, [read, "alice", read, read], "{answer}");
    }
    let expired =
        wire.act(&action("note.read", &json!({"type": "bearer", "token": "t-old"})).to_string());
    assert_eq!(expired["error"]["message"], "the token has expired");
    assert_eq!(expired["error"]["code"], 401);
    let denied = wire.act(&action("note.write", &bob()).to_string());
    assert_eq!(
        denied["error"]["details"]["scope"], "notes:write",
        "{denied}"
    );
    assert_eq!(denied["error"]["code"], 403);
}

/// R-AUX-03, R-S14-05: the same rules for clients of MCP, with `auth` in `_meta`; a principal that the
/// carrier knows needs none.
#[test]
fn each_call_of_a_tool_says_who_asks() {
    let server = server(policy()).build().unwrap();
    let revision = Revision::V2026_07_28;
    let call = |wire: &mut Wire, tool: &str, auth: Value| {
        let mut params = json!({"name": tool});
        if !auth.is_null() {
            params["_meta"] = json!({ "auth": auth });
        }
        wire.ask(revision, "tools/call", params)
    };
    let mut wire = Wire::new(server.clone());
    let said = |answer: &Value| answer["result"]["content"][0]["text"].clone();
    assert_eq!(said(&call(&mut wire, "note.write", alice())), "alice");
    assert_eq!(said(&call(&mut wire, "note.read", bob())), "key:bob");
    let denied = call(&mut wire, "note.write", bob());
    let code = ErrorKind::InsufficientScope.code(revision);
    assert_eq!(denied["error"]["code"], code, "{denied}");
    assert_eq!(denied["error"]["data"]["scope"], "notes:write");
    let unknown = call(&mut wire, "note.read", Value::Null);
    let code = ErrorKind::Unauthenticated.code(revision);
    assert_eq!(unknown["error"]["code"], code, "{unknown}");
    let list = wire.ask(revision, "tools/list", json!({}));
    assert_eq!(list["error"]["code"], code, "{list}");

    let mut wire = Wire::new(server);
    wire.connection.set_principal("carol");
    assert_eq!(said(&call(&mut wire, "note.read", Value::Null)), "carol");
    assert_eq!(said(&call(&mut wire, "note.read", alice())), "carol");
}

/// R-ACT-34, R-ACT-40: rates, guards and the audit go by who asks.
#[test]
fn the_other_rules_go_by_who_asks() {
    the_rules_go_by_who_asks(policy());
    the_rules_go_by_who_asks(policy().share(Arc::new(LocalStore::new())));
}

fn the_rules_go_by_who_asks(policy: Policy) {
    let told = Arc::new(Mutex::new(Vec::new()));
    let log = told.clone();
    let rate = Rate {
        burst: 2,
        per_second: 1,
    };
    let policy = policy.rate(rate).audit(move |event| {
        let entry = (event.principal.map(str::to_owned), event.outcome.name());
        log.lock().unwrap().push(entry);
    });
    let guard = |access: &Access<'_>| match access.principal {
        Some("key:bob") => Err(HandlerError::typed(
            "QUOTA_EXCEEDED",
            "nothing is left of it",
        )),
        _ => Ok(()),
    };
    let mut wire = Wire::new(server(policy).guard(guard).build().unwrap());
    let mut act = |auth: &Value| {
        let answer = wire.act(&action("note.read", auth).to_string());
        outcome(&answer).to_owned()
    };
    assert_eq!([act(&alice()), act(&alice())], ["alice", "alice"]);
    assert_eq!(act(&alice()), "RATE_LIMIT_EXCEEDED");
    assert_eq!(act(&bob()), "QUOTA_EXCEEDED");
    assert_eq!(act(&Value::Null), "AUTHENTICATION_FAILED");
    let told = told.lock().unwrap();
    let alice = || Some("alice".to_owned());
    assert_eq!(
        *told,
        [
            (alice(), "done"),
            (alice(), "done"),
            (alice(), "limited"),
            (Some("key:bob".to_owned()), "failed"),
            (None, "denied"),
        ]
    );
}

/// R-AUX-01: what looks like credentials has no place among the params, unless the action asks for
/// it.
#[test]
fn credentials_among_the_params_are_refused() {
    let mut wire = Wire::new(server(policy()).build().unwrap());
    for (name, member, refused) in [
        ("note.read", "api_key", true),
        ("note.read", "password", true),
        ("note.read", "text", false),
        ("token.check", "token", false),
        ("token.check", "password", true),
        ("open", "password", false),
    ] {
        let mut line = action(name, &alice());
        line["params"][member] = "s3cret".into();
        line["params"]["token_count"] = 5.into();
        let answer = wire.act(&line.to_string());
        let expected = if refused { "VALIDATION_ERROR" } else { "alice" };
        assert_eq!(outcome(&answer), expected, "{name}, {member}: {answer}");
        assert!(!answer.to_string().contains("s3cret"));
        if refused {
            assert_eq!(answer["error"]["details"]["parameter"], member);
        }
    }
}

/// R-LOG-05, R-AUX-01: what a client proves itself by is in no trace.
#[test]
fn credentials_are_in_no_trace() {
    use mcpbolt::connection::Trace;
    let traced = Arc::new(Mutex::new(String::new()));
    let log = traced.clone();
    let trace = Trace::new(move |_, frame| log.lock().unwrap().push_str(frame));
    let mut wire = Wire::new(server(policy()).trace(trace).build().unwrap());
    wire.act(&action("note.read", &bob()).to_string());
    wire.act(&action("note.read", &alice()).to_string());
    let traced = traced.lock().unwrap();
    assert!(traced.contains("note.read"));
    assert!(
        !traced.contains("k-bob") && !traced.contains("t-alice"),
        "{traced}"
    );
}

/// R-ACT-16, R-AUX-01: every operation inherits a copy of it, so that it may not be long.
#[test]
fn what_a_batch_says_of_who_asks_is_short() {
    let mut wire = Wire::new(server(policy()).build().unwrap());
    let auth = json!({"type": "bearer", "token": "t".repeat(9000)});
    let mut batch = action("batch.execute", &auth);
    batch["params"] = json!({"operations": [{"action": "note.read", "params": {}}]});
    let answer = wire.act(&batch.to_string());
    assert_eq!(outcome(&answer), "VALIDATION_ERROR", "{answer}");
    assert_eq!(answer["error"]["details"]["parameter"], "metadata.auth");
}

/// Hands calls on that the server itself never admitted.
struct Careless {
    server: ServerHost,
    open: ServerHost,
}

impl Host for Careless {
    fn request(&mut self, request: IncomingRequest<'_>, answer: Answer<'_>) -> Disposition {
        self.open.request(request, answer)
    }

    fn dispatch(&mut self, batch: Batch) {
        self.server.dispatch(batch);
    }

    fn cancelled(&mut self, _key: CallKey, _reason: Option<&str>) {}
}

/// R-AUX-03: where nobody is known to have made a call by the time that it is handed on, who asks is
/// asked again, and refused in either language; it never runs as nobody's.
#[test]
fn a_call_that_nobody_is_known_to_have_made_is_refused() {
    let (server, open) = (
        server(policy()).build().unwrap(),
        server(Policy::new()).build().unwrap(),
    );
    let now = Instant::now();
    let mut connection = Connection::new(server.config().clone(), now);
    let stream = connection.open_stream(Framing::Line);
    let handle = connection.handle();
    let workers = Arc::new(Workers::new(WorkersConfig::default()));
    let host = |server: &Server| server.host(handle.clone(), None, workers.clone());
    let mut host = Careless {
        server: host(&server),
        open: host(&open),
    };
    let mut ask = |line: Value| {
        connection
            .input(stream)
            .extend(format!("{line}\n").as_bytes());
        connection.receive(stream, now, &mut host);
        let begun = Instant::now();
        loop {
            connection.handle_submissions(now, &mut host);
            let output = connection.output(stream);
            if !output.is_empty() {
                let said = output.take().flatten().collect::<Vec<u8>>();
                return serde_json::from_slice::<Value>(&said).unwrap();
            }
            assert!(
                begun.elapsed() < Duration::from_secs(30),
                "no answer to {line}"
            );
            std::thread::sleep(Duration::from_millis(1));
        }
    };
    assert_eq!(outcome(&ask(action("note.read", &bob()))), "key:bob");
    let wrong = json!({"type": "bearer", "token": "t-old"});
    for auth in [&Value::Null, &wrong] {
        let answer = ask(action("note.read", auth));
        assert_eq!(outcome(&answer), "AUTHENTICATION_FAILED", "{answer}");
    }
    let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {}, "auth": wrong});
    let answer = ask(json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {"name": "note.read", "_meta": meta}}));
    let code = ErrorKind::Unauthenticated.code(Revision::V2026_07_28);
    assert_eq!(answer["error"]["code"], code, "{answer}");
}

/// R-AUX-03: nobody is asked twice of one request, so that a call runs as who it was admitted for,
/// whatever is said of the same credentials a moment later.
#[test]
fn a_call_runs_as_who_it_was_admitted_for() {
    let asked = Arc::new(Mutex::new(0));
    let count = asked.clone();
    let policy = Policy::new().verifier(move |credentials| {
        let mut count = count.lock().unwrap();
        *count += 1;
        match credentials {
            // Good for once, each.
            Credentials::ApiKey(key) if *count <= 2 => Ok((*key).into()),
            _ => Err("used up"),
        }
    });
    let mut wire = Wire::new(server(policy).build().unwrap());
    let lines: Vec<_> = ["ada", "bob", "ada"]
        .map(|key| action("note.read", &json!({"type": "api_key", "key": key})).to_string())
        .into();
    let heard = wire.say(&lines.join("\n"));
    let rest = wire.hear_until(|wire| wire.lines.len() == 3);
    let heard = [heard, rest].concat();
    let mut outcomes: Vec<_> = heard.iter().map(outcome).collect();
    outcomes.sort_unstable();
    assert_eq!(outcomes, ["AUTHENTICATION_FAILED", "ada", "bob"]);
    assert_eq!(*asked.lock().unwrap(), 3);
}

/// Counts the verifications that are dropped before their end.
struct Dropped(Arc<AtomicUsize>);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.fetch_add(1, SeqCst);
    }
}

/// R-AUX-03: a request waits for its own verification only, and this one ends with the request: when the client cancels it or
/// goes, and after a while, without a verdict. After a panic there is none either.
#[test]
fn a_verification_has_a_time_limit_and_ends_with_its_request() {
    let dropped = Arc::new(AtomicUsize::new(0));
    let seen = dropped.clone();
    let policy = Policy::new().async_verifier(move |credentials| {
        let key = match credentials {
            Credentials::ApiKey(key) => (*key).to_owned(),
            _ => panic!("no key"),
        };
        let dropped = Dropped(seen.clone());
        async move {
            match &*key {
                "slow" => std::future::pending().await,
                "bad" => panic!("nobody catches this"),
                _ => {}
            }
            std::mem::forget(dropped);
            Ok::<_, String>(Principal::new(key))
        }
    });
    let mut wire = Wire::new(server(policy).build().unwrap());
    let call = |id: u32, auth: Value| {
        let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {}, "auth": auth});
        json!({"jsonrpc": "2.0", "id": id, "method": "tools/call",
            "params": {"name": "note.read", "_meta": meta}})
        .to_string()
    };
    let key = |key: &str| json!({"type": "api_key", "key": key});
    let code = ErrorKind::Overloaded.code(Revision::V2026_07_28);
    assert!(wire.say(&call(1, key("slow"))).is_empty());
    assert!(wire.say(&call(2, key("slow"))).is_empty());
    let ask = |wire: &mut Wire, id: u32, auth: Value| {
        let mut heard = wire.say(&call(id, auth));
        let count = wire.lines.len() + usize::from(heard.is_empty());
        heard.extend(wire.hear_until(|wire| wire.lines.len() >= count));
        assert_eq!(heard[0]["id"], id, "{heard:?}");
        heard.remove(0)
    };
    let answer = ask(&mut wire, 3, key("ada"));
    assert_eq!(answer["result"]["content"][0]["text"], "ada", "{answer}");
    for (id, auth) in [(4, key("bad")), (5, Value::Null)] {
        let answer = ask(&mut wire, id, auth);
        assert_eq!(answer["error"]["code"], code, "{answer}");
    }
    let cancel =
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}});
    let before = dropped.load(SeqCst);
    assert!(wire.say(&cancel.to_string()).is_empty());
    until(|| dropped.load(SeqCst) == before + 1);
    wire.pass(VERIFIER_TIMEOUT);
    let count = wire.lines.len().max(4);
    wire.hear_until(|wire| wire.lines.len() >= count);
    let late: Value = serde_json::from_str(wire.lines.last().unwrap()).unwrap();
    assert_eq!(
        (&late["id"], &late["error"]["code"]),
        (&json!(2), &json!(code))
    );
    let message = late["error"]["message"].as_str().unwrap();
    assert!(message.contains("took too long"), "{message}");
    assert!(wire.say(&call(6, key("slow"))).is_empty());
    let before = dropped.load(SeqCst);
    drop(wire);
    until(|| dropped.load(SeqCst) == before + 1);
}

fn until(is: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is() {
        assert!(begun.elapsed() < Duration::from_secs(30));
        std::thread::sleep(Duration::from_millis(1));
    }
}
