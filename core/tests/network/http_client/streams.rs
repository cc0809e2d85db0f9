//! Streams that break off, and coming back for the rest of them.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use mcpbolt::error::{CarrierFault, RequestError};
use mcpbolt::io::Backoff;
use mcpbolt::io::http::HttpClientOptions;
use mcpbolt::limits::Limits;
use mcpbolt::mcp::Revision;
use serde_json::{Value, json};

use super::scripted::{Request, Scripted, opening};
use super::serving::builder;
use super::{PATIENCE, until};

/// Comes back at once.
fn soon() -> HttpClientOptions {
    HttpClientOptions {
        resume: Backoff {
            first: Duration::from_millis(1),
            longest: Duration::from_millis(20),
            attempts: 3,
        },
        ..HttpClientOptions::default()
    }
}

fn fault(error: RequestError) -> CarrierFault {
    match error {
        RequestError::Carrier(error) => error.fault,
        other => panic!("not the carrier: {other:?}"),
    }
}

fn progress(request: &Request, step: u32) -> Value {
    let token = &request.body["params"]["_meta"]["progressToken"];
    let params = json!({"progressToken": token, "progress": step});
    json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params})
}

/// The answer to a call: a position, three steps and the result, each with its id.
fn answer(request: &Request) -> Vec<String> {
    let event = |n: usize, data: String| format!("id: e{n}\r\ndata: {data}\r\n\r\n");
    let steps = (1..=3).map(|step| progress(request, step).to_string());
    let all = [String::new()].into_iter().chain(steps);
    let all = all.chain([request.said("done").to_string()]);
    (0..).zip(all).map(|(n, data)| event(n, data)).collect()
}

/// R-SSE-04, R-SSE-05, R-SSE-08: wherever the stream breaks off, and however often, nothing is
/// missing and nothing comes twice.
#[test]
fn a_stream_may_break_off_at_every_byte() {
    let first = Mutex::new(None::<Request>);
    let (cut, cuts) = mpsc::channel::<usize>();
    let cuts = Mutex::new(cuts);
    let server = Scripted::handshake("2025-11-25", move |request, wire| {
        let events = |request: &Request, from: usize| answer(request).split_off(from).concat();
        match (&*request.verb, request.header("last-event-id")) {
            ("POST", _) => {
                *first.lock().unwrap() = Some(request.clone());
                let whole = events(request, 0);
                let cut = cuts.lock().unwrap().recv().unwrap().min(whole.len());
                wire.events();
                wire.raw(&whole[..cut]);
                wire.close();
            }
            ("GET", Some(position)) => {
                let read: usize = position.strip_prefix('e').unwrap().parse().unwrap();
                let first = first.lock().unwrap().clone().unwrap();
                wire.events();
                // Breaks off again, in the middle of what follows the next event.
                let rest = events(&first, read + 1);
                let next = rest.find("\r\n\r\n").map_or(rest.len(), |at| at + 14);
                wire.raw(&rest[..next.min(rest.len())]);
                wire.close();
            }
            _ => wire.answer(405, "", ""),
        }
    });
    let client = server.with(builder(Revision::V2025_11_25), soon());
    let call = || {
        let (tell, told) = mpsc::channel();
        let call = client
            .call_tool("any", &json!({}))
            .timeout(PATIENCE)
            .on_progress(move |progress| tell.send(progress.progress).unwrap());
        let outcome = call.wait().map(|result| result.text());
        (outcome, told.iter().collect::<Vec<_>>())
    };
    let primed = "id: e0\r\ndata: \r\n\r\n".len();
    // Before the first position is whole there is nothing to come back to.
    for at in [0, 1, primed - 3] {
        cut.send(at).unwrap();
        assert_eq!(
            fault(call().0.unwrap_err()),
            CarrierFault::Broken,
            "cut at {at}"
        );
    }
    for at in primed..primed + 700 {
        cut.send(at).unwrap();
        let (outcome, steps) = call();
        assert_eq!(outcome.as_deref(), Ok("done"), "cut at {at}");
        assert_eq!(steps, [1.0, 2.0, 3.0], "cut at {at}");
    }
}

