//! Several requests that came as one (`batch/execute`): each is served like any other, on a stream
//! of its own that no driver sees, and their answers leave together, in the order of the requests.
//!
//! ```text
//!   the peer's request ─▶ Bundle ─▶ hidden stream ─▶ host     (one line for each element)
//!   its one answer     ◀─ Bundle ◀─ hidden stream ◀─ answers  (progress goes on to the peer at once)
//! ```

use std::time::{Duration, Instant};

use super::host::{Call, CallKey, Host, StreamId};
use super::pending::Timer;
use super::queue::Submission;
use super::stream::Stream;
use super::{Connection, Framing, Handle, receive};
use crate::json::{reader, string};
use crate::limits::later;
use crate::mcp::profile::Failure;
use crate::mcp::{ErrorKind, Method, Revision};
use crate::message::OwnedId;
use crate::message::encode;

/// Requests that came as one, on their way in.
#[derive(Debug)]
pub struct Bundle {
    outer: CallKey,
    id: OwnedId,
    revision: Revision,
    elements: Vec<Element>,
    /// Errors stand by themselves instead of in a response (R-B3X-02).
    bare_errors: bool,
    limit: Option<Duration>,
}

#[derive(Debug)]
struct Element {
    /// `jsonrpc` and `id` as they came, to be said again: members, each with its comma.
    head: String,
    /// What is served; nothing of one that is refused.
    line: Option<String>,
    /// The response but for its head.
    answer: Option<Answered>,
}

#[derive(Debug)]
struct Answered {
    member: &'static str,
    json: String,
}

/// One under way.
#[derive(Debug)]
pub(super) struct Open {
    bundle: Bundle,
    stream: StreamId,
    /// Bytes of the hidden stream that are no whole line yet.
    said: Vec<u8>,
    pub overdue: bool,
}

impl Open {
    pub fn is_on(&self, stream: StreamId) -> bool {
        self.stream == stream
    }
}

impl Bundle {
    /// Of a call whose params hold `requests`, a raw JSON array. Errors stand by themselves in the
    /// answer where they are `bare_errors`; what is not answered within `limit` is answered with one.
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
                // Between tokens: in strings they are escaped.
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

/// Why a method has no business in a bundle (R-B3X-03).
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

/// The method that brings a bundle.
pub(crate) const BATCH: &str = "batch/execute";

fn invalid(why: &str) -> Answered {
    let mut json = b"{\"code\":-32600,\"message\":".to_vec();
    string::append(&mut json, why);
    json.push(b'}');
    Answered {
        member: "error",
        json: String::from_utf8(json).unwrap_or_default(),
    }
}

/// The id of an element on the hidden stream.
fn label(index: usize) -> String {
    format!("\"element {index}\"")
}

impl Handle {
    /// Serves a bundle, and answers the call that brought it.
    pub fn serve_bundle(&self, bundle: Bundle) {
        self.submit(Submission::Bundle(Box::new(bundle)));
    }
}

impl Connection {
    /// Begins all elements at once.
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

    /// Takes what the elements were answered, and answers the bundles that are whole.
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
                // R-B3X-05: of an element's progress the peer hears at once.
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

/// Answers what is not answered yet (R-B3X-04).
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
