//! Messages of a client that is none of this crate's, carried as they are.

use std::sync::Mutex;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use mcpbolt::error::{CarrierError, CarrierFault};
use mcpbolt::io::Backoff;
use mcpbolt::io::http::{HttpClientOptions, Relay, RelayEvent, RelayOptions, SendOptions};
use serde_json::{Value, json};

use super::scripted::{Scripted, opening};
use super::serving::Serving;
use super::{PATIENCE, until};

/// A client that has no engine: what it says is written here.
struct Raw {
    relay: Relay,
    told: Receiver<RelayEvent>,
}

impl Raw {
    fn open(url: &str) -> Self {
        Self::with(url, RelayOptions::default())
    }

    fn with(url: &str, options: RelayOptions) -> Self {
        let (tell, told) = channel();
        let relay = Relay::open(url, options, move |arrived| {
            tell.send(arrived).unwrap_or_default();
        });
        Self {
            relay: relay.unwrap(),
            told,
        }
    }

    fn send(&self, message: &Value) -> u64 {
        self.relay.send(message.to_string(), SendOptions::default())
    }

    fn next(&self) -> RelayEvent {
        self.told.recv_timeout(PATIENCE).unwrap()
    }

    /// The next message, and what it belongs to.
    fn message(&self) -> (Option<u64>, Value) {
        loop {
            if let RelayEvent::Message { of, message } = self.next() {
                self.relay.was_read(message.bytes().len());
                return (of, serde_json::from_slice(message.bytes()).unwrap());
            }
        }
    }

    fn done(&self, wanted: u64) -> Result<(), CarrierError> {
        loop {
            match self.next() {
                RelayEvent::Done { of, outcome } if of == wanted => return outcome,
                _ => {}
            }
        }
    }

    /// Asks, and waits until the answer is there.
    fn ask(&self, message: &Value) -> Value {
        let number = self.send(message);
        let (of, answer) = self.message();
        assert_eq!(of, Some(number));
        self.done(number).unwrap();
        answer
    }

    /// Opens with a handshake.
    fn shake(self, version: &str) -> Self {
        let info = json!({"name": "raw", "version": "1"});
        let params = json!({"protocolVersion": version, "capabilities": {}, "clientInfo": info});
        let hello = request(json!("hello"), "initialize", &params);
        let answer = self.ask(&hello);
        assert_eq!(answer["result"]["protocolVersion"], version);
        let ready = self.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        self.done(ready).unwrap();
        self
    }
}

fn request(id: Value, method: &str, params: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

fn call(id: Value, tool: &str) -> Value {
    let meta = json!({"progressToken": id});
    request(
        id,
        "tools/call",
        &json!({"name": tool, "arguments": {"text": "hi"}, "_meta": meta}),
    )
}

/// The same in the era without sessions.
fn enveloped(mut message: Value) -> Value {
    let meta = &mut message["params"]["_meta"];
    meta["io.modelcontextprotocol/protocolVersion"] = "2026-07-28".into();
    meta["io.modelcontextprotocol/clientInfo"] = json!({"name": "raw", "version": "1"});
    meta["io.modelcontextprotocol/clientCapabilities"] = json!({});
    message
}

fn cancelled(id: Value) -> Value {
    let params = json!({"requestId": id});
    json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params})
}

/// R-SES-01, R-SES-03, R-SES-06, R-HTP-02, R-HTP-04: in a session, with ids of any kind, one of them
/// as it is spelled.
#[test]
fn a_session_is_carried_by_a_server_of_this_crate() {
    let server = Serving::begin();
    let raw = Raw::open(&server.url()).shake("2025-11-25");
    for id in [json!(0), json!("a"), json!(7)] {
        let number = raw.send(&call(id.clone(), "steps"));
        for step in 1..=3 {
            let (of, progress) = raw.message();
            assert_eq!(of, Some(number));
            assert_eq!(progress["params"]["progress"], step);
        }
        let (_, answer) = raw.message();
        assert_eq!((&answer["id"], of_text(&answer)), (&id, "done"));
        raw.done(number).unwrap();
    }
    assert_eq!(raw.relay.unsent_bytes(), 0);
    raw.relay.close();
    while !matches!(raw.next(), RelayEvent::Ended) {}
}

