//! How connections begin, and that those which do not are let go of.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
#[cfg(unix)]
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use mcpbolt::client::{Client, block_on};
use mcpbolt::io::{Address, ConnectOptions, ServeOptions};
use serde_json::json;

#[cfg(unix)]
use crate::net::Folder;
use crate::net::{PATIENCE, Served, server};

/// Nothing, less than tells which HTTP it is, half a head, and HTTP/2 without a request.
#[test]
fn who_asks_nothing_is_let_go_of() {
    let allowed = Duration::from_millis(200);
    let mut options = ServeOptions::default();
    options.http.header_timeout = allowed;
    let served = Served::begin("http://127.0.0.1:0/mcp", options);
    let Address::Http(url) = served.address() else {
        panic!("no HTTP");
    };
    let http2 = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
    for said in [&b""[..], b"P", b"POST /mcp HTTP/1.1\r\nHost:", http2] {
        let begun = Instant::now();
        let mut stream = TcpStream::connect(("127.0.0.1", url.port)).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.write_all(said).unwrap();
        stream.read_to_end(&mut Vec::new()).unwrap();
        let lasted = begun.elapsed();
        assert!(lasted >= allowed / 2 && lasted < PATIENCE / 2, "{lasted:?}");
    }
}

/// A client that has sent a request may take longer than that.
#[test]
fn who_has_asked_stays() {
    let mut options = ServeOptions::default();
    options.http.header_timeout = Duration::from_millis(200);
    let served = Served::begin("ws://127.0.0.1:0/mcp", options);
    let client = served.client(Client::builder("test", "1"));
    std::thread::sleep(Duration::from_millis(500));
    let echo = client.call_tool("echo", &json!({"text": "x"})).wait();
    assert_eq!(echo.unwrap().text(), "x");
}

/// A program with a runtime of its own may serve from within it, and learn there why it cannot.
#[tokio::test]
async fn a_server_begins_within_a_runtime() {
    for threads in [None, Some(1)] {
        let options = ServeOptions {
            threads,
            ..ServeOptions::default()
        };
        let served = Served::begin("tcp:127.0.0.1:0", options.clone());
        let another = server(&Default::default());
        let error = another
            .serve(served.address())
            .options(options)
            .start()
            .unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::AddrInUse, "{error}");
    }
}

/// R-WSK-05: a WebSocket is asked for by an address, with subprotocols and headers.
#[test]
fn a_websocket_is_asked_for_as_it_was_configured() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("ws://{}/deep/mcp?a=b", listener.local_addr().unwrap());
    let address: Address = address.parse().unwrap();
    let told = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut said = Vec::new();
        let mut byte = [0];
        while !said.ends_with(b"\r\n\r\n") && stream.read(&mut byte).unwrap() > 0 {
            said.push(byte[0]);
        }
        String::from_utf8(said).unwrap().to_ascii_lowercase()
    });
    let options = ConnectOptions {
        protocols: vec!["com.example".into(), "mcp".into()],
        headers: vec![("X-Tenant".into(), "seven".into())],
        ..ConnectOptions::default()
    };
    let client = Client::builder("test", "1").open(&address, options);
    assert!(block_on(client).is_err(), "nobody answers");
    let said = told.join().unwrap();
    for line in [
        "get /deep/mcp?a=b http/1.1\r\n",
        "sec-websocket-protocol: com.example, mcp\r\n",
        "x-tenant: seven\r\n",
    ] {
        assert!(said.contains(line), "{line}: {said}");
    }
}

/// All that comes until the end, which may be a reset.
#[cfg(unix)]
fn answer(mut stream: impl Read + Write, said: &[u8]) -> Vec<u8> {
    let mut answer = Vec::new();
    let _ = stream.write_all(said);
    let _ = stream.read_to_end(&mut answer);
    answer
}

/// A web page can make a browser send HTTP with a body of its choice, or TLS with a ticket of its
/// choice, to any port. The server reads nothing behind such a beginning.
#[cfg(unix)]
#[test]
fn another_protocol_is_not_read_on() {
    let folder = Folder::new();
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let params = json!({"name": "sleep", "arguments": {}, "_meta": meta});
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
    let socket = folder.address("other");
    for address in ["tcp:127.0.0.1:0", "tcp:127.0.0.1:0?framing=detect", &socket] {
        let served = Served::begin(address, ServeOptions::default());
        let say = |said: &[u8]| {
            let all = [said, format!("\n{call}\n").as_bytes()].concat();
            match served.address() {
                Address::Tcp { port, .. } => {
                    let stream = TcpStream::connect(("127.0.0.1", *port)).unwrap();
                    stream.set_read_timeout(Some(PATIENCE)).unwrap();
                    answer(stream, &all)
                }
                Address::Unix { path, .. } => {
                    let stream = UnixStream::connect(path).unwrap();
                    stream.set_read_timeout(Some(PATIENCE)).unwrap();
                    answer(stream, &all)
                }
                other => panic!("{other}"),
            }
        };
        let begun = Instant::now();
        for said in [
            &b"POST / HTTP/1.1\r\nHost: localhost:7000\r\nContent-Type: text/plain\r\n\r\n"[..],
            b"GET / HTTP/1.1\r\nUpgrade: websocket\r\n\r\n",
            b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
            b"\x16\x03\x01\x02\x00\x01",
            b"SSH-2.0-x",
            b"hello",
        ] {
            assert_eq!(say(said), b"", "{address}");
        }
        assert!(begun.elapsed() < PATIENCE, "{address}");
        served.until_sleepers_are(0);
        assert_eq!(served.serving.metrics().counts().calls, 0);
        let client = served.client(Client::builder("test", "1"));
        let echo = client.call_tool("echo", &json!({"text": "x"})).wait();
        assert_eq!(echo.unwrap().text(), "x");
    }
}
