//! Servers that die: every call ends once, soon, and the client knows before the next.
//!
//! Between client and server stands who breaks the connections, at any byte.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use futures::future::join_all;
use mcpbolt::client::{Client, block_on};
use mcpbolt::io::ConnectOptions;
use mcpbolt::mcp::Revision;
use serde_json::json;

use crate::far::{Far, Setup};

/// The promised times, and the slack of a busy machine.
const PROMISE: Duration = Duration::from_millis(50);
const SLACK: u32 = 10;

#[derive(Clone, Copy, Debug)]
enum Death {
    /// All connections end.
    Ends,
    /// After what nobody can read.
    Raves,
    /// The same, and nothing ends.
    RavesOn,
}

const DEATHS: [Death; 3] = [Death::Ends, Death::Raves, Death::RavesOn];
const NONSENSE: &[u8] = b"\xff\xfe\x00 nonsense \r\n\r\n\xff";

/// Passes bytes on until it is told to die.
struct Middle {
    at: SocketAddr,
    dead: Arc<AtomicBool>,
    clients: Arc<Mutex<Vec<TcpStream>>>,
}

impl Middle {
    fn begin(to: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let at = listener.local_addr().unwrap();
        let (dead, clients) = (Arc::new(AtomicBool::new(false)), Arc::default());
        let middle = Self { at, dead, clients };
        let (dead, clients) = (middle.dead.clone(), middle.clients.clone());
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let server = TcpStream::connect(to).unwrap();
                let twin = |stream: &TcpStream| stream.try_clone().unwrap();
                let mut known = clients.lock().unwrap();
                // Nobody is left behind who came at the last moment.
                if dead.load(Ordering::SeqCst) {
                    return;
                }
                known.push(twin(&client));
                drop(known);
                pass(twin(&client), twin(&server), 4096, dead.clone());
                // In pieces, so that the end comes anywhere within a message.
                pass(server, client, 61, dead.clone());
            }
        });
        middle
    }

    fn die(&self, death: Death) -> Instant {
        let clients = self.clients.lock().unwrap();
        self.dead.store(true, Ordering::SeqCst);
        let fault = Instant::now();
        for mut client in clients.iter() {
            if !matches!(death, Death::Ends) {
                let _ = client.write_all(NONSENSE);
            }
            if !matches!(death, Death::RavesOn) {
                let _ = client.shutdown(Shutdown::Both);
            }
        }
        drop(clients);
        // A new connection is turned away now.
        let _ = TcpStream::connect(self.at);
        fault
    }
}

fn pass(mut from: TcpStream, mut to: TcpStream, piece: usize, dead: Arc<AtomicBool>) {
    thread::spawn(move || {
        let mut bytes = vec![0; piece];
        while let Ok(n @ 1..) = from.read(&mut bytes) {
            if dead.load(Ordering::SeqCst) || to.write_all(&bytes[..n]).is_err() {
                break;
            }
        }
        if !dead.load(Ordering::SeqCst) {
            let _ = to.shutdown(Shutdown::Write);
        }
    });
}

fn die(scheme: &str, rounds: usize, calls: usize) {
    let far = Far::begin(Setup("max_sessions=20000"));
    let (mut answered, mut delays) = (0, Vec::new());
    for round in 0..rounds {
        let middle = Middle::begin(far.at);
        let address = format!("{scheme}://{}/mcp", middle.at).parse().unwrap();
        let revision = [Revision::V2026_07_28, Revision::V2025_11_25][round % 2];
        let builder = Client::builder("test", "1").revisions([revision].into_iter().collect());
        let client = block_on(builder.open(&address, ConnectOptions::default())).unwrap();
        let call = |number: usize| {
            let name = if number.is_multiple_of(3) {
                "late"
            } else {
                "echo"
            };
            let text = format!("{round} {number}");
            let sent = client
                .call_tool(name, &json!({"text": text}))
                .send()
                .unwrap();
            async move {
                let outcome = sent.await.map(|result| result.text() == text);
                (outcome.ok(), Instant::now())
            }
        };
        let asked: Vec<_> = (0..calls).map(call).collect();
        let death = DEATHS[round / 2 % DEATHS.len()];
        let wait = Duration::from_millis(round as u64 * 7 % 20);
        let dies = thread::spawn(move || {
            thread::sleep(wait);
            let fault = middle.die(death);
            (middle, fault)
        });
        let outcomes = block_on(join_all(asked));
        let (_middle, fault) = dies.join().unwrap();
        for (outcome, at) in outcomes {
            match outcome {
                Some(right) => {
                    assert!(right, "an answer of another call");
                    answered += 1;
                }
                None => delays.push(at.saturating_duration_since(fault)),
            }
        }
        // The next connection is refused at once.
        let begun = Instant::now();
        assert!(
            client
                .call_tool("echo", &json!({"text": "x"}))
                .wait()
                .is_err()
        );
        assert!(begun.elapsed() < PROMISE * SLACK, "{death:?}");
        if scheme == "ws" {
            assert!(client.handle().is_closed(), "{death:?}");
        }
    }
    delays.sort();
    let (failed, all) = (delays.len(), rounds * calls);
    let (p99, longest) = (delays[failed * 99 / 100], delays[failed - 1]);
    println!("{scheme}: {answered} answered, {failed} failed, p99 {p99:?}, longest {longest:?}");
    assert!(answered + failed == all && failed > all / 5);
    assert!(p99 < PROMISE * SLACK, "{p99:?}");
    far.ended();
}

/// R-ERR-26, R-HTP-19.
#[test]
fn who_dies_on_http_ends_every_call_once() {
    die("http", 12, 50);
}

/// R-ERR-26, R-WSK-07.
#[test]
fn who_dies_on_a_websocket_ends_every_call_once() {
    die("ws", 12, 50);
}

#[test]
#[ignore = "takes minutes"]
fn a_hundred_thousand_calls_to_who_dies_on_http() {
    die("http", 1000, 100);
}

#[test]
#[ignore = "takes minutes"]
fn a_hundred_thousand_calls_to_who_dies_on_a_websocket() {
    die("ws", 1000, 100);
}
