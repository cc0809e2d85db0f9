//! Credentials over HTTP: tokens and keys in headers, and the refusals.

use std::net::TcpStream;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcpbolt::connection::{Principal, Rejection};
use mcpbolt::io::http::HttpOptions;
use mcpbolt::limits::Rate;
use mcpbolt::policy::{ApiKeys, AuditOutcome, Credentials, Policy};
use mcpbolt::server::{Arguments, Context, Server, Tool};
use serde_json::json;
use tungstenite::{ClientRequestBuilder, Message};

use super::wire::{Answer, PATIENCE, Wire};
use super::{Serving, until};

/// Alice has a token and may write, Bob a key and may read.
fn serving(policy: Policy) -> Serving {
    let policy = policy.scope("note.write", "write");
    let who = |_: Arguments, context: Context| async move {
        context.principal().unwrap_or("nobody").to_owned()
    };
    let server = Server::builder("notes", "1")
        .actions(true)
        .policy(policy)
        .tool(Tool::new("note.read"), who)
        .tool(Tool::new("note.write"), who);
    Serving::of(server.build().unwrap(), HttpOptions::default())
}

fn verify(credentials: &Credentials<'_>) -> Result<Principal, String> {
    match credentials {
        Credentials::Bearer("t-alice") => Ok(Principal::new("alice").with_scopes(["write"])),
        other => ApiKeys::new().key("k-bob", "bob").verify(other),
    }
}

/// Policies that verify at once, and by a question to somebody else.
fn policies() -> [Policy; 2] {
    let asks = Policy::new().async_verifier(|credentials| {
        let verdict = verify(credentials);
        async move {
            tokio::time::sleep(Duration::from_millis(1)).await;
            verdict
        }
    });
    [Policy::new().verifier(verify), asks]
}

const ALICE: &str = "Authorization: Bearer t-alice\r\n";
const BOB: &str = "X-API-Key: k-bob\r\n";
const LACKS: &str = "Bearer error=\"insufficient_scope\", scope=\"write\"";

/// A request in whose head `headers` are.
pub fn say(serving: &Serving, first: &str, headers: &str, body: &str) -> Answer {
    let mut wire = Wire::open(serving.at);
    let len = body.len();
    let usual = "Host: localhost\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n";
    wire.send(
        format!("{first} HTTP/1.1\r\n{usual}{headers}Content-Length: {len}\r\n\r\n{body}")
            .as_bytes(),
    );
    wire.answer()
}

/// R-AUX-01, R-AUX-03, R-ACT-22, R-AUS-01, R-AUS-10: 401 for who is not known, before anything is
/// read, in the words of who asks; nothing in the address is a credential.
#[test]
fn who_is_not_known_is_asked_for_credentials() {
    for policy in policies() {
        let serving = serving(policy);
        let action = r#"{"action":"note.read","params":{}}"#;
        let rpc = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
        for wrong in [
            "",
            "Authorization: Bearer t-eve\r\n",
            "Authorization: Basic YTpi\r\n",
            "Authorization: t-alice\r\n",
            "X-API-Key: t-alice\r\n",
        ] {
            for body in [action, rpc, "{"] {
                let answer = say(&serving, "POST /mcp", wrong, body);
                assert_eq!(answer.status, 401, "{wrong} {body}: {answer:?}");
                assert_eq!(answer.header("www-authenticate"), "Bearer");
            }
            let spoken = format!("{wrong}MCP-Version: 1.0\r\n");
            let answer = say(&serving, "POST /mcp", &spoken, action);
            assert_eq!(answer.status, 401);
            assert_eq!(answer.json()["error"]["type"], "AUTHENTICATION_FAILED");
            let stream = say(&serving, "GET /mcp/stream?action=note.read", wrong, "");
            assert_eq!(stream.status, 401, "{stream:?}");
        }
        let named = say(&serving, "POST /mcp?access_token=t-alice", "", action);
        assert_eq!(named.status, 401);
        // Only what the carrier says counts, where it says something.
        let said = r#"{"action":"note.read","params":{},"metadata":{"auth":{"type":"bearer","token":"t-alice"}}}"#;
        assert_eq!(say(&serving, "POST /mcp", "", said).status, 401);
        let answer = say(&serving, "POST /mcp", BOB, said);
        assert_eq!(answer.json()["data"]["content"][0]["text"], "key:bob");
        serving.end();
    }
}

