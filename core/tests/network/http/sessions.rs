//! Sessions of the handshake era on the same endpoint.

use std::net::SocketAddr;
use std::thread;
use std::time::Duration;

use mcpbolt::io::http::HttpOptions;
use serde_json::{Value, json};

use crate::http::wire::{Answer, Wire, post, request};
use crate::http::{Serving, until};

pub const ERA: [&str; 3] = ["2025-03-26", "2025-06-18", "2025-11-25"];

/// A client's side of one session.
pub struct Client {
    to: SocketAddr,
    revision: &'static str,
    id: String,
}

impl Client {
    pub fn open(to: SocketAddr, revision: &'static str, capabilities: Value) -> Self {
        let mut client = Self {
            to,
            revision,
            id: String::new(),
        };
        let hello = client.post(
            &json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
            "protocolVersion": revision, "capabilities": capabilities,
            "clientInfo": {"name": "test", "version": "1"}}}),
        );
        assert_eq!(hello.json()["result"]["protocolVersion"], revision);
        client.id = hello.header("mcp-session-id").to_owned();
        assert!(!client.id.is_empty() && client.id.bytes().all(|byte| byte.is_ascii_graphic()));
        let ready = client.post(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        assert_eq!((ready.status, &*ready.body), (202, ""));
        client
    }

    /// The same session at another process.
    #[cfg(feature = "sealing")]
    pub fn elsewhere(&self, to: SocketAddr) -> Self {
        Self {
            to,
            revision: self.revision,
            id: self.id.clone(),
        }
    }

    pub fn headers(&self) -> Vec<(&'static str, String)> {
        let mut headers = vec![
            ("Host", "localhost".to_owned()),
            ("Content-Type", "application/json".to_owned()),
            ("Accept", "application/json, text/event-stream".to_owned()),
        ];
        if !self.id.is_empty() {
            headers.push(("MCP-Session-Id", self.id.clone()));
            headers.push(("MCP-Protocol-Version", self.revision.to_owned()));
        }
        headers
    }

    pub fn send(&self, message: &Value) -> Wire {
        let mut wire = Wire::open(self.to);
        wire.send(&post(&self.headers(), &message.to_string()));
        wire
    }

    pub fn post(&self, message: &Value) -> Answer {
        self.send(message).answer()
    }

    pub fn call(&self, id: impl Into<Value>, name: &str, arguments: Value) -> Value {
        json!({"jsonrpc": "2.0", "id": id.into(), "method": "tools/call",
            "params": {"name": name, "arguments": arguments}})
    }

    pub fn bare(&self, method: &str, more: &str) -> Wire {
        let mut wire = Wire::open(self.to);
        let mut head = format!("{method} /mcp HTTP/1.1\r\n{more}");
        for (name, value) in self.headers() {
            head += &format!("{name}: {value}\r\n");
        }
        wire.send(format!("{head}\r\n").as_bytes());
        wire
    }

    /// A stream of what belongs to no request, or of what is behind a position.
    pub fn get(&self, last: Option<&str>) -> Wire {
        let last = last.map(|id| format!("Last-Event-ID: {id}\r\n"));
        let mut wire = self.bare("GET", &last.unwrap_or_default());
        let answer = wire.begin();
        assert_eq!(
            (answer.status, answer.header("content-type")),
            (200, "text/event-stream")
        );
        wire
    }
}

/// The events of a chunk: ids and messages.
pub fn events(text: &str) -> Vec<(String, Value)> {
    let event = |event: &str| {
        let field = |name| event.lines().find_map(|line| line.strip_prefix(name));
        let data = field("data: ").unwrap_or_default();
        let message = serde_json::from_str(data).unwrap_or(Value::Null);
        (field("id: ").unwrap_or_default().to_owned(), message)
    };
    text.split_terminator("\n\n").map(event).collect()
}

/// The next events of a stream; none at its end.
fn next(wire: &mut Wire) -> Vec<(String, Value)> {
    events(&wire.chunk())
}

fn steps(client: &Client) -> Value {
    let mut steps = client.call(3, "steps", json!({}));
    steps["params"]["_meta"] = json!({"progressToken": "p"});
    steps
}

