//! The last messages of a client whose program ends right after.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test: panicking is the report"
)]

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcpbolt::client::{Client, block_on};
use mcpbolt::io::{ConnectOptions, wait_for_clients};
use serde_json::{Value, json};

const ROLE: &str = "MCPBOLT_TEST_ENDING";

/// R-SES-06: the session of a client that is dropped has been ended when the wait is over. In a
/// process of its own, since connections of other tests would be waited for, too.
#[test]
fn a_session_is_ended_before_its_program_is() {
    let mut process = Command::new(std::env::current_exe().unwrap());
    process.args(["--exact", "ending::alone", "--nocapture", "--quiet"]);
    assert!(process.env(ROLE, "1").status().unwrap().success());
}

/// Not a test: the other process. Without its variable it has nothing to do.
#[test]
fn alone() {
    if std::env::var(ROLE).is_err() {
        return;
    }
    let verbs = Arc::<Mutex<Vec<String>>>::default();
    let address = serve(verbs.clone()).parse().unwrap();
    let builder = Client::builder("test", "1");
    let client = block_on(builder.open(&address, ConnectOptions::default())).unwrap();
    assert!(!wait_for_clients(Duration::from_millis(1)), "it is open");
    drop(client);
    assert!(wait_for_clients(Duration::from_secs(20)));
    assert_eq!(verbs.lock().unwrap().last().unwrap(), "DELETE");
}

/// A server of the handshake era with sessions, which is slow to end one.
pub fn serve(verbs: Arc<Mutex<Vec<String>>>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/mcp", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (mut stream, verbs) = (stream.unwrap(), verbs.clone());
            std::thread::spawn(move || {
                let mut reader = BufReader::new(stream.try_clone().unwrap());
                while let Some((verb, body)) = read(&mut reader) {
                    let answer = answer(&verb, &body);
                    if verb == "DELETE" {
                        std::thread::sleep(Duration::from_millis(200));
                    }
                    verbs.lock().unwrap().push(verb);
                    let _ = stream.write_all(answer.as_bytes());
                }
            });
        }
    });
    address
}

fn answer(verb: &str, body: &Value) -> String {
    let (status, result) = match (verb, body["method"].as_str()) {
        ("POST", Some("initialize")) => (
            200,
            json!({
                "protocolVersion": "2025-11-25", "capabilities": {},
                "serverInfo": {"name": "slow", "version": "1"},
            }),
        ),
        ("POST", Some("notifications/initialized")) => (202, Value::Null),
        ("DELETE", _) => (200, Value::Null),
        _ => (405, Value::Null),
    };
    let body = match result {
        Value::Null => String::new(),
        result => json!({"jsonrpc": "2.0", "id": body["id"], "result": result}).to_string(),
    };
    let len = body.len();
    let headers = "Content-Type: application/json\r\nMcp-Session-Id: s";
    format!("HTTP/1.1 {status} -\r\n{headers}\r\nContent-Length: {len}\r\n\r\n{body}")
}

/// The verb and the body of the next request.
fn read(reader: &mut impl BufRead) -> Option<(String, Value)> {
    let (mut verb, mut len) = (None, 0);
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok().filter(|len| *len > 0)?;
        let line = line.trim_end().to_ascii_lowercase();
        if line.is_empty() {
            break;
        }
        verb = verb.or_else(|| line.split(' ').next().map(str::to_ascii_uppercase));
        if let Some(value) = line.strip_prefix("content-length:") {
            len = value.trim().parse().ok()?;
        }
    }
    let mut body = vec![0; len];
    reader.read_exact(&mut body).ok()?;
    Some((verb?, serde_json::from_slice(&body).unwrap_or_default()))
}
