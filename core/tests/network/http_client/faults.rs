//! A fault ends the call that it concerns, with an error that says why, and nothing else.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::mpsc;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use mcpbolt::client::{Client, block_on};
use mcpbolt::error::{CarrierError, CarrierFault, ConnectionError, RequestError};
use mcpbolt::io::http::HttpClientOptions;
use mcpbolt::limits::Limits;
use mcpbolt::mcp::Revision;
use serde_json::json;

use super::scripted::{Request, Scripted};
use super::serving::{Serving, builder};
use super::{PATIENCE, until};

const JSON: &str = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n";
const EVENTS: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n";

/// The longest message that is taken in these tests, in bytes.
const MAX_BYTES: usize = 4096;

fn carrier(error: RequestError) -> CarrierError {
    match error {
        RequestError::Carrier(error) => *error,
        other => panic!("not the carrier: {other:?}"),
    }
}

fn why_not_open(error: &std::io::Error) -> CarrierError {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref());
    match inner {
        Some(RequestError::Closed(ConnectionError::Carrier(error))) => (**error).clone(),
        other => panic!("not the carrier: {other:?}"),
    }
}

/// R-HTP-19, R-HTP-20, R-ERR-26.
#[test]
fn every_fault_ends_its_call_and_no_other() {
    use CarrierFault::*;
    let long = "x".repeat(MAX_BYTES);
    let chunked = |size: &str| {
        format!("{JSON}Transfer-Encoding: chunked\r\n\r\n{size}\r\n{{\"jsonrpc\":\r\n")
    };
    let status =
        |status: u16, more: &str| format!("HTTP/1.1 {status} -\r\nContent-Length: 0\r\n{more}\r\n");
    let table: Vec<(&str, String, CarrierFault, Option<u16>)> = vec![
        ("nothing", String::new(), Broken, None),
        ("garbage", "\u{0}\u{1}garbage\r\n\r\n".into(), Broken, None),
        ("another protocol", "SSH-2.0-x\r\n".into(), Broken, None),
        (
            "half a head",
            "HTTP/1.1 200 OK\r\nContent-".into(),
            Broken,
            None,
        ),
        (
            "no body",
            format!("{JSON}Content-Length: 0\r\n\r\n"),
            NoAnswer,
            None,
        ),
        (
            "a length that lies",
            format!("{JSON}Content-Length: 500\r\n\r\n{{}}"),
            Broken,
            None,
        ),
        (
            "two lengths",
            format!("{JSON}Content-Length: 5\r\nContent-Length: 2\r\n\r\n{{}}"),
            Broken,
            None,
        ),
        (
            "half an answer",
            format!("{JSON}Content-Length: 9\r\n\r\n{{\"jsonrpc"),
            NoAnswer,
            None,
        ),
        (
            "no JSON",
            format!("{JSON}Content-Length: 5\r\n\r\nhello"),
            NoAnswer,
            None,
        ),
        (
            "two messages",
            format!("{JSON}Content-Length: 4\r\n\r\n{{}}{{}}"),
            NoAnswer,
            None,
        ),
        ("a chunk that breaks off", chunked("40"), Broken, None),
        ("a chunk of no size", chunked("zz"), Broken, None),
        (
            "an endless chunk",
            chunked("fffffffffffffffff"),
            Broken,
            None,
        ),
        (
            "a long answer",
            format!("{JSON}Content-Length: {}\r\n\r\n{long}x", MAX_BYTES + 1),
            TooLong,
            None,
        ),
        (
            "a huge length",
            format!("{JSON}Content-Length: 1099511627776\r\n\r\n"),
            TooLong,
            None,
        ),
        (
            "a long answer in chunks",
            format!("{JSON}Transfer-Encoding: chunked\r\n\r\n1001\r\n{long}x\r\n"),
            TooLong,
            None,
        ),
        (
            "a page",
            "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 3\r\n\r\n<p>".into(),
            NoAnswer,
            Some(200),
        ),
        ("accepted", status(202, ""), NoAnswer, Some(202)),
        (
            "no content",
            "HTTP/1.1 204 -\r\n\r\n".into(),
            NoAnswer,
            Some(204),
        ),
        ("no events", format!("{EVENTS}\r\n"), Broken, None),
        (
            "half an event",
            format!("{EVENTS}\r\ndata: {{\"jsonrpc\""),
            Broken,
            None,
        ),
        (
            "a long event",
            format!("{EVENTS}\r\ndata: {long}\n\n"),
            TooLong,
            None,
        ),
        ("bad request", status(400, ""), Refused, Some(400)),
        (
            "unauthorized",
            status(401, "WWW-Authenticate: Bearer realm=\"x\"\r\n"),
            Refused,
            Some(401),
        ),
        ("forbidden", status(403, ""), Refused, Some(403)),
        ("too large", status(413, ""), Refused, Some(413)),
        ("large headers", status(431, ""), Refused, Some(431)),
        ("a failure", status(500, ""), Refused, Some(500)),
        ("out of service", status(503, ""), Refused, Some(503)),
        ("a redirect to nowhere", status(307, ""), Refused, Some(307)),
        (
            "a redirect to something else",
            status(307, "Location: ftp://example.com/\r\n"),
            Redirected,
            Some(307),
        ),
        (
            "see other",
            status(303, "Location: /other\r\n"),
            Refused,
            Some(303),
        ),
        (
            "a circle",
            status(308, "Location: /mcp\r\n"),
            Redirected,
            Some(308),
        ),
    ];
    let (tell, told) = mpsc::channel();
    let told: Mutex<mpsc::Receiver<String>> = Mutex::new(told);
    let server = Scripted::stateless(move |request, wire| match request.header("mcp-name") {
        Some("fault") => {
            let told = told.lock().unwrap();
            // The circle comes by several times.
            let answer = told.recv_timeout(Duration::from_millis(10));
            let answer = answer.unwrap_or_else(|_| {
                "HTTP/1.1 308 -\r\nContent-Length: 0\r\nLocation: /mcp\r\n\r\n".into()
            });
            wire.last(&answer);
        }
        _ => wire.json(&request.said("fine")),
    });
    let limits = Limits {
        max_message_bytes: MAX_BYTES,
        ..Limits::NETWORK
    };
    let client = server.open(builder(Revision::V2026_07_28).limits(limits));
    for (what, answer, fault, status) in table {
        tell.send(answer).unwrap();
        let call = client.call_tool("fault", &json!({})).timeout(PATIENCE);
        let error = carrier(call.wait().unwrap_err());
        assert_eq!(
            (error.fault, error.status),
            (fault, status),
            "{what}: {error}"
        );
        assert!(!error.to_string().contains("127.0.0.1"), "{what}: {error}");
        let expected = (status == Some(401)).then_some("Bearer realm=\"x\"");
        assert_eq!(error.authenticate.as_deref(), expected);
        let fine = client.call_tool("fine", &json!({})).wait();
        assert_eq!(fine.unwrap().text(), "fine", "after {what}");
    }
    assert_eq!(client.handle().pending_count(), 0);
}

