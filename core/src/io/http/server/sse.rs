//! Messages as a stream of server-sent events. The writer of the body drives the stream.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use smallvec::smallvec;
use tokio::time::{Instant, Sleep};

use crate::io::http::message_bytes::MessageBytes;
use crate::json::number;
use crate::limits::COPY_IN_BYTES;

/// A comment, which clients ignore (R-HTP-16).
const COMMENT: &[u8] = b":\n\n";

/// The position of a reader in a session: the stream, and how many of its messages have been read
/// (R-SSE-03).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamPosition {
    pub stream: u64,
    pub read: u64,
}

impl StreamPosition {
    pub fn parse(id: &str) -> Option<Self> {
        let (stream, read) = parse_id(id)?;
        let stream = parse_number(stream)?;
        Some(Self { stream, read })
    }

    pub fn append(self, out: &mut Vec<u8>) {
        number::append(out, self.stream);
        append_read(out, self.read);
    }
}

/// Splits the id of an event into the name of its stream and the number of messages read.
pub fn parse_id(id: &str) -> Option<(&str, u64)> {
    let (stream, read) = id.rsplit_once('_')?;
    Some((stream, parse_number(read)?))
}

fn parse_number(text: &str) -> Option<u64> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| digits)
}

fn append_read(out: &mut Vec<u8>, read: u64) {
    out.push(b'_');
    number::append(out, read);
}

/// Writes messages as events (R-SSE-01). Long pieces are not copied.
#[derive(Debug, Default)]
pub struct SseEncoder {
    small: Vec<u8>,
    out: VecDeque<Bytes>,
    /// Bytes in `out`.
    long: usize,
}

impl SseEncoder {
    /// Writes one message; `id` is the position after it.
    pub fn event(&mut self, id: Option<StreamPosition>, message: &MessageBytes) {
        if let Some(id) = id {
            self.small.extend_from_slice(b"id: ");
            id.append(&mut self.small);
            self.small.push(b'\n');
        }
        self.data(message);
        self.small.push(b'\n');
    }

    fn data(&mut self, message: &MessageBytes) {
        self.small.extend_from_slice(b"data: ");
        for piece in message {
            match piece.len() > COPY_IN_BYTES {
                true => {
                    self.seal();
                    self.long += piece.len();
                    self.out.push_back(piece.clone());
                }
                false => self.small.extend_from_slice(piece),
            }
        }
        self.small.push(b'\n');
    }

    /// Writes one message of an action, as a named event (R-ACT-24). `stream` is the stream's name and
    /// the number of messages read after this one. The id comes last, so that a client that looks only
    /// for the fields that the dialect defines finds them in their order.
    pub fn message(&mut self, stream: Option<(&str, u64)>, message: &MessageBytes) {
        self.small.extend_from_slice(b"event: message\n");
        self.data(message);
        if let Some((name, read)) = stream {
            self.small.extend_from_slice(b"id: ");
            self.small.extend_from_slice(name.as_bytes());
            append_read(&mut self.small, read);
            self.small.push(b'\n');
        }
        self.small.push(b'\n');
    }

    /// Tells the client how soon to reconnect when the stream ends, as part of the next event
    /// (R-SSE-07).
    pub fn retry(&mut self, retry: Duration) {
        self.small.extend_from_slice(b"retry: ");
        number::append(&mut self.small, retry.as_millis() as u64);
        self.small.push(b'\n');
    }

    /// Writes the URI to POST messages to (R-LEG-02).
    pub fn endpoint(&mut self, uri: &str) {
        self.small.extend_from_slice(b"event: endpoint\n");
        self.event(None, &smallvec![Bytes::copy_from_slice(uri.as_bytes())]);
    }

    /// Writes an event that carries only a position (R-SSE-06).
    pub fn position(&mut self, id: StreamPosition) {
        self.event(Some(id), &MessageBytes::new());
    }

    /// Whether enough is written for one turn.
    pub fn is_full(&self) -> bool {
        self.small.len() + self.long >= TURN_BYTES
    }

    fn seal(&mut self) {
        if !self.small.is_empty() {
            self.long += self.small.len();
            self.out.push_back(std::mem::take(&mut self.small).into());
        }
    }

