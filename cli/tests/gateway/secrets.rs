//! Credentials of clients stay at the gateway: no server, no log and no error has them (R-CHN-15).

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::{Value, json};

use crate::serving::Serving;
use crate::{Folder, Log, adder, http, status};

const CANARY: &str = "canary-4f1b9c07";

/// A place from which bytes go on to another one. Returns it, and what clients send through.
fn recorder(to: &str) -> (String, Arc<Mutex<Vec<u8>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let place = listener.local_addr().unwrap().to_string();
    let (to, sent) = (to.to_owned(), Arc::<Mutex<Vec<u8>>>::default());
    let all = sent.clone();
    thread::spawn(move || {
        for near in listener.incoming() {
            // While the other place is away, connections end at once.
            let (Ok(mut near), Ok(mut far)) = (near, TcpStream::connect(&to)) else {
                continue;
            };
            let (mut back, mut forth) = (near.try_clone().unwrap(), far.try_clone().unwrap());
            let all = all.clone();
            thread::spawn(move || {
                let _ = std::io::copy(&mut far, &mut back);
                let _ = back.shutdown(Shutdown::Both);
            });
            thread::spawn(move || {
                let mut some = [0; 4096];
                while let Ok(read @ 1..) = near.read(&mut some) {
                    all.lock().unwrap().extend_from_slice(&some[..read]);
                    if forth.write_all(&some[..read]).is_err() {
                        break;
                    }
                }
            });
        }
    });
    (place, sent)
}

/// Messages of a client, in either era, with the token wherever a client could put it.
fn messages(tool: &str) -> Vec<(&'static str, Value)> {
    let auth = json!({"type": "bearer", "token": CANARY});
    let call = |meta: Value| json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": {"a": 1, "b": 2}, "_meta": meta}});
    vec![
        (
            "2026-07-28",
            call(
                json!({"auth": auth, "io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}),
            ),
        ),
        (
            "2025-06-18",
            json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}, "_meta": {"auth": auth}}}),
        ),
        ("2025-06-18", call(json!({"auth": auth}))),
        (
            "2025-06-18",
            json!({"jsonrpc": "2.0", "method": "notifications/roots/list_changed", "params": {"_meta": {"auth": auth}}}),
        ),
    ]
}

#[test]
fn the_token_of_a_client_reaches_no_server_no_log_and_no_error() {
    let folder = Folder::new("canary");
    let behind = Serving::with(&[
        "proxy",
        "http://127.0.0.1:0/mcp",
        "--",
        adder().to_str().unwrap(),
    ]);
    let behind_at = behind
        .address
        .trim_start_matches("http://")
        .trim_end_matches("/mcp");
    let (place, sent) = recorder(behind_at);
    let input = folder.0.join("input");
    let text = format!(
        "audit = true\nstatus = \"http://127.0.0.1:0\"\n\
         [servers.pipe]\ncommand = [\"sh\", \"-c\", 'tee -a \"$0\" | \"$1\"', {input:?}, {:?}]\n\
         [servers.web]\nurl = \"http://{place}/mcp\"\n\
         [policy]\nauditToTracing = true\nkeys = {{ \"{CANARY}\" = {{ client = \"alice\" }} }}\n",
        adder()
    );
    let file = folder.write("gateway.toml", &text);
    let args = [
        "--log",
        "trace",
        "gateway",
        "http://127.0.0.1:0/mcp",
        "--config",
    ];
    let mut gateway = Serving::with(&[&args[..], &[file.to_str().unwrap()]].concat());
    let log = Log::of(&mut gateway);
    let at = gateway
        .address
        .trim_start_matches("http://")
        .trim_end_matches("/mcp")
        .to_owned();
    let say = |tool: &str| {
        let (mut said, mut session) = (String::new(), String::new());
        for (revision, message) in messages(tool) {
            let method = message["method"].as_str().unwrap();
            let name = match revision {
                "2026-07-28" => format!("Mcp-Name: {tool}\r\n"),
                _ => session.clone(),
            };
            let head = format!(
                "POST /mcp HTTP/1.1\r\nHost: {at}\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n\
                 MCP-Protocol-Version: {revision}\r\nMcp-Method: {method}\r\n{name}X-API-Key: {CANARY}"
            );
            let answer = http(&at, &head, &message.to_string());
            if let Some((_, rest)) = answer.to_lowercase().split_once("mcp-session-id: ") {
                let id = rest.split("\r\n").next().unwrap();
                session = format!("Mcp-Session-Id: {id}\r\n");
            }
            said.push_str(&answer);
        }
        said
    };
    let mut said = String::new();
    for tool in ["pipe_add", "web_add"] {
        let answers = say(tool);
        assert_eq!(answers.matches("\"3\"").count(), 2, "{answers}");
        said.push_str(&answers);
    }
    // A server that is away, and one that is unknown.
    drop(behind);
    said.push_str(&say("web_add"));
    said.push_str(&say("other_add"));
    assert!(said.contains("\"upstream\":\"web\""), "{said}");
    let piped = std::fs::read_to_string(&input).unwrap();
    let sent = String::from_utf8_lossy(&sent.lock().unwrap()).into_owned();
    let (log_text, shown) = (log.text(), status(&log.status()).to_string());
    for (place, text, has) in [
        ("the pipe", &piped, "tools/call"),
        ("the network", &sent, "tools/call"),
        ("the log", &log_text, "principal=\"key:alice\""),
        ("the answers", &said, "upstream_unavailable"),
        ("the status", &shown, "lastError"),
    ] {
        assert!(text.contains(has), "{place} has no {has}: {text}");
        assert!(!text.contains(CANARY), "{place} has the token: {text}");
    }
}
