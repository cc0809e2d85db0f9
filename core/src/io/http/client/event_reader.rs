//! Parses a stream of events as its pieces arrive, and keeps the position at which to resume it.

use std::time::Duration;

use bytes::Bytes;
use hyper::header::HeaderValue;

use crate::buffer::Input;
use crate::error::{CarrierError, CarrierFault};
use crate::frame::event_stream::{Data, EventStreamDeframer, StreamEvent};
use crate::io::Backoff;

/// Longest event id that is kept, in bytes: it is sent as a header.
const MAX_POSITION_BYTES: usize = 4096;

/// The shortest wait that a server can ask for: without one, a client would ask again as fast as the network allows.
const SHORTEST_RETRY: Duration = Duration::from_millis(50);

/// An event with content.
#[derive(Debug, PartialEq, Eq)]
pub enum ServerEvent<'a> {
    /// A JSON-RPC message, not validated (R-SSE-01).
    Message(&'a [u8]),
    /// The URI to POST messages to, in revision 2024-11-05 (R-LEG-02).
    Endpoint(&'a [u8]),
}

/// Reads one stream, over all the connections that it takes.
#[derive(Debug)]
pub struct EventReader {
    deframer: EventStreamDeframer,
    max_len: usize,
    /// The piece that arrived last, used in place while `held` is empty.
    piece: Bytes,
    /// Bytes of an incomplete event, from several pieces.
    held: Input,
    /// The id of the last event that had one.
    position: Option<HeaderValue>,
    /// Whether the position has changed since [`new_position`](Self::new_position) returned it.
    has_moved: bool,
    /// How soon to reconnect, as the server last said.
    retry: Option<Duration>,
    /// An event was longer than the limit, and a request may be waiting for it.
    overlong: bool,
    /// Whether events longer than the limit are skipped.
    skips: bool,
}

impl EventReader {
    /// Parses events of up to `max_len` bytes.
    pub fn new(max_len: usize) -> Self {
        Self {
            deframer: EventStreamDeframer::new(max_len),
            max_len,
            piece: Bytes::new(),
            held: Input::new(),
            position: None,
            has_moved: false,
            retry: None,
            overlong: false,
            skips: false,
        }
    }

    /// Skips events that are longer than allowed, instead of failing.
    pub fn skipping(self) -> Self {
        Self {
            skips: true,
            ..self
        }
    }

    /// Starts at a position that was reached earlier.
    pub fn from(self, position: HeaderValue) -> Self {
        Self {
            position: Some(position),
            ..self
        }
    }

    /// The error that makes the stream useless: an event was too long.
    pub fn fault(&self) -> Option<CarrierError> {
        let error = || CarrierError::new(CarrierFault::TooLong, "an event is longer than allowed");
        self.overlong.then(error)
    }

    /// Continues on another connection; an incomplete event arrives again.
    pub fn restart(&mut self) {
        self.deframer = EventStreamDeframer::new(self.max_len);
        self.held = Input::new();
        self.piece = Bytes::new();
    }

    /// The position to resume from, if the server has named one.
    pub fn position(&self) -> Option<&HeaderValue> {
        self.position.as_ref()
    }

    /// The position, if it has changed since the last call.
    pub fn new_position(&mut self) -> Option<&HeaderValue> {
        let moved = std::mem::take(&mut self.has_moved);
        self.position.as_ref().filter(|_| moved)
    }

    /// How long to wait before the stream is requested again, after `failures` attempts in a row that
    /// brought no event (R-SSE-08).
    pub fn wait(&self, failures: u32, backoff: &Backoff) -> Duration {
        let Some(retry) = self.retry else {
            return backoff.wait(failures + 1);
        };
        let retry = retry.max(SHORTEST_RETRY);
        let doubled = retry.saturating_mul(1 << failures.min(16));
        doubled.min(backoff.longest.max(retry))
    }

    /// Adds a piece that has arrived. Call [`next`](Self::next) until it returns `None`.
    pub fn push(&mut self, piece: Bytes) {
        match self.held.is_empty() {
            true => self.piece = piece,
            false => self.held.extend(&piece),
        }
    }

    /// The next event with content; `None` when more bytes must arrive.
    pub fn next(&mut self) -> Option<ServerEvent<'_>> {
        loop {
            let buf = match self.held.is_empty() {
                true => &self.piece[..],
                false => self.held.filled(),
            };
            let Some(event) = self.deframer.next(buf) else {
                self.keep();
                return None;
            };
            let StreamEvent::Event {
                data,
                event,
                id,
                retry,
            } = event
            else {
                self.overlong = !self.skips;
                continue;
            };
            if let Some(id) = id {
                let id = buf.get(id).unwrap_or_default();
                let fits = !id.is_empty() && id.len() <= MAX_POSITION_BYTES;
                let position = HeaderValue::from_bytes(id).ok().filter(|_| fits);
                self.has_moved |= position != self.position;
                self.position = position;
            }
            if let Some(retry) = retry {
                self.retry = Some(Duration::from_millis(retry));
            }
            let endpoint = match event.and_then(|event| buf.get(event)) {
                None | Some(b"" | b"message") => false,
                Some(b"endpoint") => true,
                Some(_) => continue,
            };
            // Borrowed again, since the borrow checker does not release `buf` where data is returned.
            let data = match data {
                Data::None => continue,
                Data::Line(line) if line.is_empty() => continue,
                Data::Line(line) => match self.held.is_empty() {
                    true => self.piece.get(line),
                    false => self.held.filled().get(line),
                },
                Data::Joined => {
                    let (joined, len) = self.deframer.joined();
                    joined.get(..len)
                }
            };
            let data = data.unwrap_or_default();
            return Some(match endpoint {
                true => ServerEvent::Endpoint(data),
                false => ServerEvent::Message(data),
            });
        }
    }

    /// Keeps the bytes of an incomplete event.
    fn keep(&mut self) {
        let done = self.deframer.drain();
        match self.held.is_empty() {
            true => {
                let piece = std::mem::take(&mut self.piece);
                self.held.extend(piece.get(done..).unwrap_or_default());
            }
            false => self.held.consume(done),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(stream: &'static [u8], cut: usize) -> (Vec<String>, Option<HeaderValue>, Duration) {
        let mut events = EventReader::new(100);
        let mut found = Vec::new();
        for piece in stream.chunks(cut) {
            events.push(Bytes::from_static(piece));
            while let Some(event) = events.next() {
                found.push(match event {
                    ServerEvent::Message(data) => String::from_utf8_lossy(data).into_owned(),
                    ServerEvent::Endpoint(data) => {
                        format!("post to {}", String::from_utf8_lossy(data))
                    }
                });
            }
        }
        let wait = events.wait(1, &Backoff::default());
        (found, events.position().cloned(), wait)
    }

    /// R-SSE-01, R-SSE-02, R-SSE-08.
    #[test]
    fn however_a_stream_is_cut_its_events_are_the_same() {
        let stream = b"\xef\xbb\xbf: hi\n\nid: 1\nretry: 70\ndata:\n\nevent: endpoint\ndata: /x\n\n\
            id: 2\ndata: {\ndata: }\n\nevent: other\ndata: no\n\nid: 3\r\ndata: {}\r\n\r\nid: 4\ndata: cut";
        for cut in 1..=stream.len() {
            let (found, position, wait) = read(stream, cut);
            assert_eq!(found, ["post to /x", "{\n}", "{}"], "in pieces of {cut}");
            assert_eq!(position, Some(HeaderValue::from_static("3")));
            assert_eq!(wait, Duration::from_millis(140));
        }
    }

    /// R-SSE-08: the wait is what the server asks for, within bounds.
    #[test]
    fn a_server_cannot_ask_for_no_wait() {
        for (retry, expected) in [(0, 50), (1, 50), (60, 60)] {
            let mut events = EventReader::new(100);
            events.push(Bytes::from(format!("retry: {retry}\n\n")));
            while events.next().is_some() {}
            let wait = events.wait(0, &Backoff::default());
            assert_eq!(wait, Duration::from_millis(expected), "{retry}");
        }
    }

    /// A longer id is not kept: the stream then has no position to go on from.
    #[test]
    fn ids_of_events_are_bounded_in_length() {
        for (len, is_kept) in [(MAX_POSITION_BYTES, true), (MAX_POSITION_BYTES + 1, false)] {
            let mut events = EventReader::new(usize::MAX);
            let id = "i".repeat(len);
            events.push(Bytes::from(format!(
                "id: 1\ndata: a\n\nid: {id}\ndata: b\n\n"
            )));
            while events.next().is_some() {}
            let expected = is_kept.then_some(&*id);
            let kept = events.position().map(|kept| kept.to_str().unwrap());
            assert_eq!(kept, expected, "{len}");
        }
    }
}
