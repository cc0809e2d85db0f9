//! Laws for every input.

use mcpbolt::buffer::PADDING;
use mcpbolt::frame::line::{LineDeframer, LineEvent};
use mcpbolt::json::{self, JsonStr, reader, string, writer};
use mcpbolt::message::{
    Envelope, Fault, Field, Frame, Kind, Message, MessageRef, OwnedId, batch, decode, encode,
};
use mcpbolt::scan::{Isa, scalar};

use crate::oracle;
use crate::random::Random;

/// Deep enough for every input that is generated.
const DEPTH: usize = 1024;

/// The kernels that this processor supports.
pub fn kernels() -> impl Iterator<Item = Isa> {
    Isa::ALL.into_iter().filter(|isa| isa.is_available())
}

/// Every kernel accepts a text exactly if serde_json accepts it.
pub fn grammar(bytes: &[u8]) {
    let expected = oracle::accepts(bytes);
    for isa in kernels() {
        isa.choose();
        let verdict = json::validate(bytes, DEPTH);
        let shown = String::from_utf8_lossy(bytes);
        let too_deep = verdict.is_err_and(|e| e.kind == json::DecodeErrorKind::TooDeep);
        assert!(
            too_deep || verdict.is_ok() == expected,
            "{isa:?} {verdict:?}: {shown}"
        );
    }
}

/// A frame decodes to the members that serde_json finds, with any bytes after it.
pub fn message(bytes: &[u8]) {
    let mut first: Option<(Result<(), json::DecodeError>, Envelope)> = None;
    for (isa, filler) in kernels().zip([0u8, b'"', b'}', b'5'].into_iter().cycle()) {
        isa.choose();
        let mut block = bytes.to_vec();
        block.resize(bytes.len() + PADDING, filler);
        let mut envelope = Envelope::new();
        let frame = Frame::new(&block, bytes.len()).expect("the block is padded");
        let verdict = decode(frame, DEPTH, &mut envelope);
        match &first {
            None => first = Some((verdict, envelope)),
            Some(first) => assert_eq!(*first, (verdict, envelope), "{isa:?}"),
        }
        if verdict.is_ok() {
            agrees(frame, &envelope);
        } else if verdict != json::validate(bytes, DEPTH) {
            // Plain validation may differ only in the depth that it counts from.
            let shown = String::from_utf8_lossy(bytes);
            panic!(
                "{verdict:?} but {:?}: {shown}",
                json::validate(bytes, DEPTH)
            );
        }
    }
}

fn agrees(frame: Frame<'_>, envelope: &Envelope) {
    let text = std::str::from_utf8(frame.bytes()).expect("accepted frames are UTF-8");
    let view = MessageRef::new(frame, envelope);
    assert_eq!(view.detach().as_ref().envelope(), envelope);
    if view.kind() == Kind::Batch {
        let expected = oracle::elements(text);
        assert!(
            reader::elements(text).eq(expected.iter().copied()),
            "{text}"
        );
        let found = batch(frame).map(|frame| frame.bytes());
        assert!(
            found.eq(expected.iter().map(|raw| raw.as_bytes())),
            "{text}"
        );
    }
    if let Some(expected) = oracle::members(text) {
        let found = reader::members(text).map(|(_, value)| value);
        assert!(found.eq(expected.iter().map(|(_, value)| *value)), "{text}");
    }
    let Some(expected) = oracle::classify(text) else {
        return;
    };
    if view.fault() == Some(Fault::EscapedMember) {
        assert!(text.contains('\\'), "{text}");
        return;
    }
    assert_eq!(view.kind(), expected.kind, "{text}");
    let repeated = view.fault() == Some(Fault::DuplicateMember);
    assert_eq!(repeated, expected.repeated, "{text}");
    // In a message refused for a repetition, members spelled with escapes are not recorded.
    if repeated && text.contains('\\') {
        return;
    }
    for (field, raw) in expected.fields {
        assert_eq!(view.raw(field), Some(raw), "{field:?} in {text}");
    }
}

