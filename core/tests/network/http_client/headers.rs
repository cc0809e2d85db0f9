//! The headers of requests: about the message, the client and the server.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use mcpbolt::client::block_on;
use mcpbolt::error::{CarrierFault, ConnectionError, RequestError};
use mcpbolt::io::Auth;
use mcpbolt::io::http::{HttpClientOptions, Proxy};
use mcpbolt::mcp::Revision;
use serde_json::json;

use super::scripted::{Request, Scripted, Wire};
use super::serving::builder;
use super::until;

/// R-HDR-01, R-HDR-03, R-HDR-12, R-HTP-02, R-HTP-03.
#[test]
fn headers_repeat_the_message() {
    let server = Scripted::stateless(|request, wire| match request.method() {
        "resources/read" => wire.json(&request.result(json!({"contents": []}))),
        "prompts/get" => wire.json(&request.result(json!({"messages": []}))),
        _ => wire.json(&request.said("fine")),
    });
    let client = server.open(builder(Revision::V2026_07_28));
    client.call_tool("größe", &json!({})).wait().unwrap();
    block_on(client.read_resource("file:///a b")).unwrap();
    block_on(client.get_prompt(" edge", &[])).unwrap();
    let seen = server.seen();
    let said: Vec<_> = seen
        .iter()
        .map(|request| (request.header("mcp-method"), request.header("mcp-name")))
        .collect();
    assert_eq!(
        said,
        [
            (Some("server/discover"), None),
            (Some("tools/call"), Some("=?base64?Z3LDtsOfZQ==?=")),
            (Some("resources/read"), Some("file:///a b")),
            (Some("prompts/get"), Some("=?base64?IGVkZ2U=?=")),
        ]
    );
    for request in seen {
        assert_eq!(request.header("mcp-protocol-version"), Some("2026-07-28"));
        assert_eq!(request.header("content-type"), Some("application/json"));
        assert_eq!(
            request.header("accept"),
            Some("application/json, text/event-stream")
        );
        assert_eq!(request.verb, "POST");
    }
}

/// R-HDR-07, R-HDR-08, R-HDR-09: a tool that cannot be called is not there; what a tool wants in
/// headers is asked for again when it has changed.
#[test]
fn tools_say_which_arguments_are_repeated() {
    let listed = AtomicUsize::new(0);
    let tool = |name: &str, kind: &str, header: &str| {
        let schema =
            json!({"type": "object", "properties": {"a": {"type": kind, "x-mcp-header": header}}});
        json!({"name": name, "inputSchema": schema})
    };
    let server = Scripted::stateless(move |request, wire| match request.method() {
        "tools/list" => {
            let header = ["Old", "New"][listed.fetch_add(1, Ordering::SeqCst).min(1)];
            let tools = [
                tool("good", "string", header),
                tool("bad", "number", "A"),
                tool("worse", "string", "a b"),
                json!({"name": "plain", "inputSchema": {"type": "object"}}),
            ];
            let list = json!({"tools": tools, "ttlMs": 60_000, "cacheScope": "private"});
            wire.json(&request.result(list));
        }
        _ => match (request.header("mcp-param-new"), request.header("mcp-name")) {
            (Some("x"), _) | (None, Some("plain")) => wire.json(&request.said("fine")),
            _ => wire.error(400, &request.error(-32020)),
        },
    });
    let client = server.open(builder(Revision::V2026_07_28));
    let tools = block_on(client.list_tools()).unwrap();
    let names: Vec<_> = tools.iter().map(|tool| &*tool.name).collect();
    assert_eq!(names, ["good", "plain"]);
    client
        .call_tool("plain", &json!({"a": "x"}))
        .wait()
        .unwrap();
    let calls: Vec<_> = (0..10)
        .map(|_| client.call_tool("good", &json!({"a": "x"})).send().unwrap())
        .collect();
    for call in calls {
        assert_eq!(block_on(call).unwrap().text(), "fine");
    }
    // One for all of them.
    assert_eq!(server.asked("tools/list").len(), 2);
    // Another list does not help everybody.
    let call = client.call_tool("good", &json!({"a": "y"})).wait();
    assert_eq!(call.unwrap_err().code(), Some(-32020));
}

fn echo(request: &Request, wire: &mut Wire) {
    wire.json(&request.said("fine"));
}