/// R-SES-01, R-SES-02, R-SES-03, R-SES-06, R-SES-08, R-HTP-05, R-HTP-13, R-SSE-06.
#[test]
fn a_session_begins_answers_and_ends() {
    let serving = Serving::begin(HttpOptions::default());
    for revision in ERA {
        let client = Client::open(serving.at, revision, json!({}));
        let plain = client.post(&client.call("a", "echo", json!({"text": "hi"})));
        assert_eq!(
            (plain.status, plain.header("content-type")),
            (200, "application/json")
        );
        assert_eq!(plain.json()["id"], "a");
        assert_eq!(plain.json()["result"]["content"][0]["text"], "hi");

        let answer = client.post(&steps(&client));
        assert_eq!(answer.header("content-type"), "text/event-stream");
        let mut told = events(&answer.body);
        if revision == "2025-11-25" {
            assert_eq!(told.remove(0).1, Value::Null, "a position alone");
        }
        let progress: Vec<_> = told
            .iter()
            .filter_map(|(_, it)| it["params"]["progress"].as_f64())
            .collect();
        assert_eq!(progress, [1.0, 2.0, 3.0]);
        assert_eq!(told[3].1["result"]["content"][0]["text"], "done");
        let mut ids: Vec<_> = told.iter().map(|(id, _)| id).collect();
        ids.dedup();
        assert_eq!(ids.len(), 4, "every event has an id of its own");

        assert_eq!(client.bare("DELETE", "").answer().status, 204);
        for gone in [
            client.bare("DELETE", "").answer(),
            client.post(&steps(&client)),
        ] {
            assert_eq!(gone.status, 404);
        }
    }
    serving.end();
}

/// R-SES-04, R-SES-05, R-SES-09, R-HTP-14, R-ERA-01, R-ERA-03, R-ERA-04, R-ERR-18.
#[test]
fn what_names_no_session_gets_none() {
    let serving = Serving::begin(HttpOptions::default());
    let nobody = Client {
        to: serving.at,
        revision: "2025-06-18",
        id: String::new(),
    };
    let listing = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
    assert_eq!(nobody.post(&listing).status, 400);
    let versioned = "MCP-Protocol-Version: 2025-06-18\r\n";
    assert_eq!(nobody.bare("GET", versioned).answer().status, 400);
    assert_eq!(nobody.bare("DELETE", "").answer().status, 400);
    let stranger = Client {
        id: "0123456789abcdef".into(),
        ..nobody
    };
    assert_eq!(stranger.post(&listing).status, 404);
    let confused = Client {
        revision: "1999-01-01",
        id: Client::open(serving.at, "2025-06-18", json!({})).id,
        ..stranger
    };
    assert_eq!(confused.post(&listing).status, 400);

    // Both eras live on one endpoint, and the newer does not know of sessions.
    let session = Client::open(serving.at, "2025-06-18", json!({}));
    assert_eq!(session.post(&listing).status, 200);
    let modern = request(1, "tools/list", json!({}));
    let mut headers = crate::http::wire::headers(&modern);
    headers.push(("Mcp-Session-Id", "nonsense".into()));
    let mut wire = Wire::open(serving.at);
    wire.send(&post(&headers, &modern.to_string()));
    let answer = wire.answer();
    assert_eq!((answer.status, answer.header("mcp-session-id")), (200, ""));
    assert_eq!(answer.json()["result"]["resultType"], "complete");
    serving.end();
}

/// R-RPC-21, R-BAT-04, R-HTP-05: what cannot be taken is refused, in JSON.
#[test]
fn bad_bodies_of_a_session_are_refused() {
    let serving = Serving::begin(HttpOptions::default());
    let client = Client::open(serving.at, "2025-06-18", json!({}));
    for (body, code) in [
        ("{", -32700),
        ("[]", -32600),
        ("7", -32600),
        ("{\"id\":1}", -32600),
    ] {
        let mut wire = Wire::open(serving.at);
        wire.send(&post(&client.headers(), body));
        let answer = wire.answer();
        assert_eq!(answer.status, 400, "{body}");
        assert_eq!(answer.json()["error"]["code"], code, "{body}");
    }
    let unknown = client.post(&json!({"jsonrpc": "2.0", "id": 1, "method": "no/such"}));
    assert_eq!(
        (unknown.status, &unknown.json()["error"]["code"]),
        (200, &json!(-32601))
    );
    serving.end();
}

