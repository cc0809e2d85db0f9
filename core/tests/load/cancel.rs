//! How soon the handler of a call that is cancelled has seen it.

use std::net::{SocketAddr, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use mcpbolt::io::{Address, Serving};
use mcpbolt::server::{Arguments, Context, Server, Tool};
use serde_json::json;
use tungstenite::Message;

use crate::PATIENCE;
use crate::client::call;
use crate::wire::{Wire, envelope, request};

/// The promised times, and the slack of a busy machine.
const PROMISE: Duration = Duration::from_millis(10);
const SLACK: u32 = 10;

/// Calls that wait meanwhile.
const IN_FLIGHT: u32 = 100;
const CANCELS: u32 = 1000;

/// Tells when it is over, by its end or because nobody waits for it any more.
struct Ends(Sender<Instant>);

impl Drop for Ends {
    fn drop(&mut self) {
        let _ = self.0.send(Instant::now());
    }
}

/// A server whose handlers wait to be cancelled, and tell when they have begun and when they
/// were.
fn begin() -> (Serving, SocketAddr, Receiver<Instant>) {
    let (sender, told) = channel();
    let server = Server::builder("cancel", "1.0.0")
        .tool(Tool::new("wait"), move |_: Arguments, context: Context| {
            let sender = sender.clone();
            async move {
                sender.send(Instant::now()).unwrap();
                let _ends = Ends(sender);
                context.sleep(Duration::from_secs(600)).await;
            }
        })
        .build()
        .unwrap();
    let serving = server.serve("http://127.0.0.1:0/mcp").start().unwrap();
    let Address::Http(url) = serving.address() else {
        panic!("no HTTP");
    };
    let at = ([127, 0, 0, 1], url.port).into();
    (serving, at, told)
}

/// `start` begins a call, `cancel` ends it.
fn cancel<C>(
    carrier: &str,
    told: &Receiver<Instant>,
    mut start: impl FnMut(u32) -> C,
    mut cancel: impl FnMut(u32, C),
) {
    let mut wait = |number| {
        let begun = start(number);
        told.recv_timeout(PATIENCE).unwrap();
        begun
    };
    let waiting: Vec<_> = (0..IN_FLIGHT).map(&mut wait).collect();
    let mut delays: Vec<_> = (IN_FLIGHT..IN_FLIGHT + CANCELS)
        .map(|number| {
            let begun = wait(number);
            let cancelled = Instant::now();
            cancel(number, begun);
            told.recv_timeout(PATIENCE).unwrap() - cancelled
        })
        .collect();
    drop(waiting);
    delays.sort();
    let (median, p99) = (delays[delays.len() / 2], delays[delays.len() * 99 / 100]);
    println!(
        "{CANCELS} cancels on {carrier}, {IN_FLIGHT} calls in flight: seen after {median:.0?} (median), {p99:.0?} (p99)"
    );
    assert!(p99 < PROMISE * SLACK, "{p99:?}");
}

/// R-CAN-06.
#[test]
fn who_hangs_up_on_http_has_cancelled_soon() {
    let (_serving, at, told) = begin();
    let start = |number| {
        let mut wire = Wire::open(at);
        wire.send(&call(number, "wait", json!({})));
        wire
    };
    cancel("HTTP", &told, start, |_, wire| drop(wire));
}

/// R-CAN-02.
#[test]
fn who_cancels_on_a_websocket_has_cancelled_soon() {
    let (_serving, at, told) = begin();
    let stream = TcpStream::connect(at).unwrap();
    stream.set_nodelay(true).unwrap();
    let (socket, _) = tungstenite::client(format!("ws://{at}/mcp"), stream).unwrap();
    let socket = std::cell::RefCell::new(socket);
    let say = |message: &serde_json::Value| {
        let message = Message::text(message.to_string());
        socket.borrow_mut().send(message).unwrap();
    };
    let start = |number| {
        let params = json!({"name": "wait", "arguments": {}});
        say(&request(number, "tools/call", params));
    };
    cancel("a WebSocket", &told, start, |number, ()| {
        let params = json!({"requestId": number, "_meta": envelope(json!({}))});
        say(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}));
    });
}
