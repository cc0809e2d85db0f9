//! Finding out what a server speaks, down to the pair of endpoints of 2024-11-05.

use std::net::TcpStream;
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use mcpbolt::client::{Client, block_on};
use mcpbolt::error::{CarrierFault, ConnectionError, RequestError};
use mcpbolt::io::http::HttpClientOptions;
use mcpbolt::limits::Limits;
use mcpbolt::mcp::Revision;
use serde_json::{Value, json};

use super::scripted::{Request, Scripted, Wire, opening};
use super::{PATIENCE, until};

/// R-ERA-08, R-ERA-09: whatever an older server makes of the first request.
#[test]
fn a_server_that_does_not_know_discovery_is_initialized() {
    type Answer = fn(&Request, &mut Wire);
    let answers: Vec<Answer> = vec![
        |_, wire| wire.answer(400, "", ""),
        |_, wire| wire.answer(400, "Content-Type: text/html\r\n", "<p>Bad request"),
        |_, wire| wire.answer(404, "Content-Type: text/plain\r\n", "Not found"),
        |_, wire| wire.answer(405, "", ""),
        |_, wire| wire.answer(406, "", ""),
        |_, wire| wire.answer(415, "", ""),
        |_, wire| wire.answer(422, "Content-Type: application/json\r\n", "{\"detail\":[]}"),
        |_, wire| wire.answer(500, "", ""),
        |_, wire| wire.answer(202, "", ""),
        |_, wire| wire.answer(200, "Content-Type: text/html\r\n", "<p>Hello"),
        |request, wire| wire.json(&request.error(-32601)),
        |request, wire| wire.error(400, &request.error(-32602)),
        |_, wire| {
            let error = json!({"code": -32000, "message": "Bad Request: Server not initialized"});
            wire.error(400, &json!({"jsonrpc": "2.0", "id": null, "error": error}));
        },
        |_, wire| {
            let error = json!({"code": -32600, "message": "Missing session ID"});
            wire.error(
                400,
                &json!({"jsonrpc": "2.0", "id": "server-error", "error": error}),
            );
        },
        |request, wire| {
            let data = json!({"supported": ["2025-06-18"], "requested": "2026-07-28"});
            let error = json!({"code": -32022, "message": "no", "data": data});
            wire.error(
                400,
                &json!({"jsonrpc": "2.0", "id": request.body["id"], "error": error}),
            );
        },
    ];
    for answer in answers {
        let server = Scripted::handshake("2025-06-18", move |request, wire| {
            match (&*request.verb, request.method()) {
                ("POST", "server/discover") => answer(request, wire),
                ("POST", _) => wire.json(&request.said("fine")),
                _ => wire.answer(405, "", ""),
            }
        });
        let client = server.open(Client::builder("test", "1"));
        assert_eq!(client.revision(), Some(Revision::V2025_06_18));
        assert_eq!(
            client.call_tool("any", &json!({})).wait().unwrap().text(),
            "fine"
        );
    }
}

/// A server of 2024-11-05.
fn pair(endpoint: impl Fn(&Request) -> String + Send + Sync + 'static) -> Scripted {
    let stream = Arc::<Mutex<Option<TcpStream>>>::default();
    Scripted::serve(move |request, wire| {
        let say = |message: Value| {
            let mut stream = stream.lock().unwrap();
            let event = format!("event: message\r\ndata: {message}\r\n\r\n");
            let _ = std::io::Write::write_all(stream.as_mut().unwrap(), event.as_bytes());
        };
        match (&*request.verb, &*request.path) {
            ("GET", "/mcp") => {
                assert_eq!(request.header("accept"), Some("text/event-stream"));
                wire.events();
                // Before the client knows where to post.
                *stream.lock().unwrap() = Some(wire.socket());
                wire.raw(format!(
                    ": hi\r\n\r\nevent: endpoint\r\ndata: {}\r\n\r\n",
                    endpoint(request)
                ));
            }
            ("POST", "/messages?id=1") if request.body["id"] == "deaf" => wire.until_gone(),
            ("POST", "/messages?id=1") => {
                wire.answer(202, "", "Accepted");
                match request.method() {
                    "initialize" => say(request.result(opening("2024-11-05"))),
                    "tools/call" => match request.body["params"]["name"].as_str() {
                        Some("ping") => say(json!({"jsonrpc": "2.0", "id": 1, "method": "ping"})),
                        Some("end") => {
                            let stream = stream.lock().unwrap().take();
                            stream.unwrap().shutdown(std::net::Shutdown::Both).unwrap();
                        }
                        Some("never") => {}
                        Some("deaf") => {
                            say(json!({"jsonrpc": "2.0", "id": "deaf", "method": "ping"}));
                            say(json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}));
                        }
                        Some("long") => say(request.said(&"x".repeat(10_000))),
                        _ => say(request.said("fine")),
                    },
                    _ => {}
                }
            }
            _ => wire.answer(405, "", ""),
        }
    })
}

