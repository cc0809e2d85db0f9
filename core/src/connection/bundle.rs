//! Batches of requests in one request (`batch/execute`). Each element is served like a request of its
//! own, on a hidden stream that no driver sees. The answers leave together, in the order of the
//! elements.
//!
//! ```text
//!   the peer's request ─▶ Bundle ─▶ hidden stream ─▶ host     (one line per element)
//!   its one answer     ◀─ Bundle ◀─ hidden stream ◀─ answers  (progress is forwarded to the peer at once)
//! ```

use std::time::{Duration, Instant};

use super::host::{Call, CallKey, Host, StreamId};
use super::pending::Timer;
use super::queue::Submission;
use super::stream::Stream;
use super::{Connection, Framing, Handle, receive};
use crate::json::{reader, string};
use crate::limits::later;
use crate::mcp::code::INVALID_REQUEST;
use crate::mcp::profile::Failure;
use crate::mcp::{ErrorKind, Method, Revision};
use crate::message::OwnedId;
use crate::message::encode;

/// The requests of one `batch/execute`, ready to be served with [`Handle::serve_bundle`].
#[derive(Debug)]
pub struct Bundle {
    outer: CallKey,
    id: OwnedId,
    revision: Revision,
    elements: Vec<Element>,
    /// Errors are listed bare instead of inside a response (R-B3X-02).
    bare_errors: bool,
    limit: Option<Duration>,
}

#[derive(Debug)]
struct Element {
    /// `jsonrpc` and `id` as they were sent, to be repeated in the response: members, each with a
    /// comma.
    head: String,
    /// The line to serve; `None` if the element is refused.
    line: Option<String>,
    /// The response without `head`.
    answer: Option<Answered>,
}

#[derive(Debug)]
struct Answered {
    member: &'static str,
    json: String,
}

/// A bundle in progress.
#[derive(Debug)]
pub(super) struct Open {
    bundle: Bundle,
    stream: StreamId,
    /// Output of the hidden stream that is not a whole line yet.
    said: Vec<u8>,
    pub overdue: bool,
}

impl Open {
    pub fn is_on(&self, stream: StreamId) -> bool {
        self.stream == stream
    }
}

impl Bundle {
    /// Reads the bundle of a call whose params hold `requests`, a raw JSON array. With `bare_errors`,
    /// errors are listed in the answer without a response around them. Elements not answered within
    /// `limit` get an error.
    pub fn new(call: &Call, requests: &str, bare_errors: bool, limit: Option<Duration>) -> Self {
        let elements = reader::elements(requests).enumerate();
        Self {
            outer: call.reply.key,
            id: call.reply.id.clone(),
            revision: call.reply.revision,
            elements: elements.map(|(i, raw)| Element::read(i, raw)).collect(),
            bare_errors,
            limit,
        }
    }

    fn responses(&self) -> String {
        let one = |element: &Element| match &element.answer {
            Some(Answered { member, json }) if *member == "error" && self.bare_errors => {
                json.clone()
            }
            Some(Answered { member, json }) => format!("{{{}\"{member}\":{json}}}", element.head),
            None => "null".to_owned(),
        };
        let all: Vec<_> = self.elements.iter().map(one).collect();
        format!("{{\"responses\":[{}]}}", all.join(","))
    }
}

impl Element {
    fn read(index: usize, raw: &str) -> Self {
        let mut head = String::new();
        for name in ["jsonrpc", "id"] {
            if let Some(value) = reader::find(raw, name) {
                head.push_str(&format!("\"{name}\":{value},"));
            }
        }
        let method = reader::find(raw, "method").filter(|method| method.starts_with('"'));
        let name = method.and_then(reader::as_str);
        let params = reader::find(raw, "params");
        let (line, answer) = match (method, name.as_deref().map(refused)) {
            (Some(method), Some(None)) => {
                let params = params.map_or(String::new(), |params| format!(",\"params\":{params}"));
                let id = label(index);
                let line =
                    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":{method}{params}}}");
                // Line breaks occur only between tokens: in strings they are escaped.
                (Some(line.replace(['\n', '\r'], " ") + "\n"), None)
            }
            (_, refused) => {
                let why = refused
                    .flatten()
                    .unwrap_or("an element is an object with a method");
                (None, Some(invalid(why)))
            }
        };
        Self { head, line, answer }
    }
}

/// Why a method may not be an element of a bundle; `None` if it may (R-B3X-03).
fn refused(method: &str) -> Option<&'static str> {
    match Method::parse(method) {
        Some(Method::Initialize) => Some("initialize stands alone"),
        Some(Method::Listen) => Some("a stream stands alone"),
        Some(known) if !known.is_request() => Some("a notification has no response"),
        None if method == BATCH => Some("a batch within a batch"),
        None if method.starts_with("notifications/") => Some("a notification has no response"),
        _ => None,
    }
}

/// The method whose requests are bundles.
pub(crate) const BATCH: &str = "batch/execute";

fn invalid(why: &str) -> Answered {
    let mut json = format!("{{\"code\":{INVALID_REQUEST},\"message\":").into_bytes();
    string::append(&mut json, why);
    json.push(b'}');
    Answered {
        member: "error",
        json: String::from_utf8(json).unwrap_or_default(),
    }
}

/// The id of the element on the hidden stream.
fn label(index: usize) -> String {
    format!("\"element {index}\"")
}

