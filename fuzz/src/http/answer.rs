//! Checks of HTTP responses.

use std::time::Duration;

use http_body_util::BodyExt;
use hyper::Response;
use mcpbolt::frame::event_stream::{Data, EventStreamDeframer, StreamEvent};
use mcpbolt::io::http::HttpBody;
use serde_json::Value;
use tokio::time::timeout;

use super::request::Meant;

/// The statuses in the documentation of `mcpbolt::io::http`, without 101: an in-process request never
/// becomes a WebSocket.
const STATUSES: [u16; 14] = [
    200, 202, 204, 400, 403, 404, 405, 406, 408, 409, 413, 415, 426, 503,
];

/// A response as far as it was read.
pub struct Answer {
    status: u16,
    kind: String,
    session: Option<String>,
    body: Vec<u8>,
    /// Whether its end was reached.
    whole: bool,
}

impl Answer {
    /// Reads a response; stops reading an event stream after `time`.
    pub async fn read(response: Response<HttpBody>, time: Duration) -> Self {
        let kind = header(&response, "content-type").unwrap_or_default();
        let session = header(&response, "mcp-session-id");
        let status = response.status().as_u16();
        let (mut body, mut read) = (response.into_body(), Vec::new());
        let reading = async {
            while let Some(frame) = body.frame().await {
                let Ok(frame) = frame;
                read.extend_from_slice(frame.data_ref().expect("no trailers"));
            }
        };
        let whole = match kind == "text/event-stream" {
            true => timeout(time, reading).await.is_ok(),
            false => {
                reading.await;
                true
            }
        };
        Self {
            status,
            kind,
            session,
            body: read,
            whole,
        }
    }

    /// The session id in the response.
    pub fn session(&self) -> Option<String> {
        let text = String::from_utf8_lossy(&self.body);
        let posts = text.split_once("?session=").map(|(_, rest)| rest);
        let legacy = posts.and_then(|rest| rest.lines().next().map(str::to_owned));
        self.session.clone().or(legacy)
    }

    /// Panics if this is not a valid response to the request.
    pub fn check(&self, meant: &Meant, shown: &str) {
        let Self { status, kind, .. } = self;
        let body = String::from_utf8_lossy(&self.body);
        let shown = format!("{status} {kind} {body:?} to {shown}");
        assert!(STATUSES.contains(status), "{shown}");
        match (status, kind.as_str()) {
            (202 | 204, "") => assert!(body.is_empty(), "{shown}"),
            // An action whose client takes events alone is refused by an event (R-ACT-24).
            (200 | 400.., "text/event-stream") => self.check_events(meant, &shown),
            (200, "application/json") => {
                meant.check(&parse(&self.body, &shown), &shown);
            }
            (400.., "application/json") => {
                let said = parse(&self.body, &shown);
                assert!(said["error"]["code"].is_i64(), "{shown}");
                meant.check(&said, &shown);
            }
            _ => panic!("{shown}"),
        }
    }

    fn check_events(&self, meant: &Meant, shown: &str) {
        let mut deframer = EventStreamDeframer::new(self.body.len());
        let mut answered = 0;
        while let Some(event) = deframer.next(&self.body) {
            let StreamEvent::Event { data, event, .. } = event else {
                panic!("{shown}");
            };
            let data = match data {
                Data::None => continue,
                Data::Line(range) => &self.body[range],
                Data::Joined => panic!("a message of several lines: {shown}"),
            };
            let event = event.map(|range| &self.body[range]);
            if event != Some(b"endpoint") && !data.is_empty() {
                let said = parse(data, shown);
                assert!(
                    self.status == 200 || said["error"]["code"].is_i64(),
                    "{shown}"
                );
                answered += meant.check(&said, shown);
            }
        }
        // A stream read to its end contains all answers.
        assert!(!self.whole || answered >= meant.least(), "{shown}");
    }
}

fn header(response: &Response<HttpBody>, name: &str) -> Option<String> {
    let value = response.headers().get(name)?;
    Some(value.to_str().expect("a header of text").to_owned())
}

fn parse(text: &[u8], shown: &str) -> Value {
    serde_json::from_slice(text).unwrap_or_else(|_| panic!("no JSON: {shown}"))
}