/// R-BAT-01, R-BAT-06, R-BAT-07, R-BAT-08, R-BAT-09.
#[test]
fn a_batch_is_answered_when_all_of_it_is() {
    let serving = Serving::begin(HttpOptions::default());
    let client = Client::open(serving.at, "2025-03-26", json!({}));
    let echo = |n: u32| client.call(n, "echo", json!({"text": n.to_string()}));
    let cancelled =
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 99}});
    let answer = client.post(&json!([echo(1), cancelled, echo(2), echo(3)]));
    let mut answers: Vec<_> = events(&answer.body)
        .into_iter()
        .map(|(_, it)| {
            (
                it["id"].as_u64().unwrap(),
                it["result"]["content"][0]["text"].clone(),
            )
        })
        .collect();
    answers.sort_by_key(|(id, _)| *id);
    assert_eq!(answers, [(1, json!("1")), (2, json!("2")), (3, json!("3"))]);
    let answer = json!({"jsonrpc": "2.0", "id": 99, "result": {}});
    for unanswered in [json!([cancelled, cancelled]), json!([answer, answer])] {
        let accepted = client.post(&unanswered);
        assert_eq!((accepted.status, &*accepted.body), (202, ""));
    }
    serving.end();
}

/// R-HTP-08, R-ELI-01: a question comes on the stream of its call, its answer by another POST.
#[test]
fn questions_come_on_the_stream_of_their_call() {
    let serving = Serving::begin(HttpOptions::default());
    let client = Client::open(serving.at, "2025-06-18", json!({"elicitation": {}}));
    let mut standing = client.get(None);
    let mut calls: Vec<Wire> = (0..8)
        .map(|n| client.send(&client.call(n, "ask", json!({}))))
        .collect();
    for wire in &mut calls {
        assert_eq!(wire.begin().header("content-type"), "text/event-stream");
    }
    for (n, wire) in calls.iter_mut().enumerate().rev() {
        let asked = next(wire);
        assert_eq!(asked[0].1["method"], "elicitation/create");
        let answer = json!({"jsonrpc": "2.0", "id": asked[0].1["id"],
            "result": {"action": "accept", "content": {"name": n.to_string()}}});
        assert_eq!(client.post(&answer).status, 202);
        let answered = next(wire);
        assert_eq!(answered[0].1["id"], n);
        let text = answered[0].1["result"]["content"][0]["text"]
            .as_str()
            .unwrap()
            .to_owned();
        assert!(text.contains(&format!("{:?}", n.to_string())), "{text}");
        assert!(wire.chunk().is_empty(), "the stream ends with the answer");
    }
    // R-HTP-10, R-HTP-12: the other stream carried none of this.
    serving.server.resource_updated("a:b");
    serving
        .server
        .change(|offer| offer.remove_tool("echo"))
        .unwrap();
    assert_eq!(
        next(&mut standing)[0].1["method"],
        "notifications/tools/list_changed"
    );
    serving.end();
}

/// R-HTP-11, R-SSE-04: who opens the standing stream again is told what came meanwhile; two do
/// not read it.
#[test]
fn the_standing_stream_has_one_reader_and_waits_for_it() {
    let serving = Serving::begin(HttpOptions::default());
    let client = Client::open(serving.at, "2025-11-25", json!({}));
    let watch = json!({"jsonrpc": "2.0", "id": 1, "method": "resources/subscribe", "params": {"uri": "a:b"}});
    assert_eq!(client.post(&watch).status, 200);
    let mut first = client.get(None);
    serving.server.resource_updated("a:b");
    let told = next(&mut first);
    assert_eq!(told[0].1["method"], "notifications/resources/updated");
    let mut second = client.get(None);
    assert!(first.chunk().is_empty(), "the earlier reader is sent away");
    serving.server.resource_updated("a:b");
    assert_eq!(next(&mut second).len(), 1);
    drop(second);
    thread::sleep(Duration::from_millis(50));
    serving.server.resource_updated("a:b");
    let mut third = client.get(None);
    assert_eq!(next(&mut third).len(), 1);
    // All of it is still there for who says where it is.
    let mut again = client.get(Some(&told[0].0));
    let mut count = 0;
    while count < 2 {
        count += next(&mut again).len();
    }
    assert_eq!(count, 2);
    serving.end();
}

