//! Sessions of the handshake era: their names, and what happens when they end.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use mcpbolt::chain::{External, Front, Pins, tool_pin};
use mcpbolt::client::{Client, block_on};
use mcpbolt::error::{CarrierFault, ConnectionError, RequestError};
use mcpbolt::io::http::HttpClientOptions;
use mcpbolt::io::{Backoff, Reconnecting};
use mcpbolt::limits::Limits;
use mcpbolt::mcp::{LogLevel, Revision, Revisions};
use serde_json::json;

use super::scripted::{Scripted, opening};
use super::serving::builder;
use super::{PATIENCE, until};

/// A server whose sessions may be ended from here; the version is that of the session's number.
fn server(versions: &'static [&'static str]) -> (Scripted, Arc<AtomicUsize>) {
    let current = Arc::<AtomicUsize>::default();
    let counts = current.clone();
    let server = Scripted::serve(move |request, wire| {
        let session = counts.load(Ordering::SeqCst);
        let name = format!("session-{session}");
        let named = request.header("mcp-session-id");
        match (&*request.verb, request.method()) {
            ("POST", "initialize") => {
                assert_eq!(named, None);
                assert_eq!(request.header("mcp-protocol-version"), None);
                let version = versions[session.min(versions.len() - 1)];
                let body = request.result(opening(version)).to_string();
                let headers =
                    format!("Content-Type: application/json\r\nMCP-Session-ID: {name}\r\n");
                wire.answer(200, &headers, body);
            }
            _ if named != Some(&name) => wire.answer(404, "", "no such session"),
            ("POST", "notifications/initialized") => wire.answer(202, "", ""),
            ("POST", "tools/call") => wire.json(&request.said(&name)),
            ("POST", _) if !request.body["id"].is_null() => wire.json(&request.result(json!({}))),
            ("DELETE", _) => wire.answer(204, "", ""),
            _ => wire.answer(405, "", ""),
        }
    });
    (server, current)
}

const NEWEST: &[&str] = &["2025-11-25"];

/// R-SES-03, R-SES-06, R-SES-08, R-HTP-13.
#[test]
fn a_session_is_named_in_every_request_and_ended() {
    let (server, _) = server(NEWEST);
    let client = server.open(builder(Revision::V2025_11_25));
    let call = client.call_tool("any", &json!({})).wait();
    assert_eq!(call.unwrap().text(), "session-0");
    drop(client);
    until("it is ended", || {
        server.seen().iter().any(|it| it.verb == "DELETE")
    });
    for request in server.seen().iter().skip(1) {
        assert_eq!(request.header("mcp-session-id"), Some("session-0"));
        assert_eq!(request.header("mcp-protocol-version"), Some("2025-11-25"));
    }
}

/// R-SES-05: however many find out at the same time, there is one other session, and since none
/// of the calls was taken, all of them are answered.
#[test]
fn a_session_that_ended_is_begun_anew_once() {
    let (server, current) = server(NEWEST);
    let client = server.open(builder(Revision::V2025_11_25));
    block_on(client.subscribe("a:b")).unwrap();
    block_on(client.subscribe("c:d")).unwrap();
    block_on(client.unsubscribe("c:d")).unwrap();
    block_on(client.set_log_level(LogLevel::Error)).unwrap();
    for round in 1..=3 {
        current.store(round, Ordering::SeqCst);
        let call = |_| client.call_tool("any", &json!({})).send().unwrap();
        let calls: Vec<_> = (0..100).map(call).collect();
        for call in calls {
            assert_eq!(block_on(call).unwrap().text(), format!("session-{round}"));
        }
        assert_eq!(server.asked("initialize").len(), round + 1);
        // The client repeats subscriptions and the log level.
        for (method, times) in [
            ("resources/subscribe", round + 2),
            ("logging/setLevel", round + 1),
        ] {
            assert_eq!(server.asked(method).len(), times, "{method}");
        }
        let last = server.asked("resources/subscribe").pop().unwrap();
        assert_eq!(last.body["params"]["uri"], "a:b");
    }
}

