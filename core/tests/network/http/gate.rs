//! The gate: what a page may send without asking first runs nothing unless its origin is welcome,
//! whatever it sends, wherever and by whatever carrier.

use std::sync::Mutex;

use http_body_util::{BodyExt, Full};
use hyper::{Request, StatusCode};
use hyper_util::rt::{TokioExecutor, TokioIo};
use mcpbolt::io::http::HttpService;
use mcpbolt::policy::{Credentials, Policy};
use mcpbolt::server::RegistryError;
use tokio::runtime::Runtime;

use super::*;

const RPC: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"page","version":"1"}}}"#;
const ACTION: &str = r#"{"action":"write","params":{}}"#;

/// A server that has every way in; counts what runs.
fn open(policy: Option<Policy>) -> (Server, Arc<AtomicUsize>) {
    let ran = Arc::new(AtomicUsize::new(0));
    let run = || {
        let ran = ran.clone();
        move |_: Arguments, _: Context| {
            ran.fetch_add(1, Ordering::SeqCst);
            async { "ran" }
        }
    };
    let reads = |name: &str| Tool::new(name).annotations(json!({"readOnlyHint": true}));
    let builder = Server::builder("open", "1")
        .actions(true)
        .tool(Tool::new("write"), run())
        .tool(reads("look"), run())
        .tool(reads("peek").on_get(), run())
        .tool(reads("desk.peek").on_get(), run());
    let builder = match policy {
        Some(policy) => builder.policy(policy),
        None => builder,
    };
    (builder.build().unwrap(), ran)
}

fn options(origins: &[&str]) -> HttpOptions {
    HttpOptions {
        origins: origins.iter().map(|&origin| origin.into()).collect(),
        cors: true,
        ..HttpOptions::default()
    }
}

/// A request: method, path, headers and body.
type Asked = (
    &'static str,
    &'static str,
    Vec<(&'static str, &'static str)>,
    &'static str,
);

const UPGRADE: [(&str, &str); 4] = [
    ("connection", "upgrade"),
    ("upgrade", "websocket"),
    ("sec-websocket-version", "13"),
    ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
];

/// Every way in: each method at each path, with each type of content; a WebSocket; a stream that
/// goes on; the beginning of a session.
fn ways() -> Vec<Asked> {
    let paths = [
        "/mcp",
        "/mcp/stream?action=peek",
        "/mcp/stream?action=write",
        "/mcp?session=0123456789abcdef",
        "/",
    ];
    let types = [
        "application/json",
        "text/plain",
        "text/plain;charset=UTF-8",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=b",
        "",
    ];
    let mut ways = Vec::new();
    for path in paths {
        for method in ["GET", "HEAD", "DELETE", "OPTIONS", "PUT", "TRACE"] {
            ways.push((method, path, vec![], ""));
            ways.push((method, path, vec![("accept", "text/event-stream")], ""));
        }
        for kind in types {
            for body in [RPC, ACTION] {
                let kind = (!kind.is_empty()).then_some(("content-type", kind));
                ways.push(("POST", path, kind.into_iter().collect(), body));
                let accept = ("accept", "application/json, text/event-stream");
                ways.push((
                    "POST",
                    path,
                    kind.into_iter().chain([accept]).collect(),
                    body,
                ));
            }
        }
        for protocol in ["mcp", "mcp-action"] {
            let mut headers = UPGRADE.to_vec();
            headers.push(("sec-websocket-protocol", protocol));
            ways.push(("GET", path, headers, ""));
        }
        let resumes = vec![("last-event-id", "1-1"), ("accept", "text/event-stream")];
        ways.push(("GET", path, resumes, ""));
        let session = vec![("mcp-session-id", "0123456789abcdef")];
        ways.push(("GET", path, session.clone(), ""));
        ways.push(("DELETE", path, session, ""));
    }
    ways
}

