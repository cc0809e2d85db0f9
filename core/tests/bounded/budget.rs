//! One budget over everything of a server: many peers that fill it, on each carrier, and one that is served
//! meanwhile.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test: panicking is the report"
)]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use mcpbolt::connection::Budget;
use mcpbolt::io::{Address, ServeOptions, Serving};
use mcpbolt::limits::{ALLOCATOR_SHARE, MAX_INTRODUCTION_BYTES, RESERVE_SHARE, TotalLimits};
use mcpbolt::server::{Arguments, Context, Server, Tool};

use crate::alone;
use crate::heap::{LIVE, PEAK};

/// No test waits longer for anything.
const PATIENCE: Duration = Duration::from_secs(60);
const MAX: usize = 32 << 20;
const HELD: usize = MAX - MAX / ALLOCATOR_SHARE;
const LARGE: usize = HELD - HELD / RESERVE_SHARE;
/// Memory that is not counted: connections, their tasks, the memory of the tests themselves, and the
/// old block of a message of 15 MiB while it moves to one that is twice as long.
const BESIDE: usize = 24 << 20;

/// How a message begins that does not end.
const BEGUN: &[u8] = br#"{"jsonrpc":"2.0","id":77,"method":"tools/call","x":""#;

const ECHO: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"text":"small"},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#;

/// One server with that budget, on each carrier.
struct Served {
    budget: Arc<Budget>,
    http: Serving,
    tcp: Serving,
}

impl Served {
    fn begin() -> Self {
        Self::with(ServeOptions::default())
    }

    fn with(options: ServeOptions) -> Self {
        let limits = TotalLimits {
            max_bytes: MAX,
            ..TotalLimits::default()
        };
        let server = Server::builder("bounded", "1")
            .total_limits(limits)
            .tool(Tool::new("echo"), |arguments: Arguments, _| async move {
                arguments.0.to_string()
            })
            .tool(Tool::new("long"), |_: Arguments, _| async {
                "x".repeat(4 << 20)
            })
            .tool(
                Tool::new("wait"),
                |_: Arguments, context: Context| async move {
                    context.sleep(PATIENCE).await;
                    "late"
                },
            )
            .build()
            .unwrap();
        let serve = |address: &str| {
            server
                .serve(address)
                .options(options.clone())
                .start()
                .unwrap()
        };
        Self {
            budget: server.config().budget.clone(),
            http: serve("http://127.0.0.1:0/mcp"),
            tcp: serve("tcp:127.0.0.1:0"),
        }
    }

    fn http(&self) -> Wire {
        let Address::Http(url) = self.http.address() else {
            panic!("no HTTP")
        };
        Wire::open(([127, 0, 0, 1], url.port).into())
    }

    fn tcp(&self) -> Wire {
        let Address::Tcp { port, .. } = self.tcp.address() else {
            panic!("no TCP")
        };
        Wire::open(([127, 0, 0, 1], *port).into())
    }

    /// A WebSocket that is open.
    fn websocket(&self) -> Wire {
        let mut wire = self.http();
        wire.send(
            b"GET /mcp HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
              Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\
              Sec-WebSocket-Protocol: mcp\r\n\r\n",
        );
        assert!(wire.until("\r\n\r\n").starts_with("HTTP/1.1 101"));
        wire
    }

    /// A small request is served on both, whatever the others do.
    fn is_well(&self) {
        let mut wire = self.http();
        assert!(wire.send(&post(ECHO)));
        let answer = wire.until("small");
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        let mut wire = self.tcp();
        assert!(wire.send(format!("{ECHO}\n").as_bytes()));
        wire.until("small");
    }

    fn is_within_its_bound(&self) {
        let bytes = self.budget.bytes();
        // A turn of each thread is counted when it is over.
        assert!(bytes <= HELD + (4 << 20), "{bytes} bytes");
    }

    fn is_empty(&self) {
        until(
            || self.budget.bytes() == 0,
            || format!("{} bytes", self.budget.bytes()),
        );
        self.is_well();
        until(
            || self.budget.bytes() == 0,
            || format!("{} bytes", self.budget.bytes()),
        );
    }

    fn end(self) {
        self.http.stop();
        self.tcp.stop();
        self.http.wait();
        self.tcp.wait();
    }
}