/// R-SSE-08.
#[test]
fn the_server_says_when_to_come_back() {
    let left = Mutex::new(None::<(Instant, Request)>);
    let (tell, told) = mpsc::channel();
    let server = Scripted::handshake("2025-11-25", move |request, wire| {
        match (&*request.verb, request.header("last-event-id")) {
            ("POST", _) => {
                wire.events();
                wire.raw("id: 1\nretry: 150\ndata:\n\n");
                wire.close();
                *left.lock().unwrap() = Some((Instant::now(), request.clone()));
            }
            ("GET", Some("1")) => {
                let (at, request) = left.lock().unwrap().clone().unwrap();
                tell.send(at.elapsed()).unwrap();
                wire.events();
                wire.raw(format!("data: {}\n\n", request.said("done")));
                wire.close();
            }
            _ => wire.answer(405, "", ""),
        }
    });
    let client = server.with(builder(Revision::V2025_11_25), soon());
    let call = client.call_tool("any", &json!({})).timeout(PATIENCE);
    assert_eq!(call.wait().unwrap().text(), "done");
    let waited = told.recv().unwrap();
    assert!(waited >= Duration::from_millis(150), "{waited:?}");
    assert!(waited < Duration::from_secs(2), "{waited:?}");
}

#[test]
fn coming_back_has_an_end() {
    for (refusal, expected, attempts) in [
        (404, CarrierFault::SessionLost, 1),
        (405, CarrierFault::Refused, 1),
        (409, CarrierFault::Refused, 1),
        (503, CarrierFault::Refused, 3),
    ] {
        let server = Scripted::handshake("2025-11-25", move |request, wire| {
            match (&*request.verb, request.header("last-event-id")) {
                ("POST", _) => {
                    wire.events();
                    wire.raw("id: 1\n\n");
                    wire.close();
                }
                ("GET", Some(_)) => wire.answer(refusal, "", ""),
                _ => wire.answer(405, "", ""),
            }
        });
        let client = server.with(builder(Revision::V2025_11_25), soon());
        let call = client.call_tool("any", &json!({})).timeout(PATIENCE);
        assert_eq!(fault(call.wait().unwrap_err()), expected, "{refusal}");
        let seen = server.seen().into_iter();
        let came_back = seen.filter(|request| request.header("last-event-id").is_some());
        let came_back = came_back.count();
        assert!(
            (attempts..=attempts + 1).contains(&came_back),
            "{refusal}: {came_back}"
        );
    }
}

/// R-HTP-20, R-SSE-09: from 2026-07-28 on there is no coming back, whatever the events bear.
#[test]
fn what_is_lost_in_the_newest_revision_stays_lost() {
    let server = Scripted::stateless(|request, wire| {
        wire.events();
        wire.raw(format!(
            "id: 1\nretry: 1\ndata: {}\n\n",
            progress(request, 1)
        ));
        wire.close();
    });
    let client = server.with(builder(Revision::V2026_07_28), soon());
    let call = client.call_tool("any", &json!({})).timeout(PATIENCE);
    assert_eq!(fault(call.wait().unwrap_err()), CarrierFault::Broken);
    assert!(server.seen().iter().all(|request| request.verb == "POST"));
}

/// R-HTP-11, R-SSE-04: the stream of what belongs to no request is come back to as well, and a
/// server without one is left alone.
#[test]
fn the_standing_stream_is_come_back_to() {
    let count = AtomicUsize::new(0);
    let server = Scripted::handshake("2025-11-25", move |request, wire| {
        let n = count.fetch_add(1, Ordering::SeqCst);
        assert_eq!(request.header("accept"), Some("text/event-stream"));
        assert_eq!(request.header("mcp-protocol-version"), Some("2025-11-25"));
        let before = n.checked_sub(1).map(|before| before.to_string());
        assert_eq!(request.header("last-event-id"), before.as_deref());
        if n == 3 {
            return wire.answer(405, "Allow: POST\r\n", "");
        }
        let notice = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"});
        wire.events();
        wire.raw(format!("id: {n}\ndata: {notice}\n\n: and\n\n"));
        wire.close();
    });
    let (tell, told) = mpsc::channel();
    let client = builder(Revision::V2025_11_25).on_raw_notice(move |method, _| {
        let _ = tell.send(method.to_owned());
    });
    let client = server.with(client, soon());
    for _ in 0..3 {
        told.recv_timeout(PATIENCE).unwrap();
    }
    until("the last attempt", || server.seen().len() == 6);
    std::thread::sleep(Duration::from_millis(100));
    assert_eq!(server.seen().len(), 6, "it goes on asking");
    drop(client);
}

