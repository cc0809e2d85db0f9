//! A connection over each framing: lines, lengths (R-ACT-19), and whichever the first byte tells.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test: panicking is the report"
)]

use std::sync::Arc;
use std::time::Instant;

use mcpbolt::connection::{Batch, Connection, Framing};
use mcpbolt::frame::event_stream::EventStreamDeframer;
use mcpbolt::frame::{Deframer, Event, length};
use mcpbolt::handler::Executor;
use mcpbolt::limits::COPY_IN_BYTES;
use mcpbolt::server::{Registry, ServerHost};

const OPENING: [&str; 3] = [
    r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}"#,
    r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
    r#"{"jsonrpc":"2.0","id":2,"method":"ping"}"#,
];

/// Nobody calls.
struct Idle;

impl Executor for Idle {
    fn run(&mut self, _: Batch) {}
}

/// The messages of the client, framed.
fn framed(framing: Framing) -> Vec<u8> {
    let mut stream = Vec::new();
    for message in OPENING {
        match framing {
            Framing::Length => {
                assert!(length::append_prefix(&mut stream, message.len()));
                stream.extend_from_slice(message.as_bytes());
            }
            _ => stream.extend_from_slice(format!("{message}\n").as_bytes()),
        }
    }
    stream
}

/// The answers of a server with this framing to `stream`, and to a long notification.
fn answers(said: Framing, spoken: Framing, stream: &[u8], chunk: usize) -> Vec<String> {
    let now = Instant::now();
    let registry = Arc::new(Registry::new());
    let mut connection = Connection::new(Arc::new(registry.config("framing", "1")), now);
    let id = connection.open_stream(said);
    let handle = connection.handle();
    let mut host = ServerHost::new(registry, handle.clone(), Box::new(Idle));
    for part in stream.chunks(chunk) {
        connection.input(id).extend(part);
        connection.receive(id, now, &mut host);
    }
    let long = format!(r#"{{"data":"{}"}}"#, "x".repeat(2 * COPY_IN_BYTES));
    handle.notify("notifications/x", Some(&long)).unwrap();
    connection.handle_submissions(now, &mut host);
    connection.receive_end(id, now, &mut host);

    let output = connection.output(id);
    let mut written = Vec::new();
    while !output.is_empty() {
        written.extend_from_slice(output.head());
        output.advance(output.head().len());
    }
    let mut deframer = Deframer::new(spoken, 1 << 20);
    let mut seen = Vec::new();
    while let Some(event) = deframer.next(&written) {
        let Event::Frame(range) = event else {
            panic!("{event:?}");
        };
        seen.push(String::from_utf8(written[range].to_vec()).unwrap());
    }
    assert_eq!(deframer.drain(), written.len(), "nothing else was written");
    seen
}

#[test]
fn a_server_answers_in_the_framing_it_was_told_or_the_first_byte_tells() {
    let expected = answers(Framing::Line, Framing::Line, &framed(Framing::Line), 4096);
    let ids = expected.iter().map(|message| &message[..24]);
    assert_eq!(
        ids.collect::<Vec<_>>(),
        [
            r#"{"jsonrpc":"2.0","id":1,"#,
            r#"{"jsonrpc":"2.0","id":2,"#,
            r#"{"jsonrpc":"2.0","method"#
        ]
    );
    assert!(expected[2].len() > 2 * COPY_IN_BYTES);
    for spoken in [Framing::Line, Framing::Length] {
        for said in [spoken, Framing::Detect] {
            for chunk in [1, 3, 4096] {
                let seen = answers(said, spoken, &framed(spoken), chunk);
                assert_eq!(seen, expected, "{said:?}, {spoken:?} by {chunk}");
            }
        }
    }
}

/// R-STD-03.
#[test]
fn a_message_that_breaks_off_is_none_in_lengths_and_one_in_lines_if_it_is_whole() {
    let cut = |framing| {
        let stream = framed(framing);
        let end = stream.len() - 1;
        answers(Framing::Detect, framing, &stream[..end], 4096).len()
    };
    assert_eq!((cut(Framing::Line), cut(Framing::Length)), (3, 2));
}

/// R-STD-02: however lines end, whatever stands between them and however they arrive.
#[test]
fn lines_are_read_as_generously_as_they_are_written_strictly() {
    let strict = framed(Framing::Line);
    let expected = answers(Framing::Line, Framing::Line, &strict, 4096);
    let mut generous = "\u{feff}\r\n\n".to_owned();
    for line in String::from_utf8(strict).unwrap().lines() {
        generous += &format!("  {line}\t\r\n \r\n\n");
    }
    for chunk in [1, 2, 3, 4096] {
        let seen = answers(Framing::Line, Framing::Line, generous.as_bytes(), chunk);
        assert_eq!(seen, expected, "by {chunk}");
    }
}

/// A search that began anew with each byte would look at a million million of them.
#[test]
fn a_long_message_that_comes_byte_by_byte_is_searched_once() {
    const LEN: usize = 1 << 21;
    let text = vec![b'x'; LEN];
    let mut line = text.clone();
    line.push(b'\n');
    let mut length = Vec::new();
    assert!(length::append_prefix(&mut length, LEN));
    length.extend_from_slice(&text);
    for (framing, stream) in [(Framing::Line, line), (Framing::Length, length)] {
        let mut deframer = Deframer::new(framing, LEN);
        let (last, early) = (stream.len(), 1..stream.len());
        let events = early.filter_map(|there| deframer.next(&stream[..there]));
        assert_eq!(events.count(), 0, "{framing:?}");
        assert!(matches!(deframer.next(&stream), Some(Event::Frame(range)) if range.len() == LEN));
        assert_eq!(deframer.drain(), last);
    }
    let events = [&b"data: "[..], &text, b"\n\n"].concat();
    let mut deframer = EventStreamDeframer::new(events.len());
    for there in 1..events.len() {
        assert_eq!(deframer.next(&events[..there]), None);
    }
    assert!(deframer.next(&events).is_some());
}
