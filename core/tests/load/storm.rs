//! Ten thousand calls at once that all carry the same id.

use std::io::Write;
use std::net::TcpStream;
use std::time::Instant;

use serde_json::{Value, json};

use crate::client::call;
use crate::far::{Far, Setup};
use crate::wire::Wire;

/// R-RPC-05: over HTTP each POST is a scope of its own.
fn storm(count: usize) {
    let far = Far::begin(Setup(""));
    let begun = Instant::now();
    let mut wires: Vec<_> = (0..count).map(|_| Wire::open(far.at)).collect();
    let (opened, asked) = (begun.elapsed(), Instant::now());
    for (number, wire) in wires.iter_mut().enumerate() {
        wire.send(&call(1, "late", json!({"text": number.to_string()})));
    }
    for (number, wire) in wires.iter_mut().enumerate() {
        let answer = wire.answer();
        assert_eq!(answer.status, 200, "{answer:?}");
        let answer = answer.json();
        assert_eq!(answer["id"], 1);
        assert_eq!(answer["result"]["content"][0]["text"], number.to_string());
    }
    println!(
        "{count} POSTs with one id: opened in {opened:.2?}, answered in {:.2?}",
        asked.elapsed()
    );
    far.ended();
}

#[test]
fn a_thousand_posts_with_one_id_are_each_answered_with_their_own() {
    storm(1000);
}

#[test]
#[ignore = "needs 10,000 descriptors"]
fn ten_thousand_posts_with_one_id_are_each_answered_with_their_own() {
    storm(10_000);
}

/// R-RPC-05: on one WebSocket one of them runs at a time, and every other gets its error at once.
fn storm_of_one(count: usize) {
    let far = Far::begin(Setup(""));
    let stream = TcpStream::connect(far.at).unwrap();
    let (mut socket, _) = tungstenite::client(format!("ws://{}/mcp", far.at), stream).unwrap();
    let message = crate::wire::request(
        1,
        "tools/call",
        json!({"name": "late", "arguments": {"text": "x"}}),
    );
    let begun = Instant::now();
    let mut talks = socket.get_ref().try_clone().unwrap();
    let talker = std::thread::spawn(move || {
        let text = message.to_string();
        // A masked frame, whose mask is zero.
        let mut frame = vec![0x81, 0x80 | 126];
        frame.extend(u16::try_from(text.len()).unwrap().to_be_bytes());
        frame.extend([0; 4]);
        frame.extend(text.as_bytes());
        (0..count).for_each(|_| talks.write_all(&frame).unwrap());
    });
    let (mut answered, mut refused) = (0, 0);
    while answered + refused < count {
        let text = socket.read().unwrap().into_text().unwrap();
        let answer: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(answer["id"], 1);
        match answer["error"]["code"].as_i64() {
            None => answered += 1,
            Some(code) => {
                assert_eq!(code, -32600);
                refused += 1;
            }
        }
    }
    talker.join().unwrap();
    let took = begun.elapsed();
    println!(
        "{count} calls with one id on a WebSocket: {answered} answered, {refused} refused in {took:.2?}"
    );
    // One at a time, each of which takes three tenths of a second.
    assert!(answered >= 1 && answered <= 1 + took.as_millis() as usize / 300);
    far.ended();
}

#[test]
fn ten_thousand_calls_with_one_id_on_a_websocket_run_one_at_a_time() {
    storm_of_one(10_000);
}
