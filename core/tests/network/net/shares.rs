//! Connections that do not finish what they begin, and addresses that open many.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use mcpbolt::client::Client;
use mcpbolt::io::{Address, ServeOptions};
use mcpbolt::mcp::Revision;
use serde_json::json;

use crate::net::{Folder, PATIENCE, Served};

const SHORT: Duration = Duration::from_millis(300);

fn port(served: &Served) -> u16 {
    match served.address() {
        Address::Tcp { port, .. } => *port,
        Address::Http(url) | Address::WebSocket(url) => url.port,
        other => panic!("no port: {other}"),
    }
}

fn connect(from: u8, port: u16) -> TcpStream {
    use rustix::net::{AddressFamily, SocketType, bind, connect, socket};
    let stream = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    bind(&stream, &SocketAddr::from(([127, 0, 0, from], 0))).unwrap();
    connect(&stream, &SocketAddr::from(([127, 0, 0, 1], port))).unwrap();
    let stream = TcpStream::from(stream);
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// How long it takes the server to close that.
fn closed_after(mut stream: impl Read) -> Duration {
    let begun = Instant::now();
    match stream.read_to_end(&mut Vec::new()) {
        Err(error) if error.kind() == ErrorKind::WouldBlock => panic!("it stays open"),
        _ => begun.elapsed(),
    }
}

fn is_short(lasted: Duration) -> bool {
    lasted >= SHORT / 2 && lasted < PATIENCE / 2
}

fn hasty() -> ServeOptions {
    let mut options = ServeOptions::default();
    options.http.header_timeout = SHORT;
    options.http.limits.stall_timeout = SHORT;
    options
}

const PING: &[u8] = b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n";

/// One byte is no message.
#[test]
fn who_begins_a_message_finishes_it_in_time() {
    let served = Served::begin("tcp:127.0.0.1:0", hasty());
    for said in [&b"{"[..], b" ", b"{\"jsonrpc\"", &[0, 0, 1]] {
        let mut stream = connect(1, port(&served));
        stream.write_all(said).unwrap();
        assert!(is_short(closed_after(stream)), "{said:?}");
    }
    // The first message is whole, the second is not.
    let mut stream = connect(1, port(&served));
    stream
        .write_all(&[PING, b"{\"jsonrpc\":"].concat())
        .unwrap();
    assert!(is_short(closed_after(stream)));
    // A byte now and then does not make it last.
    let mut stream = connect(1, port(&served));
    stream.write_all(PING).unwrap();
    let mut drips = stream.try_clone().unwrap();
    let dripping = std::thread::spawn(move || {
        while drips.write_all(b" ").is_ok() {
            std::thread::sleep(SHORT / 10);
        }
    });
    assert!(is_short(closed_after(stream)));
    dripping.join().unwrap();
}

/// Silence is allowed after a whole message.
#[test]
fn who_has_said_something_may_be_silent() {
    let served = Served::begin("tcp:127.0.0.1:0", hasty());
    let mut stream = connect(1, port(&served));
    stream.write_all(PING).unwrap();
    std::thread::sleep(SHORT * 3);
    stream.write_all(PING).unwrap();
    let mut answers = vec![0; 2 * "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n".len()];
    stream.read_exact(&mut answers).unwrap();
    assert!(answers.ends_with(b"}\n"));
}

#[cfg(unix)]
#[test]
fn nor_does_a_unix_socket_wait() {
    let folder = Folder::new();
    let served = Served::begin(&folder.address("s"), hasty());
    let Address::Unix { path, .. } = served.address() else {
        panic!("no Unix socket");
    };
    let mut stream = std::os::unix::net::UnixStream::connect(path).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(b"{").unwrap();
    assert!(is_short(closed_after(stream)));
}

/// A frame, or a message in fragments, that does not come to its end; pings alone are no message.
#[test]
fn nor_does_a_websocket() {
    let served = Served::begin("ws://127.0.0.1:0/mcp", hasty());
    let ping = [0x89, 0x80, 0, 0, 0, 0];
    for said in [&[0x81][..], &[0x01, 0x81, 0, 0, 0, 0, b'{'], &ping, &[]] {
        let mut stream = connect(1, port(&served));
        let hello = "GET /mcp HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
            Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n";
        stream.write_all(hello.as_bytes()).unwrap();
        stream.write_all(said).unwrap();
        assert!(is_short(closed_after(stream)), "{said:?}");
    }
}

/// R-PNG-02: a silent peer is asked for a sign of life.
#[test]
fn a_peer_that_answers_no_ping_is_let_go_of() {
    let mut options = ServeOptions::default();
    options.http.heartbeat = Some(SHORT);
    options.http.limits.keepalive_timeout = SHORT;
    let served = Served::begin("tcp:127.0.0.1:0", options);
    let client = served.client(
        Client::builder("test", "1").revisions([Revision::V2025_06_18].into_iter().collect()),
    );
    let mut silent = connect(1, port(&served));
    let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"}}});
    silent.write_all(format!("{hello}\n").as_bytes()).unwrap();
    assert!(is_short(closed_after(silent)));
    let echo = client.call_tool("echo", &json!({"text": "x"})).wait();
    assert_eq!(echo.unwrap().text(), "x", "whoever answers stays");
}

/// Connections that say nothing give way, and nobody waits for a place.
#[test]
fn connections_that_say_nothing_lock_nobody_out() {
    for address in [
        "tcp:127.0.0.1:0",
        "http://127.0.0.1:0/mcp",
        "ws://127.0.0.1:0/mcp",
    ] {
        let served = Served::begin(
            address,
            ServeOptions {
                max_connections: 8,
                ..ServeOptions::default()
            },
        );
        let client = served.client(Client::builder("test", "1"));
        let said = client.call_tool("echo", &json!({"text": "x"})).wait();
        assert_eq!(said.unwrap().text(), "x");
        let idle: Vec<_> = (0..40).map(|n| connect(n % 4 + 1, port(&served))).collect();
        let another = served.client(Client::builder("test", "1"));
        for client in [&client, &another] {
            let said = client.call_tool("echo", &json!({"text": "x"})).wait();
            assert_eq!(said.unwrap().text(), "x", "{address}");
        }
        drop(idle);
    }
}

/// An address has its share, and others the rest.
#[test]
fn one_address_has_its_share_of_connections() {
    let served = Served::begin(
        "tcp:127.0.0.1:0",
        ServeOptions {
            max_connections: 8,
            max_connections_per_peer: Some(3),
            ..ServeOptions::default()
        },
    );
    let answers = |stream: &mut TcpStream| {
        let mut answer = [0; 8];
        stream.write_all(PING).is_ok() && stream.read_exact(&mut answer).is_ok()
    };
    let mut kept = Vec::new();
    for _ in 0..3 {
        let mut stream = connect(2, port(&served));
        assert!(answers(&mut stream));
        kept.push(stream);
    }
    assert!(!answers(&mut connect(2, port(&served))), "one too many");
    assert!(answers(&mut connect(3, port(&served))));
    assert!(answers(&mut kept[0]));
}

/// R-AUX-03: wrong credentials in lines are counted by address, as those of HTTP are; those without a verdict are not.
#[test]
fn wrong_credentials_in_lines_are_counted() {
    use mcpbolt::connection::Rejection;
    use mcpbolt::policy::{ApiKeys, Credentials, Policy};
    use mcpbolt::server::{Arguments, Server, Tool};

    let keys = ApiKeys::new().key("right", "alice");
    let policy = Policy::new().verifier(move |brought| match brought {
        Credentials::ApiKey("away") => Err(Rejection::Unavailable("the database is away".into())),
        _ => keys.verify(brought).map_err(Rejection::from),
    });
    let server = Server::builder("guarded", "1")
        .policy(policy)
        .tool(Tool::new("echo"), |_: Arguments, _| async { "said" })
        .build()
        .unwrap();
    let serving = server.serve("tcp:127.0.0.1:0").start().unwrap();
    let Address::Tcp { port, .. } = *serving.address() else {
        panic!("no TCP")
    };
    let ask = |key: &str, count: usize| {
        let mut stream = connect(2, port);
        let envelope = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
            "auth": {"type": "api_key", "key": key},
        });
        let ask = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": envelope}});
        stream
            .write_all(format!("{ask}\n").repeat(count).as_bytes())
            .unwrap();
        let answers = BufReader::new(stream).lines().take(count);
        let answers: Vec<String> = answers.map(Result::unwrap).collect();
        answers
    };
    let away = ask("away", 150);
    let told = r#""code":-31999,"message":"the database is away","data":{"retryAfter":1}"#;
    assert!(away.iter().all(|one| one.contains(told)), "{}", away[149]);
    // 100 at once, and 10 more each second.
    let wrong = ask("wrong", 150);
    assert_eq!(wrong.len(), 150);
    let limited = wrong
        .iter()
        .filter(|one| one.contains("retryAfter"))
        .count();
    assert!((1..=50).contains(&limited), "{limited} of 150 were limited");
    let right = &ask("right", 1)[0];
    assert!(right.contains("result"), "the right one is taken: {right}");
    serving.stop();
    serving.wait();
}

/// Open connections stay, and one more is closed at once, whatever its address.
#[test]
fn no_more_connections_are_open_than_may_be() {
    let served = Served::begin(
        "tcp:127.0.0.1:0",
        ServeOptions {
            max_connections: 3,
            ..ServeOptions::default()
        },
    );
    let answers = |stream: &mut TcpStream| {
        let mut answer = [0; 8];
        stream.write_all(PING).is_ok() && stream.read_exact(&mut answer).is_ok()
    };
    let mut kept: Vec<_> = (2..5).map(|n| connect(n, port(&served))).collect();
    assert!(kept.iter_mut().all(answers));
    for n in 5..15 {
        assert!(!answers(&mut connect(n, port(&served))), "one too many");
    }
    assert!(kept.iter_mut().all(answers));
}
