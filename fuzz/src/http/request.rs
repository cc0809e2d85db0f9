//! Random requests: mostly valid, with a fault or two.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame};
use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use hyper::{Method, Request};
use serde_json::{Value, json};

use super::MAX_LEN;
use crate::oracle;
use crate::random::Random;

/// How long the client stays.
pub enum Patience {
    /// The client leaves after that time, even in the middle of the response.
    Gone(Duration),
    /// The client waits for the response, and reads an event stream for that time.
    Stays(Duration),
}

/// A request, and what its response must match.
pub struct Asked {
    pub request: Request<Pieces>,
    pub patience: Patience,
    pub meant: Meant,
}

/// The expectations of a response.
#[derive(Debug, Default)]
pub struct Meant {
    /// `None` for requests that read the answers to others.
    body: Option<String>,
    /// The ids in the request, if its body is valid JSON.
    ids: Option<Vec<Value>>,
    /// The text that must be echoed.
    echo: Option<String>,
}

impl Meant {
    pub fn of(body: &[u8]) -> Self {
        let text = String::from_utf8_lossy(body).into_owned();
        let sound = serde_json::from_str(&text).ok();
        let trimmed = text.trim();
        let each = match trimmed.starts_with('[') {
            true => oracle::elements(trimmed),
            false => vec![trimmed],
        };
        let ids = each.into_iter().flat_map(|one| {
            let members = oracle::members(one).unwrap_or_default();
            let ids = members.into_iter().filter(|(name, _)| name == "id");
            ids.filter_map(|(_, raw)| serde_json::from_str(raw).ok())
        });
        let ids = sound.is_some().then(|| ids.collect());
        let repeated = oracle::classify(&text).is_none_or(|verdict| verdict.repeated);
        let echo = sound
            .filter(|said: &Value| said["params"]["name"] == "echo" && !repeated)
            .map(|said| said["params"]["arguments"]["text"].clone())
            .map(|text| text.as_str().unwrap_or_default().to_owned());
        let body = Some(text);
        Self { body, ids, echo }
    }

    /// The fewest messages in a stream that was read to its end.
    pub fn least(&self) -> usize {
        usize::from(self.body.is_some())
    }

    /// Panics if one of the messages is not valid, or answers another request. Returns how many of them are
    /// more than a part of an answer.
    pub fn check(&self, said: &Value, shown: &str) -> usize {
        if let Value::Array(all) = said {
            assert!(!all.is_empty(), "{shown}");
            return all.iter().map(|one| self.check(one, shown)).sum();
        }
        let has_error = said["error"]["type"].is_string() && said["error"]["message"].is_string();
        match (&said["jsonrpc"], said["type"].as_str()) {
            // Events of the stream of an action.
            (Value::Null, Some("partial")) => return 0,
            (Value::Null, Some("complete")) => {
                assert_eq!(said["status"], "success", "{shown}");
                return 1;
            }
            (Value::Null, Some("error")) => {
                assert!(has_error, "{shown}");
                return 1;
            }
            _ => {}
        }
        if let (None, Some(status)) = (said.get("jsonrpc"), said.get("status")) {
            // R-ACT-05: an answer of the action dialect, to a request of that dialect.
            assert_eq!(*status == "error", has_error, "{shown}");
            assert!(has_error || *status == "success", "{shown}");
            return 1;
        }
        assert_eq!(said["jsonrpc"], "2.0", "{shown}");
        let answers = ["method", "result", "error"].map(|name| said.get(name).is_some());
        assert_eq!(answers.iter().filter(|there| **there).count(), 1, "{shown}");
        let (Some(body), [false, ..]) = (&self.body, answers) else {
            return 1;
        };
        match (said.get("id").unwrap_or(&Value::Null), &self.ids) {
            (Value::Null, _) => assert!(answers[2], "{shown}"),
            (id, Some(ids)) => assert!(ids.contains(id), "{shown}"),
            // The id was read before the fault in the message.
            (Value::Number(id), None) => assert!(body.contains(&id.to_string()), "{shown}"),
            (id, None) => assert!(id.is_string(), "{shown}"),
        }
        if let (Some(text), Some(Value::Array(content))) =
            (&self.echo, said["result"].get("content"))
        {
            assert_eq!(content[0]["text"], *text, "{shown}");
        }
        1
    }
}

/// A body that arrives in pieces.
#[derive(Debug)]
pub struct Pieces {
    pieces: VecDeque<Bytes>,
    end: End,
    /// Whether the next piece is available.
    ready: bool,
}

#[derive(Clone, Copy, Debug)]
enum End {
    Whole,
    Broken,
    Never,
}

