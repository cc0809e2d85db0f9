//! Server-sent events (WHATWG HTML, "Server-sent events"). Accepts LF, CRLF and CR line ends in any
//! mix, input split anywhere, several data lines, comments and a byte order mark.

use std::ops::Range;

use smallvec::SmallVec;

use crate::buffer::PADDING;

/// Splits a `text/event-stream` into events. The bytes of an event stay in the caller's buffer
/// until it is complete; each byte is searched once.
///
/// ```text
///   buf: | delivered | id: 7 ⏎ data: {…} ⏎ | data: … not yet searched
///        0           start                  line   searched
/// ```
#[derive(Clone, Debug)]
pub struct EventStreamDeframer {
    max_len: usize,
    start: usize,
    line: usize,
    searched: usize,
    /// Whether the byte before `line` was a CR, so that an LF at `line` belongs to the same line
    /// end.
    after_cr: bool,
    begun: bool,
    discarding: bool,
    fields: Fields,
    joined: Vec<u8>,
}

/// The ranges of an event's fields. Nearly every MCP event has one data line, so up to two are
/// stored inline and need no allocation.
#[derive(Clone, Debug, Default)]
struct Fields {
    data: SmallVec<[Range<usize>; 2]>,
    event: Option<Range<usize>>,
    id: Option<Range<usize>>,
    retry: Option<u64>,
}

/// An event of the deframer; ranges refer to the bytes passed in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StreamEvent {
    /// A server-sent event.
    Event {
        /// The event's data.
        data: Data,
        /// The event's type, if it names one.
        event: Option<Range<usize>>,
        /// The event id to resume after, if present.
        id: Option<Range<usize>>,
        /// The requested reconnection time, in milliseconds.
        retry: Option<u64>,
    },
    /// An event is longer than the limit. Reported once; the rest of the event is discarded.
    Oversize,
}

/// The data of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Data {
    /// No data: the event only carries an id, a type or a reconnection time.
    None,
    /// One line, as a range.
    Line(Range<usize>),
    /// Several lines, joined by LF: see [`EventStreamDeframer::joined`], valid until the next
    /// event.
    Joined,
}

const BOM: &[u8] = b"\xef\xbb\xbf";

impl EventStreamDeframer {
    /// A deframer for events of at most `max_len` bytes, including field names and line ends.
    pub fn new(max_len: usize) -> Self {
        Self {
            max_len,
            start: 0,
            line: 0,
            searched: 0,
            after_cr: false,
            begun: false,
            discarding: false,
            fields: Fields::default(),
            joined: Vec::new(),
        }
    }

    /// The next event in `buf`, which holds all bytes not yet consumed; `None` when more are
    /// needed.
    pub fn next(&mut self, buf: &[u8]) -> Option<StreamEvent> {
        loop {
            if self.after_cr && self.line < buf.len() {
                self.after_cr = false;
                if buf.get(self.line) == Some(&b'\n') {
                    self.line += 1;
                    self.searched = self.searched.max(self.line);
                    if self.is_fresh() {
                        self.start = self.line;
                    }
                }
            }
            let found = memchr::memchr2(b'\n', b'\r', buf.get(self.searched..)?);
            let end = self.searched + found.unwrap_or(buf.len() - self.searched);
            if end - self.start > self.max_len && !self.discarding {
                self.discarding = true;
                self.fields = Fields::default();
                return Some(StreamEvent::Oversize);
            }
            self.searched = end;
            if found.is_none() {
                if self.discarding {
                    self.forget_line_but_its_presence(buf);
                }
                return None;
            }
            let line = self.line..end;
            self.after_cr = buf.get(end) == Some(&b'\r');
            self.line = end + 1;
            self.searched = self.line;
            if line.is_empty() {
                if let Some(event) = self.dispatch(buf) {
                    return Some(event);
                }
            } else if self.discarding {
                self.start = self.line;
            } else {
                self.field(buf, line);
            }
        }
    }

    /// Whether no field of the current event has been seen yet.
    fn is_fresh(&self) -> bool {
        let fields = &self.fields;
        fields.data.is_empty()
            && fields.event.is_none()
            && fields.id.is_none()
            && fields.retry.is_none()
    }

    /// While discarding, keeps one byte of an unfinished line, so that the line does not look
    /// blank.
    fn forget_line_but_its_presence(&mut self, buf: &[u8]) {
        if buf.len() > self.line {
            self.line = buf.len() - 1;
        }
        self.start = self.line;
    }

