//! Nobody locks others out, or escapes a quota, by opening more.

use std::net::SocketAddr;
use std::time::Duration;

use mcpbolt::io::ServeOptions;
use mcpbolt::io::http::HttpOptions;
use mcpbolt::limits::{Limits, Quota, Rate};
use mcpbolt::mcp::TaskSupport;
use mcpbolt::policy::Policy;
use mcpbolt::server::{Arguments, Context, Server, TaskLimits, Tool};
use serde_json::{Value, json};

use super::sessions::Client;
use super::wire::{Wire, headers, post};
use super::{Serving, call, until};

const ANOTHER: [u8; 4] = [127, 0, 0, 2];

fn initialize() -> Vec<u8> {
    initialize_as("2025-06-18")
}

fn initialize_as(revision: &str) -> Vec<u8> {
    let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": revision, "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"}}});
    post(&usual(), &hello.to_string())
}

fn usual() -> Vec<(&'static str, String)> {
    vec![
        ("Host", "localhost".to_owned()),
        ("Content-Type", "application/json".to_owned()),
        ("Accept", "application/json, text/event-stream".to_owned()),
    ]
}

/// HTTP/2 by hand: asks for the stream of 2024-11-05 so often on one connection.
fn bare_gets(to: SocketAddr, count: u32) -> Wire {
    let mut wire = Wire::open(to);
    let mut said = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0".to_vec();
    // HPACK: GET, http, and three names of the static table with values as they are.
    let mut head = vec![0x82, 0x86];
    for (name, value) in [
        (&[0x04][..], "/mcp"),
        (&[0x01], "localhost"),
        (&[0x0f, 0x04], "text/event-stream"),
    ] {
        head.extend(name);
        head.push(value.len() as u8);
        head.extend(value.as_bytes());
    }
    for n in 0..count {
        // END_STREAM and END_HEADERS.
        said.extend([0, 0, head.len() as u8, 0x01, 0x05]);
        said.extend((2 * n + 1).to_be_bytes());
        said.extend(&head);
    }
    wire.send(&said);
    wire
}

/// A session that has finished its handshake and was used.
fn used(serving: &Serving) -> Client {
    let client = Client::open(serving.at, "2025-06-18", json!({}));
    assert_eq!(listing(&client), 200);
    client
}

fn listing(client: &Client) -> u16 {
    let listing = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
    client.post(&listing).status
}

/// R-SES-05: streams of 2024-11-05 on which no handshake is begun give way to whoever begins one, and
/// end.
#[test]
fn bare_streams_lock_nobody_out() {
    let mut options = ServeOptions::default();
    options.http.max_sessions = 400;
    options.http.limits.handshake_timeout = Duration::from_secs(8);
    let server = super::server(&std::sync::Arc::default());
    let serving = server
        .serve("http://127.0.0.1:0/mcp")
        .options(options)
        .start()
        .unwrap();
    let mcpbolt::io::Address::Http(url) = serving.address() else {
        panic!("no HTTP");
    };
    let at = SocketAddr::from(([127, 0, 0, 1], url.port));
    let attackers: Vec<_> = (0..10).map(|_| bare_gets(at, 100)).collect();
    let counts = || serving.metrics().counts();
    until("they are there", || counts().sessions >= 400);
    until("no more are kept", || counts().open_sessions <= 400);
    for wire in [&mut Wire::open(at), &mut Wire::open_from(ANOTHER, at)] {
        wire.send(&initialize());
        let answer = wire.answer();
        assert_eq!(answer.status, 200, "{answer:?}");
    }
    let mut begun = Wire::open(at);
    begun.send(&initialize());
    let mut request = usual();
    request.push((
        "MCP-Session-Id",
        begun.answer().header("mcp-session-id").to_owned(),
    ));
    let before = counts().sessions;
    let more: Vec<_> = (0..5).map(|_| bare_gets(at, 100)).collect();
    until("more are there", || counts().sessions >= before + 500);
    let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    begun.send(&post(&request, &initialized.to_string()));
    let answer = begun.answer();
    assert_eq!(answer.status, 202, "{answer:?}");
    until("what began no handshake ends", || {
        counts().open_sessions == 1
    });
    drop(more);
    let client = Client::open(at, "2025-06-18", json!({}));
    assert_eq!(listing(&client), 200);
    drop(attackers);
    serving.stop();
    serving.wait();
}