fn until(mut holds: impl FnMut() -> bool, why: impl Fn() -> String) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < PATIENCE, "waited for too long: {}", why());
        std::thread::sleep(Duration::from_millis(2));
    }
}

const HEAD: &str = "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n";

fn post(message: &str) -> Vec<u8> {
    let method = if message == ECHO { ECHO_HEAD } else { "" };
    let len = message.len();
    format!("{HEAD}{method}Content-Length: {len}\r\n\r\n{message}").into_bytes()
}

const ECHO_HEAD: &str =
    "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: echo\r\n";

struct Wire(TcpStream);

impl Wire {
    fn open(to: SocketAddr) -> Self {
        let stream = TcpStream::connect(to).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        Self(stream)
    }

    /// Whether the peer took it: not when it has closed the connection.
    fn send(&mut self, bytes: &[u8]) -> bool {
        self.0.write_all(bytes).is_ok()
    }

    /// The input up to and with `end`, or all of it if there is no `end`.
    fn until(&mut self, end: &str) -> String {
        let (mut all, mut part) = (Vec::new(), [0; 4096]);
        while let Ok(n) = self.0.read(&mut part)
            && n > 0
        {
            all.extend_from_slice(&part[..n]);
            if all.windows(end.len()).any(|part| part == end.as_bytes()) {
                return String::from_utf8_lossy(&all).into_owned();
            }
        }
        panic!("no {end:?}: {}", String::from_utf8_lossy(&all));
    }

    /// The input so far.
    fn so_far(&mut self) -> String {
        String::from_utf8_lossy(&self.bytes_so_far()).into_owned()
    }

    fn bytes_so_far(&mut self) -> Vec<u8> {
        let mut all = vec![0; 64 << 10];
        self.0.set_nonblocking(true).unwrap();
        let n = self.0.read(&mut all).unwrap_or(0);
        self.0.set_nonblocking(false).unwrap();
        all.truncate(n);
        all
    }
}

/// A masked frame of WebSocket; the mask is zero.
fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![first, 0x80 | 127];
    frame.extend((payload.len() as u64).to_be_bytes());
    frame.extend([0; 4]);
    frame.extend(payload);
    frame
}

/// The peak of the heap since now stays within the budget; on Linux that of all memory does, since long
/// blocks are not on the heap.
fn stays_within_its_bound(act: impl FnOnce()) {
    let before = LIVE.load(Relaxed);
    PEAK.store(before, Relaxed);
    #[cfg(target_os = "linux")]
    let resident = {
        crate::resident::reset_peak();
        crate::resident::now()
    };
    act();
    let more = PEAK.load(Relaxed).saturating_sub(before);
    assert!(more < MAX + BESIDE, "{more} bytes at the worst");
    #[cfg(target_os = "linux")]
    {
        let more = crate::resident::peak().saturating_sub(resident);
        assert!(more < MAX + BESIDE, "{more} resident bytes at the worst");
    }
}

#[test]
fn introductions_leave_little_behind() {
    let _alone = alone();
    let served = Served::begin();
    let long = "x".repeat(1 << 20);
    let hello = post(&format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"initialize","params":{{"protocolVersion":"2025-11-25","capabilities":{{"experimental":{{"{long}":{{}}}}}},"clientInfo":{{"name":"c","version":"1"}}}}}}"#
    ));
    drop(long);
    let before = LIVE.load(Relaxed);
    stays_within_its_bound(|| {
        for _ in 0..40 {
            let mut wire = served.http();
            assert!(wire.send(&hello));
            let answer = wire.until("serverInfo").to_ascii_lowercase();
            assert!(answer.contains("mcp-session-id: "), "{answer}");
        }
    });
    until(
        || served.budget.bytes() <= 40 * 2 * MAX_INTRODUCTION_BYTES,
        || format!("{} bytes", served.budget.bytes()),
    );
    assert!(served.budget.bytes() > 0, "what is kept is counted");
    let more = LIVE.load(Relaxed).saturating_sub(before);
    assert!(more < 6 << 20, "{more} bytes are left behind");
    served.is_well();
    let budget = served.budget.clone();
    served.end();
    until(
        || budget.bytes() == 0,
        || format!("{} bytes", budget.bytes()),
    );
}