/// R-AUX-03, R-ACT-40, R-HTP-06: whoever asks for another host is not even asked who they are; wrong
/// credentials are counted by the address they come from, and the audit is told of each.
#[test]
fn wrong_credentials_are_counted_and_written_down() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let sink = seen.clone();
    let asked = Arc::new(AtomicUsize::new(0));
    let count = asked.clone();
    let policy = Policy::new()
        .rate(Rate {
            burst: 3,
            per_second: 0,
        })
        .audit(move |event| {
            let message = event.message.map(str::to_owned);
            sink.lock()
                .unwrap()
                .push((event.outcome, event.code, message));
        })
        .verifier(move |credentials| {
            count.fetch_add(1, Relaxed);
            match credentials {
                Credentials::Bearer("t-alice") => Ok("alice".into()),
                _ => Err("not sk-1234567890abcdef"),
            }
        });
    let server = Server::builder("notes", "1").actions(true).policy(policy);
    let server = server.tool(Tool::new("note.read"), |_: Arguments, _| async { "read" });
    let serving = Serving::of(server.build().unwrap(), HttpOptions::default());
    let action = r#"{"action":"note.read","params":{}}"#;
    let mut wire = Wire::open(serving.at);
    wire.send(b"POST /mcp HTTP/1.1\r\nHost: evil.example.com\r\nContent-Length: 0\r\n\r\n");
    assert_eq!(wire.answer().status, 403);
    assert_eq!((asked.load(Relaxed), seen.lock().unwrap().len()), (0, 0));
    assert_eq!(say(&serving, "POST /mcp", ALICE, action).status, 200);
    seen.lock().unwrap().clear();
    let eve = "Authorization: Bearer t-eve\r\n";
    for _ in 0..3 {
        assert_eq!(say(&serving, "POST /mcp", eve, action).status, 401);
    }
    let answer = say(&serving, "POST /mcp", eve, action);
    assert_eq!(answer.status, 429, "{answer:?}");
    // A rate of 0 has three in 366 days.
    let wait: u64 = answer.header("retry-after").parse().unwrap();
    assert!((10_000_000..11_000_000).contains(&wait), "{wait}");
    let headers = format!("{eve}MCP-Version: 1.0\r\n");
    let answer = say(&serving, "POST /mcp", &headers, action);
    assert_eq!(answer.json()["error"]["type"], "RATE_LIMIT_EXCEEDED");
    let written = seen.lock().unwrap().len();
    // Others at that address have right ones.
    let answer = say(&serving, "POST /mcp", ALICE, action);
    assert_eq!(answer.status, 200, "{answer:?}");
    seen.lock().unwrap().truncate(written);
    let seen = seen.lock().unwrap();
    let denied = (
        AuditOutcome::Denied,
        Some(401),
        Some("from 127.0.0.1: not ***".to_owned()),
    );
    assert_eq!(seen[..3], vec![denied; 3]);
    let limited = |event: &(AuditOutcome, Option<i64>, _)| {
        (event.0, event.1) == (AuditOutcome::Limited, Some(429))
    };
    assert!(seen.len() == 5 && seen[3..].iter().all(limited), "{seen:?}");
    serving.end();
}

/// R-PER-05, R-ACT-22, R-ACT-40, R-AUS-06, R-AUS-11: 403 for who lacks a scope, and which, in either language and
/// every revision.
#[test]
fn who_lacks_a_scope_is_told_which() {
    for policy in policies() {
        let serving = serving(policy);
        for (headers, read, write) in [(ALICE, "alice", "alice"), (BOB, "key:bob", "")] {
            for (name, expected) in [("note.read", read), ("note.write", write)] {
                let action = json!({"action": name, "params": {}}).to_string();
                let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28",
                    "io.modelcontextprotocol/clientCapabilities": {}});
                let mut call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
                    "params": {"name": name, "arguments": {}, "_meta": meta}});
                let alone = format!(
                    "{headers}MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: {name}\r\n"
                );
                let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
                    "protocolVersion": "2025-06-18", "capabilities": {},
                    "clientInfo": {"name": "test", "version": "1"}}});
                let opened = say(&serving, "POST /mcp", headers, &hello.to_string());
                let session = opened.header("mcp-session-id");
                let within = format!("{headers}Mcp-Session-Id: {session}\r\n");
                let mut answers = vec![
                    say(&serving, "POST /mcp", headers, &action),
                    say(&serving, "POST /mcp", &alone, &call.to_string()),
                ];
                call["params"].as_object_mut().unwrap().remove("_meta");
                answers.push(say(&serving, "POST /mcp", &within, &call.to_string()));
                for answer in answers {
                    match expected {
                        "" => {
                            assert_eq!(answer.status, 403, "{answer:?}");
                            assert_eq!(answer.header("www-authenticate"), LACKS, "{answer:?}");
                        }
                        who => {
                            assert_eq!(answer.status, 200, "{answer:?}");
                            assert!(answer.body.contains(who), "{answer:?}");
                        }
                    }
                }
            }
        }
        serving.end();
    }
}

