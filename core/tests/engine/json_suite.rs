//! The boundary of JSON: `corpus/json.json`, every case as a whole text and as a member of a
//! message, at sixteen alignments; and every short text, beside serde_json.
//!
//! RFC 8259 leaves some texts to the parser. Numbers beyond any machine's range are grammar and pass
//! through as text. So do escapes of lone surrogates; only decoding such a string fails. Bytes that
//! are not UTF-8, UTF-16 and byte order marks are refused (line framing takes one mark off the head of
//! a stream).
#![allow(clippy::unwrap_used)]

use mcpbolt::json;
use mcpbolt::message::{Envelope, Frame, Kind, decode};
use serde_json::Value;

const CORPUS: &str = include_str!("../../../corpus/json.json");
const MAX_DEPTH: usize = 520;

#[test]
fn every_text_of_the_corpus_is_decided_in_every_position() {
    let corpus: Vec<Value> = serde_json::from_str(CORPUS).unwrap();
    assert!(corpus.len() > 350, "only {} cases", corpus.len());
    for case in &corpus {
        let name = case["name"].as_str().unwrap();
        let parts = case["text"].as_array().unwrap();
        let text: Vec<u8> = parts.iter().flat_map(part).collect();
        let accepted = match case["kind"].as_str().unwrap() {
            "y" => true,
            "n" => false,
            _ => case["taken"].as_bool().unwrap(),
        };
        assert_eq!(json::validate(&text, MAX_DEPTH).is_ok(), accepted, "{name}");
        embedded(name, &text, accepted);
    }
}

fn part(part: &Value) -> Vec<u8> {
    if let Some(text) = part.as_str() {
        return text.into();
    }
    if let Some(hex) = part["hex"].as_str() {
        let digits = hex.as_bytes().chunks(2);
        let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16);
        return digits.map(|pair| byte(pair).unwrap()).collect();
    }
    let count = part["count"].as_u64().unwrap() as usize;
    part["repeat"].as_str().unwrap().repeat(count).into_bytes()
}

/// All texts of up to four pieces, of which a text has its structure, its numbers and its strings.
#[test]
fn every_short_text_is_decided_as_by_serde_json() {
    const PIECES: [&str; 20] = [
        "[", "]", "{", "}", ",", ":", "\"", "\\", "u0041", "0", "1", "-", ".", "e", "+", " ", "\n",
        "null", "\"a\":", "\u{e9}",
    ];
    let (mut taken, mut all) = (0, 0);
    for length in 0..=4 {
        for number in 0..PIECES.len().pow(length) {
            let digits = (0..length).map(|place| number / PIECES.len().pow(place) % PIECES.len());
            let text: String = digits.map(|digit| PIECES[digit]).collect();
            let expected = serde_json::from_str::<&serde_json::value::RawValue>(&text).is_ok();
            let found = json::validate(text.as_bytes(), MAX_DEPTH).is_ok();
            assert_eq!(found, expected, "{text}");
            taken += usize::from(found);
            all += 1;
        }
    }
    assert!(all > 160_000 && taken > 700, "{taken} of {all}");
}

/// The text as a value inside `params` and inside `result`. Some refused texts become valid
/// there, because what is wrong with them is only what surrounds them: serde_json tells which.
fn embedded(name: &str, text: &[u8], accepted: bool) {
    let envelopes: [(&[u8], &[u8], Kind); 2] = [
        (
            b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\",\"params\":{\"a\":",
            b"}}",
            Kind::Request,
        ),
        (
            b"{\"result\":{\"a\":[",
            b"]},\"id\":1,\"jsonrpc\":\"2.0\"}",
            Kind::Response,
        ),
    ];
    for (head, tail, kind) in envelopes {
        for shift in 0..16 {
            let mut block = vec![b' '; shift];
            block.extend([head, text, tail].concat());
            let len = block.len();
            let expected =
                accepted || serde_json::from_slice::<&serde_json::value::RawValue>(&block).is_ok();
            block.resize(len + mcpbolt::buffer::PADDING, b'}');
            let mut envelope = Envelope::new();
            let frame = Frame::new(&block, len).unwrap();
            let verdict = decode(frame, MAX_DEPTH, &mut envelope);
            assert_eq!(verdict.is_ok(), expected, "{name} at {shift}: {verdict:?}");
            if accepted {
                assert_eq!(envelope.kind(), kind, "{name}");
            }
        }
    }
}
