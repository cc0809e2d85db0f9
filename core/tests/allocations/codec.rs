//! Decoding, routing and forwarding allocate nothing once their buffers are warm.
#![allow(clippy::unwrap_used, reason = "a test: panicking is the report")]

use mcpbolt::buffer::Input;
use mcpbolt::frame::line::{LineDeframer, LineEvent};
use mcpbolt::message::encode::ErrorId;
use mcpbolt::message::{Envelope, Frame, MessageRef, decode, encode};
use serde_json::Value;

use crate::COUNT;

/// Longest message that the deframer of these tests lets through.
const MAX_LEN: usize = 1 << 20;

/// Every frame of `corpus/bad_frames.json` in every era, one after the other.
fn corpus() -> Vec<u8> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../corpus/bad_frames.json");
    let corpus: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let mut stream = Vec::new();
    for era in corpus["eras"].as_object().unwrap().values() {
        for line in era["open"].as_array().unwrap() {
            stream.extend_from_slice(line.as_str().unwrap().as_bytes());
            stream.push(b'\n');
        }
        for case in corpus["frames"].as_array().unwrap() {
            for part in case["send"].as_array().unwrap() {
                append_part(&mut stream, part, era);
            }
            stream.push(b'\n');
        }
    }
    stream
}

fn append_part(stream: &mut Vec<u8>, part: &Value, era: &Value) {
    if let Some(text) = part.as_str() {
        let text = text.replace("$rest", era["rest"].as_str().unwrap());
        let text = text.replace("$sleep", era["sleep"].as_str().unwrap_or_default());
        stream.extend_from_slice(text.as_bytes());
    } else if let Some(hex) = part["hex"].as_str() {
        let digits: Vec<char> = hex.chars().filter(char::is_ascii_hexdigit).collect();
        stream.extend(digits.chunks(2).map(|pair| {
            let digit = |digit: char| digit.to_digit(16).unwrap() as u8;
            digit(pair[0]) << 4 | digit(pair[1])
        }));
    } else {
        let count = part["count"].as_u64().unwrap_or(MAX_LEN as u64 + 1);
        stream.extend(
            part["repeat"]
                .as_str()
                .unwrap()
                .repeat(count as usize)
                .bytes(),
        );
    }
}

/// One message of each kind, plain and long, with both member orders.
fn stream() -> Vec<u8> {
    let long = "lorem \\\"ipsum\\\" 数据 \\u00e9 ".repeat(500);
    let deep = "[{\"a\":".repeat(90) + "1" + &"}]".repeat(90);
    [
        r#"{"jsonrpc":"2.0","id":123456,"method":"ping"}"#.to_owned(),
        r#"{"jsonrpc":"2.0","id":"a-7","method":"tools/call","params":{"name":"echo","uri":"file:///x","arguments":{"t":[1,2.5e3]},"_meta":{"progressToken":7,"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}"#.to_owned(),
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}"#.to_owned(),
        r#"{"jsonrpc":"2.0","id":8,"error":{"code":-32600,"message":"m","data":null}}"#.to_owned(),
        format!(r#"{{"result":{{"content":[{{"type":"text","text":"{long}"}}]}},"id":9,"jsonrpc":"2.0"}}"#),
        format!(r#"{{"jsonrpc":"2.0","id":10,"result":{{"d":{deep}}}}}"#),
    ]
    .join("\n")
    .into_bytes()
    .into_iter()
    .chain(*b"\n")
    .collect()
}

#[test]
fn a_warm_path_from_read_to_forward_allocates_nothing() {
    let stream = stream();
    let mut input = Input::new();
    let mut deframer = LineDeframer::new(1 << 20);
    let mut envelope = Envelope::new();
    let mut out = Vec::new();
    let mut seen = 0;
    let mut pass = || {
        out.clear();
        for chunk in stream.chunks(1000) {
            input.extend(chunk);
            while let Some(LineEvent::Frame(range)) = deframer.next(input.filled()) {
                let frame = Frame::new(&input.padded()[range.start..], range.len()).unwrap();
                decode(frame, 512, &mut envelope).unwrap();
                let message = MessageRef::new(frame, &envelope);
                assert_eq!(message.fault(), None);
                let routed = message.name().is_some() || message.method().is_some();
                seen += usize::from(routed || message.id().is_some());
                encode::with_id(&mut out, message, 4711_u64);
                out.push(b'\n');
            }
            input.consume(deframer.drain());
        }
    };
    pass();
    let before = COUNT.get();
    for _ in 0..50 {
        pass();
    }
    assert_eq!(COUNT.get() - before, 0);
    assert_eq!(seen, 51 * 6);
}

#[test]
fn the_whole_corpus_is_judged_and_answered_without_an_allocation() {
    let stream = [corpus(), stream()].concat();
    let mut input = Input::new();
    let mut deframer = LineDeframer::new(MAX_LEN);
    let mut envelope = Envelope::new();
    let mut out = Vec::new();
    let (mut forwarded, mut refused, mut oversize) = (0, 0, 0);
    let mut pass = || {
        out.clear();
        for chunk in stream.chunks(60_000) {
            input.extend(chunk);
            while let Some(event) = deframer.next(input.filled()) {
                let LineEvent::Frame(range) = event else {
                    oversize += 1;
                    continue;
                };
                let frame = Frame::new(&input.padded()[range.start..], range.len()).unwrap();
                let verdict = decode(frame, 512, &mut envelope);
                let message = MessageRef::new(frame, &envelope);
                if verdict.is_ok() && message.fault().is_none() {
                    forwarded += 1;
                    encode::with_id(&mut out, message, 4711_u64);
                } else {
                    refused += 1;
                    let id = message.id().map_or(ErrorId::Null, ErrorId::Id);
                    let code = message.fault().map_or(-32700, |fault| fault.code().into());
                    encode::error(&mut out, id, code, "refused", None);
                }
                out.push(b'\n');
            }
            input.consume(deframer.drain());
        }
    };
    pass();
    let before = COUNT.get();
    for _ in 0..3 {
        pass();
    }
    assert_eq!(COUNT.get() - before, 0);
    assert!(
        forwarded > 400 && refused > 400 && oversize > 12,
        "{forwarded} {refused} {oversize}"
    );
}

#[cfg(feature = "codec")]
#[test]
fn messages_of_the_codec_lie_where_they_arrived_and_allocate_nothing() {
    use bytes::BytesMut;
    use mcpbolt::message::framed::{DecodedLine, MessageCodec};
    use tokio_util::codec::Decoder;

    let mut held = BytesMut::from(&stream().repeat(50)[..]);
    let arrived = held.as_ptr_range();
    let mut codec = MessageCodec::new(MAX_LEN, 512);
    let mut next = || match codec.decode(&mut held).unwrap() {
        Some(DecodedLine::Message(message)) => Some(message),
        None => None,
        other => panic!("{other:?}"),
    };
    // From the first slice on the buffer is counted by its references.
    let first = next().unwrap();
    let before = COUNT.get();
    let mut seen = 1;
    while let Some(message) = next() {
        assert!(arrived.contains(&message.bytes().as_ptr()));
        seen += 1;
    }
    assert_eq!((COUNT.get() - before, seen), (0, 300));
    assert_eq!(first.as_ref().method().as_deref(), Some("ping"));
}