impl Body for Pieces {
    type Data = Bytes;
    type Error = &'static str;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, &'static str>>> {
        self.ready = !self.ready;
        if self.ready {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        match (self.pieces.pop_front(), self.end) {
            (Some(piece), _) => Poll::Ready(Some(Ok(Frame::data(piece)))),
            (None, End::Whole) => Poll::Ready(None),
            (None, End::Broken) => Poll::Ready(Some(Err("broken off"))),
            (None, End::Never) => Poll::Pending,
        }
    }
}

impl Pieces {
    fn cut(mut body: Bytes, random: &mut Random) -> Self {
        let most = *random.pick(&[7, 300, 10_000]);
        let mut pieces = VecDeque::new();
        while !body.is_empty() && pieces.len() < 50 {
            let len = 1 + random.below(most);
            pieces.push_back(body.split_to(len.min(body.len())));
        }
        pieces.push_back(body);
        let end = match random.below(900) {
            0 => End::Never,
            1..=20 => End::Broken,
            _ => End::Whole,
        };
        let ready = random.below(2) == 0;
        Self { pieces, end, ready }
    }
}

/// A message of any revision.
fn message(random: &mut Random, stateless: bool) -> Value {
    let number = random.below(1000);
    let id = match random.below(4) {
        0 => json!(7),
        1 => json!(format!("é{number}")),
        _ => json!(number),
    };
    let tool = *random.pick(&["echo", "echo", "steps", "rest", "none"]);
    let (method, mut params) = match random.below(9) {
        0 => ("tools/list", json!({})),
        1 => (
            *random.pick(&["ping", "server/discover", "resources/read"]),
            json!({"uri": "a:b"}),
        ),
        2 if stateless => (
            "subscriptions/listen",
            json!({"notifications": {"toolsListChanged": true}}),
        ),
        2 => ("notifications/cancelled", json!({"requestId": 7})),
        _ => (
            "tools/call",
            json!({"name": tool, "arguments": {"text": format!("<{}>", random.number())}}),
        ),
    };
    let mut meta = json!({});
    if stateless {
        meta["io.modelcontextprotocol/protocolVersion"] = json!("2026-07-28");
        meta["io.modelcontextprotocol/clientCapabilities"] = json!({});
    }
    if random.below(2) == 0 {
        meta["progressToken"] = json!(number);
    }
    params["_meta"] = meta;
    let mut message = json!({"jsonrpc": "2.0", "method": method, "params": params});
    if method != "notifications/cancelled" {
        message["id"] = id;
    }
    message
}

const VERSIONS: [&str; 5] = [
    "2024-11-05",
    "2025-03-26",
    "2025-06-18",
    "2025-11-25",
    "2026-07-28",
];

/// Significant values of some headers.
const DICTIONARY: [(&str, &[&str]); 16] = [
    (
        "host",
        &["localhost", "127.0.0.1:80", "[::1]", "evil.example.com", ""],
    ),
    (
        "origin",
        &[
            "http://localhost:3000",
            "null",
            "http://evil.example.com",
            "//",
        ],
    ),
    (
        "accept",
        &[
            "*/*",
            "application/json",
            "text/event-stream",
            "text/*;q=0",
            ",",
            "text/html",
        ],
    ),
    (
        "content-type",
        &[
            "application/json; charset=utf-8",
            "text/plain",
            "APPLICATION/JSON",
            ";",
        ],
    ),
    (
        "content-length",
        &["0", "5", "100000", "18446744073709551616", "-1"],
    ),
    ("content-encoding", &["gzip"]),
    (
        "mcp-protocol-version",
        &["2024-11-05", "2025-11-25", "2026-07-28", " 2026-07-28", "1"],
    ),
    (
        "mcp-method",
        &[
            "tools/call",
            "=?base64?dG9vbHMvY2FsbA==?=",
            "=?base64?%?=",
            "initialize",
        ],
    ),
    (
        "mcp-name",
        &[
            "echo",
            "steps",
            "=?base64?ZWNobw==?=",
            "=?base64?/w==?=",
            "=?base64??=",
        ],
    ),
    ("mcp-session-id", &["none", ""]),
    (
        "last-event-id",
        &["0_0", "1_1", "2_99999999999999999999", "_", "é"],
    ),
    ("upgrade", &["websocket", "h2c, WebSocket"]),
    ("connection", &["upgrade", "keep-alive, Upgrade", "close"]),
    ("sec-websocket-version", &["13", "8"]),
    ("sec-websocket-key", &["dGhlIHNhbXBsZSBub25jZQ==", "?"]),
    ("access-control-request-method", &["POST"]),
];

struct Draft {
    method: Method,
    uri: String,
    headers: HeaderMap,
    body: Vec<u8>,
}

fn header(text: &str) -> HeaderValue {
    HeaderValue::from_bytes(text.as_bytes()).unwrap_or(HeaderValue::from_static("?"))
}

impl Draft {
    fn new(method: Method) -> Self {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("host", "localhost"),
            ("content-type", "application/json"),
            ("accept", "application/json, text/event-stream"),
        ] {
            headers.insert(name, HeaderValue::from_static(value));
        }
        let (uri, body) = ("/mcp".to_owned(), Vec::new());
        Self {
            method,
            uri,
            headers,
            body,
        }
    }