/// R-AUX-01, R-AUX-02, R-AUC-01.
#[test]
fn credentials_and_headers_are_in_every_request() {
    let basic = Auth::Basic {
        user: "Aladdin".into(),
        password: "open sesame".into(),
    };
    let own = Auth::ApiKey {
        header: "X-Acme".into(),
        key: "k".into(),
    };
    for (auth, name, value) in [
        (
            Auth::Bearer("token".into()),
            "authorization",
            "Bearer token",
        ),
        (basic, "authorization", "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="),
        (Auth::api_key("k"), "x-api-key", "k"),
        (own, "x-acme", "k"),
    ] {
        let server = Scripted::stateless(echo);
        let options = HttpClientOptions {
            auth,
            headers: vec![("X-Tenant".into(), "7".into())],
            ..HttpClientOptions::default()
        };
        let client = server.with(builder(Revision::V2026_07_28), options);
        client.call_tool("any", &json!({})).wait().unwrap();
        assert_eq!(server.seen().len(), 2);
        for request in server.seen() {
            assert_eq!(request.header(name), Some(value));
            assert_eq!(request.header("x-tenant"), Some("7"));
            assert!(!request.body.to_string().contains(value));
        }
    }
}

#[test]
fn a_name_and_a_password_in_the_url_are_credentials() {
    let server = Scripted::stateless(echo);
    let url = server
        .url()
        .replace("http://", "http://Al%61ddin:open%20sesame@");
    let options = HttpClientOptions::default();
    block_on(builder(Revision::V2026_07_28).http(&url, options)).unwrap();
    let said = server.seen()[0].header("authorization").map(str::to_owned);
    assert_eq!(said.as_deref(), Some("Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="));
}

#[test]
fn secrets_are_not_shown() {
    let options = HttpClientOptions {
        auth: Auth::Bearer("secret".into()),
        headers: vec![("X-Key".into(), "secret".into())],
        proxy: Proxy::At("http://me:secret@localhost:1".into()),
        ..HttpClientOptions::default()
    };
    let shown = format!("{options:?}");
    assert!(!shown.contains("secret"), "{shown}");
    for url in [
        "http://me:secret@127.0.0.1:1/?key=secret",
        "nothing://me:secret@x",
    ] {
        let options = options.clone();
        let error = block_on(builder(Revision::V2026_07_28).http(url, options)).unwrap_err();
        let shown = format!("{error} {error:?}");
        assert!(!shown.contains("secret"), "{shown}");
    }
}

/// A message is not sent to another origin unless the program names it; a request without a body is.
#[test]
fn messages_do_not_follow_to_an_origin_that_is_not_named() {
    for status in [301, 302, 307, 308] {
        let other = Scripted::stateless(echo);
        let to = other.url();
        let server = Scripted::serve(move |_, wire| {
            wire.answer(status, &format!("Location: {to}\r\n"), "");
        });
        for redirect_origins in [vec![], vec!["http://127.0.0.1:1".to_owned()]] {
            let options = HttpClientOptions {
                redirect_origins,
                ..HttpClientOptions::default()
            };
            let opened = block_on(builder(Revision::V2026_07_28).http(&server.url(), options));
            let error = opened.unwrap_err().to_string();
            assert!(error.contains("redirect_origins"), "{error}");
        }
        assert!(other.seen().is_empty());
    }
    for wrong in ["mcp.example.com", "ftp://mcp.example.com", ""] {
        let options = HttpClientOptions {
            redirect_origins: vec![wrong.into()],
            ..HttpClientOptions::default()
        };
        let opened = block_on(builder(Revision::V2026_07_28).http("http://127.0.0.1:1", options));
        assert!(opened.unwrap_err().to_string().contains("redirect_origins"));
    }
}

/// Nor does the end of a session: a server cannot have its client delete what only the client reaches.
#[test]
fn the_end_of_a_session_does_not_follow_to_another_origin() {
    for status in [301, 302, 307, 308] {
        let other = Scripted::stateless(echo);
        let to = other.url();
        let server = Scripted::serve(move |request, wire| match &*request.verb {
            "DELETE" => wire.answer(status, &format!("Location: {to}\r\n"), ""),
            _ if request.method() == "initialize" => {
                let body = request.result(super::scripted::opening("2025-11-25"));
                let head = "Content-Type: application/json\r\nMcp-Session-Id: s\r\n";
                wire.answer(200, head, body.to_string());
            }
            _ => wire.answer(202, "", ""),
        });
        drop(server.open(builder(Revision::V2025_11_25)));
        until("the session is ended", || {
            server.seen().iter().any(|request| request.verb == "DELETE")
        });
        std::thread::sleep(Duration::from_millis(100));
        assert!(other.seen().is_empty());
    }
}