/// The headers of browsers for requests of pages that are not allowed.
fn pages() -> Vec<Vec<(&'static str, &'static str)>> {
    let evil = ("origin", "http://evil.example");
    let site = |value| ("sec-fetch-site", value);
    let mode = |value| ("sec-fetch-mode", value);
    vec![
        vec![evil],
        vec![("origin", "null")],
        vec![("origin", "")],
        vec![("origin", "http://localhost.evil.example")],
        vec![("origin", "http://127.0.0.1.evil.example:8000")],
        vec![evil, site("cross-site"), mode("no-cors")],
        vec![evil, site("cross-site"), mode("cors")],
        vec![evil, site("same-origin"), mode("cors")],
        vec![evil, site("cross-site"), mode("websocket")],
        vec![("origin", "null"), site("cross-site"), mode("navigate")],
        // Images, scripts, frames, links and prefetches bring no origin.
        vec![site("cross-site"), mode("no-cors")],
        vec![site("cross-site"), mode("navigate")],
        vec![site("cross-site")],
        vec![site("same-site"), mode("no-cors")],
        vec![site("same-origin"), mode("no-cors")],
        vec![site("same-origin"), mode("navigate")],
        vec![site("none"), mode("navigate")],
        vec![mode("no-cors")],
        // Rebound: the page's own name leads here.
        vec![("host", "evil.example")],
        vec![("host", "evil.example"), evil, site("same-origin")],
        vec![("host", "evil.example:8000")],
        vec![("host", "localhost"), ("host", "evil.example")],
        vec![("host", "")],
    ]
}

fn request_of(
    (method, path, headers, body): &Asked,
    page: &[(&str, &str)],
) -> Request<Full<hyper::body::Bytes>> {
    let mut request = Request::builder().method(*method).uri(*path);
    if !page.iter().any(|(name, _)| *name == "host") {
        request = request.header("host", "localhost");
    }
    for (name, value) in headers.iter().chain(page) {
        request = request.header(*name, *value);
    }
    request.body(Full::from(*body)).unwrap()
}

/// As it stands on the wire of HTTP/1.1.
fn written((method, path, headers, body): &Asked, page: &[(&str, &str)]) -> Vec<u8> {
    let mut head = format!("{method} {path} HTTP/1.1\r\n");
    if !page.iter().any(|(name, _)| *name == "host") {
        head += "host: localhost\r\n";
    }
    for (name, value) in headers.iter().chain(page) {
        head += &format!("{name}: {value}\r\n");
    }
    let len = body.len();
    format!("{head}content-length: {len}\r\n\r\n{body}").into_bytes()
}

/// R-HTP-06, R-WSK-07, R-LEG-05: within another server.
#[test]
fn what_a_foreign_page_sends_runs_nothing() {
    let runtime = Runtime::new().unwrap();
    let (server, ran) = open(None);
    for hosts in [vec!["localhost".to_owned()], vec!["*".to_owned()]] {
        let any = hosts == ["*"];
        for cors in [false, true] {
            let options = HttpOptions {
                hosts: hosts.clone(),
                cors,
                ..options(&["https://app.example"])
            };
            let service = HttpService::new(&server, options).unwrap();
            for page in pages() {
                // A name that any host may have identifies no page.
                let names_host = page.iter().any(|(name, _)| *name == "host");
                if any && names_host && !page.iter().any(|(name, _)| *name == "origin") {
                    continue;
                }
                for way in ways() {
                    let request = request_of(&way, &page);
                    let answer = runtime.block_on(service.respond(request));
                    assert_eq!(answer.status(), 403, "{way:?} {page:?}");
                    let readable = answer.headers().contains_key("access-control-allow-origin");
                    assert!(!readable, "{way:?} {page:?}");
                }
            }
            let counts = service.metrics().counts();
            assert_eq!((counts.sessions, counts.websockets), (0, 0));
        }
    }
    assert_eq!(ran.load(Ordering::SeqCst), 0);
}

/// The same on a socket, in HTTP/1.1 and HTTP/2.
#[test]
fn what_a_foreign_page_sends_to_a_socket_runs_nothing() {
    let (server, ran) = open(None);
    let serving = Serving::of(server, HttpOptions::default());
    let some = pages().into_iter().step_by(3);
    for page in some.clone() {
        let mut wire = Wire::open(serving.at);
        for way in ways() {
            if !wire.try_send(&written(&way, &page)) {
                wire = Wire::open(serving.at);
                wire.send(&written(&way, &page));
            }
            let mut answer = wire.begin();
            if answer.status == 0 {
                // The one before has ended the connection.
                wire = Wire::open(serving.at);
                wire.send(&written(&way, &page));
                answer = wire.begin();
            }
            // HTTP itself does not allow these requests.
            assert!(
                [403, 400].contains(&answer.status),
                "{way:?} {page:?} {answer:?}"
            );
            let len: usize = answer.header("content-length").parse().unwrap_or(0);
            if way.0 != "HEAD" {
                wire.bytes(len);
            }
        }
    }
    Runtime::new().unwrap().block_on(async {
        let stream = tokio::net::TcpStream::connect(serving.at).await.unwrap();
        let client =
            hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream));
        let (mut client, connection) = client.await.unwrap();
        tokio::spawn(connection);
        for page in some.filter(|page| page.iter().all(|(name, _)| *name != "host")) {
            for mut way in ways() {
                way.2
                    .retain(|(name, _)| !["connection", "upgrade"].contains(name));
                let mut request = request_of(&way, &page);
                let uri = format!("http://localhost{}", way.1);
                *request.uri_mut() = uri.parse().unwrap();
                let answer = client.send_request(request).await.unwrap();
                assert_eq!(answer.status(), 403, "{way:?} {page:?}");
            }
        }
    });
    assert_eq!(ran.load(Ordering::SeqCst), 0);
    serving.end();
}

