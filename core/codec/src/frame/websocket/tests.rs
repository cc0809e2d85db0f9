//! Tests that the reader decodes written frames, however the bytes are split.

use super::*;
use crate::frame::Event;
use crate::frame::length::LengthDeframer;

/// The messages and control frames in order, and the code of the fault at the end, if any.
fn read(wire: &[u8], step: usize, masked: bool, max_len: usize) -> (Vec<String>, Option<u16>) {
    let mut reader = WebSocketReader::new(masked, max_len);
    let (mut input, mut messages) = (Input::new(), Input::new());
    let mut lengths = LengthDeframer::new(max_len);
    let mut seen = Vec::new();
    for chunk in wire.chunks(step) {
        input.extend(chunk);
        loop {
            let outcome = reader.read(&mut input, &mut messages);
            while let Some(Event::Frame(range)) = lengths.next(messages.filled()) {
                seen.push(String::from_utf8(messages.filled()[range].to_vec()).unwrap());
            }
            messages.consume(lengths.drain());
            match outcome {
                Ok(None) => break,
                Ok(Some(Control::Ping(payload))) => {
                    seen.push(format!("ping {:?}", payload.as_bytes()));
                }
                Ok(Some(control)) => seen.push(format!("{control:?}")),
                Err(fault) => return (seen, Some(fault.code)),
            }
        }
    }
    (seen, None)
}

fn message(out: &mut Vec<u8>, text: &str, masked: bool) {
    let at = out.len();
    reserve_head(out);
    out.extend_from_slice(text.as_bytes());
    finish_message(out, at, masked);
}

#[test]
fn messages_of_every_length_come_as_they_were_written() {
    for masked in [false, true] {
        let texts = [1, 2, 125, 126, 127, 65_535, 65_536, 70_000]
            .map(|len| "ä{}[]漢𝄞".chars().cycle().take(len).collect::<String>());
        let mut wire = Vec::new();
        for text in &texts {
            message(&mut wire, text, masked);
            append_control(&mut wire, Opcode::Ping, b"p", masked);
        }
        let expected: Vec<_> = texts
            .iter()
            .flat_map(|text| [text.clone(), "ping [112]".into()])
            .collect();
        for step in [1, 3, 1000, usize::MAX] {
            let (seen, fault) = read(&wire, step, masked, 1 << 20);
            assert_eq!(fault, None);
            assert!(seen == expected, "cut at {step}");
        }
    }
}

#[test]
fn long_messages_may_travel_apart_from_their_heads() {
    for len in [5, 200, 70_000] {
        let text = "x".repeat(len);
        let (mut whole, mut apart) = (Vec::new(), Vec::new());
        message(&mut whole, &text, false);
        append_head(&mut apart, len);
        apart.extend_from_slice(text.as_bytes());
        assert!(whole == apart, "{len}");
    }
}

#[test]
fn masks_differ_and_hide_the_text() {
    let mut wire = Vec::new();
    message(&mut wire, "secret", true);
    message(&mut wire, "secret", true);
    let (first, second) = wire.split_at(wire.len() / 2);
    assert_ne!(first, second);
    assert!(!wire.windows(6).any(|window| window == b"secret"));
}

/// RFC 6455, 5.4, 5.5, 7.4, 8.1; R-WSK-07: frames of a server, so that they can be read here.
#[test]
fn frames_are_taken_or_refused_as_the_rfc_says() {
    let long = [&[0x81, 126, 0, 200][..], &[b'x'; 200]].concat();
    for (name, wire, seen, fault) in [
        ("an empty text", &[0x81, 0][..], &[][..], None),
        (
            "fragments",
            &[1, 1, b'a', 0, 0, 0x80, 1, b'b'],
            &["ab"],
            None,
        ),
        (
            "a ping between fragments",
            &[1, 1, b'a', 0x89, 1, 7, 0x80, 1, b'b'],
            &["ping [7]", "ab"],
            None,
        ),
        ("a pong", &[0x8a, 1, 0], &["Pong"], None),
        ("a close", &[0x88, 0], &["Close(None)"], None),
        (
            "a close with code",
            &[0x88, 2, 3, 232],
            &["Close(Some(1000))"],
            None,
        ),
        (
            "a close of an application",
            &[0x88, 2, 0x0f, 0xa0],
            &["Close(Some(4000))"],
            None,
        ),
        ("half a code", &[0x88, 1, 3], &[], Some(1002)),
        ("a code for no wire", &[0x88, 2, 3, 0xed], &[], Some(1002)),
        (
            "a reason in Latin-1",
            &[0x88, 3, 3, 232, 0xe4],
            &[],
            Some(1007),
        ),
        (
            "a length that says too much",
            &[0x81, 126, 0, 1, b'a'],
            &["a"],
            None,
        ),
        ("bytes", &[0x82, 1, 0], &[], Some(1003)),
        ("a reserved bit", &[0xc1, 1, b'a'], &[], Some(1002)),
        ("an unknown kind", &[0x83, 0], &[], Some(1002)),
        ("an unknown control", &[0x8b, 0], &[], Some(1002)),
        ("a ping in fragments", &[9, 0], &[], Some(1002)),
        ("a long ping", &[0x89, 126, 0, 126], &[], Some(1002)),
        (
            "a mask of a server",
            &[0x81, 0x81, 1, 2, 3, 4, 0],
            &[],
            Some(1002),
        ),
        ("nothing to continue", &[0x80, 1, b'a'], &[], Some(1002)),
        (
            "a message in a message",
            &[1, 1, b'a', 0x81, 1, b'b'],
            &[],
            Some(1002),
        ),
        (
            "a length of 64 bits",
            &[0x81, 127, 255, 0, 0, 0, 0, 0, 0, 0],
            &[],
            Some(1002),
        ),
        (
            "a text in Latin-1",
            &[0x81, 1, b'a', 0x81, 2, b'b', 0xe4],
            &["a"],
            Some(1007),
        ),
        ("half a character", &[0x81, 1, 0xc3], &[], Some(1007)),
        (
            "a character in two",
            &[1, 1, 0xc3, 0x80, 1, 0xa4],
            &["ä"],
            None,
        ),
        ("a surrogate", &[0x81, 3, 0xed, 0xa0, 0x80], &[], Some(1007)),
        ("too long", &long, &[], Some(1009)),
        (
            "too long as claimed",
            &[0x81, 127, 0, 1, 0, 0, 0, 0, 0, 0],
            &[],
            Some(1009),
        ),
        ("too long together", &[1, 60][..], &[], None),
    ] {
        for step in [1, 2, 5, usize::MAX] {
            let (found, code) = read(wire, step, false, 100);
            assert_eq!(
                (&found[..], code),
                (
                    &seen.iter().map(|s| (*s).to_owned()).collect::<Vec<_>>()[..],
                    fault
                ),
                "{name}"
            );
        }
    }
    let fragments = [&[1, 60][..], &[b'x'; 60], &[0x80, 60], &[b'x'; 60]].concat();
    assert_eq!(read(&fragments, 7, false, 100), (Vec::new(), Some(1009)));
    assert_eq!(
        read(&[0x81, 1, b'a'], 1, true, 100),
        (Vec::new(), Some(1002))
    );
}