/// The origins that a redirect may lead to, and the headers that go there.
#[test]
fn credentials_do_not_follow_to_another_origin() {
    let options = |redirect_origins| HttpClientOptions {
        auth: Auth::api_key("k"),
        headers: vec![("X-Tenant".into(), "7".into())],
        redirect_origins,
        ..HttpClientOptions::default()
    };
    for status in [301, 302, 307, 308] {
        // To another path, with everything.
        let server = Scripted::serve(move |request, wire| match &*request.path {
            "/mcp" => wire.answer(status, "Location: /mcp/\r\n", ""),
            _ => wire.json(&request.result(json!({
                "supportedVersions": ["2026-07-28"], "capabilities": {},
            }))),
        });
        server.with(builder(Revision::V2026_07_28), options(vec![]));
        let seen = server.seen();
        assert_eq!(seen.len(), 2);
        assert_eq!(seen[0].body, seen[1].body);
        assert_eq!(
            (seen[1].header("x-api-key"), seen[1].header("x-tenant")),
            (Some("k"), Some("7"))
        );

        // To another origin: another port is one.
        let other = Scripted::stateless(echo);
        let to = other.url();
        let named = vec![format!("http://{}", other.address)];
        let server = Scripted::serve(move |_, wire| {
            wire.answer(status, &format!("Location: {to}\r\n"), "");
        });
        let client = server.with(builder(Revision::V2026_07_28), options(named));
        client.call_tool("any", &json!({})).wait().unwrap();
        assert_eq!(other.seen().len(), 2);
        for request in other.seen() {
            for name in ["x-api-key", "x-tenant", "authorization", "mcp-session-id"] {
                assert_eq!(request.header(name), None, "{name}");
            }
            assert_eq!(request.header("mcp-protocol-version"), Some("2026-07-28"));
        }
    }
}

/// A program that looks for credentials finds how to get them.
#[test]
fn a_server_that_wants_credentials_is_not_taken_for_an_older_one() {
    for status in [401, 403] {
        let server = Scripted::serve(move |_, wire| {
            let headers = "WWW-Authenticate: Bearer resource_metadata=\"https://a.example/x\"\r\n";
            wire.answer(status, headers, "");
        });
        let options = HttpClientOptions::default();
        let client = mcpbolt::client::Client::builder("test", "1");
        let error = block_on(client.http(&server.url(), options)).unwrap_err();
        let inner = error.get_ref().and_then(|inner| inner.downcast_ref());
        let Some(RequestError::Closed(ConnectionError::Carrier(error))) = inner else {
            panic!("{error:?}");
        };
        assert_eq!(
            (error.fault, error.status),
            (CarrierFault::Refused, Some(status))
        );
        assert!(error.authenticate.as_deref().unwrap().contains("a.example"));
        assert_eq!(server.seen().len(), 1);
    }
}

#[test]
fn a_proxy_is_asked_to_pass_requests_on() {
    let proxy = Scripted::stateless(echo);
    let options = HttpClientOptions {
        proxy: Proxy::At(format!("http://me:secret@{}", proxy.address)),
        ..HttpClientOptions::default()
    };
    let client = builder(Revision::V2026_07_28).http("http://far.invalid/mcp", options);
    block_on(client).unwrap();
    assert_eq!(proxy.seen()[0].path, "http://far.invalid/mcp");
    assert_eq!(proxy.seen()[0].header("host"), Some("far.invalid"));
    let shown = proxy.seen()[0]
        .header("proxy-authorization")
        .map(str::to_owned);
    assert_eq!(shown.as_deref(), Some("Basic bWU6c2VjcmV0"));
}

/// A proxy may be given as `host:port`, as in many settings of other programs.
#[test]
fn a_proxy_may_be_an_address_alone() {
    let proxy = Scripted::stateless(echo);
    let port = proxy.address.port();
    for (at, shown) in [
        (format!("127.0.0.1:{port}"), None),
        (format!("LocalHost:{port}"), None),
        (
            format!("me:secret@127.0.0.1:{port}"),
            Some("Basic bWU6c2VjcmV0"),
        ),
    ] {
        let options = HttpClientOptions {
            proxy: Proxy::At(at.clone()),
            ..HttpClientOptions::default()
        };
        let client = builder(Revision::V2026_07_28).http("http://far.invalid/mcp", options);
        block_on(client).unwrap_or_else(|error| panic!("{at}: {error}"));
        let seen = proxy.seen();
        let last = seen.last().unwrap();
        assert_eq!(last.path, "http://far.invalid/mcp", "{at}");
        assert_eq!(last.header("proxy-authorization"), shown, "{at}");
    }
}

#[test]
fn what_is_no_proxy_is_told() {
    for (proxy, why) in [
        ("socks5://127.0.0.1:1", "SOCKS"),
        ("no URL", "no URL of a proxy"),
    ] {
        let options = HttpClientOptions {
            proxy: Proxy::At(proxy.into()),
            ..HttpClientOptions::default()
        };
        let client = builder(Revision::V2026_07_28).http("http://far.invalid/mcp", options);
        let error = block_on(client).unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
    }
}