#[test]
fn errors_of_the_protocol_come_through_whatever_the_status() {
    let server = Scripted::stateless(|request, wire| {
        let (status, code) = match request.header("mcp-name") {
            Some("a") => (200, -32602),
            Some("b") => (404, -32601),
            Some("c") => (400, -32021),
            Some("d") => (503, -31999),
            _ => (500, -32603),
        };
        wire.error(status, &request.error(code));
    });
    let client = server.open(builder(Revision::V2026_07_28));
    for (name, code) in [
        ("a", -32602),
        ("b", -32601),
        ("c", -32021),
        ("d", -31999),
        ("e", -32603),
    ] {
        let call = client.call_tool(name, &json!({})).wait();
        assert_eq!(call.unwrap_err().code(), Some(code), "{name}");
    }
}

/// R-CAN-05, R-CAN-09: nothing but the end of the exchange tells the server.
#[test]
fn a_server_that_never_answers_is_given_up() {
    let (tell, told) = mpsc::channel();
    let tell = Mutex::new(tell);
    let server = Scripted::stateless(move |request, wire| {
        match request.header("mcp-name") {
            Some("head") => {}
            Some("json") => wire.raw(format!("{JSON}Content-Length: 100\r\n\r\n{{")),
            _ => wire.raw(format!("{EVENTS}\r\n: still there\n\n")),
        }
        wire.until_gone();
        tell.lock().unwrap().send(()).unwrap();
    });
    let client = server.open(builder(Revision::V2026_07_28));
    for name in ["head", "json", "events"] {
        let call = client.call_tool(name, &json!({}));
        let call = call.timeout(Duration::from_millis(100)).wait();
        assert_eq!(call.unwrap_err(), RequestError::TimedOut, "{name}");
        told.recv_timeout(PATIENCE).unwrap();
    }
    assert!(server.asked("notifications/cancelled").is_empty());
}