/// A stream need not end for its request to end; and where nobody waits, what is too long is passed
/// over.
#[test]
fn an_event_that_is_too_long_ends_its_request_alone() {
    let long = "x".repeat(10_000);
    let server = Scripted::handshake("2025-11-25", move |request, wire| {
        wire.events();
        wire.raw(format!("id: 1\ndata: {long}\n\n"));
        if request.verb == "GET" {
            let notice = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"});
            wire.raw(format!("data: {notice}\n\n"));
        }
        wire.until_gone();
    });
    let (tell, told) = mpsc::channel();
    let client = builder(Revision::V2025_11_25).on_raw_notice(move |method, _| {
        let _ = tell.send(method.to_owned());
    });
    let limits = Limits {
        max_message_bytes: 4096,
        ..Limits::NETWORK
    };
    let client = server.with(client.limits(limits), soon());
    told.recv_timeout(PATIENCE).unwrap();
    let call = client.call_tool("any", &json!({})).timeout(PATIENCE);
    assert_eq!(fault(call.wait().unwrap_err()), CarrierFault::TooLong);
    let asked = server.seen().into_iter().filter(|it| it.verb == "GET");
    assert_eq!(asked.count(), 1);
}

/// R-HTP-04: `initialize`, too, may be answered in events.
#[test]
fn the_opening_may_come_in_events() {
    let server = Scripted::serve(|request, wire| match request.method() {
        "initialize" => {
            wire.events();
            let result = request.result(opening("2025-06-18"));
            wire.raw(format!("id: 1\ndata: {result}\n\n"));
            wire.close();
        }
        "notifications/initialized" => wire.answer(202, "", ""),
        "tools/call" => wire.json(&request.said("done")),
        _ => wire.answer(405, "", ""),
    });
    let client = server.with(builder(Revision::V2025_06_18), soon());
    let call = client.call_tool("any", &json!({})).wait();
    assert_eq!(call.unwrap().text(), "done");
}

#[test]
fn a_server_is_left_alone_for_as_long_as_it_asks() {
    let asked = Arc::<Mutex<Vec<Instant>>>::default();
    let asks = asked.clone();
    let server = Scripted::handshake("2025-11-25", move |request, wire| {
        if request.verb == "POST" {
            return wire.answer(429, "Retry-After: 7\r\n", "");
        }
        let mut asked = asks.lock().unwrap();
        asked.push(Instant::now());
        match asked.len() {
            1 => wire.answer(503, "Retry-After: 1\r\n", ""),
            _ => wire.answer(405, "", ""),
        }
    });
    let client = server.with(builder(Revision::V2025_11_25), soon());
    // A stream is asked for again by itself, then; a call is not.
    match client.call_tool("any", &json!({})).wait().unwrap_err() {
        RequestError::Carrier(error) => assert_eq!(error.retry_after, Some(Duration::from_secs(7))),
        other => panic!("{other:?}"),
    }
    until("the stream is not asked for again", || {
        asked.lock().unwrap().len() == 2
    });
    let asked = asked.lock().unwrap();
    assert!(asked[1] - asked[0] >= Duration::from_secs(1));
}

/// R-HTP-11: a server may ask its client on the standing stream while it works on the first call, and
/// drop what it has no stream for: the stream is asked for first. The two may be on two connections,
/// so that the server's threads may turn them round, on a busy machine every other time. If the request
/// were sent first, its connection would be open already, and it would arrive first.
#[test]
fn the_standing_stream_is_opened_before_the_first_request() {
    const CLIENTS: usize = 32;
    let server = Scripted::handshake("2025-11-25", |request, wire| match &*request.verb {
        "GET" => wire.answer(405, "Allow: POST\r\n", ""),
        _ => wire.json(&request.said("done")),
    });
    for _ in 0..CLIENTS {
        let client = builder(Revision::V2025_11_25).on_raw_notice(|_, _| ());
        let client = server.with(client, soon());
        let call = client.call_tool("any", &json!({})).timeout(PATIENCE);
        call.wait().unwrap();
    }
    let seen = server.seen();
    let stood_first = seen
        .windows(2)
        .filter(|pair| pair[0].verb == "GET" && pair[1].method() == "tools/call");
    assert!(stood_first.count() > CLIENTS / 5, "{seen:?}");
}
