//! Reads a server's answers to an attack from the wire.

use std::time::{Duration, Instant};

use anyhow::Result;
use memchr::memmem::find;
use serde_json::Value;

use super::frames;
use super::wire::Wire;
use crate::load::chunks;

/// How long an answer may take.
pub const PATIENCE: Duration = Duration::from_secs(20);
/// How long the server must send nothing before that counts as silence.
pub const SILENCE: Duration = Duration::from_millis(500);

/// A server's answer, or its silence.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// An HTTP response.
    Http {
        status: u16,
        head: String,
        body: String,
        /// The id of the first event, for an event stream.
        event: Option<String>,
    },
    /// A message on any other carrier.
    Message(String),
    /// The code of a WebSocket close frame.
    Close(u16),
    /// Everything that arrived within some time, notifications as well.
    Heard(String),
    /// The end of the connection.
    Closed,
    Silence,
}

impl Answer {
    /// The JSON of the answer.
    pub fn json(&self) -> Value {
        match self {
            Self::Http { body, .. } => serde_json::from_str(body).unwrap_or_default(),
            Self::Message(text) => serde_json::from_str(text).unwrap_or_default(),
            _ => Value::Null,
        }
    }

    /// The answer as text.
    pub fn text(&self) -> String {
        match self {
            Self::Http { head, body, .. } => format!("{head}\r\n\r\n{body}"),
            Self::Message(text) | Self::Heard(text) => text.clone(),
            _ => String::new(),
        }
    }

    /// The id of the first event.
    pub fn event(&self) -> Option<&str> {
        match self {
            Self::Http { event, .. } => event.as_deref(),
            _ => None,
        }
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        match self {
            Self::Http { head, .. } => header(head, name),
            _ => None,
        }
    }
}

/// The value of a header.
fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    let fields = head.lines().filter_map(|line| line.split_once(':'));
    let mut named = fields.filter(|(field, _)| field.trim().eq_ignore_ascii_case(name));
    named.next().map(|(_, value)| value.trim())
}

/// How to read the input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Speech {
    Http,
    /// HTTP responses without a body, whatever the head says.
    Head,
    Lines,
    WebSocket,
}

/// The next answer that arrives within `wait`.
pub fn read(wire: &mut Wire, speech: Speech, wait: Duration) -> Result<Answer> {
    let until = Instant::now() + wait;
    loop {
        let (answer, used) = match speech {
            Speech::Http => http(&wire.input, wire.is_over),
            Speech::Head => match find(&wire.input, b"\r\n\r\n") {
                Some(end) => http(&wire.input[..end + 4], true),
                None => (None, 0),
            },
            Speech::Lines => line(&wire.input),
            Speech::WebSocket => frames::answer(&wire.input),
        };
        wire.input.drain(..used);
        if let Some(answer) = answer {
            return Ok(answer);
        }
        if used == 0 && !wire.receive(until)? {
            return Ok(match wire.is_over {
                true => Answer::Closed,
                false => Answer::Silence,
            });
        }
    }
}

/// Everything that arrives until then, or until the end of the connection.
pub fn hear(wire: &mut Wire, until: Instant) -> Result<Answer> {
    while wire.receive(until)? {}
    let heard = std::mem::take(&mut wire.input);
    Ok(Answer::Heard(String::from_utf8_lossy(&heard).into_owned()))
}

/// The first line that is an answer; skips messages that the server sends unasked.
fn line(input: &[u8]) -> (Option<Answer>, usize) {
    let Some(end) = input.iter().position(|byte| *byte == b'\n') else {
        return (None, 0);
    };
    let text = String::from_utf8_lossy(&input[..end]).into_owned();
    (message(text), end + 1)
}

/// The message, unless the server sent it unasked.
pub fn message(text: String) -> Option<Answer> {
    let json: Value = serde_json::from_str(&text).unwrap_or_default();
    let is_notice = json["method"].is_string() && json["id"].is_null();
    (!is_notice && !text.trim().is_empty()).then_some(Answer::Message(text))
}