#[test]
fn a_server_that_falls_silent_is_noticed_where_that_is_wanted() {
    let server = Scripted::stateless(|_, wire| {
        wire.raw(format!("{EVENTS}\r\n: still there\n\n"));
        wire.until_gone();
    });
    let options = HttpClientOptions {
        read_timeout: Some(Duration::from_millis(50)),
        ..HttpClientOptions::default()
    };
    let client = server.with(builder(Revision::V2026_07_28), options);
    let error = client.call_tool("any", &json!({})).wait().unwrap_err();
    assert_eq!(carrier(error).fault, CarrierFault::TimedOut);
}

#[test]
fn what_cannot_be_reached_is_not_opened() {
    let gone = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = gone.local_addr().unwrap();
    drop(gone);
    let open = |url: &str| {
        let options = HttpClientOptions {
            connect_timeout: Duration::from_millis(300),
            ..HttpClientOptions::default()
        };
        block_on(Client::builder("test", "1").http(url, options)).unwrap_err()
    };
    let error = why_not_open(&open(&format!("http://{address}/mcp")));
    assert_eq!(error.fault, CarrierFault::Unreachable, "{error}");
    assert!(error.to_string().contains("refused"), "{error}");
    let error = why_not_open(&open("http://no-such-host.invalid/mcp"));
    assert_eq!(error.fault, CarrierFault::Unreachable, "{error}");

    // Not TLS at all.
    let plain = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = plain.local_addr().unwrap();
    std::thread::spawn(move || {
        let (mut stream, _) = plain.accept().unwrap();
        stream
            .write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            .unwrap();
        let _ = stream.read_to_end(&mut Vec::new());
    });
    let error = why_not_open(&open(&format!("https://{address}/mcp")));
    assert_eq!(error.fault, CarrierFault::Tls, "{error:?}");

    // Nobody answers the handshake of TLS.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let error = why_not_open(&open(&format!(
        "https://{}/mcp",
        silent.local_addr().unwrap()
    )));
    assert_eq!(error.fault, CarrierFault::TimedOut, "{error:?}");
    assert!(error.to_string().contains("too long to connect"), "{error}");

    // A socket that nobody accepts on, but the system does for a while.
    let full = TcpListener::bind("127.0.0.1:0").unwrap();
    let begun = Instant::now();
    let limits = Limits {
        handshake_timeout: Duration::from_millis(300),
        probe_timeout: Duration::from_millis(100),
        ..Limits::NETWORK
    };
    let silent = Client::builder("test", "1").limits(limits);
    let url = format!("http://{}/mcp", full.local_addr().unwrap());
    let silent = silent.http(&url, HttpClientOptions::default());
    assert!(block_on(silent).is_err());
    assert!(begun.elapsed() < Duration::from_secs(5));

    for url in [
        "",
        "localhost",
        "ftp://localhost/",
        "http://",
        "http://a b/",
    ] {
        assert_eq!(open(url).kind(), std::io::ErrorKind::InvalidInput, "{url}");
    }
}

/// A peer whose packets are lost on the way: the connection is neither accepted nor refused. Here its queue is full, which holds one.
#[test]
#[cfg(target_os = "linux")]
fn a_peer_that_neither_accepts_nor_refuses_is_given_up() {
    let runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = { runtime }.enable_all().build().unwrap();
    let _inside = runtime.enter();
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let full = socket.listen(0).unwrap();
    let address = full.local_addr().unwrap();
    let _first = std::net::TcpStream::connect(address).unwrap();
    let options = HttpClientOptions {
        connect_timeout: Duration::from_millis(300),
        ..HttpClientOptions::default()
    };
    let begun = Instant::now();
    let url = format!("http://{address}/mcp");
    let opened = Client::builder("test", "1").http(&url, options);
    let error = why_not_open(&block_on(opened).unwrap_err());
    assert_eq!(error.fault, CarrierFault::TimedOut, "{error:?}");
    assert!(error.to_string().contains("too long to connect"), "{error}");
    // The system would go on for minutes.
    assert!(begun.elapsed() < Duration::from_secs(10));
}