/// R-SES-05: sessions whose handshake is not finished give way to each other, whoever opens them.
#[test]
fn a_used_session_outlives_many_that_are_begun() {
    let serving = Serving::begin(HttpOptions {
        max_sessions: 100,
        ..HttpOptions::default()
    });
    let client = used(&serving);
    for from in [ANOTHER, [127, 0, 0, 1]] {
        let mut wire = Wire::open_from(from, serving.at);
        for n in 0..120 {
            wire.send(&initialize());
            assert_eq!(wire.answer().status, 200, "{n}");
        }
        assert_eq!(listing(&client), 200, "{from:?}");
    }
    serving.end();
}

/// R-SES-05: one source's finished sessions give way to its own, not to or for others'.
#[test]
fn one_client_has_its_share_of_sessions() {
    let serving = Serving::begin(HttpOptions {
        max_sessions: 100,
        max_sessions_per_peer: Some(5),
        ..HttpOptions::default()
    });
    let client = used(&serving);
    let mut wire = Wire::open_from(ANOTHER, serving.at);
    wire.send(&initialize());
    let other = wire.answer().header("mcp-session-id").to_owned();
    let own: Vec<_> = (0..8).map(|_| used(&serving)).collect();
    assert_eq!(
        listing(&client),
        404,
        "the longest unused of the same source"
    );
    let alive = own.iter().filter(|own| listing(own) == 200);
    assert_eq!(alive.count(), 5);
    let mut request = usual();
    request.push(("MCP-Session-Id", other));
    let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"});
    wire.send(&post(&request, &ping.to_string()));
    assert_eq!(wire.answer().status, 200);
    serving.end();
}

/// R-SES-05: a client that listens and asks nothing keeps no newcomer from the place of one that idles.
#[test]
fn a_client_that_only_listens_locks_nobody_out() {
    let serving = Serving::begin(HttpOptions {
        max_sessions: 100,
        max_sessions_per_peer: Some(3),
        ..HttpOptions::default()
    });
    let client = Client::open(serving.at, "2025-06-18", json!({}));
    let _listening = client.get(None);
    let idle = used(&serving);
    (0..3).for_each(|_| drop(used(&serving)));
    assert_eq!(listing(&idle), 404);
    assert_eq!(listing(&client), 200);
    serving.end();
}

/// R-SES-05: a client has so long to finish the handshake.
#[test]
fn a_handshake_that_is_not_finished_ends() {
    let limits = Limits {
        handshake_timeout: Duration::from_millis(300),
        ..Limits::NETWORK
    };
    let serving = Serving::begin(HttpOptions {
        limits,
        ..HttpOptions::default()
    });
    let client = used(&serving);
    let mut wire = Wire::open(serving.at);
    wire.send(&initialize());
    let begun = wire.answer().header("mcp-session-id").to_owned();
    let mut request = usual();
    request.push(("MCP-Session-Id", begun));
    std::thread::sleep(Duration::from_millis(900));
    let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"});
    wire.send(&post(&request, &ping.to_string()));
    assert_eq!(wire.answer().status, 404);
    assert_eq!(listing(&client), 200);
    serving.end();
}

fn limited(policy: Policy, options: HttpOptions) -> Serving {
    let server = Server::builder("limited", "1").policy(policy);
    let server = server.tool(Tool::new("echo"), |_: Arguments, _| async { "done" });
    Serving::of(server.build().unwrap(), options)
}

fn is_served(answer: &super::wire::Answer) -> bool {
    answer.status == 200 && answer.json()["result"]["isError"] != Value::Bool(true)
}

const DAY: Duration = Duration::from_secs(24 * 3600);