/// R-SSE-03, R-SSE-04, R-SSE-05: wherever the stream of a call breaks, the rest is had again.
#[test]
fn a_broken_stream_goes_on_behind_any_event() {
    let serving = Serving::begin(HttpOptions::default());
    let client = Client::open(serving.at, "2025-11-25", json!({}));
    let whole = events(&client.post(&steps(&client)).body);
    assert_eq!(whole.len(), 5);
    for (index, (id, _)) in whole.iter().enumerate() {
        let mut wire = client.get(Some(id));
        let mut rest = Vec::new();
        loop {
            let more = next(&mut wire);
            if more.is_empty() {
                break;
            }
            rest.extend(more);
        }
        assert_eq!(rest, whole[index + 1..], "behind {id}");
    }
    // A call whose client went away goes on, and its answer is kept.
    let mut call = client.call(8, "slowly", json!({}));
    call["params"]["_meta"] = json!({"progressToken": "q"});
    let mut wire = client.send(&call);
    assert_eq!(wire.begin().status, 200);
    let begun = next(&mut wire);
    drop(wire);
    let mut resumed = client.get(Some(&begun[0].0));
    let mut rest = Vec::new();
    while rest
        .last()
        .is_none_or(|(_, it): &(String, Value)| it["id"] != 8)
    {
        rest.extend(next(&mut resumed));
    }
    assert_eq!(
        rest.last().unwrap().1["result"]["content"][0]["text"],
        "slowly done"
    );
    serving.end();
}

/// R-CAN-01, R-CAN-06: in a session a lost stream cancels nothing; a notification does, on
/// whatever stream.
#[test]
fn a_call_is_cancelled_by_a_notification_and_by_nothing_else() {
    let serving = Serving::begin(HttpOptions::default());
    let client = Client::open(serving.at, "2025-06-18", json!({}));
    let wire = client.send(&client.call("s", "sleep", json!({})));
    let sleepers = || serving.sleepers.load(std::sync::atomic::Ordering::SeqCst);
    until("it began", || sleepers() == 1);
    drop(wire);
    thread::sleep(Duration::from_millis(100));
    assert_eq!(sleepers(), 1);
    let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "s"}});
    assert_eq!(client.post(&cancel).status, 202);
    until("it ended", || sleepers() == 0);
    // The waiter of a cancelled call is told (R-HTP-04), even if another client cancelled it.
    let mut wire = client.send(&client.call("t", "sleep", json!({})));
    until("it began", || sleepers() == 1);
    let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "t"}});
    assert_eq!(client.post(&cancel).status, 202);
    assert!(wire.answer().body.contains("-32800"));
    serving.end();
}

/// R-SES-05: an unused session ends, and the longest unused gives way.
#[test]
fn sessions_are_bounded_in_number_and_time() {
    let options = HttpOptions {
        max_sessions: 3,
        session_ttl: Duration::from_millis(300),
        ..HttpOptions::default()
    };
    let serving = Serving::begin(options);
    let listing = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
    let open = || Client::open(serving.at, "2025-06-18", json!({}));
    let status = |client: &Client| client.post(&listing).status;
    let busy = open();
    let _stream = busy.get(None);
    let (first, second) = (open(), open());
    assert_eq!(status(&first), 200);
    let third = open();
    assert_eq!(status(&second), 404, "the longest unused");
    assert_eq!(
        (status(&first), status(&third), status(&busy)),
        (200, 200, 200)
    );
    until("unused sessions end", || {
        thread::sleep(Duration::from_millis(400));
        status(&first) == 404 && status(&third) == 404
    });
    assert_eq!(status(&busy), 200, "a stream is use");
    serving.end();
}