/// R-HDR-01, R-CAN-05: a request is cancelled by its stream alone.
#[test]
fn the_era_without_sessions_is_carried_too() {
    let server = Serving::begin();
    let raw = Raw::open(&server.url());
    let answer = raw.ask(&enveloped(call(json!(1), "echo")));
    assert_eq!(of_text(&answer), "hi");
    let sleep = raw.send(&enveloped(call(json!("s"), "sleep")));
    let sleepers = || server.sleepers.load(std::sync::atomic::Ordering::SeqCst);
    until("it sleeps", || sleepers() == 1);
    let cancel = raw.send(&cancelled(json!("s")));
    raw.done(sleep).unwrap();
    raw.done(cancel).unwrap();
    until("it was woken", || sleepers() == 0);
    let unknown = raw.ask(&enveloped(request(
        json!(2),
        "com.example/none",
        &json!({}),
    )));
    assert_eq!(
        (&unknown["id"], &unknown["error"]["code"]),
        (&json!(2), &json!(-32601))
    );
}

fn of_text(answer: &Value) -> &str {
    answer["result"]["content"][0]["text"].as_str().unwrap()
}

/// R-HTP-11, R-SES-03: what was agreed on is said with all that follows, headers of the host's in its
/// place.
#[test]
fn headers_say_what_was_agreed_on() {
    let server = Scripted::serve(|request, wire| match (&*request.verb, request.method()) {
        ("POST", "initialize") => {
            let body = request.result(opening("2025-06-18")).to_string();
            let head = "Content-Type: application/json\r\nMcp-Session-Id: one\r\n";
            wire.answer(200, head, body);
        }
        ("POST", _) if request.body["id"].is_null() => wire.answer(202, "", ""),
        ("POST", _) => wire.json(&request.result(json!({}))),
        ("GET", _) => {
            wire.events();
            wire.raw("data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"}\n\ndata: {\n\n");
            wire.until_gone();
        }
        _ => wire.answer(204, "", ""),
    });
    let raw = Raw::open(&server.url()).shake("2025-06-18");
    let (of, notice) = raw.message();
    assert_eq!((of, &notice["method"]), (None, &json!("notifications/x")));
    assert!(matches!(raw.next(), RelayEvent::Bad(_)));
    let along = SendOptions {
        headers: vec![
            ("Authorization".into(), "Bearer new".into()),
            ("mcp-protocol-version".into(), "2025-11-25".into()),
        ],
        resume: None,
    };
    let ping = request(json!(1), "ping", &json!({}));
    let first = raw.relay.send(ping.to_string(), along);
    raw.done(first).unwrap();
    raw.ask(&request(json!(2), "ping", &json!({})));
    raw.relay.close();
    while !matches!(raw.next(), RelayEvent::Ended) {}
    let seen: Vec<_> = server
        .seen()
        .into_iter()
        .map(|request| {
            let said = |name| request.header(name).unwrap_or("-").to_owned();
            let what = format!("{} {}", request.verb, request.method());
            let headers = [
                said("mcp-session-id"),
                said("mcp-protocol-version"),
                said("authorization"),
            ];
            (what, headers.join(" "))
        })
        .collect();
    for (what, headers) in [
        ("POST initialize", "- - -"),
        ("POST notifications/initialized", "one 2025-06-18 -"),
        ("GET ", "one 2025-06-18 -"),
        ("POST ping", "one 2025-11-25 Bearer new"),
        ("POST ping", "one 2025-11-25 -"),
        ("DELETE ", "one 2025-11-25 -"),
    ] {
        assert!(
            seen.iter().any(|(a, b)| (&**a, &**b) == (what, headers)),
            "{what} with {headers} in {seen:?}"
        );
    }
}

/// R-CAN-07: the handshake era has a message for it; what asks waits until the opening is taken.
#[test]
fn a_cancel_is_said_in_a_session_and_nothing_overtakes_the_opening() {
    let taken = std::sync::atomic::AtomicBool::new(false);
    let server = Scripted::serve(move |request, wire| match request.method() {
        "notifications/initialized" => {
            std::thread::sleep(Duration::from_millis(100));
            taken.store(true, std::sync::atomic::Ordering::SeqCst);
            wire.answer(202, "", "");
        }
        "initialize" => wire.json(&request.result(opening("2025-11-25"))),
        "ping" => {
            assert!(taken.load(std::sync::atomic::Ordering::SeqCst));
            wire.json(&request.result(json!({})));
        }
        "tools/call" => wire.until_gone(),
        "notifications/cancelled" => wire.answer(202, "", ""),
        _ => wire.answer(405, "", ""),
    });
    let raw = Raw::open(&server.url());
    raw.ask(&request(json!(0), "initialize", &json!({})));
    raw.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    raw.ask(&request(json!(1), "ping", &json!({})));
    let slow = raw.send(&call(json!(2), "any"));
    until("it was asked", || server.asked("tools/call").len() == 1);
    let cancel = raw.send(&cancelled(json!(2)));
    raw.done(slow).unwrap();
    raw.done(cancel).unwrap();
    assert_eq!(server.asked("notifications/cancelled").len(), 1);
    // Nobody is asked for it any more: it is for the server to say that it came too late.
    let late = raw.send(&cancelled(json!(99)));
    raw.done(late).unwrap();
    assert_eq!(server.asked("notifications/cancelled").len(), 2);
}

/// R-SSE-04, R-SSE-05: by itself when the stream breaks off, and when the host asks for it.
#[test]
fn a_stream_goes_on_where_it_broke_off() {
    let first = Mutex::new(None);
    let server = Scripted::handshake("2025-11-25", move |request, wire| {
        let mut first = first.lock().unwrap();
        match (&*request.verb, request.header("last-event-id")) {
            ("POST", _) => {
                wire.events();
                wire.raw("id: 1\ndata:\n\n");
                wire.close();
                *first = Some(request.clone());
            }
            ("GET", Some("1" | "old")) => {
                wire.events();
                let answer = first.as_ref().unwrap().said("done");
                wire.raw(format!("id: 2\ndata: {answer}\n\n"));
                wire.close();
            }
            _ => wire.answer(405, "", ""),
        }
    });
    let options = RelayOptions {
        http: HttpClientOptions {
            resume: Backoff {
                first: Duration::from_millis(1),
                longest: Duration::from_millis(20),
                attempts: 3,
            },
            ..HttpClientOptions::default()
        },
        ..RelayOptions::default()
    };
    let raw = Raw::with(&server.url(), options).shake("2025-11-25");
    let number = raw.send(&call(json!(1), "any"));
    let mut positions = Vec::new();
    loop {
        match raw.next() {
            RelayEvent::Position { of, position } => positions.push((of, position)),
            RelayEvent::Message { of, .. } => assert_eq!(of, Some(number)),
            RelayEvent::Done { of, outcome } if of == number => break outcome.unwrap(),
            _ => {}
        }
    }
    let own = |position: &str| (Some(number), position.to_owned());
    assert_eq!(positions, [own("1"), own("2")]);
    let along = SendOptions {
        headers: Vec::new(),
        resume: Some("old".into()),
    };
    let again = raw.relay.send(call(json!(5), "any").to_string(), along);
    let (of, answer) = raw.message();
    assert_eq!(
        (of, &answer["id"]),
        (Some(again), &json!(1)),
        "the first's answer"
    );
    raw.done(again).unwrap();
}

/// R-SES-05, R-HTP-04: what cannot be answered says why, and alone.
#[test]
fn what_fails_says_why() {
    let server = Scripted::serve(|request, wire| {
        match (request.method(), request.body["params"]["name"].as_str()) {
            ("initialize", _) => {
                let body = request.result(opening("2025-11-25")).to_string();
                let head = "Content-Type: application/json\r\nMcp-Session-Id: one\r\n";
                wire.answer(200, head, body);
            }
            ("notifications/initialized", _) => wire.answer(202, "", ""),
            (_, Some("gone")) => wire.answer(404, "", ""),
            (_, Some("taken")) => wire.answer(202, "", ""),
            (_, Some("secret")) => wire.answer(401, "WWW-Authenticate: Bearer\r\n", ""),
            (_, Some("error")) => wire.error(400, &request.error(-32602)),
            (_, Some("elsewhere")) => wire.answer(307, "Location: http://127.0.0.2:9/\r\n", ""),
            (_, Some("garbage")) => wire.answer(200, "Content-Type: application/json\r\n", "{"),
            (_, Some("breaks")) => {
                wire.events();
                wire.close();
            }
            (_, Some("long")) => {
                wire.answer(200, "Content-Type: application/json\r\n", "x".repeat(2000));
            }
            _ => wire.answer(405, "", ""),
        }
    });
    let options = RelayOptions {
        max_message_bytes: 1000,
        ..RelayOptions::default()
    };
    let raw = Raw::with(&server.url(), options).shake("2025-11-25");
    for (tool, fault, status) in [
        ("gone", CarrierFault::SessionLost, Some(404)),
        ("taken", CarrierFault::NoAnswer, Some(202)),
        ("secret", CarrierFault::Refused, Some(401)),
        ("elsewhere", CarrierFault::Redirected, Some(307)),
        ("garbage", CarrierFault::NoAnswer, None),
        ("breaks", CarrierFault::Broken, None),
        ("long", CarrierFault::TooLong, None),
    ] {
        let number = raw.send(&call(json!(tool), tool));
        let error = raw.done(number).unwrap_err();
        assert_eq!(
            (error.fault, error.status),
            (fault, status),
            "{tool}: {error}"
        );
    }
    let answer = raw.ask(&call(json!("e"), "error"));
    assert_eq!(answer["error"]["code"], -32602);
    let nowhere = Raw::open("http://127.0.0.1:9/mcp");
    let number = nowhere.send(&call(json!(1), "any"));
    let error = nowhere.done(number).unwrap_err();
    assert_eq!(error.fault, CarrierFault::Unreachable);
}

#[test]
fn events_and_messages_of_a_relay_are_bounded_in_length() {
    let server = Scripted::serve(|request, wire| {
        let text = "x".repeat(500);
        let message = json!({"jsonrpc": "2.0", "id": request.body["id"], "result": {"text": text}});
        match request.body["params"]["name"].as_str() {
            Some("event") => {
                wire.events();
                wire.raw(format!("data: {message}\n\n"));
                wire.until_gone();
            }
            Some("long") => {
                let text = "x".repeat(2000);
                wire.answer(200, "Content-Type: application/json\r\n", text);
            }
            _ => wire.json(&message),
        }
    });
    let options = RelayOptions {
        max_message_bytes: 1000,
        max_event_bytes: 300,
        ..RelayOptions::default()
    };
    let raw = Raw::with(&server.url(), options);
    assert_eq!(raw.ask(&call(json!(1), "fits"))["id"], 1);
    for tool in ["event", "long"] {
        let number = raw.send(&call(json!(tool), tool));
        assert_eq!(
            raw.done(number).unwrap_err().fault,
            CarrierFault::TooLong,
            "{tool}"
        );
    }
}

/// A response that the host does not read is not buffered without end.
#[test]
fn reading_waits_for_a_host_that_does_not_look() {
    const LEN: usize = 10_000;
    let written = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let counts = written.clone();
    let server = Scripted::serve(move |request, wire| {
        wire.events();
        let text = "x".repeat(LEN);
        let notice =
            json!({"jsonrpc": "2.0", "method": "notifications/x", "params": {"text": text}});
        for _ in 0..10_000 {
            if !wire.writes(&format!("data: {notice}\n\n")) {
                return;
            }
            counts.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        }
        wire.raw(format!("data: {}\n\n", request.said("done")));
        wire.close();
    });
    let options = RelayOptions {
        unread_bytes: 10 * LEN,
        ..RelayOptions::default()
    };
    let raw = Raw::with(&server.url(), options);
    let number = raw.send(&call(json!(1), "any"));
    let mut before = 0;
    until("the server cannot go on", || {
        std::thread::sleep(Duration::from_millis(300));
        let now = written.load(std::sync::atomic::Ordering::SeqCst);
        std::mem::replace(&mut before, now) == now && now > 0
    });
    assert!(before < 9_000, "{before} were written to nobody");
    let mut count = 0;
    loop {
        let (of, message) = raw.message();
        assert_eq!(of, Some(number));
        match message["method"].is_null() {
            true => break,
            false => count += 1,
        }
    }
    assert_eq!(count, 10_000);
}