#[test]
fn a_session_that_cannot_be_begun_anew_fails_its_calls_alone() {
    let sick = Arc::<AtomicUsize>::default();
    let is_sick = sick.clone();
    let server = Scripted::serve(move |request, wire| {
        let sick = is_sick.load(Ordering::SeqCst);
        match (&*request.verb, request.method()) {
            ("POST", "initialize") if sick == 1 => wire.answer(503, "", "starting"),
            ("POST", "initialize") => {
                let body = request.result(opening("2025-11-25")).to_string();
                wire.answer(
                    200,
                    "Content-Type: application/json\r\nMcp-Session-Id: a\r\n",
                    body,
                );
            }
            ("POST", "notifications/initialized") => wire.answer(202, "", ""),
            ("POST", _) if sick > 0 => wire.answer(404, "", ""),
            ("POST", _) => wire.json(&request.said("fine")),
            _ => wire.answer(405, "", ""),
        }
    });
    let client = server.open(builder(Revision::V2025_11_25));
    let call = || client.call_tool("any", &json!({})).wait();
    for (state, status) in [(1, 503), (2, 404), (1, 503)] {
        sick.store(state, Ordering::SeqCst);
        match call().unwrap_err() {
            RequestError::Carrier(error) => {
                assert_eq!(
                    (error.fault, error.status),
                    (CarrierFault::Refused, Some(status))
                );
            }
            other => panic!("{other:?}"),
        }
    }
    sick.store(0, Ordering::SeqCst);
    assert_eq!(call().unwrap().text(), "fine");
}

#[test]
fn a_server_that_comes_back_as_another_ends_the_connection() {
    let (server, current) = server(&["2025-11-25", "2025-06-18"]);
    let options = HttpClientOptions::default;
    let url = server.url();
    let open = move || {
        let url = url.clone();
        let revisions = [Revision::V2025_06_18, Revision::V2025_11_25]
            .into_iter()
            .collect();
        let client = mcpbolt::client::Client::builder("test", "1").revisions(revisions);
        let client = client.opening(mcpbolt::connection::OpeningMode::Handshake);
        async move { client.http(&url, options()).await }
    };
    let backoff = Backoff {
        first: Duration::from_millis(10),
        ..Backoff::default()
    };
    let reconnecting = Reconnecting::new(open, backoff).unwrap();
    let client = block_on(reconnecting.client()).unwrap();
    current.store(1, Ordering::SeqCst);
    let error = client.call_tool("any", &json!({})).wait().unwrap_err();
    assert!(
        matches!(error, RequestError::Closed(ConnectionError::Handshake(_))),
        "{error:?}"
    );
    // And whoever reconnects gets to know it anew.
    let client = block_on(reconnecting.client()).unwrap();
    assert_eq!(client.revision(), Some(Revision::V2025_06_18));
    assert_eq!(
        client.call_tool("any", &json!({})).wait().unwrap().text(),
        "session-1"
    );
    assert_eq!(reconnecting.openings(), 2);
}

/// R-SES-02: a name that no header may have, or none at all, is no name.
#[test]
fn a_session_may_have_no_name() {
    for name in ["", "a b", "\u{e9}"] {
        let server =
            Scripted::serve(
                move |request, wire| match (&*request.verb, request.method()) {
                    ("POST", "initialize") => {
                        let body = request.result(opening("2025-11-25")).to_string();
                        let headers =
                            format!("Content-Type: application/json\r\nMcp-Session-Id: {name}\r\n");
                        wire.answer(200, &headers, body);
                    }
                    ("POST", "notifications/initialized") => wire.answer(202, "", ""),
                    ("POST", _) => wire.json(&request.said("fine")),
                    _ => wire.answer(405, "", ""),
                },
            );
        let client = server.open(builder(Revision::V2025_11_25));
        assert_eq!(
            client.call_tool("any", &json!({})).wait().unwrap().text(),
            "fine"
        );
        assert!(
            server
                .seen()
                .iter()
                .all(|it| it.header("mcp-session-id").is_none())
        );
    }
}