/// R-TOL-03: whoever has no name is counted by the address, whatever sessions are opened there.
#[test]
fn a_quota_holds_over_many_sessions() {
    let policy = Policy::new().quota(Quota {
        calls: 2,
        period: DAY,
    });
    let serving = limited(policy, HttpOptions::default());
    let in_sessions = (0..60).filter(|_| {
        let client = Client::open(serving.at, "2025-06-18", json!({}));
        is_served(&client.post(&client.call(1, "echo", json!({}))))
    });
    assert_eq!(in_sessions.count(), 2);
    let echo = call(1, "echo", json!({}));
    let from = |from| {
        let mut wire = Wire::open_from(from, serving.at);
        wire.send(&post(&headers(&echo), &echo.to_string()));
        is_served(&wire.answer())
    };
    assert!(!from([127, 0, 0, 1]), "nor without a session");
    assert!(from(ANOTHER) && from(ANOTHER) && !from(ANOTHER));
    serving.end();
}

/// R-TOL-03: the same of a rate.
#[test]
fn a_rate_holds_over_many_sessions() {
    let policy = Policy::new().rate(Rate {
        burst: 30,
        per_second: 0,
    });
    let serving = limited(policy, HttpOptions::default());
    let served = (0..60).filter(|_| {
        let mut wire = Wire::open(serving.at);
        wire.send(&initialize());
        let answer = wire.answer();
        let mut request = usual();
        request.push(("MCP-Session-Id", answer.header("mcp-session-id").to_owned()));
        let echo = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
            "params": {"name": "echo", "arguments": {}}});
        wire.send(&post(&request, &echo.to_string()));
        is_served(&wire.answer())
    });
    assert_eq!(served.count(), 30);
    serving.end();
}

/// R-TSK-17: an address leaves tasks to others, whatever sessions it opens.
#[test]
fn one_address_has_its_share_of_tasks() {
    let limits = TaskLimits {
        tasks: 8,
        per_owner: 2,
        ..TaskLimits::default()
    };
    let rest = Tool::new("rest").task_support(TaskSupport::Optional);
    let server = Server::builder("tasks", "1").task_limits(limits).tool(
        rest,
        |_: Arguments, context: Context| async move {
            context.sleep(Duration::from_secs(60)).await;
            "rested"
        },
    );
    let serving = Serving::of(server.build().unwrap(), HttpOptions::default());
    let begins = |from| {
        let mut wire = Wire::open_from(from, serving.at);
        wire.send(&initialize_as("2025-11-25"));
        let session = wire.answer().header("mcp-session-id").to_owned();
        let mut request = usual();
        request.push(("MCP-Session-Id", session));
        request.push(("MCP-Protocol-Version", "2025-11-25".to_owned()));
        let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
            "params": {"name": "rest", "arguments": {}, "task": {"ttl": 60_000}}});
        wire.send(&post(&request, &call.to_string()));
        wire.answer().json()["result"]["task"].is_object()
    };
    let own = [127, 0, 0, 1];
    assert!(begins(ANOTHER) && begins(ANOTHER) && !begins(ANOTHER));
    assert!(begins(own) && begins(own) && !begins(own));
    serving.end();
}

/// A trusted proxy's word counts, nobody else's.
#[test]
fn clients_behind_a_trusted_proxy_are_told_apart() {
    let policy = || {
        Policy::new().quota(Quota {
            calls: 1,
            period: DAY,
        })
    };
    let echo = call(1, "echo", json!({}));
    let served = |serving: &Serving, name, value: &str| {
        let mut wire = Wire::open(serving.at);
        let mut request = headers(&echo);
        request.push((name, value.to_owned()));
        wire.send(&post(&request, &echo.to_string()));
        is_served(&wire.answer())
    };
    let trusting = limited(
        policy(),
        HttpOptions {
            trusted_proxies: vec!["127.0.0.0/8".parse().unwrap()],
            ..HttpOptions::default()
        },
    );
    let x = "X-Forwarded-For";
    assert!(served(&trusting, x, "6.6.6.6, 1.2.3.4") && !served(&trusting, x, "7.7.7.7, 1.2.3.4"));
    assert!(!served(&trusting, "Forwarded", "for=1.2.3.4"));
    assert!(served(&trusting, "Forwarded", "for=\"[2001:db8::1]\""));
    assert!(!served(&trusting, x, "2001:db8::2"), "one network");
    trusting.end();
    let strict = limited(policy(), HttpOptions::default());
    assert!(served(&strict, x, "1.2.3.4") && !served(&strict, x, "1.2.3.5"));
    strict.end();
}