    /// Records the field of a line that is not blank.
    fn field(&mut self, buf: &[u8], mut line: Range<usize>) {
        let text = |line: &Range<usize>| buf.get(line.clone()).unwrap_or_default();
        if !std::mem::replace(&mut self.begun, true) && text(&line).starts_with(BOM) {
            line.start += BOM.len();
        }
        let colon = memchr::memchr(b':', text(&line));
        let name = line.start..line.start + colon.unwrap_or(line.len());
        let mut value = (name.end + usize::from(colon.is_some())).min(line.end)..line.end;
        if text(&value).first() == Some(&b' ') {
            value.start += 1;
        }
        match text(&name) {
            b"data" => self.fields.data.push(value),
            b"event" => self.fields.event = Some(value),
            b"id" if !text(&value).contains(&0) => self.fields.id = Some(value),
            b"retry" => {
                // `parse` would accept a sign, but the format does not.
                let digits = text(&value).first().is_some_and(u8::is_ascii_digit);
                let number = std::str::from_utf8(text(&value)).ok();
                self.fields.retry = number.filter(|_| digits).and_then(|text| text.parse().ok());
            }
            _ => {
                // Comments and unknown fields; alone they do not make an event, so their bytes are
                // released.
                if self.is_fresh() {
                    self.start = self.line;
                }
            }
        }
    }

    /// Handles a blank line: returns the collected event.
    fn dispatch(&mut self, buf: &[u8]) -> Option<StreamEvent> {
        self.begun = true;
        self.start = self.line;
        let collected = !self.is_fresh();
        let Fields {
            data,
            event,
            id,
            retry,
        } = std::mem::take(&mut self.fields);
        if std::mem::take(&mut self.discarding) || !collected {
            return None;
        }
        let data = match &data[..] {
            [] => Data::None,
            [line] => Data::Line(line.clone()),
            lines => {
                self.join(buf, lines);
                Data::Joined
            }
        };
        Some(StreamEvent::Event {
            data,
            event,
            id,
            retry,
        })
    }

    fn join(&mut self, buf: &[u8], lines: &[Range<usize>]) {
        self.joined.clear();
        for line in lines {
            self.joined
                .extend_from_slice(buf.get(line.clone()).unwrap_or_default());
            self.joined.push(b'\n');
        }
        self.joined.pop();
        self.joined.resize(self.joined.len() + PADDING, 0);
    }

    /// The data of the last [`Data::Joined`] event followed by padding, and the length of the data.
    pub fn joined(&self) -> (&[u8], usize) {
        (&self.joined, self.joined.len().saturating_sub(PADDING))
    }

    /// The number of bytes at the head of the buffer that are done with. The caller must consume
    /// them before the next call of [`next`](Self::next).
    #[must_use = "the bytes stay in front of the next call unless they are consumed"]
    pub fn drain(&mut self) -> usize {
        let done = std::mem::take(&mut self.start);
        if done == 0 {
            // An event in many small pieces would be gone through for each.
            return 0;
        }
        self.line -= done;
        self.searched -= done;
        let fields = &mut self.fields;
        let ranges = fields
            .data
            .iter_mut()
            .chain(&mut fields.event)
            .chain(&mut fields.id);
        for range in ranges {
            *range = range.start - done..range.end - done;
        }
        done
    }
}

