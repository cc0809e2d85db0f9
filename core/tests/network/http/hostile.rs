//! Requests that no client should send get an answer in JSON or a closed connection, and other
//! clients are served on.

use std::time::{Duration, Instant};

use mcpbolt::io::http::HttpOptions;
use mcpbolt::limits::Limits;
use serde_json::{Value, json};

use crate::http::sessions::Client;
use crate::http::wire::{Answer, PATIENCE, Wire, headers, post, request};
use crate::http::{Serving, call};

fn alive(serving: &Serving) {
    let answer = crate::http::ask(serving.at, &call(1, "echo", json!({"text": "alive"})));
    assert_eq!(answer.json()["result"]["content"][0]["text"], "alive");
}

/// A head with these lines behind the usual ones, and whatever follows.
fn raw(lines: &str, body: &[u8]) -> Vec<u8> {
    let message = call(1, "echo", json!({"text": "x"}));
    let mut head = "POST /mcp HTTP/1.1\r\n".to_owned();
    for (name, value) in headers(&message) {
        head += &format!("{name}: {value}\r\n");
    }
    [format!("{head}{lines}\r\n").as_bytes(), body].concat()
}

fn error_of(answer: &Answer, shown: &str) -> i64 {
    assert_eq!(answer.header("content-type"), "application/json", "{shown}");
    let json = answer.json();
    assert_eq!(json["jsonrpc"], "2.0", "{shown}");
    json["error"]["code"].as_i64().unwrap()
}

/// R-RPC-21, R-HTP-05: an error in JSON, never HTML and never silence, in every era.
#[test]
fn bodies_that_are_no_messages_are_answered_in_json() {
    let serving = Serving::begin(HttpOptions::default());
    let deep = "[".repeat(100_000);
    let long = format!("{{\"jsonrpc\":\"2.0\",\"id\":{}}}", "9".repeat(5000));
    let bodies: [&[u8]; 20] = [
        b"",
        b" \r\n\t ",
        b"<html>",
        b"null",
        b"7",
        b"\"text\"",
        b"[]",
        b"[[]]",
        b"{",
        b"{}",
        b"{}{}",
        b"\x00",
        b"\xff\xfe",
        b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\"}",
        b"\xef\xbb\xbf{}",
        b"{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"ping\"}",
        b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":7}",
        b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"params\":7}",
        deep.as_bytes(),
        long.as_bytes(),
    ];
    let eras = ["2025-03-26", "2025-11-25"];
    let mut heads: Vec<_> = eras
        .map(|revision| Client::open(serving.at, revision, json!({})).headers())
        .into();
    heads.push(headers(&json!({})));
    heads.push(vec![
        ("Host", "localhost".into()),
        ("Content-Type", "application/json".into()),
    ]);
    for head in heads {
        for body in bodies {
            let shown = String::from_utf8_lossy(&body[..body.len().min(60)]);
            let mut wire = Wire::open(serving.at);
            let mut message = post(&head, "");
            message.truncate(message.len() - "0\r\n\r\n".len());
            message.extend(format!("{}\r\n\r\n", body.len()).as_bytes());
            message.extend(body);
            wire.send(&message);
            let answer = wire.answer();
            let code = error_of(&answer, &shown);
            // Params that are none are an error like others of a method's.
            let status = if code == -32602 { answer.status } else { 400 };
            assert_eq!(answer.status, status, "{shown} {answer:?}");
            assert!((-32768..=-32000).contains(&code), "{shown}");
        }
    }
    alive(&serving);
    serving.end();
}