/// R-SSE-07, R-HTP-09: a handler sends its client away, which comes back for the rest.
#[test]
fn a_stream_is_let_go_and_gone_back_to() {
    let serving = Serving::begin(HttpOptions::default());
    for revision in ERA {
        let client = Client::open(serving.at, revision, json!({}));
        let answer = client.post(&client.call(1, "away", json!({})));
        if revision < "2025-11-25" {
            assert_eq!(answer.json()["result"]["content"][0]["text"], "back");
            continue;
        }
        assert!(answer.body.contains("retry: 70\n"), "{}", answer.body);
        let told = events(&answer.body);
        assert!(told.iter().all(|(_, message)| message.is_null()));
        let mut wire = client.get(Some(&told.last().unwrap().0));
        let rest = next(&mut wire);
        assert_eq!(rest[0].1["result"]["content"][0]["text"], "back");
        assert!(wire.chunk().is_empty());
    }
    serving.end();
}

/// R-LEG-01, R-LEG-02, R-LEG-04, R-LEG-06, R-LEG-07, R-ERA-15.
#[test]
fn clients_of_the_first_revision_get_a_stream_and_post_beside_it() {
    let serving = Serving::begin(HttpOptions::default());
    let mut stream = Wire::open(serving.at);
    stream.send(b"GET /mcp HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n");
    assert_eq!(stream.begin().header("content-type"), "text/event-stream");
    let endpoint = stream.chunk();
    let uri = endpoint
        .strip_prefix("event: endpoint\ndata: ")
        .unwrap()
        .trim()
        .to_owned();
    let headers = [
        ("Host", "localhost".to_owned()),
        ("Content-Type", "application/json".to_owned()),
    ];
    let say = |uri: &str, message: &str| {
        let mut wire = Wire::open(serving.at);
        let bytes = String::from_utf8(post(&headers, message)).unwrap();
        wire.send(bytes.replacen("/mcp", uri, 1).as_bytes());
        wire.answer().status
    };
    let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2024-11-05", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}});
    // Written over several lines, as a program may.
    assert_eq!(
        say(&uri, &serde_json::to_string_pretty(&hello).unwrap()),
        202
    );
    assert_eq!(
        next(&mut stream)[0].1["result"]["protocolVersion"],
        "2024-11-05"
    );
    assert_eq!(
        say(
            &uri,
            r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#
        ),
        202
    );
    let call = r#"{"jsonrpc":"2.0","id":"x","method":"tools/call","params":{"name":"echo","arguments":{"text":"hi"}}}"#;
    assert_eq!(say(&uri, call), 202);
    let answer = next(&mut stream);
    assert_eq!(
        (
            &answer[0].1["id"],
            &answer[0].1["result"]["content"][0]["text"]
        ),
        (&json!("x"), &json!("hi"))
    );
    assert_eq!(say("/mcp?session=none", call), 404);
    drop(stream);
    until("the session ends with its stream", || {
        say(&uri, call) == 404
    });
    serving.end();

    let off = HttpOptions {
        sse: false,
        ..HttpOptions::default()
    };
    let serving = Serving::begin(off);
    let mut stream = Wire::open(serving.at);
    stream.send(b"GET /mcp HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n");
    assert_eq!(stream.answer().status, 405);
    serving.end();
}

/// R-LEG-05: where the stream is asked for, and where is posted, pages of others are refused.
#[test]
fn other_peoples_pages_get_no_stream_of_2024() {
    let serving = Serving::begin(HttpOptions::default());
    for (origin, status) in [
        ("http://evil.example.com", 403),
        ("http://localhost:3000", 200),
    ] {
        let mut wire = Wire::open(serving.at);
        let accept = "Accept: text/event-stream";
        let head =
            format!("GET /mcp HTTP/1.1\r\nHost: localhost\r\n{accept}\r\nOrigin: {origin}\r\n\r\n");
        wire.send(head.as_bytes());
        assert_eq!(wire.begin().status, status, "{origin}");
    }
    let headers = [
        ("Host", "localhost".to_owned()),
        ("Content-Type", "application/json".to_owned()),
        ("Origin", "http://evil.example.com".to_owned()),
    ];
    let mut wire = Wire::open(serving.at);
    wire.send(&post(&headers, "{}"));
    assert_eq!(wire.answer().status, 403);
    serving.end();
}

