//! Server-sent events (WHATWG HTML, "Server-sent events"): LF, CRLF and CR line ends in any mix
//! and any chunking, several data lines, comments, a byte order mark.

use std::ops::Range;

use smallvec::SmallVec;

use crate::buffer::PADDING;

/// Splits a `text/event-stream` into events; the bytes of an event stay in the caller's buffer
/// until it is complete, each searched once.
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
    /// The byte before `line` was CR, so that an LF at `line` belongs to it.
    after_cr: bool,
    begun: bool,
    discarding: bool,
    fields: Fields,
    joined: Vec<u8>,
}

/// Where the fields of an event lie. Nearly every MCP event has one data line, so two stay
/// inline: the list of lines never allocates in the common case.
#[derive(Clone, Debug, Default)]
struct Fields {
    data: SmallVec<[Range<usize>; 2]>,
    event: Option<Range<usize>>,
    id: Option<Range<usize>>,
    retry: Option<u64>,
}

/// What the deframer found; ranges lie in the bytes handed in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StreamEvent {
    /// One event.
    Event {
        /// Its data.
        data: Data,
        /// Its type, if it names one.
        event: Option<Range<usize>>,
        /// The id to resume after, if it has one.
        id: Option<Range<usize>>,
        /// The reconnection time it asks for, in milliseconds.
        retry: Option<u64>,
    },
    /// An event is longer than the limit. Reported once; the rest of it will be discarded.
    Oversize,
}

/// The data of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Data {
    /// There is none: the event only carries an id or a reconnection time.
    None,
    /// One line, where it stands.
    Line(Range<usize>),
    /// Several lines, joined by LF: [`EventStreamDeframer::joined`] until the next event.
    Joined,
}

const BOM: &[u8] = b"\xef\xbb\xbf";

impl EventStreamDeframer {
    /// For events of up to `max_len` bytes, field names and line ends included.
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

    /// The next event in `buf`, all bytes that are not yet consumed; `None` when more are needed.
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

    /// Whether nothing of an event has been seen yet.
    fn is_fresh(&self) -> bool {
        let fields = &self.fields;
        fields.data.is_empty()
            && fields.event.is_none()
            && fields.id.is_none()
            && fields.retry.is_none()
    }

    /// While discarding, an unfinished line keeps one byte, so that it does not look blank.
    fn forget_line_but_its_presence(&mut self, buf: &[u8]) {
        if buf.len() > self.line {
            self.line = buf.len() - 1;
        }
        self.start = self.line;
    }

    /// Notes one line that is not blank.
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
                // `parse` would take a sign, the format does not.
                let digits = text(&value).first().is_some_and(u8::is_ascii_digit);
                let number = std::str::from_utf8(text(&value)).ok();
                self.fields.retry = number.filter(|_| digits).and_then(|text| text.parse().ok());
            }
            _ => {
                // Comments and unknown fields; alone they make no event and hold no bytes.
                if self.is_fresh() {
                    self.start = self.line;
                }
            }
        }
    }

    /// At a blank line: hands out what was collected.
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

    /// The data of the last [`Data::Joined`] event, followed by padding, and its length.
    pub fn joined(&self) -> (&[u8], usize) {
        (&self.joined, self.joined.len().saturating_sub(PADDING))
    }

    /// How many bytes at the head of the buffer are done with. The caller consumes them before
    /// the next call of [`next`](Self::next).
    #[must_use = "the bytes stay in front of the next call unless they are consumed"]
    pub fn drain(&mut self) -> usize {
        let done = std::mem::take(&mut self.start);
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

/// Appends one event; `data` holds one message, on one line or on several.
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
    for line in data.split(|&byte| byte == b'\n') {
        out.extend_from_slice(b"data: ");
        out.extend_from_slice(line.strip_suffix(b"\r").unwrap_or(line));
        out.push(b'\n');
    }
    out.push(b'\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    /// (data, event, id, retry) of an event, `None` for one that is too long.
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
        let expected = vec![
            Some((
                "{\n \"x\":1\n}".to_owned(),
                Some("message".to_owned()),
                Some("a7".to_owned()),
                None,
            )),
            data("{}"),
        ];
        assert_eq!(split([&out[..]], 1000), expected);
    }
}