    /// Takes everything that was written.
    pub fn finish(mut self) -> VecDeque<Bytes> {
        self.seal();
        self.out
    }
}

/// Bytes that are encoded before the source is read again; further output is subject to the engine's
/// limits.
const TURN_BYTES: usize = 64 << 10;

/// A source of events.
pub trait SseSource: Send {
    /// Writes available events until the encoder is full. `Ready` means that nothing more will come.
    /// After `Pending` it is called again when its output has been written, or when it wakes the task.
    fn poll_events(&mut self, encoder: &mut SseEncoder, cx: &mut Context<'_>) -> Poll<()>;
}

/// The body of an answer that consists of several messages.
pub struct SseEvents {
    source: Box<dyn SseSource>,
    ready: VecDeque<Bytes>,
    comment_interval: Duration,
    silence: Pin<Box<Sleep>>,
}

impl SseEvents {
    /// Sends a comment after each silence of `comment_interval`.
    pub fn new(source: impl SseSource + 'static, comment_interval: Duration) -> Self {
        Self {
            source: Box::new(source),
            ready: VecDeque::new(),
            comment_interval,
            silence: Box::pin(tokio::time::sleep(comment_interval)),
        }
    }

    /// The next piece; `None` at the end.
    pub fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        if self.ready.is_empty() {
            let mut encoder = SseEncoder::default();
            let over = self.source.poll_events(&mut encoder, cx).is_ready();
            self.ready = encoder.finish();
            if self.ready.is_empty() {
                if over {
                    return Poll::Ready(None);
                }
                std::task::ready!(self.silence.as_mut().poll(cx));
                self.ready.push_back(Bytes::from_static(COMMENT));
            }
        }
        let next = Instant::now() + self.comment_interval;
        self.silence.as_mut().reset(next);
        Poll::Ready(self.ready.pop_front())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::event_stream::{Data, EventStreamDeframer, StreamEvent};
    use crate::io::http::message_bytes::messages;

    /// R-SSE-01: an event stream parser finds the same messages, however the lines are cut.
    #[test]
    fn lines_become_events() {
        let long = format!("{{\"x\":\"{}\"}}", "y".repeat(100_000));
        let lines = format!("{{\"a\":1}}\n{long}\n{{}}\n");
        let whole = Bytes::from(lines.clone());
        for cut in [0, 1, 7, 8, 9, 50, 70_000, lines.len() - 1] {
            let pieces = [whole.slice(..cut), whole.slice(cut..)];
            let mut encoder = SseEncoder::default();
            for (read, message) in (1..).zip(messages(pieces.into_iter())) {
                encoder.event(Some(StreamPosition { stream: 7, read }), &message);
            }
            let written: Vec<u8> = encoder.finish().into_iter().flatten().collect();
            let mut deframer = EventStreamDeframer::new(1 << 20);
            let mut found = Vec::new();
            while let Some(event) = deframer.next(&written) {
                let StreamEvent::Event {
                    data: Data::Line(data),
                    id: Some(id),
                    ..
                } = event
                else {
                    panic!("{event:?}")
                };
                found.push((&written[id], &written[data]));
            }
            let expected: [(&[u8], &[u8]); 3] = [
                (b"7_1", b"{\"a\":1}"),
                (b"7_2", long.as_bytes()),
                (b"7_3", b"{}"),
            ];
            assert_eq!(found, expected, "cut at {cut}");
        }
    }

    /// R-SSE-03: positions are parsed as they are written.
    #[test]
    fn positions_are_read_as_they_are_written() {
        for (stream, read) in [(0, 0), (7, 12), (u64::MAX, u64::MAX)] {
            let position = StreamPosition { stream, read };
            let mut id = Vec::new();
            position.append(&mut id);
            let id = String::from_utf8(id).unwrap();
            assert_eq!(StreamPosition::parse(&id), Some(position), "{id}");
        }
        for wrong in [
            "",
            "1",
            "_",
            "1_",
            "_1",
            "+1_2",
            "1_2_3",
            "1_18446744073709551616",
        ] {
            assert_eq!(StreamPosition::parse(wrong), None, "{wrong}");
        }
    }
}
