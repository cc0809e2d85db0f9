//! WebSocket as others write it: by hand, and by an independent library.

use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use mcpbolt::client::{Client, block_on};
use mcpbolt::io::{Address, ConnectOptions, ServeOptions};
use serde_json::{Value, json};
use tungstenite::protocol::CloseFrame;
use tungstenite::protocol::frame::coding::CloseCode;
use tungstenite::{ClientRequestBuilder, Error, Message, WebSocket};

use crate::net::{PATIENCE, Served};

const ADDRESS: &str = "ws://127.0.0.1:0/mcp";

fn port(served: &Served) -> u16 {
    let Address::WebSocket(url) = served.address() else {
        panic!("no WebSocket");
    };
    url.port
}

fn connect(port: u16) -> TcpStream {
    let stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.set_nodelay(true).unwrap();
    stream
}

/// The client of an independent library.
fn open(served: &Served) -> WebSocket<TcpStream> {
    let port = port(served);
    let uri = format!("ws://127.0.0.1:{port}/mcp").parse().unwrap();
    let request = ClientRequestBuilder::new(uri).with_sub_protocol("mcp");
    let (socket, response) = tungstenite::client(request, connect(port)).unwrap();
    let protocol = response.headers().get("sec-websocket-protocol");
    assert_eq!(protocol.unwrap(), "mcp", "R-WSK-06");
    socket
}

fn say(socket: &mut WebSocket<TcpStream>, message: &Value) {
    socket.send(Message::text(message.to_string())).unwrap();
}

fn hear(socket: &mut WebSocket<TcpStream>) -> Value {
    loop {
        match socket.read().unwrap() {
            Message::Text(text) => return serde_json::from_str(&text).unwrap(),
            Message::Ping(_) | Message::Pong(_) => {}
            other => panic!("{other:?}"),
        }
    }
}

fn call(id: Value, name: &str, text: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {
        "name": name, "arguments": {"text": text},
        "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        },
    }})
}

fn text(answer: &Value) -> &str {
    answer["result"]["content"][0]["text"]
        .as_str()
        .unwrap_or_else(|| panic!("no text: {answer}"))
}

/// R-WSK-01, R-WSK-02, R-WSK-08.
#[test]
fn an_independent_client_is_served() {
    let served = Served::begin(ADDRESS, ServeOptions::default());
    let mut socket = open(&served);
    say(
        &mut socket,
        &json!({"jsonrpc": "2.0", "id": "a", "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"},
        }}),
    );
    assert_eq!(hear(&mut socket)["result"]["protocolVersion"], "2025-11-25");
    // A message with line ends in it is one message.
    let pretty = format!("{:#}", call(json!(7), "echo", "x"));
    socket.send(Message::text(pretty)).unwrap();
    assert_eq!(text(&hear(&mut socket)), "x");
    socket.send(Message::Ping("p".into())).unwrap();
    assert_eq!(socket.read().unwrap(), Message::Pong("p".into()));
    for n in 0..100 {
        say(&mut socket, &call(json!(n), "echo", &n.to_string()));
    }
    for _ in 0..100 {
        let answer = hear(&mut socket);
        assert_eq!(text(&answer), answer["id"].to_string());
    }
    socket.close(None).unwrap();
    let end = socket.read().unwrap();
    assert!(matches!(end, Message::Close(_)), "{end:?}");
    assert!(matches!(socket.read(), Err(Error::ConnectionClosed)));
}

/// The code that the server closes with after a client's frames, on an open connection.
fn close_code(served: &Served, wire: &[u8]) -> Option<u16> {
    let mut socket = open(served);
    socket.get_mut().write_all(wire).unwrap();
    loop {
        match socket.read() {
            Ok(Message::Close(frame)) => return frame.map(|frame| frame.code.into()),
            Ok(_) => {}
            Err(error) => panic!("{error}"),
        }
    }
}

/// A masked frame; the mask is zero.
fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![first];
    match payload.len() {
        len @ 0..126 => frame.push(0x80 | len as u8),
        len @ 126..0x1_0000 => {
            frame.push(0x80 | 126);
            frame.extend((len as u16).to_be_bytes());
        }
        len => {
            frame.push(0x80 | 127);
            frame.extend((len as u64).to_be_bytes());
        }
    }
    frame.extend([0; 4]);
    frame.extend(payload);
    frame
}