/// Nothing is asked before the server knows that the session has begun.
#[test]
fn calls_wait_for_the_end_of_the_opening() {
    let (tell, told) = mpsc::channel();
    let begun = AtomicUsize::new(0);
    let server = Scripted::serve(
        move |request, wire| match (&*request.verb, request.method()) {
            ("POST", "initialize") => wire.json(&request.result(opening("2025-06-18"))),
            ("POST", "notifications/initialized") => {
                std::thread::sleep(Duration::from_millis(100));
                begun.store(1, Ordering::SeqCst);
                wire.answer(202, "", "");
            }
            ("POST", _) => {
                tell.send(begun.load(Ordering::SeqCst)).unwrap();
                wire.json(&request.said("fine"));
            }
            _ => wire.answer(405, "", ""),
        },
    );
    let client = server.open(builder(Revision::V2025_06_18));
    let call = client.call_tool("any", &json!({})).timeout(PATIENCE);
    assert_eq!(call.wait().unwrap().text(), "fine");
    assert_eq!(told.recv().unwrap(), 1);
}

const JSON: &str = "Content-Type: application/json\r\n";
const NAMED: &str = "Content-Type: application/json\r\nMcp-Session-Id: a\r\n";

/// A server that knows no GET at all does not end the session with its 404.
#[test]
fn a_server_without_streams_keeps_its_session() {
    let server = Scripted::serve(
        move |request, wire| match (&*request.verb, request.method()) {
            ("POST", "initialize") => {
                let body = request.result(opening("2025-11-25")).to_string();
                wire.answer(200, NAMED, body);
            }
            ("POST", "notifications/initialized") => wire.answer(202, "", ""),
            ("POST", _) => wire.json(&request.said("fine")),
            _ => wire.answer(404, "", ""),
        },
    );
    let client = server.open(builder(Revision::V2025_11_25));
    let asked = || server.seen().iter().filter(|it| it.verb == "GET").count();
    until("it is asked for a stream", || asked() == 1);
    std::thread::sleep(Duration::from_millis(200));
    let call = client.call_tool("any", &json!({})).timeout(PATIENCE);
    assert_eq!(call.wait().unwrap().text(), "fine");
    assert_eq!((server.asked("initialize").len(), asked()), (1, 1));
}

/// R-SES-05: the stream of what belongs to no request finds out as well, once it has stood.
#[test]
fn a_session_that_ended_is_noticed_by_its_stream() {
    let sessions = AtomicUsize::new(0);
    let asked = AtomicUsize::new(0);
    let server = Scripted::serve(
        move |request, wire| match (&*request.verb, request.method()) {
            ("POST", "initialize") => {
                let n = sessions.fetch_add(1, Ordering::SeqCst);
                let body = request.result(opening("2025-11-25")).to_string();
                let head =
                    format!("Content-Type: application/json\r\nMcp-Session-Id: session-{n}\r\n");
                wire.answer(200, &head, body);
            }
            ("POST", _) => wire.answer(202, "", ""),
            _ if request.header("mcp-session-id") != Some("session-0") => wire.answer(405, "", ""),
            _ if asked.fetch_add(1, Ordering::SeqCst) > 0 => wire.answer(404, "", ""),
            _ => {
                wire.events();
                wire.raw("retry: 1\n\n");
                wire.close();
            }
        },
    );
    let _client = server.open(builder(Revision::V2025_11_25));
    until("the other session is told", || {
        let told = server.asked("notifications/initialized");
        told.iter()
            .any(|it| it.header("mcp-session-id") == Some("session-1"))
    });
}