/// R-SES-07, R-AUS-06: who comes back with a token that grants more, or another one, comes back to the
/// same session, and may do what is granted now; nobody else does.
#[test]
fn a_session_outlives_the_token_that_began_it() {
    let verify = |credentials: &Credentials<'_>| match credentials {
        Credentials::Bearer("narrow") => Ok(Principal::new("alice")),
        Credentials::Bearer("wide") => Ok(Principal::new("alice").with_scopes(["write"])),
        Credentials::Bearer("other") => Ok(Principal::new("eve").with_scopes(["write"])),
        _ => Err("not known"),
    };
    let policy = Policy::new().verifier(verify).scope("note.write", "write");
    let server = Server::builder("notes", "1").actions(true).policy(policy);
    let server = server.tool(Tool::new("note.write"), |_: Arguments, _| async {
        "written"
    });
    let serving = Serving::of(server.build().unwrap(), HttpOptions::default());
    let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"}}});
    let bearer = |token: &str| format!("Authorization: Bearer {token}\r\n");
    let opened = say(&serving, "POST /mcp", &bearer("narrow"), &hello.to_string());
    let session = opened.header("mcp-session-id");
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {"name": "note.write", "arguments": {}}});
    for (token, status) in [
        ("narrow", 403),
        ("wide", 200),
        ("narrow", 403),
        ("other", 404),
    ] {
        let headers = format!("{}Mcp-Session-Id: {session}\r\n", bearer(token));
        let answer = say(&serving, "POST /mcp", &headers, &call.to_string());
        assert_eq!(answer.status, status, "{token}: {answer:?}");
    }
    serving.end();
}

/// R-AUX-03, R-WSK-07: who goes on as a WebSocket is known for as long as it lasts.
#[test]
fn a_websocket_is_of_who_asked_for_it() {
    for policy in policies() {
        let serving = serving(policy);
        let open = |key: Option<&str>| {
            let stream = TcpStream::connect(serving.at).unwrap();
            stream.set_read_timeout(Some(PATIENCE)).unwrap();
            let uri = format!("ws://127.0.0.1:{}/mcp", serving.at.port());
            let mut asked = ClientRequestBuilder::new(uri.parse().unwrap());
            if let Some(key) = key {
                asked = asked.with_header("X-API-Key", key);
            }
            tungstenite::client(asked, stream).ok()
        };
        assert!(open(None).is_none() && open(Some("k-eve")).is_none());
        let (mut socket, _) = open(Some("k-bob")).unwrap();
        let action = r#"{"action":"note.read","params":{}}"#;
        socket.send(Message::text(action)).unwrap();
        let answer = socket.read().unwrap();
        assert!(answer.to_text().unwrap().contains("bob"), "{answer}");
        drop(socket);
        serving.end();
    }
}