/// R-WSK-04, R-WSK-07.
#[test]
fn a_close_says_why() {
    let mut options = ServeOptions::default();
    options.http.limits.max_message_bytes = 1000;
    let served = Served::begin(ADDRESS, options);
    let long = frame(0x81, &[b' '; 2000]);
    let claimed = [0x81, 0xff, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    let fragments = [frame(1, &[b' '; 600]), frame(0x80, &[b' '; 600])].concat();
    for (name, wire, code) in [
        ("too long", &long[..], 1009),
        ("too long as claimed", &claimed, 1009),
        ("too long in fragments", &fragments, 1009),
        ("not UTF-8", &frame(0x81, b"\"\xff\""), 1007),
        ("bytes", &frame(0x82, b"{}"), 1003),
        ("not masked", &[0x81, 2, b'{', b'}'], 1002),
        ("a reserved bit", &frame(0xc1, b"{}"), 1002),
        ("a ping in fragments", &frame(9, b""), 1002),
        ("a close", &frame(0x88, &1000_u16.to_be_bytes()), 1000),
        ("a close without a code", &frame(0x88, b""), 1000),
        (
            "a close of an application",
            &frame(0x88, &4001_u16.to_be_bytes()),
            4001,
        ),
    ] {
        assert_eq!(close_code(&served, wire), Some(code), "{name}");
    }
}

/// R-WSK-07: what is not JSON is answered, and the connection goes on.
#[test]
fn bad_json_is_answered_and_no_end() {
    let served = Served::begin(ADDRESS, ServeOptions::default());
    let mut socket = open(&served);
    for bad in ["{", "[1,", "nonsense", "{\"jsonrpc\":\"2.0\",\"id\":1"] {
        socket.send(Message::text(bad)).unwrap();
        assert_eq!(hear(&mut socket)["error"]["code"], -32700, "{bad}");
    }
    say(&mut socket, &call(json!(1), "echo", "still here"));
    assert_eq!(text(&hear(&mut socket)), "still here");
}

/// R-WSK-07.
#[test]
fn the_end_of_the_server_is_told() {
    let served = Served::begin(ADDRESS, ServeOptions::default());
    let mut socket = open(&served);
    say(&mut socket, &call(json!(1), "echo", "x"));
    hear(&mut socket);
    served.serving.stop();
    let told = Message::Close(Some(CloseFrame {
        code: CloseCode::Away,
        reason: "".into(),
    }));
    assert_eq!(socket.read().unwrap(), told);
    drop(socket);
    served.end();
}

/// Fragments, one byte at a time, with pings between them.
#[test]
fn fragments_are_joined_however_they_come() {
    let served = Served::begin(ADDRESS, ServeOptions::default());
    let mut socket = open(&served);
    let message = call(json!("ä"), "echo", "漢").to_string();
    let bytes = message.as_bytes();
    let mut wire = frame(1, &bytes[..10]);
    for byte in &bytes[10..] {
        wire.extend(frame(0x89, b"?"));
        wire.extend(frame(0, &[*byte]));
    }
    wire.extend(frame(0x80, b""));
    for byte in wire {
        socket.get_mut().write_all(&[byte]).unwrap();
    }
    let answer = hear(&mut socket);
    assert_eq!((text(&answer), &answer["id"]), ("漢", &json!("ä")));
}

/// A flood of pings is answered, though not each: nothing is kept for who does not read.
#[test]
fn a_flood_of_pings_holds_up_nobody() {
    let served = Served::begin(ADDRESS, ServeOptions::default());
    let mut flood = open(&served);
    let pings = frame(0x89, &[b'p'; 125]).repeat(1000);
    flood.get_mut().set_nonblocking(true).unwrap();
    let begun = Instant::now();
    let mut sent = 0;
    while sent < 64 << 20 && begun.elapsed() < Duration::from_secs(5) {
        match flood.get_mut().write(&pings) {
            Ok(n) => sent += n,
            Err(_) => std::thread::yield_now(),
        }
    }
    // The server goes on reading: what it owes does not grow.
    assert!(sent > 16 << 20, "{sent} bytes of pings were read");
    let mut socket = open(&served);
    say(&mut socket, &call(json!(1), "echo", "x"));
    assert_eq!(text(&hear(&mut socket)), "x");
}

/// A pong that is put off while answers wait to be taken comes after them.
#[test]
fn a_ping_during_long_answers_is_answered() {
    let served = Served::begin(ADDRESS, ServeOptions::default());
    let mut socket = open(&served);
    let long = "x".repeat(1 << 20);
    for n in 0..16 {
        say(&mut socket, &call(json!(n), "echo", &long));
    }
    // The first answer is on its way, and more than the sockets take wait behind it.
    socket.get_mut().peek(&mut [0]).unwrap();
    std::thread::sleep(Duration::from_millis(500));
    socket.send(Message::Ping("p".into())).unwrap();
    let (mut answers, mut pongs) = (0, 0);
    while answers < 16 || pongs < 1 {
        match socket.read().unwrap() {
            Message::Text(_) => answers += 1,
            Message::Pong(payload) => {
                assert_eq!(payload, "p");
                pongs += 1;
            }
            other => panic!("{other:?}"),
        }
    }
}

/// R-CAN-06: nobody waits for what a client has asked that has gone.
#[test]
fn who_goes_without_a_word_cancels() {
    let served = Served::begin(ADDRESS, ServeOptions::default());
    let mut socket = open(&served);
    for n in 0..10 {
        say(&mut socket, &call(json!(n), "sleep", ""));
    }
    served.until_sleepers_are(10);
    drop(socket);
    served.until_sleepers_are(0);
}

/// R-CAN-01, R-WSK-08: a cancel ends its request alone, and is not answered.
#[test]
fn a_cancel_ends_its_request() {
    let served = Served::begin(ADDRESS, ServeOptions::default());
    let mut socket = open(&served);
    say(&mut socket, &call(json!(1), "sleep", ""));
    say(&mut socket, &call(json!("1"), "sleep", ""));
    served.until_sleepers_are(2);
    let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled",
        "params": {"requestId": 1}});
    say(&mut socket, &cancel);
    served.until_sleepers_are(1);
    say(&mut socket, &call(json!(1), "echo", "again"));
    let answer = hear(&mut socket);
    assert_eq!((text(&answer), &answer["id"]), ("again", &json!(1)));
}