/// R-SES-05: a client that only listens makes no call that would find out.
#[test]
fn a_stream_comes_back_whenever_its_session_was_lost() {
    // Before the stream stood; after it, while the server cannot begin another session yet.
    for stood in [false, true] {
        let openings = AtomicUsize::new(0);
        let server = Scripted::serve(move |request, wire| {
            let named = request.header("mcp-session-id");
            let is_first = named == Some("session-1");
            match (&*request.verb, request.method()) {
                ("POST", "initialize") => match openings.fetch_add(1, Ordering::SeqCst) + 1 {
                    2 | 3 if stood => wire.answer(503, "", "starting"),
                    number => {
                        let body = request.result(opening("2025-11-25")).to_string();
                        let id = format!("MCP-Session-ID: session-{number}\r\n");
                        wire.answer(200, &format!("{JSON}{id}"), body);
                    }
                },
                ("POST", "notifications/initialized") => wire.answer(202, "", ""),
                // It ends at once.
                ("GET", _) if is_first && stood && request.header("last-event-id").is_none() => {
                    wire.events();
                    wire.raw("id: 1\ndata: \n\n");
                    wire.close();
                }
                _ if is_first => wire.answer(404, "", "no such session"),
                ("GET", _) => wire.events(),
                _ => wire.json(&request.result(json!({}))),
            }
        });
        let options = HttpClientOptions {
            resume: Backoff {
                first: Duration::from_millis(10),
                ..HttpClientOptions::default().resume
            },
            ..HttpClientOptions::default()
        };
        let _client = server.with(builder(Revision::V2025_11_25), options);
        until("another session has a stream", || {
            let mut seen = server.seen().into_iter();
            seen.any(|it| it.verb == "GET" && it.header("mcp-session-id") != Some("session-1"))
        });
    }
}

#[test]
fn a_session_that_is_not_begun_anew_in_time_fails_its_calls() {
    let opened = AtomicUsize::new(0);
    let server = Scripted::serve(
        move |request, wire| match (&*request.verb, request.method()) {
            ("POST", "initialize") => {
                if opened.fetch_add(1, Ordering::SeqCst) > 0 {
                    return wire.until_gone();
                }
                let body = request.result(opening("2025-11-25")).to_string();
                wire.answer(200, NAMED, body);
            }
            ("POST", "notifications/initialized") => wire.answer(202, "", ""),
            ("POST", _) => wire.answer(404, "", ""),
            _ => wire.answer(405, "", ""),
        },
    );
    let limits = Limits {
        handshake_timeout: Duration::from_millis(200),
        ..Limits::NETWORK
    };
    let client = server.open(builder(Revision::V2025_11_25).limits(limits));
    let call = client.call_tool("any", &json!({})).timeout(PATIENCE);
    match call.wait().unwrap_err() {
        RequestError::Carrier(error) => assert_eq!(error.fault, CarrierFault::TimedOut),
        other => panic!("{other:?}"),
    }
}

/// A session of which the server did not learn that it begins is not used.
#[test]
fn a_session_begins_as_a_whole_or_not_at_all() {
    let (opened, told) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let server = Scripted::serve(move |request, wire| {
        let named = request.header("mcp-session-id");
        match (&*request.verb, request.method()) {
            ("POST", "initialize") => {
                let n = opened.fetch_add(1, Ordering::SeqCst);
                let body = request.result(opening("2025-11-25")).to_string();
                let head =
                    format!("Content-Type: application/json\r\nMcp-Session-Id: session-{n}\r\n");
                wire.answer(200, &head, body);
            }
            ("POST", "notifications/initialized") => {
                match told.fetch_add(1, Ordering::SeqCst) {
                    1 => wire.answer(503, "", ""),
                    _ => wire.answer(202, "", ""),
                };
            }
            ("POST", _) if named == Some("session-0") => wire.answer(404, "", ""),
            ("POST", _) if named == Some("session-1") => wire.answer(400, "", "not begun"),
            ("POST", _) => wire.json(&request.said("fine")),
            _ => wire.answer(405, "", ""),
        }
    });
    let client = server.open(builder(Revision::V2025_11_25));
    let call = || client.call_tool("any", &json!({})).timeout(PATIENCE).wait();
    match call().unwrap_err() {
        RequestError::Carrier(error) => assert_eq!(error.status, Some(503)),
        other => panic!("{other:?}"),
    }
    assert_eq!(call().unwrap().text(), "fine");
    assert_eq!(server.asked("initialize").len(), 3);
}