/// A simple request of an allowed page is refused by its content type, so a page can only send
/// requests that the browser has asked for first.
#[test]
fn what_needs_no_preflight_is_no_message() {
    let (server, ran) = open(None);
    let service = HttpService::new(&server, options(&["https://app.example"])).unwrap();
    let runtime = Runtime::new().unwrap();
    let welcome = [
        vec![
            ("origin", "https://app.example"),
            ("sec-fetch-site", "cross-site"),
            ("sec-fetch-mode", "no-cors"),
        ],
        vec![
            ("origin", "http://localhost"),
            ("sec-fetch-site", "same-origin"),
            ("sec-fetch-mode", "cors"),
        ],
    ];
    for page in &welcome {
        for kind in [
            "text/plain",
            "application/x-www-form-urlencoded",
            "multipart/form-data; boundary=b",
            "text/json",
            "application/json, text/plain",
        ] {
            for body in [RPC, ACTION] {
                let way = ("POST", "/mcp", vec![("content-type", kind)], body);
                let answer = runtime.block_on(service.respond(request_of(&way, page)));
                assert_eq!(answer.status(), 415, "{kind} {body}");
            }
        }
        let twice = vec![
            ("content-type", "application/json"),
            ("content-type", "text/plain"),
        ];
        let way = ("POST", "/mcp", twice, ACTION);
        assert_eq!(
            runtime
                .block_on(service.respond(request_of(&way, page)))
                .status(),
            415
        );
    }
    assert_eq!(ran.load(Ordering::SeqCst), 0);
    // With its preflight it may.
    let way = (
        "POST",
        "/mcp",
        vec![("content-type", "application/json")],
        ACTION,
    );
    let answer = runtime.block_on(service.respond(request_of(&way, &welcome[0])));
    assert_eq!(answer.status(), 200);
    assert_eq!(
        answer.headers()["access-control-allow-origin"],
        "https://app.example"
    );
    assert_eq!(ran.load(Ordering::SeqCst), 1);
}

/// Programs send no headers about pages, or those of Node's `fetch`; both are served, as are pages
/// of the server's own origin.
#[test]
fn programs_and_own_pages_are_served() {
    let (server, ran) = open(None);
    let service = HttpService::new(&server, HttpOptions::default()).unwrap();
    let runtime = Runtime::new().unwrap();
    let askers = [
        vec![],
        vec![("sec-fetch-mode", "cors")],
        vec![
            ("sec-fetch-site", "same-origin"),
            ("sec-fetch-mode", "cors"),
        ],
        vec![
            ("origin", "http://localhost"),
            ("sec-fetch-site", "same-origin"),
            ("sec-fetch-mode", "cors"),
        ],
        // A page of another application on this machine.
        vec![
            ("origin", "http://localhost:3000"),
            ("sec-fetch-site", "same-site"),
            ("sec-fetch-mode", "cors"),
        ],
    ];
    let json = ("content-type", "application/json");
    let both = ("accept", "application/json, text/event-stream");
    let events = ("accept", "text/event-stream");
    for (n, page) in askers.iter().enumerate() {
        for (way, status) in [
            (("POST", "/mcp", vec![json, both], RPC), 200),
            (("POST", "/mcp", vec![json], ACTION), 200),
            (("GET", "/mcp/stream?action=peek", vec![], ""), 200),
            (("GET", "/mcp/stream?action=write", vec![], ""), 405),
            (("GET", "/mcp", vec![events], ""), 200),
            (("GET", "/mcp", vec![("accept", "text/html")], ""), 406),
            (("HEAD", "/mcp", vec![events], ""), 405),
            (("PUT", "/mcp", vec![json], ACTION), 405),
            (("DELETE", "/mcp", vec![], ""), 400),
            (("POST", "/mcp", vec![both], RPC), 415),
            (("GET", "/other", vec![events], ""), 404),
        ] {
            let answer = runtime.block_on(async {
                let answer = service.respond(request_of(&way, page)).await;
                let status = answer.status();
                if way.0 == "POST" && status == 200 || way.1.contains("peek") {
                    answer.into_body().collect().await.unwrap();
                }
                status
            });
            assert_eq!(answer, status, "{way:?} {page:?}");
        }
        assert_eq!(ran.load(Ordering::SeqCst), 2 * (n + 1));
    }
}