/// Appends one event; `data` holds one message, on one or several lines. LF, CRLF and CR each end a
/// line, as in the format; a reader joins the lines by LF.
pub fn append(out: &mut Vec<u8>, event: Option<&str>, id: Option<&str>, data: &[u8]) {
    for (name, value) in [("event: ", event), ("id: ", id)] {
        if let Some(value) = value {
            out.extend_from_slice(name.as_bytes());
            out.extend(
                value
                    .bytes()
                    .filter(|byte| !matches!(byte, b'\n' | b'\r' | 0)),
            );
            out.push(b'\n');
        }
    }
    let mut rest = Some(data);
    while let Some(line) = rest {
        let end = memchr::memchr2(b'\n', b'\r', line);
        let (line, after) = line.split_at(end.unwrap_or(line.len()));
        rest = match after {
            [b'\r', b'\n', after @ ..] | [_, after @ ..] => Some(after),
            [] => None,
        };
        out.extend_from_slice(b"data: ");
        out.extend_from_slice(line);
        out.push(b'\n');
    }
    out.push(b'\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    /// (data, event, id, retry) of an event; `None` for an oversize event.
    type One = Option<(String, Option<String>, Option<String>, Option<u64>)>;
    type Seen = Vec<One>;

    fn split<'a>(chunks: impl IntoIterator<Item = &'a [u8]>, max_len: usize) -> Seen {
        let mut deframer = EventStreamDeframer::new(max_len);
        let mut held: Vec<u8> = Vec::new();
        let mut seen = Vec::new();
        for chunk in chunks {
            held.extend_from_slice(chunk);
            while let Some(event) = deframer.next(&held) {
                let text = |range: Range<usize>| String::from_utf8(held[range].to_vec()).unwrap();
                seen.push(match event {
                    StreamEvent::Oversize => None,
                    StreamEvent::Event {
                        data,
                        event,
                        id,
                        retry,
                    } => {
                        let data = match data {
                            Data::None => "-".to_owned(),
                            Data::Line(range) => text(range),
                            Data::Joined => {
                                let (padded, len) = deframer.joined();
                                assert_eq!(padded.len(), len + PADDING);
                                String::from_utf8(padded[..len].to_vec()).unwrap()
                            }
                        };
                        Some((data, event.map(text), id.map(text), retry))
                    }
                });
            }
            held.drain(..deframer.drain());
            assert!(held.len() <= max_len + chunk.len() + 2, "bytes pile up");
        }
        seen
    }

    #[track_caller]
    fn in_any_chunks(stream: &str, max_len: usize, expected: &Seen) {
        let bytes = stream.as_bytes();
        assert_eq!(split([bytes], max_len), *expected, "{stream:?}");
        assert_eq!(split(bytes.chunks(1), max_len), *expected, "{stream:?}");
        for at in 0..bytes.len() {
            let (a, b) = bytes.split_at(at);
            assert_eq!(split([a, b], max_len), *expected, "{stream:?} cut at {at}");
        }
    }

    fn data(text: &str) -> One {
        Some((text.to_owned(), None, None, None))
    }

    /// An event of many short lines, each of which arrives alone, takes time in proportion to its length.
    #[test]
    fn an_event_in_many_pieces_is_gone_through_once() {
        const LINES: usize = 200_000;
        let begun = std::time::Instant::now();
        let mut deframer = EventStreamDeframer::new(usize::MAX / 2);
        let mut held = Vec::new();
        for _ in 0..LINES {
            held.extend_from_slice(b"data\n");
            assert!(deframer.next(&held).is_none());
            assert_eq!(deframer.drain(), 0);
        }
        held.push(b'\n');
        assert!(deframer.next(&held).is_some());
        assert!(begun.elapsed() < std::time::Duration::from_secs(10));
    }

    #[test]
    fn fields_and_line_ends_of_every_sort() {
        for end in ["\n", "\r\n", "\r"] {
            let stream = "\u{feff}data: {\"a\":1}⏎⏎: comment⏎⏎event: message⏎id: 7⏎retry: 1500⏎\
                          data:one⏎data: two⏎data⏎⏎data:⏎⏎id⏎⏎unknown: x⏎⏎⏎data: last⏎⏎data: cut⏎"
                .replace('⏎', end);
            let full = |d: &str, e: Option<&str>, i: Option<&str>, r| {
                Some((d.to_owned(), e.map(str::to_owned), i.map(str::to_owned), r))
            };
            let expected = vec![
                data("{\"a\":1}"),
                full("one\ntwo\n", Some("message"), Some("7"), Some(1500)),
                data(""),
                full("-", None, Some(""), None),
                data("last"),
            ];
            in_any_chunks(&stream, 1000, &expected);
        }
        in_any_chunks(
            "data: a\r\ndata: b\n\rdata: c\r\r\ndata: d\n\n",
            100,
            &vec![data("a\nb"), data("c"), data("d")],
        );
    }

    #[test]
    fn an_event_over_the_limit_is_passed_over() {
        let long = "x".repeat(300);
        let stream =
            format!("data: a\n\ndata: {long}\r\ndata: more\r\n\r\ndata: b\n\n: {long}\n\n");
        let seen = split(stream.as_bytes().chunks(1), 50);
        assert_eq!(seen, vec![data("a"), None, data("b"), None]);
        let seen = split([stream.as_bytes()], 50);
        assert_eq!(seen, vec![data("a"), None, data("b"), None]);
    }

    #[test]
    fn what_is_appended_is_read_back() {
        let mut out = Vec::new();
        append(&mut out, Some("message"), Some("a\n7"), b"{\n \"x\":1\r\n}");
        append(&mut out, None, None, b"{}");
        // A lone CR ends a line as well: text after it must not be read as a field.
        append(&mut out, None, Some("8"), b"{\rid\r\n:1\n\r}\r");
        let expected = vec![
            Some((
                "{\n \"x\":1\n}".to_owned(),
                Some("message".to_owned()),
                Some("a7".to_owned()),
                None,
            )),
            data("{}"),
            Some((
                "{\nid\n:1\n\n}\n".to_owned(),
                None,
                Some("8".to_owned()),
                None,
            )),
        ];
        assert_eq!(split([&out[..]], 1000), expected);
    }
}