/// R-AUX-03: credentials on which there is no verdict may be right. Their client is told to come again, in either language,
/// and does not guess; the audit has why.
#[test]
fn without_a_verdict_a_client_comes_again() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let sink = seen.clone();
    fn away(credentials: &Credentials<'_>) -> Result<Principal, Rejection> {
        match credentials {
            Credentials::Bearer("breaks") => panic!("the verifier breaks"),
            Credentials::Bearer("away") => {
                Err(Rejection::Unavailable("the database is away".into()))
            }
            Credentials::Bearer("t-alice") => Ok("alice".into()),
            _ => Err("not known".into()),
        }
    }
    let policies: [fn(Policy) -> Policy; 2] = [
        |policy| policy.verifier(away),
        |policy| {
            policy.async_verifier(|credentials| {
                let verdict = away(credentials);
                async move { verdict }
            })
        },
    ];
    for with in policies {
        let sink = sink.clone();
        let policy = Policy::new().audit(move |event| {
            let message = event.message.map(str::to_owned);
            sink.lock()
                .unwrap()
                .push((event.outcome, event.code, message));
        });
        let rate = Rate {
            burst: 3,
            per_second: 0,
        };
        let serving = serving(with(policy).rate(rate));
        let action = r#"{"action":"note.read","params":{}}"#;
        let told = |token: &str, more: &str| {
            let headers = format!("Authorization: Bearer {token}\r\n{more}");
            say(&serving, "POST /mcp", &headers, action)
        };
        for token in ["away", "breaks"].repeat(4) {
            let answer = told(token, "");
            assert_eq!(answer.status, 503, "{answer:?}");
            assert_eq!(answer.header("retry-after"), "1");
            assert_eq!(answer.header("www-authenticate"), "");
            assert!(!answer.body.contains("database"), "{answer:?}");
        }
        let answer = told("away", "MCP-Version: 1.0\r\n");
        assert_eq!(answer.json()["error"]["type"], "DEPENDENCY_ERROR");
        assert_eq!(answer.json()["error"]["message"], "the database is away");
        // The guesses that are allowed are all left.
        let guesses: Vec<_> = (0..4).map(|_| told("wrong", "").status).collect();
        assert_eq!(guesses, [401, 401, 401, 429]);
        assert_eq!(told("t-alice", "").status, 200);
        let events = std::mem::take(&mut *seen.lock().unwrap());
        let failed = |why: &str| {
            let why = Some(format!("from 127.0.0.1: {why}"));
            (AuditOutcome::Failed, Some(503), why)
        };
        assert_eq!(events[0], failed("the database is away"));
        assert_eq!(
            events[1],
            failed("the verification of the credentials failed")
        );
        serving.end();
    }
}

/// R-AUX-03, R-CAN-06: a verification ends with its request, and after a while, without a verdict; nobody is asked about a
/// request that is refused in any case.
#[test]
fn a_verification_ends_with_its_request() {
    struct Dropped(Arc<AtomicUsize>);
    impl Drop for Dropped {
        fn drop(&mut self) {
            self.0.fetch_add(1, Relaxed);
        }
    }
    let (asked, dropped) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (count, seen) = (asked.clone(), dropped.clone());
    let why = Arc::new(Mutex::new(None));
    let sink = why.clone();
    let policy = |limit: Duration| {
        let (count, seen, sink) = (count.clone(), seen.clone(), sink.clone());
        Policy::new()
            .verifier_timeout(limit)
            .audit(move |event| *sink.lock().unwrap() = event.message.map(str::to_owned))
            .async_verifier(move |credentials| {
                count.fetch_add(1, Relaxed);
                let dropped = Dropped(seen.clone());
                let is_bad = *credentials == Credentials::None;
                async move {
                    let _dropped = dropped;
                    assert!(!is_bad, "nobody catches this");
                    std::future::pending::<Result<Principal, String>>().await
                }
            })
    };
    let action = r#"{"action":"note.read","params":{}}"#;
    let serving = serving(policy(Duration::from_millis(50)));
    let answer = say(&serving, "POST /mcp", ALICE, action);
    assert_eq!(answer.status, 503, "{answer:?}");
    assert!(
        why.lock()
            .unwrap()
            .as_ref()
            .unwrap()
            .contains("took too long")
    );
    assert_eq!(say(&serving, "POST /mcp", "", action).status, 503);
    assert_eq!((asked.load(Relaxed), dropped.load(Relaxed)), (2, 2));
    let mut wire = Wire::open(serving.at);
    wire.send(b"POST /mcp HTTP/1.1\r\nHost: evil.example.com\r\nContent-Length: 0\r\n\r\n");
    assert_eq!(wire.answer().status, 403);
    assert_eq!(say(&serving, "POST /else", ALICE, action).status, 404);
    assert_eq!(asked.load(Relaxed), 2);
    serving.end();
    let serving = self::serving(policy(PATIENCE));
    let mut wire = Wire::open(serving.at);
    wire.send(b"GET /mcp HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n");
    assert_eq!(wire.answer().status, 503, "it panics");
    let mut wire = Wire::open(serving.at);
    wire.send(
        format!("GET /mcp HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n{ALICE}\r\n")
            .as_bytes(),
    );
    until("it is asked", || asked.load(Relaxed) == 4);
    assert_eq!(dropped.load(Relaxed), 3);
    wire.break_off();
    until("it is dropped", || dropped.load(Relaxed) == 4);
    serving.end();
}