/// R-HTP-06: a browser that asks beforehand is told what the gate will say.
#[test]
fn preflights_are_answered_as_requests_are() {
    let (server, _) = open(None);
    let runtime = Runtime::new().unwrap();
    let asked = [("access-control-request-method", "POST")];
    for (origins, origin, status) in [
        (&["https://app.example"][..], "https://app.example", 204),
        (&["https://app.example"], "https://other.example", 403),
        (&["https://app.example"], "http://localhost:3000", 403),
        (&["https://app.example"], "http://localhost", 204),
        (&["*"], "https://other.example", 204),
        (&[], "https://app.example", 403),
        (&["http://localhost:*"], "http://localhost:3000", 204),
    ] {
        let service = HttpService::new(&server, options(origins)).unwrap();
        let page = [("origin", origin), ("sec-fetch-mode", "cors")];
        for path in ["/mcp", "/mcp/stream"] {
            let way = ("OPTIONS", path, asked.to_vec(), "");
            let answer = runtime.block_on(service.respond(request_of(&way, &page)));
            assert_eq!(answer.status(), status, "{origins:?} {origin}");
            let allowed = answer.headers().get("access-control-allow-origin");
            assert_eq!(allowed.is_some(), status == 204, "{origins:?} {origin}");
        }
    }
    // Where nobody may read, nobody is told so.
    let service = HttpService::new(&server, HttpOptions::default()).unwrap();
    let way = ("OPTIONS", "/mcp", asked.to_vec(), "");
    let answer =
        runtime.block_on(service.respond(request_of(&way, &[("origin", "http://localhost")])));
    assert_eq!(answer.status(), 405);
}

/// R-AUX-03: credentials come last, so that what is wrong elsewhere costs no verifier anything; and
/// they make no page welcome.
#[test]
fn credentials_are_checked_last() {
    let verified = Arc::new(Mutex::new(0));
    let count = verified.clone();
    let policy = Policy::new().verifier(move |credentials: &Credentials<'_>| {
        *count.lock().unwrap() += 1;
        match credentials {
            Credentials::Bearer("t-alice") => Ok("alice".into()),
            _ => Err("unknown".to_owned()),
        }
    });
    let (server, ran) = open(Some(policy));
    let service = HttpService::new(&server, HttpOptions::default()).unwrap();
    let runtime = Runtime::new().unwrap();
    let alice = ("authorization", "Bearer t-alice");
    let json = ("content-type", "application/json");
    let say = |way: Asked, page: &[(&str, &str)]| {
        runtime
            .block_on(service.respond(request_of(&way, page)))
            .status()
    };
    for page in pages() {
        for mut way in ways().into_iter().step_by(7) {
            way.2.push(alice);
            assert_eq!(say(way, &page), 403);
        }
    }
    assert_eq!(say(("POST", "/mcp", vec![alice], ACTION), &[]), 415);
    assert_eq!(say(("PUT", "/mcp", vec![alice], ACTION), &[]), 405);
    assert_eq!(say(("POST", "/other", vec![alice, json], ACTION), &[]), 404);
    assert_eq!(*verified.lock().unwrap(), 0);
    for way in [
        ("POST", "/mcp", vec![json], ACTION),
        ("GET", "/mcp", vec![("accept", "text/event-stream")], ""),
        ("GET", "/mcp/stream?action=peek", vec![], ""),
        ("GET", "/mcp", UPGRADE.to_vec(), ""),
        ("DELETE", "/mcp", vec![], ""),
    ] {
        assert_eq!(say(way.clone(), &[]), 401, "{way:?}");
    }
    assert_eq!(ran.load(Ordering::SeqCst), 0);
    assert_eq!(say(("POST", "/mcp", vec![json, alice], ACTION), &[]), 200);
    assert_eq!(
        (*verified.lock().unwrap(), ran.load(Ordering::SeqCst)),
        (6, 1)
    );
}