impl Handle {
    /// Serves a bundle and answers the call that brought it.
    pub fn serve_bundle(&self, bundle: Bundle) {
        self.submit(Submission::Bundle(Box::new(bundle)));
    }
}

impl Connection {
    /// Begins all elements of a bundle.
    pub(super) fn begin_bundle(&mut self, bundle: Bundle, now: Instant, host: &mut dyn Host) {
        let mut hidden = Stream::new(Framing::Line, &self.core.config);
        hidden.exchange.wire.hide();
        for line in bundle
            .elements
            .iter()
            .filter_map(|element| element.line.as_ref())
        {
            hidden.reading.input.extend(line.as_bytes());
        }
        let stream = self.streams.open(hidden);
        if let Some(limit) = bundle.limit {
            let due = later(now, limit);
            self.core.timers.insert(due, Timer::Bundle(stream));
        }
        self.core.bundles.push(Open {
            bundle,
            stream,
            said: Vec::new(),
            overdue: false,
        });
        receive::receive(&mut self.core, &mut self.streams, stream, now, host);
    }

    /// Collects the answers of elements, and answers the bundles that are complete.
    pub(super) fn gather_bundles(&mut self, host: &mut dyn Host) {
        for mut open in std::mem::take(&mut self.core.bundles) {
            self.listen_to(&mut open);
            let overdue = open.overdue;
            let Open { bundle, stream, .. } = &mut open;
            let outer = self.streams.exchange(bundle.outer.stream);
            let wanted = outer.is_some_and(|it| it.incoming.get(bundle.outer.incoming).is_some());
            if wanted && overdue {
                give_up(bundle, &self.core.config);
            }
            let whole = bundle
                .elements
                .iter()
                .all(|element| element.answer.is_some());
            if wanted && !whole {
                self.core.bundles.push(open);
                continue;
            }
            if let Some(hidden) = self.streams.exchange(*stream) {
                self.core.cancel_all(*stream, hidden, host);
            }
            self.streams.close(*stream);
            let outer = self.streams.exchange(bundle.outer.stream);
            if let Some(outer) = outer.filter(|_| wanted)
                && self
                    .core
                    .end_incoming(outer, bundle.outer.incoming)
                    .is_some()
            {
                let result = bundle.responses();
                outer.write(|out| encode::response(out, bundle.id.as_ref(), &result));
            }
        }
    }

    fn listen_to(&mut self, open: &mut Open) {
        let Some(hidden) = self.streams.exchange(open.stream) else {
            return;
        };
        while !hidden.output.is_empty() {
            let head = hidden.output.head();
            open.said.extend_from_slice(head);
            let taken = head.len();
            hidden.output.advance(taken);
        }
        let Some(end) = open.said.iter().rposition(|byte| *byte == b'\n') else {
            return;
        };
        let lines: Vec<u8> = open.said.drain(..=end).collect();
        for line in lines.split(|byte| *byte == b'\n') {
            let text = str::from_utf8(line).unwrap_or_default();
            let index = reader::find(text, "id").and_then(|id| {
                let mut elements = 0..open.bundle.elements.len();
                elements.find(|index| label(*index) == id)
            });
            let element = index.and_then(|index| open.bundle.elements.get_mut(index));
            let answer = ["result", "error"].into_iter().find_map(|member| {
                let json = reader::find(text, member)?.to_owned();
                Some(Answered { member, json })
            });
            match (element, answer) {
                (Some(element), Some(answer)) => element.answer = Some(answer),
                // R-B3X-05: progress of an element is forwarded to the peer at once.
                _ if reader::find(text, "method").is_some() => {
                    if let Some(outer) = self.streams.exchange(open.bundle.outer.stream) {
                        outer.append(line);
                    }
                }
                _ => {}
            }
        }
    }
}

/// Answers the remaining elements with a timeout error (R-B3X-04).
fn give_up(bundle: &mut Bundle, config: &super::Config) {
    let failure = Failure {
        kind: ErrorKind::TimedOut,
        about: BATCH,
        why: "the batch took too long",
        data: None,
    };
    let spelt = config.profile.spell(bundle.revision, failure);
    for element in &mut bundle.elements {
        element.answer.get_or_insert_with(|| {
            let mut json = format!("{{\"code\":{},\"message\":", spelt.code).into_bytes();
            string::append(&mut json, &spelt.message);
            json.push(b'}');
            Answered {
                member: "error",
                json: String::from_utf8(json).unwrap_or_default(),
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// R-B3X-03
    #[test]
    fn what_has_no_business_in_a_bundle_is_refused() {
        for (element, served) in [
            (r#"{"method":"tools/list"}"#, true),
            (r#"{"method":"com.example/x","params":{"a":"b\nc"}}"#, true),
            (r#"{"method":"initialize"}"#, false),
            (r#"{"method":"batch/execute"}"#, false),
            (r#"{"method":"initialized"}"#, false),
            (r#"{"method":"notifications/any"}"#, false),
            (r#"{"method":"subscriptions/listen"}"#, false),
            (r#"{"method":1}"#, false),
            ("[]", false),
            ("1", false),
        ] {
            let read = Element::read(0, element);
            assert_eq!(read.line.is_some(), served, "{element}");
            assert_eq!(read.answer.is_some(), !served, "{element}");
        }
        let named = Element::read(0, r#"{"id":0,"jsonrpc":"2.0","method":"ping"}"#);
        assert_eq!(named.head, r#""jsonrpc":"2.0","id":0,"#);
    }
}