    fn say(mut self, name: &'static str, value: &str) -> Self {
        self.headers.insert(name, header(value));
        self
    }

    fn post(message: &Value) -> Self {
        let mut draft = Self::new(Method::POST);
        draft.body = message.to_string().into_bytes();
        draft
    }

    /// A valid request.
    fn sound(bytes: &[u8], names: &[String], random: &mut Random) -> Self {
        // Mostly of the newest session, because others have ended.
        let newest = names.len().saturating_sub(*random.pick(&[1, 1, 1, 3, 9]));
        let likely = names.get(newest..).unwrap_or(names);
        let name = match likely {
            [] => "none",
            likely => random.pick(likely).as_str(),
        };
        let kind = match names.is_empty() && random.below(2) == 0 {
            true => 5,
            false => random.below(20),
        };
        match kind {
            0..5 => {
                let message = message(random, true);
                let draft = Self::post(&message).say("mcp-protocol-version", "2026-07-28");
                let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
                let params = &message["params"];
                let named = params.get("name").unwrap_or(&params["uri"]);
                let draft = draft.say("mcp-method", &text(&message["method"]));
                draft.say("mcp-name", &text(named))
            }
            5..8 => Self::post(
                &json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
                "protocolVersion": random.pick(&VERSIONS), "capabilities": {},
                "clientInfo": {"name": "fuzz", "version": "1"}}}),
            ),
            8..13 => Self::post(&message(random, false)).say("mcp-session-id", name),
            13 => {
                let all: Vec<_> = (0..random.below(4))
                    .map(|_| message(random, false))
                    .collect();
                Self::post(&Value::Array(all)).say("mcp-session-id", name)
            }
            14 => {
                let mut draft = Self::post(&message(random, false));
                draft.uri = format!("/mcp?session={name}");
                draft
            }
            15 => Self::new(Method::GET).say("mcp-session-id", name),
            16 => Self::new(Method::GET),
            17 => Self::new(Method::DELETE).say("mcp-session-id", name),
            18 => {
                let draft = Self::new(Method::GET).say("upgrade", "websocket");
                draft
                    .say("connection", "upgrade")
                    .say("sec-websocket-version", "13")
            }
            _ => {
                let mut draft = Self::new(Method::POST);
                draft.body = bytes.to_vec();
                draft
            }
        }
    }

    fn damage(&mut self, random: &mut Random) {
        let (name, values) = random.pick(&DICTIONARY);
        let (name, value) = (
            HeaderName::from_static(name),
            header(random.pick::<&str>(values)),
        );
        match random.below(8) {
            0 => drop(self.headers.insert(name, value)),
            1 => drop(self.headers.append(name, value)),
            2 => drop(self.headers.remove(name)),
            3 => {
                let own: Vec<_> = self.headers.keys().cloned().collect();
                let Some(name) = own.get(random.below(own.len().max(1))) else {
                    return;
                };
                let mut value = self.headers[name].as_bytes().to_vec();
                random.mutate(&mut value);
                let value = HeaderValue::from_bytes(&value);
                self.headers
                    .insert(name, value.unwrap_or(HeaderValue::from_static("")));
            }
            4 => {
                let methods = [
                    Method::GET,
                    Method::DELETE,
                    Method::OPTIONS,
                    Method::HEAD,
                    Method::PUT,
                ];
                self.method = random.pick(&methods).clone();
            }
            5 => {
                let uris = [
                    "/",
                    "/mcp?",
                    "/mcp?session=",
                    "*",
                    "http://localhost/mcp",
                    "http://b/mcp",
                ];
                self.uri = random.pick::<&str>(&uris).to_string();
            }
            6 => self.body.extend(vec![b' '; random.below(2 * MAX_LEN)]),
            _ => random.mutate(&mut self.body),
        }
    }
}

/// A random request of a client that knows these sessions.
pub fn request(bytes: &[u8], names: &[String], random: &mut Random) -> Asked {
    let mut draft = Draft::sound(bytes, names, random);
    let faults = *random.pick(&[0, 0, 0, 1, 1, 2, 4]);
    (0..faults).for_each(|_| draft.damage(random));
    let Draft {
        method,
        uri,
        headers,
        body,
    } = draft;
    let meant = match method {
        Method::POST => Meant::of(&body),
        _ => Meant::default(),
    };
    let pieces = Pieces::cut(body.into(), random);
    let builder = Request::builder().method(method).uri(uri);
    let mut request = builder.body(pieces).expect("a request");
    *request.headers_mut() = headers;
    let time = Duration::from_micros(random.below(3000) as u64);
    let patience = match random.below(8) {
        0 => Patience::Gone(time / 4),
        _ => Patience::Stays(time),
    };
    Asked {
        request,
        patience,
        meant,
    }
}