/// R-HTP-20: what was lost is known to be lost, and the server is found again.
#[test]
fn a_server_may_come_back() {
    let serving = Serving::begin();
    let address = serving.address();
    let client = serving.client(Revision::V2026_07_28);
    let under_way = client.call_tool("sleep", &json!({})).send().unwrap();
    until("it begins", || {
        serving.sleepers.load(std::sync::atomic::Ordering::SeqCst) == 1
    });
    serving.end();
    assert!(block_on(under_way).is_err());
    let error = client.call_tool("echo", &json!({})).wait().unwrap_err();
    assert_eq!(carrier(error).fault, CarrierFault::Unreachable);
    let _serving = Serving::at(address, mcpbolt::io::http::HttpOptions::default());
    let text = json!({"text": "again"});
    assert_eq!(
        client.call_tool("echo", &text).wait().unwrap().text(),
        "again"
    );
}

/// R-HTP-16, R-SSE-01, R-SSE-02: an answer is found in whatever form it may come.
#[test]
fn answers_come_in_many_forms() {
    type Form = fn(&Request) -> String;
    let forms: Vec<Form> = vec![
        |request| {
            let body = serde_json::to_string_pretty(&request.said("fine"))
                .unwrap()
                .replace('\n', "\r\n");
            format!("{JSON}Content-Length: {}\r\n\r\n{body}", body.len())
        },
        |request| {
            let body = request.said("fine").to_string();
            let (a, b) = body.split_at(7);
            format!(
                "{}Transfer-Encoding: chunked\r\n\r\n7;ext=1\r\n{a}\r\n00{:X}\r\n{b}\r\n0\r\nTrailer: x\r\n\r\n",
                JSON.replace("application/json", "Application/JSON; charset=utf-8"),
                b.len()
            )
        },
        |request| {
            format!(
                "{EVENTS}\r\n\u{feff}: hello\n\ndata: {}\n\n",
                request.said("fine")
            )
        },
        |request| {
            let body = serde_json::to_string_pretty(&request.said("fine")).unwrap();
            let lines = body.replace('\n', "\r\ndata:");
            format!(
                "{EVENTS}\r\nid: 7\r\nevent: message\r\nunknown: x\r\nretry: x\r\ndata:{lines}\r\n\r\n"
            )
        },
        |request| {
            format!(
                "{EVENTS}\r\nevent: other\rdata: x\r\rdata: {}\r\r",
                request.said("fine")
            )
        },
        |request| {
            let other = json!({"jsonrpc": "2.0", "method": "notifications/acme", "params": {}});
            format!(
                "{EVENTS}\r\ndata: {other}\n\ndata: {}\n\ndata: ?",
                request.said("fine")
            )
        },
    ];
    let count = forms.len();
    let server = Scripted::stateless(move |request, wire| {
        let n: usize = request.header("mcp-name").unwrap().parse().unwrap();
        wire.last(&forms[n](request));
    });
    let client = server.open(builder(Revision::V2026_07_28));
    for n in 0..count {
        let call = client
            .call_tool(&n.to_string(), &json!({}))
            .timeout(PATIENCE);
        assert_eq!(call.wait().unwrap().text(), "fine", "{n}");
    }
}

/// R-BAT-01.
#[test]
fn answers_may_come_in_a_batch() {
    let server = Scripted::handshake("2025-03-26", |request, wire| {
        let notice = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"});
        match request.verb.as_str() {
            "POST" => wire.json(&json!([notice, request.said("fine")])),
            _ => wire.answer(405, "", ""),
        }
    });
    let (tell, told) = mpsc::channel();
    let client = builder(Revision::V2025_03_26).on_raw_notice(move |method, _| {
        let _ = tell.send(method.to_owned());
    });
    let client = server.open(client);
    assert_eq!(
        client.call_tool("any", &json!({})).wait().unwrap().text(),
        "fine"
    );
    assert_eq!(
        told.recv_timeout(PATIENCE).unwrap(),
        "notifications/tools/list_changed"
    );
}