/// Every kernel finds the ends of strings and containers, and escapes text, as the scalar one does, from
/// every offset.
pub fn kernel_twins(bytes: &[u8]) {
    for isa in kernels() {
        let offsets = (0..bytes.len().min(70)).chain(bytes.len().saturating_sub(70)..bytes.len());
        for pos in offsets {
            let expected = scalar::string_end(bytes, pos);
            assert_eq!(
                isa.string_end(bytes, pos),
                expected,
                "{isa:?} at {pos}: {bytes:?}"
            );
            let expected = scalar::container_end(bytes, pos);
            let found = isa.container_end(bytes, pos);
            assert_eq!(found, expected, "{isa:?} at {pos}: {bytes:?}");
        }
        let text = String::from_utf8_lossy(bytes);
        let (mut expected, mut found) = (b">".to_vec(), b">".to_vec());
        scalar::escape_into(&mut expected, text.as_bytes());
        isa.escape_into(&mut found, &text);
        assert_eq!(found, expected, "{isa:?}: {text}");
    }
}

/// Both the engine and serde_json read escaped text back unchanged.
pub fn escaping(text: &str) {
    let mut token = Vec::new();
    string::append(&mut token, text);
    let token = String::from_utf8(token).expect("escaping keeps UTF-8");
    assert_eq!(token, serde_json::to_string(text).unwrap());
    let string = JsonStr::from_token(&token).expect("a token");
    assert_eq!(string.decode().unwrap(), text);
    assert!(string == text);
    assert!(json::validate(token.as_bytes(), 0).is_ok());
}

/// A string token decodes as with serde_json, or both refuse it.
pub fn unescaping(token: &str) {
    let Some(string) = JsonStr::from_token(token) else {
        return;
    };
    if json::validate(token.as_bytes(), 0).is_ok() {
        let expected = serde_json::from_str::<String>(token).ok();
        assert_eq!(
            string.decode().ok().as_deref(),
            expected.as_deref(),
            "{token}"
        );
    }
}

/// An encoded message is one line, and decodes to the same parts.
pub fn round_trip(id: u64, text: &str, value: &str) {
    let params = format!("{{\"v\":{value}}}");
    let owned = OwnedId::from(text);
    let mut out = Vec::new();
    let check = |out: &mut Vec<u8>, kind, field, raw: Option<&str>| {
        assert!(!out.contains(&b'\n') && !out.contains(&b'\r'));
        let message = Message::parse(out, DEPTH).expect("encoded messages are JSON");
        assert_eq!(
            message.as_ref().kind(),
            kind,
            "{}",
            String::from_utf8_lossy(out)
        );
        let mut compact = Vec::new();
        writer::append_compact(&mut compact, raw.unwrap_or_default());
        assert_eq!(
            message.as_ref().raw_bytes(field).unwrap_or_default(),
            compact
        );
        out.clear();
        message
    };
    encode::request(&mut out, id, text, Some(&params));
    let message = check(&mut out, Kind::Request, Field::Params, Some(&params));
    assert_eq!(message.as_ref().id().and_then(|id| id.as_u64()), Some(id));
    assert_eq!(message.as_ref().method().as_deref(), Some(text));
    forwarding(&message, id);
    let raw: &serde_json::value::RawValue = serde_json::from_str(&params).unwrap();
    encode::request_value(&mut out, id, text, raw).unwrap();
    check(&mut out, Kind::Request, Field::Params, Some(&params));
    encode::notification_value(&mut out, text, raw).unwrap();
    check(&mut out, Kind::Notification, Field::Params, Some(&params));
    encode::response_value(&mut out, id, raw).unwrap();
    check(&mut out, Kind::Response, Field::Result, Some(&params));
    encode::notification(&mut out, text, None);
    check(&mut out, Kind::Notification, Field::Params, None);
    if owned.as_ref().raw().len() > mcpbolt::limits::MAX_ID_BYTES {
        return;
    }
    encode::response(&mut out, &owned, &params);
    let message = check(&mut out, Kind::Response, Field::Result, Some(&params));
    assert_eq!(
        message.as_ref().id().map(|id| id.to_owned()),
        Some(owned.clone())
    );
    for error_id in [
        encode::ErrorId::Id(owned.as_ref()),
        encode::ErrorId::Null,
        encode::ErrorId::Omit,
    ] {
        encode::error(&mut out, error_id, id as i64, text, Some(value));
        check(&mut out, Kind::Error, Field::Result, None);
    }
}