/// RFC 9112, 6 and 7: what says clearly where it ends is read, and nothing else is.
#[test]
fn bodies_end_where_they_say() {
    let serving = Serving::begin(HttpOptions {
        limits: Limits {
            stall_timeout: Duration::from_millis(300),
            ..Limits::NETWORK
        },
        ..HttpOptions::default()
    });
    let message = call(1, "echo", json!({"text": "x"})).to_string();
    let chunked = |size: &str, more: &str| {
        let first = format!("{size}\r\n{message}\r\n{more}");
        raw("Transfer-Encoding: chunked\r\n", first.as_bytes())
    };
    let hex = format!("{:x}", message.len());
    let single: String = message
        .chars()
        .map(|byte| format!("1\r\n{byte}\r\n"))
        .collect();
    let single = single + "0\r\n\r\n";
    let good = [
        chunked(&hex, "0\r\n\r\n"),
        chunked(&hex.to_uppercase(), "0\r\n\r\n"),
        chunked(&format!("000{hex}"), "000\r\n\r\n"),
        chunked(&format!("{hex};name=\"value\""), "0;x\r\n\r\n"),
        chunked(&hex, "0\r\nTrailer: of no use\r\n\r\n"),
        raw("Transfer-Encoding: chunked\r\n", single.as_bytes()),
        raw("Transfer-Encoding: CHUNKED\r\n", single.as_bytes()),
    ];
    for wire in good {
        let mut open = Wire::open(serving.at);
        open.send(&wire);
        let answer = open.answer();
        let shown = String::from_utf8_lossy(&wire);
        assert_eq!(answer.status, 200, "{shown} {answer:?}");
    }
    let len = message.len();
    let body = message.as_bytes();
    let lying = |lines: &str| raw(lines, body);
    for (what, wire) in [
        ("no size", chunked("", "0\r\n\r\n")),
        ("a size that is none", chunked("0x1", "0\r\n\r\n")),
        ("a negative size", chunked("-1", "0\r\n\r\n")),
        (
            "a size beyond counting",
            chunked(&"f".repeat(17), "0\r\n\r\n"),
        ),
        ("a chunk that is too short", chunked("1", "0\r\n\r\n")),
        ("a chunk without an end", chunked(&hex, "")),
        (
            "two lengths",
            lying(&format!("Content-Length: {len}\r\nContent-Length: 1\r\n")),
        ),
        ("a length that is none", lying("Content-Length: many\r\n")),
        ("a negative length", lying("Content-Length: -1\r\n")),
        ("a sum", lying(&format!("Content-Length: +{len}\r\n"))),
        (
            "a length that is too long",
            lying(&format!("Content-Length: {}\r\n", len + 1)),
        ),
        (
            "a length that is too short",
            lying(&format!("Content-Length: {}\r\n", len - 1)),
        ),
        ("no length", lying("")),
        ("another coding", lying("Transfer-Encoding: gzip\r\n")),
        (
            "chunks within a coding",
            lying("Transfer-Encoding: chunked, gzip\r\n"),
        ),
        (
            "a folded line",
            lying(&format!("Content-Length:\r\n {len}\r\n")),
        ),
        (
            "a space before the colon",
            lying(&format!("Content-Length : {len}\r\n")),
        ),
    ] {
        let mut open = Wire::open(serving.at);
        open.send(&wire);
        let begun = Instant::now();
        let status = open.begin().status;
        // None when it is closed without a word.
        assert!(
            status == 0 || (400..=501).contains(&status),
            "{what}: {status}"
        );
        assert!(begun.elapsed() < PATIENCE / 4, "{what}");
    }
    alive(&serving);
    serving.end();
}

/// RFC 9112, 11.2: where two readers would see different requests, nobody sees a second one.
#[test]
fn nothing_is_smuggled_behind_a_request() {
    let serving = Serving::begin(HttpOptions::default());
    let sleepers = serving.sleepers.clone();
    let hidden = call(2, "sleep", json!({}));
    let hidden = post(&headers(&hidden), &hidden.to_string());
    let both = [b"0\r\n\r\n", &hidden[..]].concat();
    let lines = format!(
        "Content-Length: {}\r\nTransfer-Encoding: chunked\r\n",
        both.len()
    );
    let mut wire = Wire::open(serving.at);
    wire.send(&raw(&lines, &both));
    assert_eq!(wire.answer().status, 400);
    alive(&serving);
    assert!(wire.is_closed(), "RFC 9112, 6.3");
    assert_eq!(sleepers.load(std::sync::atomic::Ordering::SeqCst), 0);
    serving.end();
}

/// Heads and bodies that never end take a connection each for a while, and nobody else's time.
#[test]
fn whoever_is_slow_holds_up_nobody() {
    let allowed = Duration::from_millis(700);
    let serving = Serving::begin(HttpOptions {
        header_timeout: allowed,
        limits: Limits {
            stall_timeout: allowed,
            ..Limits::NETWORK
        },
        ..HttpOptions::default()
    });
    let message = call(1, "echo", json!({"text": "x"})).to_string();
    let whole = raw(
        &format!("Content-Length: {}\r\n", message.len()),
        message.as_bytes(),
    );
    let head = whole.len() - message.len();
    let begun = Instant::now();
    // One half is slow within its head, the other within its body.
    let mut slow: Vec<_> = (0..200)
        .map(|number| {
            let mut wire = Wire::open(serving.at);
            let at = if number % 2 == 0 { 20 } else { head + 1 };
            wire.send(&whole[..at]);
            (wire, at)
        })
        .collect();
    let mut longest = Duration::ZERO;
    while begun.elapsed() < allowed * 2 {
        for (wire, at) in &mut slow {
            // A byte at a time is progress that does not count.
            if wire.try_send(&whole[*at..*at + 1]) && *at + 2 < whole.len() {
                *at += 1;
            }
        }
        let asked = Instant::now();
        alive(&serving);
        longest = longest.max(asked.elapsed());
        std::thread::sleep(Duration::from_millis(50));
    }
    assert!(longest < Duration::from_millis(500), "{longest:?}");
    for (number, (wire, _)) in slow.iter_mut().enumerate() {
        let status = wire.begin().status;
        assert!(matches!(status, 0 | 408), "{number}: {status}");
    }
    serving.end();
}