/// A server that asks and asks, and takes no answer, is not read any further.
#[test]
fn a_server_that_floods_meets_the_limits() {
    let (tell, told) = mpsc::channel();
    let server = Scripted::handshake("2025-11-25", move |request, wire| match &*request.verb {
        "POST" if request.method() == "tools/call" => {
            wire.events();
            let filler = "x".repeat(1000);
            for id in 0_u64.. {
                let ping =
                    json!({"jsonrpc": "2.0", "id": format!("{id}{filler}"), "method": "ping"});
                if !wire.writes(&format!("data: {ping}\n\n")) {
                    tell.send(id).unwrap();
                    return;
                }
            }
        }
        // No answer is taken.
        "POST" => wire.until_gone(),
        _ => wire.answer(405, "", ""),
    });
    let limits = Limits {
        output_mark_bytes: 64 << 10,
        output_cap_bytes: 256 << 10,
        stall_timeout: Duration::from_millis(300),
        ..Limits::NETWORK
    };
    let options = HttpClientOptions {
        max_concurrent: Some(4),
        ..HttpClientOptions::default()
    };
    let client = server.with(builder(Revision::V2025_11_25).limits(limits), options);
    let call = client.call_tool("any", &json!({})).timeout(PATIENCE);
    let error = call.wait().unwrap_err();
    assert_eq!(error, RequestError::Closed(ConnectionError::Stalled));
    // Beyond the limits it could only fill the sockets' buffers.
    let written = told.recv_timeout(PATIENCE).unwrap();
    assert!(written < 20_000, "{written}");
}

/// A connection that was idle for too long is not used again.
#[test]
fn an_idle_connection_is_kept_for_its_time() {
    for (idle_timeout, connections) in [(Duration::from_millis(10), 2), (PATIENCE, 1)] {
        let ports = Arc::<Mutex<BTreeSet<u16>>>::default();
        let sees = ports.clone();
        let server = Scripted::stateless(move |request, wire| {
            let peer = wire.socket().peer_addr().unwrap();
            sees.lock().unwrap().insert(peer.port());
            wire.json(&request.said("fine"));
        });
        let options = HttpClientOptions {
            idle_timeout,
            ..HttpClientOptions::default()
        };
        let client = server.with(builder(Revision::V2026_07_28), options);
        for _ in 0..2 {
            let said = client.call_tool("any", &json!({})).wait();
            assert_eq!(said.unwrap().text(), "fine");
            std::thread::sleep(Duration::from_millis(100));
        }
        assert_eq!(ports.lock().unwrap().len(), connections, "{idle_timeout:?}");
    }
}

/// An error repeats the beginning of a long refusal, and no more.
#[test]
fn little_is_quoted_of_a_refusal() {
    let server = Scripted::stateless(|_, wire| {
        wire.answer(500, "Content-Type: text/plain\r\n", "x".repeat(10_000));
    });
    let client = server.open(builder(Revision::V2026_07_28));
    let error = carrier(client.call_tool("any", &json!({})).wait().unwrap_err());
    assert_eq!(error.fault, CarrierFault::Refused);
    let quoted = error.to_string().matches('x').count();
    assert!((100..=200).contains(&quoted), "{quoted}: {error}");
}

/// RFC 9113, section 8.7: a request that the server refused unseen may be sent again, which is done twice.
#[test]
fn what_a_server_has_not_looked_at_is_sent_again() {
    for (refused_in_a_row, fault) in [(2, CarrierFault::Refused), (3, CarrierFault::Broken)] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let requests = Arc::new(Mutex::new(0));
        let seen = requests.clone();
        let serve = async move {
            let listener = tokio::net::TcpListener::from_std(listener).unwrap();
            let (stream, _) = listener.accept().await.unwrap();
            let mut connection = h2::server::handshake(stream).await.unwrap();
            while let Some(Ok((_, mut answer))) = connection.accept().await {
                let mut seen = seen.lock().unwrap();
                *seen += 1;
                match *seen % 3 {
                    0 if refused_in_a_row == 2 => {
                        let gone = hyper::Response::builder().status(410).body(()).unwrap();
                        answer.send_response(gone, true).unwrap();
                    }
                    _ => answer.send_reset(h2::Reason::REFUSED_STREAM),
                }
            }
        };
        std::thread::spawn(|| {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build();
            runtime.unwrap().block_on(serve);
        });
        let options = HttpClientOptions {
            http2_prior_knowledge: true,
            ..HttpClientOptions::default()
        };
        let opened = block_on(builder(Revision::V2026_07_28).http(&url, options));
        assert_eq!(why_not_open(&opened.unwrap_err()).fault, fault);
        let requests = *requests.lock().unwrap();
        assert!(requests > 0 && requests % 3 == 0, "{requests}");
    }
}