/// R-ACT-24: a GET runs what its author allows, which has to be read-only.
#[test]
fn a_get_runs_what_its_author_allows() {
    let (server, ran) = open(None);
    let service = HttpService::new(&server, HttpOptions::default()).unwrap();
    let runtime = Runtime::new().unwrap();
    let get = |query: &str| {
        let request = Request::get(format!("/mcp/stream?{query}")).header("host", "localhost");
        runtime.block_on(async {
            let answer = service.respond(request.body(String::new()).unwrap()).await;
            let status = answer.status().as_u16();
            let body = answer.into_body().collect().await.unwrap().to_bytes();
            (status, String::from_utf8(body.to_vec()).unwrap())
        })
    };
    for query in [
        "action=write",
        "action=look",
        "action=%77rite",
        "tool=open&action=write",
        "tool=desk&action=write",
        "action=batch.execute&operations=%5B%7B%22action%22%3A%22write%22%2C%22params%22%3A%7B%7D%7D%5D",
    ] {
        let (status, body) = get(query);
        if query.contains("desk") {
            // There is no such action of that tool.
            assert_eq!(status, 404, "{body}");
        } else {
            assert_eq!(status, 405, "{query} {body}");
            assert!(body.contains("a GET does not run this action"), "{body}");
        }
    }
    assert_eq!(ran.load(Ordering::SeqCst), 0);
    for query in [
        "action=peek",
        "tool=open&action=peek",
        "tool=desk&action=peek",
    ] {
        let (status, body) = get(query);
        assert_eq!(status, 200, "{query} {body}");
    }
    assert_eq!(ran.load(Ordering::SeqCst), 3);
    assert_eq!(get("action=mcp.get_version").0, 200);
    for annotations in [
        "{}",
        r#"{"readOnlyHint":false}"#,
        r#"{"readOnlyHint":"true"}"#,
    ] {
        let tool = Tool::new("write").annotations(annotations).on_get();
        let built = Server::builder("x", "1")
            .tool(tool, |_: Arguments, _| async { "" })
            .build();
        assert!(matches!(built, Err(RegistryError::NotReadOnly(name)) if name == "write"));
    }
}

/// The action dialect is spoken where the server asks for it, on no carrier otherwise.
#[test]
fn actions_are_off_unless_asked_for() {
    let serving = Serving::begin(HttpOptions::default());
    let json = ("content-type", "application/json");
    let both = ("accept", "application/json, text/event-stream");
    for version in [vec![], vec![("mcp-version", "1.0")]] {
        let headers = [vec![json, both], version].concat();
        let action = r#"{"action":"echo","params":{"text":"hi"}}"#;
        let mut wire = Wire::open(serving.at);
        wire.send(&written(&("POST", "/mcp", headers, action), &[]));
        let answer = wire.answer();
        assert_eq!(
            (answer.status, answer.json()["jsonrpc"].as_str()),
            (400, Some("2.0")),
            "{answer:?}"
        );
    }
    let mut wire = Wire::open(serving.at);
    wire.send(&written(
        &("GET", "/mcp/stream?action=echo&text=hi", vec![both], ""),
        &[],
    ));
    assert_eq!(wire.answer().status, 404);
    let protocols = ("sec-websocket-protocol", "mcp-action, mcp");
    let headers = [&UPGRADE[..], &[protocols]].concat();
    let mut wire = Wire::open(serving.at);
    wire.send(&written(&("GET", "/mcp", headers, ""), &[]));
    let answer = wire.begin();
    assert_eq!(
        (answer.status, answer.header("sec-websocket-protocol")),
        (101, "mcp")
    );
    serving.end();
}

/// A program that reads requests itself has them checked.
#[test]
fn requests_are_screened_for_others() {
    let options = HttpOptions::default();
    let screened = |way: Asked, page: &[(&str, &str)]| {
        options
            .screen(&request_of(&way, page))
            .map_err(|(status, _)| status)
    };
    for page in pages() {
        for way in ways() {
            assert_eq!(screened(way, &page), Err(StatusCode::FORBIDDEN));
        }
    }
    let plain = ("POST", "/", vec![("content-type", "text/plain")], RPC);
    assert_eq!(
        screened(plain, &[]),
        Err(StatusCode::UNSUPPORTED_MEDIA_TYPE)
    );
    let json = ("POST", "/", vec![("content-type", "application/json")], RPC);
    assert_eq!(screened(json, &[]), Ok(()));
    assert_eq!(screened(("GET", "/", vec![], ""), &[]), Ok(()));
}