#[test]
fn bodies_that_are_not_complete_are_refused_over_the_budget() {
    let _alone = alone();
    let served = Served::begin();
    let part = vec![b' '; 1 << 20];
    // With its length announced, and in chunks.
    for announced in [true, false] {
        stays_within_its_bound(|| {
            let mut wires = Vec::new();
            for _ in 0..60 {
                let mut wire = served.http();
                let head = match announced {
                    true => format!("{HEAD}Content-Length: {}\r\n\r\n", 15 << 20),
                    false => format!("{HEAD}Transfer-Encoding: chunked\r\n\r\n{:x}\r\n", 15 << 20),
                };
                wire.send(head.as_bytes());
                // The answer is lost where the connection ends while the peer still sends.
                let is_taken = (0..14).all(|_| wire.send(&part));
                served.is_within_its_bound();
                wires.push((wire, !is_taken));
            }
            let mut told = 0;
            until(
                || {
                    for (wire, is_refused) in &mut wires {
                        let answer = wire.so_far().to_ascii_lowercase();
                        if answer.is_empty() {
                            continue;
                        }
                        assert!(answer.starts_with("http/1.1 503"), "{answer}");
                        assert!(answer.contains("retry-after: 1\r\n"), "{answer}");
                        assert!(answer.contains("\"retryafter\":1"), "{answer}");
                        (*is_refused, told) = (true, told + 1);
                    }
                    told > 0 && wires.iter().filter(|(_, is_refused)| *is_refused).count() > 20
                },
                || format!("too few are refused, announced: {announced}"),
            );
            assert!(served.budget.bytes() > LARGE / 2, "others are held");
            served.is_well();
        });
        served.is_empty();
    }
    served.end();
}

#[test]
fn messages_that_are_not_complete_are_refused_over_the_budget() {
    let _alone = alone();
    let served = Served::begin();
    let part = vec![b'x'; 1 << 20];
    let length = (15_u32 << 20).to_be_bytes();
    let heads = [
        // A line without an end, and a length.
        BEGUN.to_vec(),
        [&length[..], BEGUN].concat(),
    ];
    for head in heads {
        stays_within_its_bound(|| {
            let mut wires: Vec<_> = (0..20).map(|_| served.tcp()).collect();
            wires.iter_mut().for_each(|wire| assert!(wire.send(&head)));
            for _ in 0..8 {
                for wire in &mut wires {
                    assert!(wire.send(&part), "it is told, not closed");
                }
                served.is_within_its_bound();
            }
            let said: Vec<_> = wires.iter_mut().map(Wire::so_far).collect();
            let refused = said.iter().filter(|said| !said.is_empty());
            for said in refused.clone() {
                assert!(
                    said.contains("\"id\":77") && said.contains("\"retryAfter\":1"),
                    "{said}"
                );
            }
            assert!(refused.count() > 5);
            served.is_well();
        });
        served.is_empty();
    }
    served.end();
}

/// After a refusal, the connection goes on with the input behind the message.
#[test]
fn a_connection_that_was_refused_goes_on() {
    let _alone = alone();
    let served = Served::begin();
    let part = vec![b'x'; 1 << 20];
    let mut wires: Vec<_> = (0..5).map(|_| served.tcp()).collect();
    wires.iter_mut().for_each(|wire| assert!(wire.send(BEGUN)));
    for _ in 0..9 {
        for wire in &mut wires {
            assert!(wire.send(&part));
        }
    }
    for mut wire in wires {
        let line = format!("\n{ECHO}\n");
        assert!(wire.send(line.as_bytes()));
        wire.until("small");
    }
    served.is_empty();
    served.end();
}

#[test]
fn fragments_of_messages_are_refused_over_the_budget() {
    let _alone = alone();
    let served = Served::begin();
    let part = vec![b'x'; 1 << 20];
    stays_within_its_bound(|| {
        let mut wires: Vec<_> = (0..20).map(|_| served.websocket()).collect();
        wires.iter_mut().for_each(|wire| {
            wire.send(&frame(1, &part));
        });
        let next = frame(0, &part);
        for _ in 0..7 {
            for wire in &mut wires {
                // One that was refused is closed.
                let _ = wire.send(&next);
            }
            served.is_within_its_bound();
        }
        // A close with 1013: try again later.
        let is_closed = |wire: &mut Wire| {
            let said = wire.bytes_so_far();
            said.windows(2).any(|code| code == 1013_u16.to_be_bytes())
        };
        let closed = wires.iter_mut().map(is_closed).filter(|&is| is).count();
        assert!(closed > 5, "{closed} closed");
        served.is_well();
    });
    served.is_empty();
    served.end();
}

