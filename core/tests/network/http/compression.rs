//! Long answers go compressed to who accepts that.

use std::io::Read;

use flate2::read::GzDecoder;
use mcpbolt::io::http::HttpOptions;
use serde_json::json;

use crate::http::wire::{Wire, headers, post};
use crate::http::{Serving, call};

/// The answer to a text, and its coding.
fn echo(serving: &Serving, text: &str, accepts: &str) -> (String, Vec<u8>) {
    let message = call(1, "echo", json!({"text": text}));
    let mut all = headers(&message);
    all.push(("Accept-Encoding", accepts.into()));
    let mut wire = Wire::open(serving.at);
    wire.send(&post(&all, &message.to_string()));
    let head = wire.begin();
    assert_eq!(
        (head.status, head.header("content-type")),
        (200, "application/json")
    );
    let coding = head.header("content-encoding").to_owned();
    if coding.is_empty() {
        let len = head.header("content-length").parse().unwrap();
        return (coding, wire.bytes(len));
    }
    assert_eq!(head.header("vary"), "accept-encoding");
    let mut body = Vec::new();
    loop {
        let len = usize::from_str_radix(&wire.line(), 16).unwrap();
        body.extend(wire.bytes(len));
        wire.line();
        if len == 0 {
            return (coding, body);
        }
    }
}

#[test]
fn long_answers_are_compressed_for_who_accepts_it() {
    let serving = Serving::begin(HttpOptions {
        compression: true,
        ..HttpOptions::default()
    });
    // Longer than is compressed at a time.
    let long: String = (0..50_000).map(|n| format!("{n} ")).collect();
    let (_, plain) = echo(&serving, &long, "identity");
    let (coding, body) = echo(&serving, &long, "br, gzip");
    assert_eq!(coding, "gzip");
    assert!(
        body.len() * 2 < plain.len(),
        "{} of {}",
        body.len(),
        plain.len()
    );
    let mut back = Vec::new();
    GzDecoder::new(&body[..]).read_to_end(&mut back).unwrap();
    assert!(back == plain);
    assert_eq!(echo(&serving, "short", "gzip").0, "");
    assert_eq!(echo(&serving, &long, "gzip;q=0").0, "");
    // No event of a stream waits for the next one.
    let mut steps = call(1, "steps", json!({}));
    steps["params"]["_meta"]["progressToken"] = 1.into();
    let mut all = headers(&steps);
    all.push(("Accept-Encoding", "gzip".into()));
    let mut wire = Wire::open(serving.at);
    wire.send(&post(&all, &steps.to_string()));
    assert_eq!(wire.answer().events().len(), 4);
    serving.end();

    let without = Serving::begin(HttpOptions::default());
    assert_eq!(echo(&without, &long, "gzip").0, "", "off by default");
    without.end();
}
