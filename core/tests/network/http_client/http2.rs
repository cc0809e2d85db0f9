//! A server on HTTP/2 that ends a connection while requests are in flight (RFC 9113, section 6.8): it says which it has not looked at.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use mcpbolt::client::block_on;
use mcpbolt::error::{CarrierError, CarrierFault, RequestError};
use mcpbolt::io::http::HttpClientOptions;
use mcpbolt::mcp::Revision;
use serde_json::{Value, json};

use super::PATIENCE;
use super::serving::builder;

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GO_AWAY: u8 = 7;

const END_STREAM: u8 = 1;
const ACK: u8 = 1;
const END_HEADERS: u8 = 4;

const NO_ERROR: u32 = 0;
const INTERNAL_ERROR: u32 = 2;

/// The status 200 and the type of the content, in HPACK.
const HEAD: &[u8] = b"\x88\x0f\x10\x10application/json";

/// One connection, frame by frame.
struct Wire {
    socket: TcpStream,
    /// What has come of each request.
    bodies: HashMap<u32, Vec<u8>>,
}

impl Wire {
    fn accept(mut socket: TcpStream) -> Self {
        socket.set_nodelay(true).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut preface = [0; 24];
        socket.read_exact(&mut preface).unwrap();
        assert_eq!(&preface, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
        let bodies = HashMap::new();
        let mut wire = Self { socket, bodies };
        wire.write(SETTINGS, 0, 0, &[]);
        wire
    }

    fn write(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
        let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
        let mut frame = [&length[1..], &[kind, flags], &stream.to_be_bytes()].concat();
        frame.extend_from_slice(payload);
        // The client may be gone.
        let _ = self.socket.write_all(&frame);
    }

    /// The next whole request; `None` at the end of the connection.
    fn request(&mut self) -> Option<(u32, Value)> {
        loop {
            let mut head = [0; 9];
            self.socket.read_exact(&mut head).ok()?;
            let [a, b, c, kind, flags, stream @ ..] = head;
            let mut payload = vec![0; u32::from_be_bytes([0, a, b, c]) as usize];
            self.socket.read_exact(&mut payload).ok()?;
            match kind {
                SETTINGS | PING if flags & ACK == 0 => {
                    let echo = if kind == PING { payload } else { Vec::new() };
                    self.write(kind, ACK, 0, &echo);
                }
                DATA => {
                    let stream = u32::from_be_bytes(stream);
                    self.bodies.entry(stream).or_default().extend(payload);
                    if flags & END_STREAM != 0 {
                        let body = self.bodies.remove(&stream).unwrap();
                        return Some((stream, serde_json::from_slice(&body).unwrap()));
                    }
                }
                _ => {}
            }
        }
    }

    fn answer(&mut self, stream: u32, request: &Value) {
        let result = match request["method"].as_str().unwrap() {
            "server/discover" => {
                json!({"resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}})
            }
            _ => {
                let said = &request["params"]["arguments"]["text"];
                json!({"content": [{"type": "text", "text": said}], "resultType": "complete"})
            }
        };
        let answer = json!({"jsonrpc": "2.0", "id": request["id"], "result": result});
        self.write(HEADERS, END_HEADERS, stream, HEAD);
        self.write(DATA, END_STREAM, stream, answer.to_string().as_bytes());
    }

    /// Ends the connection: streams after `last` were not looked at.
    fn go_away(&mut self, last: u32, why: u32) {
        let payload = [last.to_be_bytes(), why.to_be_bytes()].concat();
        self.write(GO_AWAY, 0, 0, &payload);
    }
}

/// The calls that the server has read, by what they say, with the number of the connection.
type Calls = Arc<Mutex<Vec<(usize, String)>>>;

/// A server that reads four calls on its first connection, says that it has looked at two and why it ends, and answers these if it
/// `answers`. On further connections it answers all.
fn serve(why: u32, answers: bool) -> (String, Calls) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let read = Calls::default();
    let log = read.clone();
    thread::spawn(move || {
        for (number, socket) in listener.incoming().enumerate() {
            let (mut wire, log) = (Wire::accept(socket.unwrap()), log.clone());
            thread::spawn(move || {
                let mut calls = Vec::new();
                while let Some((stream, request)) = wire.request() {
                    if request["method"] != "tools/call" {
                        wire.answer(stream, &request);
                        continue;
                    }
                    let text = request["params"]["arguments"]["text"].as_str().unwrap();
                    log.lock().unwrap().push((number, text.to_owned()));
                    if number > 0 {
                        wire.answer(stream, &request);
                        continue;
                    }
                    calls.push((stream, request));
                    if calls.len() == 4 {
                        calls.sort_by_key(|(stream, _)| *stream);
                        wire.go_away(calls[1].0, why);
                        if !answers {
                            return;
                        }
                        for (stream, request) in &calls[..2] {
                            wire.answer(*stream, request);
                        }
                    }
                }
            });
        }
    });
    (url, read)
}

/// What has become of each of four calls at once; with those that the server has read, by connection.
fn outcomes(why: u32, answers: bool) -> (Vec<Result<(), CarrierError>>, [Vec<String>; 2]) {
    let (url, read) = serve(why, answers);
    let options = HttpClientOptions {
        http2_prior_knowledge: true,
        ..HttpClientOptions::default()
    };
    let client = block_on(builder(Revision::V2026_07_28).http(&url, options)).unwrap();
    let calls: Vec<_> = (0..4)
        .map(|n| {
            let arguments = json!({"text": n.to_string()});
            client.call_tool("echo", &arguments).send().unwrap()
        })
        .collect();
    let outcomes = calls
        .into_iter()
        .enumerate()
        .map(|(n, call)| match block_on(call) {
            Ok(answer) => {
                assert_eq!(answer.text(), n.to_string());
                Ok(())
            }
            Err(RequestError::Carrier(error)) => Err(*error),
            Err(other) => panic!("{other:?}"),
        });
    let outcomes = outcomes.collect();
    // The client goes on, over another connection.
    let after = client.call_tool("echo", &json!({"text": "after"}));
    assert_eq!(after.wait().unwrap().text(), "after");
    let read = read.lock().unwrap();
    let on = |number| {
        let own = read.iter().filter(|(on, _)| *on == number);
        let mut texts: Vec<_> = own.map(|(_, text)| text.clone()).collect();
        texts.sort();
        texts
    };
    let read = [on(0), on(1)];
    (outcomes, read)
}

/// R-HTP-20: what a server has not looked at when it ends a connection in good order is sent again, on another one; what it has looked
/// at is answered, once.
#[test]
fn what_a_server_has_not_looked_at_when_it_leaves_is_sent_again() {
    let (outcomes, [first, second]) = outcomes(NO_ERROR, true);
    assert!(outcomes.iter().all(Result::is_ok), "{outcomes:?}");
    assert_eq!(first, ["0", "1", "2", "3"]);
    assert_eq!(second, ["2", "3", "after"]);
}

/// R-HTP-20: nothing is sent again that may have run, and nobody waits in vain.
#[test]
fn what_a_server_may_have_run_when_it_leaves_is_not_sent_again() {
    for (why, answers, answered) in [
        (NO_ERROR, false, 2),
        (INTERNAL_ERROR, true, 2),
        (INTERNAL_ERROR, false, 0),
    ] {
        let (outcomes, [first, second]) = outcomes(why, answers);
        let failed: Vec<_> = outcomes.iter().filter_map(|it| it.as_ref().err()).collect();
        assert_eq!(outcomes.len() - failed.len(), answered, "{outcomes:?}");
        for error in failed {
            assert_eq!(error.fault, CarrierFault::Broken, "{error}");
            assert!(
                error.to_string().starts_with("the connection broke off: "),
                "{error}"
            );
        }
        assert_eq!(first, ["0", "1", "2", "3"]);
        let again: &[&str] = match why {
            NO_ERROR => &["2", "3", "after"],
            _ => &["after"],
        };
        assert_eq!(second, again);
    }
}
