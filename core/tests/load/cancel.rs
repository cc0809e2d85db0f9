//! How soon the handler of a call that is cancelled is dropped.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use mcpbolt::io::http::{HttpOptions, HttpService};
use mcpbolt::io::{Address, Serving};
use mcpbolt::server::{Arguments, Context, Server, Tool};
use serde_json::json;
use tungstenite::Message;

use crate::PATIENCE;
use crate::client::{ask, call, open, say};
use crate::wire::{Wire, envelope, request};

/// The promised times, and the slack of a busy machine.
const PROMISE: Duration = Duration::from_millis(10);
const SLACK: u32 = 10;

/// Calls that wait meanwhile.
const IN_FLIGHT: u32 = 100;
const CANCELS: u32 = 1000;

/// Tells when it is over, by its end or because nobody waits for it any more.
struct Ends<T: Fn()>(T);

impl<T: Fn()> Drop for Ends<T> {
    fn drop(&mut self) {
        (self.0)();
    }
}

/// A server whose handlers wait to be cancelled, and tell when they have begun and when they are dropped.
fn server(tell: impl Fn() + Clone + Send + Sync + 'static) -> Server {
    Server::builder("cancel", "1.0.0")
        .tool(Tool::new("wait"), move |_: Arguments, context: Context| {
            let tell = tell.clone();
            async move {
                tell();
                let _ends = Ends(tell);
                context.sleep(Duration::from_secs(600)).await;
            }
        })
        .build()
        .unwrap()
}

/// The server, and the instants at which its handlers tell.
fn telling() -> (Server, Receiver<Instant>) {
    let (sender, told) = channel();
    // The last handlers end after the test.
    let tell = move || {
        let _ = sender.send(Instant::now());
    };
    (server(tell), told)
}

fn begin() -> (Serving, SocketAddr, Receiver<Instant>) {
    let (server, told) = telling();
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
        "{CANCELS} cancels on {carrier}, {IN_FLIGHT} calls in flight: handlers dropped after {median:.0?} (median), \
         {p99:.0?} (p99)"
    );
    assert!(p99 < PROMISE * SLACK, "{p99:?}");
}

/// Begins each call on a connection of its own, and closes it to cancel the call.
fn hang_up(carrier: &str, at: SocketAddr, told: &Receiver<Instant>) {
    let start = |number| {
        let mut wire = Wire::open(at);
        wire.send(&call(number, "wait", json!({})));
        wire
    };
    cancel(carrier, told, start, |_, wire| drop(wire));
}

/// R-CAN-06.
#[test]
fn who_hangs_up_on_http_has_cancelled_soon() {
    let (_serving, at, told) = begin();
    hang_up("HTTP", at, &told);
}

/// R-CAN-06, in a program's own HTTP server.
#[test]
fn who_hangs_up_on_axum_has_cancelled_soon() {
    let (server, told) = telling();
    let runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = { runtime }.worker_threads(2).enable_all().build().unwrap();
    let at = runtime.block_on(async {
        let service = HttpService::new(&server, HttpOptions::default()).unwrap();
        let app = axum::Router::new().route("/mcp", axum::routing::any_service(service));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let at = listener.local_addr().unwrap();
        tokio::spawn(async move { axum::serve(listener, app).await });
        at
    });
    hang_up("HTTP in axum", at, &told);
    runtime.shutdown_background();
}

/// R-CAN-02, in a session.
#[test]
fn who_cancels_in_a_session_has_cancelled_soon() {
    let (_serving, at, told) = begin();
    let (mut control, session) = open(at);
    let start = |number| {
        let mut wire = Wire::open(at);
        let params = json!({"name": "wait", "arguments": {}});
        let call =
            json!({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params});
        wire.send(&say(&session, &call.to_string()));
        wire
    };
    cancel("HTTP with sessions", &told, start, |number, _wire| {
        let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled",
            "params": {"requestId": number}});
        ask(&mut control, &say(&session, &cancel.to_string()), 202);
    });
}

/// The variable that makes this program the server on stdio.
const SERVES: &str = "MCPBOLT_TEST_SERVES_CANCEL";

/// The server of the next test, in a process of its own: tells on stderr.
#[test]
fn a_server_on_stdio() {
    if std::env::var_os(SERVES).is_some() {
        let server = server(|| eprintln!("TOLD"));
        server.serve_stdio().wait().unwrap();
        std::process::exit(0);
    }
}

/// R-CAN-02. The times include the way of the word that the handler is dropped, through a pipe.
#[test]
fn who_cancels_on_stdio_has_cancelled_soon() {
    let mut process = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "cancel::a_server_on_stdio",
            "--nocapture",
            "--quiet",
        ])
        .env(SERVES, "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let (stdin, stderr) = (
        process.stdin.take().unwrap(),
        process.stderr.take().unwrap(),
    );
    let (sender, told) = channel();
    let hears = std::thread::spawn(move || {
        let lines = BufReader::new(stderr).lines();
        let told = lines.filter(|line| line.as_ref().is_ok_and(|line| line == "TOLD"));
        for _ in told {
            let _ = sender.send(Instant::now());
        }
    });
    let stdin = std::cell::RefCell::new(stdin);
    let say = |message: &serde_json::Value| {
        let line = format!("{message}\n");
        stdin.borrow_mut().write_all(line.as_bytes()).unwrap();
    };
    let start = |number| {
        let params = json!({"name": "wait", "arguments": {}});
        say(&request(number, "tools/call", params));
    };
    cancel("stdio", &told, start, |number, ()| {
        let params = json!({"requestId": number, "_meta": envelope(json!({}))});
        say(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}));
    });
    drop(stdin);
    process.kill().unwrap();
    process.wait().unwrap();
    hears.join().unwrap();
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