/// R-SSE-03, R-SSE-04, R-SSE-05: a stream that breaks behind any byte is gone on with, and
/// nothing is missing or comes twice.
#[test]
fn a_stream_that_breaks_behind_any_byte_goes_on() {
    let serving = Serving::begin(HttpOptions::default());
    let client = Client::open(serving.at, "2025-11-25", json!({}));
    let steps = |id: usize| {
        let mut steps = client.call(id, "steps", json!({}));
        steps["params"]["_meta"] = json!({"progressToken": "p"});
        steps
    };
    let whole = client.send(&steps(1_000_000)).rest();
    let mut resumed = 0;
    for at in 0..whole.len() {
        let id = 1_000_000 + at;
        let mut wire = client.send(&steps(id));
        let broken = wire.bytes(at);
        wire.break_off();
        let mut events = whole_events(&broken);
        if let Some((last, _)) = events.last() {
            resumed += 1;
            let rest = client
                .bare("GET", &format!("Last-Event-ID: {last}\r\n"))
                .rest();
            events.extend(whole_events(&rest));
        } else {
            continue;
        }
        let mut messages = events.iter().map(|(_, message)| message);
        assert_eq!(messages.next(), Some(&Value::Null), "a position: {at}");
        for step in 1..=3 {
            let progress = &messages.next().unwrap()["params"]["progress"];
            assert_eq!(progress.as_f64(), Some(f64::from(step)), "{at}");
        }
        let answer = messages.next().unwrap();
        assert_eq!((&answer["id"], messages.next()), (&json!(id), None), "{at}");
    }
    assert!(resumed > whole.len() / 2, "{resumed} of {}", whole.len());
    serving.end();
}

/// The events of which every byte has come, in an answer in chunks: ids and messages.
fn whole_events(answer: &[u8]) -> Vec<(String, Value)> {
    let text = String::from_utf8_lossy(answer);
    let Some((_, mut body)) = text.split_once("\r\n\r\n") else {
        return Vec::new();
    };
    let mut data = String::new();
    while let Some((size, rest)) = body.split_once("\r\n") {
        let len = usize::from_str_radix(size, 16).unwrap();
        data += &rest[..len.min(rest.len())];
        body = rest.get(len + 2..).unwrap_or_default();
    }
    let end = data.rfind("\n\n").map_or(0, |at| at + 2);
    crate::http::sessions::events(&data[..end])
}

/// R-CAN-04: a cancel that names nothing in flight loses no later call of that id, however often.
#[test]
fn a_cancel_of_nothing_loses_no_call() {
    let serving = Serving::begin(HttpOptions::default());
    let client = Client::open(serving.at, "2025-11-25", json!({}));
    for id in [77, 77, 78] {
        let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}});
        assert_eq!(client.post(&cancel).status, 202);
        let answer = client.post(&client.call(id, "echo", json!({"text": "x"})));
        assert_eq!(answer.status, 200);
        assert_eq!(answer.json()["result"]["content"][0]["text"], "x");
    }
    serving.end();
}