/// R-ERA-11, R-LEG-03, R-LEG-04, R-LEG-06.
#[test]
fn the_pair_of_endpoints_is_found() {
    let server = pair(|_| "/messages?id=1".into());
    let client = server.open(Client::builder("test", "1"));
    assert_eq!(client.revision(), Some(Revision::V2024_11_05));
    for _ in 0..3 {
        assert_eq!(
            client.call_tool("any", &json!({})).wait().unwrap().text(),
            "fine"
        );
    }
    let late = client.call_tool("never", &json!({}));
    let late = late.timeout(Duration::from_millis(50)).wait();
    assert_eq!(late.unwrap_err(), RequestError::TimedOut);
    until("the server is told", || {
        server.asked("notifications/cancelled").len() == 1
    });
    let pinged = client.call_tool("ping", &json!({})).send().unwrap();
    let answered =
        |request: &Request| request.body["id"] == 1 && request.body["result"].is_object();
    until("the ping is answered", || {
        server.seen().iter().any(answered)
    });
    drop(pinged);
    let error = client.call_tool("end", &json!({})).wait().unwrap_err();
    assert_eq!(error, RequestError::Closed(ConnectionError::ClosedByPeer));
}

/// An answer of this side that the server does not take is given up; and when the client goes,
/// what was still to be said is not posted where nobody ever took it.
#[test]
fn words_to_a_pair_are_posted_where_it_said_or_not_at_all() {
    let options = || HttpClientOptions {
        max_concurrent: Some(1),
        ..HttpClientOptions::default()
    };
    let answered = |server: &Scripted, id: Value| {
        until("the ping is answered", || {
            let mut seen = server.seen().into_iter();
            seen.any(|it| it.body["id"] == id && it.body["result"].is_object())
        });
    };
    let call = |client: &Client| {
        let call = client.call_tool("deaf", &json!({})).timeout(PATIENCE);
        call.send().unwrap()
    };
    let server = pair(|_| "/messages?id=1".into());
    let limits = Limits {
        request_timeout: Duration::from_millis(200),
        ..Limits::NETWORK
    };
    let client = server.with(Client::builder("test", "1").limits(limits), options());
    let calling = call(&client);
    answered(&server, json!("deaf"));
    answered(&server, json!(1));
    drop(calling);

    let server = pair(|_| "/messages?id=1".into());
    let client = server.with(Client::builder("test", "1"), options());
    let calling = call(&client);
    answered(&server, json!("deaf"));
    std::thread::sleep(Duration::from_millis(100));
    let to_the_first = || {
        let seen = server.seen().into_iter();
        seen.filter(|it| it.path == "/mcp").count()
    };
    let before = to_the_first();
    drop((calling, client));
    std::thread::sleep(Duration::from_millis(200));
    assert_eq!(to_the_first(), before);
}

/// The id of an answer that is too long is unknown, so all calls fail.
#[test]
fn too_long_an_event_ends_the_pair() {
    let server = pair(|_| "/messages?id=1".into());
    let limits = Limits {
        max_message_bytes: 4096,
        ..Limits::NETWORK
    };
    let client = server.open(Client::builder("test", "1").limits(limits));
    let call = |name| client.call_tool(name, &json!({})).timeout(PATIENCE);
    let other = call("never").send().unwrap();
    for error in [call("long").wait(), block_on(other)].map(Result::unwrap_err) {
        let RequestError::Closed(ConnectionError::Carrier(error)) = error else {
            panic!("{error:?}");
        };
        assert_eq!(error.fault, CarrierFault::TooLong);
    }
}

/// R-LEG-03.
#[test]
fn messages_are_not_posted_to_another_origin() {
    let (tell, told) = mpsc::channel();
    let other = Scripted::serve(move |_, _| tell.send(()).unwrap());
    for to in [
        other.url(),
        "https://127.0.0.1/messages".into(),
        "//example.invalid/x".into(),
    ] {
        let server = pair(move |_| to.clone());
        let client = Client::builder("test", "1");
        let opened = block_on(client.http(&server.url(), HttpClientOptions::default()));
        let error = opened.unwrap_err();
        let inner = error.get_ref().and_then(|inner| inner.downcast_ref());
        let Some(RequestError::Closed(ConnectionError::Carrier(error))) = inner else {
            panic!("{error:?}");
        };
        assert_eq!(error.fault, CarrierFault::Redirected);
    }
    assert!(told.try_recv().is_err());
}

/// A server that is none at all says what it said to the first attempt.
#[test]
fn a_page_is_no_server() {
    let server =
        Scripted::serve(|_, wire| wire.answer(404, "Content-Type: text/html\r\n", "nothing here"));
    let client = Client::builder("test", "1");
    let opened = block_on(client.http(&server.url(), HttpClientOptions::default()));
    let error = opened.unwrap_err().to_string();
    assert!(
        error.contains("404") && error.contains("nothing here"),
        "{error}"
    );
}