/// The bytes before a body are bounded for each connection.
#[test]
fn heads_that_are_not_complete_are_refused_when_they_are_long() {
    let _alone = alone();
    let served = Served::begin();
    let before = LIVE.load(Relaxed);
    let line = format!("X-Long: {}\r\n", "x".repeat(4000));
    let mut wires: Vec<_> = (0..40).map(|_| served.http()).collect();
    for wire in &mut wires {
        let head = format!("{HEAD}{}", line.repeat(75));
        // One that is refused is closed.
        let _ = wire.send(head.as_bytes());
    }
    served.is_well();
    let more = LIVE.load(Relaxed).saturating_sub(before);
    assert!(more < 40 * (128 << 10), "{more} bytes are held");
    drop(wires);
    served.is_empty();
    served.end();
}

/// Memory that one carrier holds is missing for another.
#[test]
fn all_carriers_have_one_budget() {
    let _alone = alone();
    let served = Served::begin();
    let part = vec![b'x'; 1 << 20];
    let mut wires: Vec<_> = (0..6).map(|_| served.tcp()).collect();
    wires.iter_mut().for_each(|wire| assert!(wire.send(BEGUN)));
    for _ in 0..4 {
        wires.iter_mut().for_each(|wire| assert!(wire.send(&part)));
    }
    until(
        || served.budget.bytes() >= 20 << 20,
        || format!("{} bytes", served.budget.bytes()),
    );
    let mut wire = served.http();
    let head = format!("{HEAD}Content-Length: {}\r\n\r\n", 14 << 20);
    wire.send(head.as_bytes());
    let answer = wire.until("\r\n\r\n");
    assert!(answer.starts_with("HTTP/1.1 503"), "{answer}");
    served.is_well();
    drop(wires);
    served.is_empty();
    served.end();
}

/// Arguments of handlers are counted until the handlers are done.
#[test]
fn messages_in_the_hands_of_handlers_are_counted() {
    let _alone = alone();
    let served = Served::begin();
    let text = "x".repeat(2 << 20);
    let call = ECHO.replace("\"echo\"", "\"wait\"").replace("small", &text);
    let call = format!("{call}\n");
    let mut wires: Vec<_> = (0..20).map(|_| served.tcp()).collect();
    for wire in &mut wires {
        assert!(wire.send(call.as_bytes()));
    }
    until(
        || {
            wires
                .iter_mut()
                .filter_map(|wire| (!wire.so_far().is_empty()).then_some(()))
                .count()
                > 0
                || served.budget.requests() + 1 >= 20
        },
        || format!("{} requests", served.budget.requests()),
    );
    served.is_within_its_bound();
    assert!(served.budget.requests() < 20, "some are refused");
    served.is_well();
    drop(wires);
    served.is_empty();
    served.end();
}

/// Answers that nobody takes are counted, on each carrier.
#[test]
fn answers_that_are_not_taken_are_counted() {
    let _alone = alone();
    let served = Served::begin();
    let call = ECHO.replace("\"echo\"", "\"long\"");
    let mut wires = Vec::new();
    for _ in 0..2 {
        let mut wire = served.tcp();
        assert!(wire.send(format!("{call}\n").as_bytes()));
        wires.push(wire);
        let mut wire = served.http();
        let len = call.len();
        let head = ECHO_HEAD.replace("echo", "long");
        let post = format!("{HEAD}{head}Content-Length: {len}\r\n\r\n{call}");
        assert!(wire.send(post.as_bytes()));
        wires.push(wire);
    }
    // The sockets' own buffers are not counted.
    until(
        || served.budget.calls() == 4 && served.budget.requests() == 0,
        || format!("{} calls", served.budget.calls()),
    );
    served.is_well();
    drop(wires);
    served.is_empty();
    served.end();
}