/// R-BAT-01, R-BAT-04, R-BAT-06: each member of a batch is answered for itself, or refused.
#[test]
fn batches_are_taken_member_by_member() {
    let serving = Serving::begin(HttpOptions::default());
    let client = Client::open(serving.at, "2025-03-26", json!({}));
    let echo = |n: usize| client.call(n, "echo", json!({"text": n.to_string()}));
    let many: Vec<_> = (0..1000).map(echo).collect();
    let body = client.post(&Value::from(many)).body;
    let mut ids: Vec<_> = crate::http::sessions::events(&body)
        .into_iter()
        .flat_map(|(_, message)| match message {
            Value::Array(all) => all,
            one => vec![one],
        })
        .map(|answer| {
            let id = answer["id"].as_u64().unwrap();
            let text = &answer["result"]["content"][0]["text"];
            assert_eq!(text, &id.to_string());
            id
        })
        .collect();
    ids.sort_unstable();
    assert_eq!(ids, (0..1000).collect::<Vec<_>>());
    let mixed = client.post(&json!([echo(1), 7, {"id": 2}, [], echo(3)]));
    for id in [1, 3] {
        assert!(
            mixed.body.contains(&format!("\"id\":{id},\"result\"")),
            "{}",
            mixed.body
        );
    }
    assert!(mixed.body.contains("-32600"), "{}", mixed.body);
    for revision in ["2025-06-18", "2025-11-25"] {
        let client = Client::open(serving.at, revision, json!({}));
        let refused = client.post(&json!([echo(1)]));
        assert_eq!(
            (refused.status, error_of(&refused, revision)),
            (400, -32600)
        );
    }
    let refused = crate::http::ask(serving.at, &json!([request(1, "tools/list", json!({}))]));
    assert_eq!((refused.status, error_of(&refused, "alone")), (400, -32600));
    serving.end();
}

/// HTTP/2 by hand: a frame with its head.
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut frame = (payload.len() as u32).to_be_bytes()[1..].to_vec();
    frame.extend([kind, flags]);
    frame.extend(stream.to_be_bytes());
    frame.extend(payload);
    frame
}

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
const END_HEADERS: u8 = 4;

/// The headers of a call, uncompressed, whose body is still to come.
fn fields() -> Vec<u8> {
    let message = call(1, "echo", json!({"text": "x"}));
    let mut fields = Vec::new();
    let mut field = |name: &str, value: &str| {
        fields.extend([0, name.len() as u8]);
        fields.extend(name.as_bytes());
        fields.push(value.len() as u8);
        fields.extend(value.as_bytes());
    };
    for (name, value) in [
        (":method", "POST"),
        (":scheme", "http"),
        (":path", "/mcp"),
        (":authority", "localhost"),
    ] {
        field(name, value);
    }
    for (name, value) in super::wire::headers(&message) {
        if name != "Host" {
            field(&name.to_lowercase(), &value);
        }
    }
    fields
}

/// The next frame of one of these kinds: its stream, and what it holds.
fn next_frame(wire: &mut Wire, kinds: &[u8]) -> (u32, Vec<u8>) {
    loop {
        let head = wire.bytes(9);
        let len = u32::from_be_bytes([0, head[0], head[1], head[2]]);
        let payload = wire.bytes(len as usize);
        if kinds.contains(&head[3]) {
            return (u32::from_be_bytes(head[5..].try_into().unwrap()), payload);
        }
    }
}

/// Beyond the limit a stream is refused, so that its client may send it again (RFC 9113, section 8.7).
#[test]
fn a_connection_has_no_more_streams_than_may_be() {
    const MOST: u32 = 200;
    const HEADERS: u8 = 1;
    const RESET: u8 = 3;
    let serving = Serving::begin(HttpOptions::default());
    let mut wire = Wire::open(serving.at);
    wire.send(PREFACE);
    for number in 0..=MOST {
        wire.send(&frame(HEADERS, END_HEADERS, number * 2 + 1, &fields()));
    }
    let (stream, code) = next_frame(&mut wire, &[HEADERS, RESET]);
    assert_eq!((stream, &code[..]), (MOST * 2 + 1, &[0, 0, 0, 7][..]));
    drop(wire);
    alive(&serving);
    serving.end();
}

/// RFC 6585, section 5.
#[test]
fn heads_are_bounded_in_length() {
    const MOST: usize = 16 << 10;
    const CONTINUATION: u8 = 9;
    let serving = Serving::begin(HttpOptions::default());
    let mut wire = Wire::open(serving.at);
    let long = "x".repeat(MOST);
    wire.send(&raw(&format!("X-Long: {long}\r\n"), b""));
    assert_eq!(wire.answer().status, 431);
    // On HTTP/2: refused before its body has come.
    let mut wire = Wire::open(serving.at);
    wire.send(PREFACE);
    wire.send(&frame(1, 0, 1, &fields()));
    let line = [&[0, 1, b'x', 100][..], &[b'x'; 100]].concat();
    let more = line.repeat(MOST / 100);
    let (first, second) = more.split_at(MOST / 2);
    wire.send(&frame(CONTINUATION, 0, 1, first));
    wire.send(&frame(CONTINUATION, END_HEADERS, 1, second));
    assert_eq!(next_frame(&mut wire, &[1, 3]).0, 1);
    alive(&serving);
    serving.end();
}