/// A forwarded message differs only in its id, whether spliced or rewritten in place.
pub fn forwarding(message: &Message, id: u64) {
    let Some(own) = message.as_ref().id() else {
        return;
    };
    let mut out = Vec::new();
    encode::with_id(&mut out, message.as_ref(), id);
    let spliced = Message::parse(&out, DEPTH).unwrap();
    assert_eq!(spliced.as_ref().id().and_then(|id| id.as_u64()), Some(id));
    let mut back = Vec::new();
    encode::with_id(&mut back, spliced.as_ref(), own);
    assert_eq!(back, message.bytes());
    let mut bytes = message.bytes().to_vec();
    let mut envelope = *message.as_ref().envelope();
    if encode::rewrite_id(&mut bytes, &mut envelope, id) {
        let rewritten = Message::parse(&bytes, DEPTH).unwrap();
        assert_eq!(rewritten.as_ref().envelope(), &envelope);
        assert_eq!(rewritten.as_ref().id().and_then(|id| id.as_u64()), Some(id));
    } else {
        assert_eq!(bytes, message.bytes());
        assert!(id.to_string().len() > own.raw().len());
    }
}

/// An item that [`lines`] reads: a whole line, or a refusal.
#[derive(Debug, PartialEq, Eq)]
pub enum Line {
    /// A message.
    Frame(Vec<u8>),
    /// The first bytes of a message that was too long.
    Oversize(Vec<u8>),
}

/// The lines of a stream that arrives in `chunks`.
pub fn split<'a>(chunks: impl IntoIterator<Item = &'a [u8]>, max_len: usize) -> Vec<Line> {
    drained(chunks, max_len, usize::MAX)
}

/// Like `split`, but drops delivered bytes after every `often` events.
fn drained<'a>(
    chunks: impl IntoIterator<Item = &'a [u8]>,
    max_len: usize,
    often: usize,
) -> Vec<Line> {
    let mut deframer = LineDeframer::new(max_len);
    let mut held: Vec<u8> = Vec::new();
    let mut seen = Vec::new();
    let own = |event, held: &[u8]| match event {
        LineEvent::Frame(range) => Line::Frame(held[range].to_vec()),
        LineEvent::Oversize { prefix } => Line::Oversize(held[prefix].to_vec()),
    };
    for chunk in chunks {
        held.extend_from_slice(chunk);
        while let Some(event) = deframer.next(&held) {
            seen.push(own(event, &held));
            if seen.len().is_multiple_of(often) {
                held.drain(..deframer.drain());
            }
        }
        held.drain(..deframer.drain());
        assert!(held.len() <= max_len + 4 + chunk.len(), "bytes pile up");
    }
    if let Some(event) = deframer.finish(&held) {
        seen.push(own(event, &held));
    }
    seen
}

/// A stream yields the same lines however it is cut, equal to those of a plain split.
pub fn lines(stream: &[u8], max_len: usize, random: &mut Random) {
    let whole = split([stream], max_len);
    let plain = stream.strip_prefix(b"\xef\xbb\xbf").unwrap_or(stream);
    let expected: Vec<_> = plain
        .split(|&byte| byte == b'\n')
        .map(|line| line.strip_suffix(b"\r").unwrap_or(line))
        .filter(|line| !line.iter().all(|byte| b" \t\r".contains(byte)) || line.len() > max_len)
        .filter(|line| !line.is_empty())
        .collect();
    let compare = |seen: &[Line]| {
        assert_eq!(seen.len(), expected.len(), "{seen:?} {expected:?}");
        for (line, expected) in seen.iter().zip(&expected) {
            match line {
                Line::Frame(bytes) => assert_eq!(bytes, expected),
                Line::Oversize(bytes) => {
                    assert!(expected.len() > max_len && expected.starts_with(bytes));
                }
            }
        }
    };
    compare(&whole);
    compare(&split(stream.chunks(1), max_len));
    compare(&drained([stream], max_len, 1));
    compare(&drained(stream.chunks(70), max_len, 2));
    let mut rest = stream;
    let mut parts = Vec::new();
    while !rest.is_empty() {
        let (part, next) = rest.split_at(1 + random.below(rest.len()));
        parts.push(part);
        rest = next;
    }
    compare(&split(parts, max_len));
}