/// The same ids on a hundred connections at once mean a hundred requests each.
#[test]
fn equal_ids_on_many_connections_do_not_mix() {
    let served = Served::begin(ADDRESS, ServeOptions::default());
    std::thread::scope(|scope| {
        for peer in 0..50 {
            let mut socket = open(&served);
            scope.spawn(move || {
                for n in 0..100 {
                    say(&mut socket, &call(json!(n), "echo", &format!("{peer}-{n}")));
                }
                for _ in 0..100 {
                    let answer = hear(&mut socket);
                    assert_eq!(text(&answer), format!("{peer}-{}", answer["id"]));
                }
            });
        }
    });
}

/// R-WSK-03: a peer that is silent is pinged, and gone when it stays so.
#[test]
fn a_dead_peer_is_found_by_its_silence() {
    let mut options = ServeOptions::default();
    options.http.heartbeat = Some(Duration::from_millis(500));
    let served = Served::begin(ADDRESS, options);
    let mut alive = open(&served);
    let mut dead = open(&served);
    say(&mut alive, &call(json!(1), "sleep", ""));
    say(&mut dead, &call(json!(1), "sleep", ""));
    served.until_sleepers_are(2);
    // This library answers pings as it reads.
    alive
        .get_mut()
        .set_read_timeout(Some(Duration::from_millis(50)))
        .unwrap();
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(4) {
        let _ = alive.read();
    }
    served.until_sleepers_are(1);
    let mut rest = Vec::new();
    dead.get_mut().read_to_end(&mut rest).unwrap();
    assert_eq!(rest[..2], [0x89, 0], "a ping");
    assert_eq!(rest[2..6], [0x88, 2, 0x03, 0xf0], "a close with 1008");
}

/// The head of the answer to a request by hand.
fn answer(served: &Served, headers: &str) -> String {
    head(served, "GET", headers)
}

fn head(served: &Served, method: &str, headers: &str) -> String {
    let mut stream = connect(port(served));
    let head = format!("{method} /mcp HTTP/1.1\r\n{headers}\r\n\r\n");
    stream.write_all(head.as_bytes()).unwrap();
    let mut said = Vec::new();
    let mut byte = [0];
    while !said.ends_with(b"\r\n\r\n") && stream.read(&mut byte).unwrap() > 0 {
        said.push(byte[0]);
    }
    String::from_utf8(said).unwrap().to_ascii_lowercase()
}

