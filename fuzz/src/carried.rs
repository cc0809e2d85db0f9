//! Laws of the framings on sockets: event streams and WebSockets.

use mcpbolt::buffer::Input;
use mcpbolt::frame::event_stream::{Data, EventStreamDeframer, StreamEvent, append};
use mcpbolt::frame::websocket::{
    Control, Opcode, WebSocketError, WebSocketReader, append_control, append_head, finish_message,
    reserve_head,
};

use crate::random::Random;

/// The longest message in these laws, in bytes.
const MAX_LEN: usize = 2000;

/// An item read from an event stream, with copied bytes.
#[derive(Debug, PartialEq, Eq)]
enum Seen {
    Event(Option<Vec<u8>>, [Option<Vec<u8>>; 2], Option<u64>),
    Oversize,
}

/// Cuts a stream into pieces of these sizes, which repeat.
fn pieces<'a>(mut stream: &'a [u8], sizes: &'a [usize]) -> impl Iterator<Item = &'a [u8]> {
    let mut sizes = sizes.iter().cycle();
    std::iter::from_fn(move || {
        let size = (*sizes.next()?).clamp(1, stream.len().max(1));
        let (piece, rest) = stream.split_at_checked(size)?;
        stream = rest;
        Some(piece)
    })
}

fn events_in(stream: &[u8], sizes: &[usize]) -> Vec<Seen> {
    let mut deframer = EventStreamDeframer::new(MAX_LEN);
    let (mut held, mut seen) = (Vec::new(), Vec::new());
    for piece in pieces(stream, sizes) {
        held.extend_from_slice(piece);
        while let Some(event) = deframer.next(&held) {
            let own = |range: std::ops::Range<usize>| held[range].to_vec();
            seen.push(match event {
                StreamEvent::Oversize => Seen::Oversize,
                StreamEvent::Event {
                    data,
                    event,
                    id,
                    retry,
                } => {
                    let data = match data {
                        Data::None => None,
                        Data::Line(range) => Some(own(range)),
                        Data::Joined => {
                            let (padded, len) = deframer.joined();
                            Some(padded[..len].to_vec())
                        }
                    };
                    Seen::Event(data, [event.map(own), id.map(own)], retry)
                }
            });
        }
        held.drain(..deframer.drain());
        assert!(held.len() <= MAX_LEN + piece.len() + 4, "bytes pile up");
    }
    seen
}

/// An event stream is read the same however it is cut, and its buffer does not accumulate.
pub fn events(stream: &[u8], random: &mut Random) {
    let whole = events_in(stream, &[usize::MAX]);
    let sizes: Vec<_> = (0..5).map(|_| 1 + random.below(60)).collect();
    for sizes in [&[1][..], &[2], &[3, 1, 70], &sizes] {
        assert_eq!(
            events_in(stream, sizes),
            whole,
            "{sizes:?}: {}",
            stream.escape_ascii()
        );
    }
}

/// A text written as an event, after a comment, is read back unchanged from pieces of any size.
pub fn event_round_trip(text: &str, random: &mut Random) {
    let id = random.number().to_string();
    let data = &text.as_bytes()[..text.floor_char_boundary(MAX_LEN / 2)];
    let lines = String::from_utf8_lossy(data)
        .replace("\r\n", "\n")
        .replace('\r', "\n");
    let mut stream = b":\n\n".to_vec();
    append(&mut stream, Some("message"), Some(&id), data);
    let seen = events_in(&stream, &[1 + random.below(40)]);
    let [Seen::Event(found, [event, own], None)] = &seen[..] else {
        panic!("{seen:?} of {}", stream.escape_ascii());
    };
    assert_eq!(event.as_deref(), Some(&b"message"[..]));
    assert_eq!(own.as_deref(), Some(id.as_bytes()));
    assert_eq!(found.as_deref().unwrap_or_default(), lines.as_bytes());
}

type Frames = (Vec<u8>, Vec<Control>, Option<WebSocketError>);

fn frames_in(wire: &[u8], masked: bool, sizes: &[usize]) -> Frames {
    let mut reader = WebSocketReader::new(masked, MAX_LEN);
    let (mut input, mut messages) = (Input::new(), Input::new());
    let mut said = Vec::new();
    for piece in pieces(wire, sizes) {
        input.extend(piece);
        loop {
            match reader.read(&mut input, &mut messages) {
                Ok(Some(control)) => said.push(control),
                Ok(None) => break,
                Err(fault) => return (whole_in(&messages), said, Some(fault)),
            }
        }
        assert!(input.len() <= 14, "what was read piles up");
    }
    (whole_in(&messages), said, None)
}

/// The complete messages in length-prefixed input.
fn whole_in(messages: &Input) -> Vec<u8> {
    let all = messages.filled();
    let mut end = 0;
    while let Some(len) = all.get(end..).and_then(<[u8]>::first_chunk) {
        let len = u32::from_be_bytes(*len) as usize;
        assert!(len <= MAX_LEN, "longer than the limit");
        match all.get(end + 4..end + 4 + len) {
            Some(message) => {
                assert!(
                    std::str::from_utf8(message).is_ok(),
                    "a message that is no text"
                );
                end += 4 + len;
            }
            None => break,
        }
    }
    all[..end].to_vec()
}

/// WebSocket frames are read the same however they are cut, and a message is text within its limit.
pub fn frames(wire: &[u8], random: &mut Random) {
    let masked = random.below(2) == 0;
    let whole = frames_in(wire, masked, &[usize::MAX]);
    let sizes: Vec<_> = (0..5).map(|_| 1 + random.below(60)).collect();
    for sizes in [&[1][..], &[2], &[3, 1, 70], &sizes] {
        let found = frames_in(wire, masked, sizes);
        assert_eq!(found, whole, "{sizes:?}: {}", wire.escape_ascii());
    }
}

/// Texts written as frames are read back unchanged, with pings between the messages.
pub fn frame_round_trip(texts: [&str; 2], random: &mut Random) {
    let masked = random.below(2) == 0;
    let (mut wire, mut expected) = (Vec::new(), Vec::new());
    for text in texts {
        let text = &text[..text.floor_char_boundary(MAX_LEN)];
        append_control(&mut wire, Opcode::Ping, b"?", masked);
        let at = wire.len();
        reserve_head(&mut wire);
        wire.extend_from_slice(text.as_bytes());
        finish_message(&mut wire, at, masked);
        if !masked {
            append_head(&mut wire, text.len());
            wire.extend_from_slice(text.as_bytes());
        }
        for _ in 0..if masked { 1 } else { 2 } {
            expected.extend((text.len() as u32).to_be_bytes());
            expected.extend(text.as_bytes());
        }
    }
    let (messages, said, fault) = frames_in(&wire, masked, &[1 + random.below(200)]);
    assert_eq!((fault, said.len()), (None, 2), "{}", wire.escape_ascii());
    assert!(messages == expected, "{}", wire.escape_ascii());
    // After damage anywhere, every way of cutting still gives the same result.
    random.mutate(&mut wire);
    frames(&wire, random);
}