/// R-SES-06: that holds for a session that has only just been opened, too.
#[test]
fn a_session_that_has_not_begun_is_ended() {
    let server = Scripted::serve(
        move |request, wire| match (&*request.verb, request.method()) {
            ("POST", "initialize") => {
                let body = request.result(opening("2025-11-25")).to_string();
                wire.answer(200, NAMED, body);
            }
            ("POST", _) => wire.until_gone(),
            _ => wire.answer(204, "", ""),
        },
    );
    let client = server.open(builder(Revision::V2025_11_25));
    until("it begins", || {
        !server.asked("notifications/initialized").is_empty()
    });
    drop(client);
    until("it is ended", || {
        let mut seen = server.seen().into_iter();
        seen.any(|it| it.verb == "DELETE" && it.header("mcp-session-id") == Some("a"))
    });
}

/// What a server listed in a session that has ended says nothing of the next one: a front that passes on pinned tools looks them up anew,
/// and sends no call there that it has looked up before. Clients hear that the list may be another one (R-CHN-14).
#[test]
fn a_tool_that_is_another_in_the_next_session_is_not_called() {
    let current = Arc::<AtomicUsize>::default();
    let counts = current.clone();
    let tool = |session: usize| json!({"name": "t", "description": (["reads", "deletes"][session]), "inputSchema": {"type": "object"}});
    let server = Scripted::serve(move |request, wire| {
        let session = counts.load(Ordering::SeqCst);
        let name = format!("session-{session}");
        match (&*request.verb, request.method()) {
            ("POST", "initialize") => {
                let changes = json!({"tools": {"listChanged": true}});
                let info = json!({"name": "s", "version": "1"});
                let opened = json!({"protocolVersion": "2025-11-25", "capabilities": changes, "serverInfo": info});
                let headers =
                    format!("Content-Type: application/json\r\nMCP-Session-ID: {name}\r\n");
                wire.answer(200, &headers, request.result(opened).to_string());
            }
            _ if request.header("mcp-session-id") != Some(&name) => {
                wire.answer(404, "", "no such session")
            }
            ("POST", "notifications/initialized") => wire.answer(202, "", ""),
            ("POST", "tools/list") => wire.json(&request.result(json!({"tools": [tool(session)]}))),
            ("POST", "tools/call") => wire.json(&request.said(&name)),
            _ => wire.answer(405, "", ""),
        }
    });
    let pins = [("t".to_owned(), tool_pin(&tool(0).to_string()))].into();
    let url = server.url();
    let external = External::new("far", move |client: mcpbolt::client::ClientBuilder| {
        let url = url.clone();
        Box::pin(async move { client.http(&url, HttpClientOptions::default()).await }) as _
    });
    let external = external
        .revisions(Revisions::only(Revision::V2025_11_25))
        .with(Pins::new("far", pins, |_| {}));
    let (told, hears) = mpsc::channel();
    let client = Client::builder("near", "1")
        .revisions(Revisions::only(Revision::V2025_11_25))
        .on_raw_notice(move |method: &str, _: Option<&str>| drop(told.send(method.to_owned())));
    let client = block_on(client.connect_chain(&Front::new(external))).unwrap();
    let call = || client.call_tool("t", &json!({})).wait();
    assert_eq!(call().unwrap().text(), "session-0");
    current.store(1, Ordering::SeqCst);
    let lost = call().unwrap_err().to_string();
    assert!(lost.contains("the session has ended"), "{lost}");
    let drifted = call().unwrap_err().to_string();
    assert!(drifted.contains("is not what was pinned"), "{drifted}");
    assert_eq!(
        hears.recv_timeout(PATIENCE).unwrap(),
        "notifications/tools/list_changed"
    );
    let called = server.asked("tools/call");
    let sessions = called.iter().map(|it| it.header("mcp-session-id"));
    assert!(sessions.eq([Some("session-0"); 2]), "{called:?}");
}