/// R-SES-07: a session exists for whoever began it; who that is, handlers learn.
#[tokio::test]
async fn a_session_is_that_of_one_principal() {
    use mcpbolt::io::http::{HttpService, Principal};
    use mcpbolt::server::{Arguments, Context, Server, Tool};

    let server = Server::builder("test", "1")
        .tool(
            Tool::new("who"),
            |_: Arguments, context: Context| async move {
                context.principal().unwrap_or("nobody").to_owned()
            },
        )
        .build()
        .unwrap();
    let service = HttpService::new(&server, HttpOptions::default()).unwrap();
    let ask = async |method: &str, principal: Option<&str>, session: &str, body: Value| {
        let mut request = hyper::Request::builder()
            .method(method)
            .uri("/mcp")
            .header("host", "localhost")
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream");
        if !session.is_empty() {
            request = request.header("mcp-session-id", session);
        }
        let mut request = request.body(body.to_string()).unwrap();
        if let Some(name) = principal {
            request.extensions_mut().insert(Principal::new(name));
        }
        let response = service.respond(request).await;
        let id = response.headers().get("mcp-session-id");
        let id = id.map_or(String::new(), |id| id.to_str().unwrap().to_owned());
        let (status, mut body) = (response.status().as_u16(), response.into_body());
        let mut text = Vec::new();
        // The stream of a session has no end of its own.
        while method == "POST"
            && let Some(frame) = std::future::poll_fn(|cx| {
                http_body::Body::poll_frame(std::pin::Pin::new(&mut body), cx)
            })
            .await
        {
            text.extend(frame.unwrap().into_data().unwrap_or_default());
        }
        (status, id, String::from_utf8(text).unwrap())
    };
    let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"}}});
    let (status, id, _) = ask("POST", Some("alice"), "", hello).await;
    assert_eq!(status, 200);
    let who = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {"name": "who", "arguments": {}}});
    let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    assert_eq!(ask("POST", Some("alice"), &id, ready).await.0, 202);
    for other in [Some("bob"), None] {
        for method in ["POST", "GET", "DELETE"] {
            let (status, ..) = ask(method, other, &id, who.clone()).await;
            assert_eq!(status, 404, "{method} of {other:?}");
        }
    }
    let (status, _, answer) = ask("POST", Some("alice"), &id, who).await;
    assert_eq!(status, 200);
    assert!(answer.contains("alice"), "{answer}");

    // One that stands alone, too.
    let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {}});
    let alone = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {"name": "who", "arguments": {}, "_meta": meta}});
    let request = hyper::Request::post("/mcp")
        .header("host", "localhost")
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream")
        .header("mcp-protocol-version", "2026-07-28")
        .header("mcp-method", "tools/call")
        .header("mcp-name", "who")
        .extension(Principal::new("carol"))
        .body(alone.to_string())
        .unwrap();
    let mut body = service.respond(request).await.into_body();
    let frame =
        std::future::poll_fn(|cx| http_body::Body::poll_frame(std::pin::Pin::new(&mut body), cx));
    let frame = frame.await.unwrap().unwrap().into_data().unwrap();
    assert!(
        String::from_utf8_lossy(&frame).contains("carol"),
        "{frame:?}"
    );
}

/// R-SSE-10: what was read long ago is no longer kept.
#[test]
fn what_is_kept_for_clients_that_come_back_is_bounded() {
    let serving = Serving::begin(HttpOptions {
        replay_bytes: 2048,
        ..HttpOptions::default()
    });
    let client = Client::open(serving.at, "2025-11-25", json!({}));
    let watch = json!({"jsonrpc": "2.0", "id": 1, "method": "resources/subscribe", "params": {"uri": "a:b"}});
    assert_eq!(client.post(&watch).status, 200);
    let mut wire = client.get(None);
    let mut told = Vec::new();
    // Each has about 100 bytes.
    for _ in 0..200 {
        serving.server.resource_updated("a:b");
        told.extend(next(&mut wire));
    }
    // The newest are kept.
    let (known, last) = (&told[told.len() - 2], &told[told.len() - 1]);
    let mut wire = client.get(Some(&known.0));
    assert_eq!(&next(&mut wire)[0], last);
    // The oldest are not: the stream begins with what is new.
    let mut wire = client.get(Some(&told[0].0));
    serving.server.resource_updated("a:b");
    let position = next(&mut wire)[0].0.strip_prefix("0_").unwrap().parse();
    assert!(position.is_ok_and(|position: usize| position > told.len() / 2));
    serving.end();
}