/// R-HTP-06, R-WSK-06, R-WSK-07.
#[test]
fn an_upgrade_is_for_who_may_ask() {
    let served = Served::begin(ADDRESS, ServeOptions::default());
    let good = "Host: localhost\r\nConnection: keep-alive, Upgrade\r\nUpgrade: WebSocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==";
    let said = answer(&served, good);
    assert!(said.starts_with("http/1.1 101"), "{said}");
    assert!(said.contains("s3pplmbitxaq9kygzzhzrbk+xoo="), "{said}");
    assert!(!said.contains("sec-websocket-protocol"), "{said}");
    let with = |more: &str| answer(&served, &format!("{good}\r\n{more}"));
    let offered = with("Sec-WebSocket-Protocol: chat, mcp");
    assert!(offered.contains("sec-websocket-protocol: mcp"), "{offered}");
    let unknown = with("Sec-WebSocket-Protocol: chat");
    assert!(!unknown.contains("sec-websocket-protocol"), "{unknown}");
    let foreign = with("Origin: https://evil.example.com");
    assert!(foreign.starts_with("http/1.1 403"), "{foreign}");
    let own = with("Origin: http://localhost:3000");
    assert!(own.starts_with("http/1.1 101"), "{own}");
    for (from, to, status) in [
        ("localhost", "evil.example.com", "403"),
        ("13", "12", "426"),
        ("dGhlIHNhbXBsZSBub25jZQ==", "c2hvcnQ=", "400"),
    ] {
        let said = answer(&served, &good.replace(from, to));
        assert!(
            said.starts_with(&format!("http/1.1 {status}")),
            "{to}: {said}"
        );
        assert_eq!(said.contains("sec-websocket-version: 13"), status == "426");
    }
}

/// R-HTP-06: with CORS on, pages of welcome origins may read the answers, and no others.
#[test]
fn pages_of_welcome_origins_may_read_answers() {
    let asked = "Access-Control-Request-Method: POST\r\nAccess-Control-Request-Headers: mcp-method";
    let preflight = |served: &Served, origin: &str| {
        let headers = format!("Host: localhost\r\nOrigin: {origin}\r\n{asked}");
        head(served, "OPTIONS", &headers)
    };
    let mut options = ServeOptions::default();
    options.http.cors = true;
    options.http.origins.push("https://example.com".into());
    let served = Served::begin(ADDRESS, options);
    for origin in ["https://example.com", "http://localhost:3000"] {
        let said = preflight(&served, origin);
        assert!(said.starts_with("http/1.1 204"), "{said}");
        for header in [
            &format!("access-control-allow-origin: {origin}\r\n"),
            "access-control-allow-headers: mcp-method\r\n",
            "access-control-allow-methods: get, post, delete\r\n",
            "vary: origin\r\n",
        ] {
            assert!(said.contains(header), "{header}: {said}");
        }
        let refused = head(
            &served,
            "PUT",
            &format!("Host: localhost\r\nOrigin: {origin}"),
        );
        assert!(
            refused.contains("access-control-expose-headers: mcp-session-id"),
            "{refused}"
        );
    }
    let foreign = preflight(&served, "https://evil.example.com");
    assert!(foreign.starts_with("http/1.1 403"), "{foreign}");
    assert!(!foreign.contains("access-control"), "{foreign}");
    let without = Served::begin(ADDRESS, ServeOptions::default());
    let said = preflight(&without, "http://localhost:3000");
    assert!(!said.contains("access-control"), "{said}");
}

/// A server that says nothing: neither that it is a WebSocket, nor, as one, that it is alive.
#[test]
fn a_silent_server_is_given_up() {
    let opens = |upgrades: bool, options: ConnectOptions| {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("ws://{}/mcp", listener.local_addr().unwrap());
        std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            stream.set_read_timeout(Some(PATIENCE)).unwrap();
            if upgrades {
                drop(tungstenite::accept(stream.try_clone().unwrap()).unwrap());
            }
            let _ = stream.read_to_end(&mut Vec::new());
        });
        let options = ConnectOptions {
            protocols: Vec::new(),
            ..options
        };
        let address = address.parse().unwrap();
        block_on(Client::builder("test", "1").open(&address, options)).unwrap_err()
    };
    let connect_timeout = Duration::from_millis(200);
    let error = opens(
        false,
        ConnectOptions {
            connect_timeout,
            ..ConnectOptions::default()
        },
    );
    assert_eq!(error.kind(), ErrorKind::TimedOut, "{error}");
    let error = opens(
        true,
        ConnectOptions {
            heartbeat: Some(Duration::from_millis(100)),
            ..ConnectOptions::default()
        },
    );
    assert!(
        error.to_string().contains("the peer does not answer"),
        "{error}"
    );
}