/// An HTTP response with its whole body or, for an event stream, up to the first message.
fn http(input: &[u8], is_over: bool) -> (Option<Answer>, usize) {
    let Some(end) = find(input, b"\r\n\r\n") else {
        return (None, 0);
    };
    let head = String::from_utf8_lossy(&input[..end]).into_owned();
    let status = head
        .split(' ')
        .nth(1)
        .and_then(|status| status.parse().ok());
    let status = status.unwrap_or_default();
    let rest = &input[end + 4..];
    let length = header(&head, "content-length").and_then(|length| length.parse().ok());
    let is_stream =
        header(&head, "content-type").is_some_and(|kind| kind.starts_with("text/event-stream"));
    let is_chunked = header(&head, "transfer-encoding").is_some();
    let (body, used): (Vec<u8>, usize) = match length {
        _ if status < 200 || status == 204 || status == 304 => (Vec::new(), 0),
        Some(length) if rest.len() >= length => (rest[..length].to_vec(), length),
        None if is_chunked => {
            let (body, used, is_whole) = chunks(rest).unwrap_or((Vec::new(), rest.len(), true));
            let has_message = is_stream && event(&body).is_some();
            if !is_whole && !has_message && !is_over {
                return (None, 0);
            }
            (body, used)
        }
        None if is_over => (rest.to_vec(), rest.len()),
        _ if is_over => (rest.to_vec(), rest.len()),
        _ => return (None, 0),
    };
    let (body, event) = match is_stream {
        true => (event(&body).unwrap_or_default(), event_id(&body)),
        false => (String::from_utf8_lossy(&body).into_owned(), None),
    };
    let answer = Answer::Http {
        status,
        head,
        body,
        event,
    };
    (Some(answer), end + 4 + used)
}

/// The lines of all whole events that begin with this name, without it.
fn event_lines(body: &[u8], name: &str) -> Vec<String> {
    let text = String::from_utf8_lossy(body).replace("\r\n", "\n");
    let whole = text.rfind("\n\n").map_or("", |end| &text[..end]);
    let values = whole.lines().filter_map(|line| line.strip_prefix(name));
    values.map(|value| value.trim().to_owned()).collect()
}

/// The data of the first event that is a message.
fn event(body: &[u8]) -> Option<String> {
    event_lines(body, "data:").into_iter().find(|data| {
        let json: Value = serde_json::from_str(data).unwrap_or_default();
        json.is_object() && (json["method"].is_null() || !json["id"].is_null())
    })
}

/// The first id of an event.
fn event_id(body: &[u8]) -> Option<String> {
    event_lines(body, "id:").into_iter().next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_read_when_they_are_whole() {
        let whole = b"HTTP/1.1 403 Forbidden\r\ncontent-length: 2\r\n\r\n{}HTTP";
        assert_eq!(http(&whole[..46], false).0, None);
        let (answer, used) = http(whole, false);
        assert_eq!(used, whole.len() - 4);
        let Some(Answer::Http { status, body, .. }) = answer else {
            panic!("no answer");
        };
        assert_eq!((status, &*body), (403, "{}"));
        let stream = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Type: text/event-stream\r\n\r\n6\r\nid: 1\n\r\n";
        assert_eq!(http(stream, false).0, None);
        let half = [stream, &b"e\r\ndata: {\"id\":1}\r\n"[..]].concat();
        assert_eq!(http(&half, false).0, None);
        let more = [stream, &b"10\r\ndata: {\"id\":1}\n\n\r\n"[..]].concat();
        let answer = http(&more, false).0.unwrap();
        assert_eq!(answer.json()["id"], 1);
        assert_eq!(answer.event(), Some("1"));
        let notice = b"{\"method\":\"notifications/progress\"}\n{\"id\":1}\n";
        let (none, used) = line(notice);
        assert_eq!(none, None);
        assert_eq!(
            line(&notice[used..]).0,
            Some(Answer::Message("{\"id\":1}".into()))
        );
    }
}
