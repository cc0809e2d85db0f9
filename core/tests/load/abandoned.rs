//! Sessions that are opened and abandoned: what they held comes back.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use crate::client::{ask, hello, listen, say, write};
use crate::far::{Far, Setup};
use crate::wire::Wire;

/// A client that opens sessions and abandons them.
struct Careless {
    to: SocketAddr,
    /// For what needs no connection of its own.
    wire: Wire,
    hello: Vec<u8>,
}

impl Careless {
    fn new(to: SocketAddr) -> Self {
        Self {
            to,
            wire: Wire::open(to),
            hello: hello(),
        }
    }

    fn ask(&mut self, request: &[u8], status: u16) {
        ask(&mut self.wire, request, status);
    }

    fn open(&mut self) -> String {
        let answer = ask(&mut self.wire, &self.hello, 200);
        answer.header("mcp-session-id").to_owned()
    }

    /// Something, and never a word of it again.
    fn begin(&mut self, number: usize) {
        let call = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"text":"x"}}}"#;
        match number % 16 {
            8 => {
                let id = self.open();
                let ready = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
                self.ask(&say(&id, ready), 202);
                self.ask(&say(&id, call), 200);
            }
            9 => {
                let id = self.open();
                let mut wire = Wire::open(self.to);
                wire.send(&listen(&id));
                assert_eq!(wire.begin().status, 200);
                wire.break_off();
            }
            10 => self.ask(&write(&[("Origin", "http://evil.example.com")], "{}"), 403),
            11 => self.ask(&write(&[], "{\"id\":"), 400),
            12 => self.ask(&say("none", call), 404),
            // A connection that stands half open until it breaks, at any point.
            13 | 14 => {
                let mut wire = Wire::open(self.to);
                wire.send(&self.hello[..number / 16 % self.hello.len()]);
                wire.break_off();
            }
            // A stream of 2024-11-05 is a session.
            15 => {
                let mut wire = Wire::open(self.to);
                wire.send(&listen(""));
                assert_eq!(wire.begin().status, 200);
                wire.break_off();
            }
            _ => drop(self.open()),
        }
    }
}

const SETUP: Setup = Setup("session_ttl=2000 header_timeout=2000 stall_timeout=2000");

/// All sessions are over after this time.
const OVER: Duration = Duration::from_secs(4);

/// So many are the start.
const WARM: usize = 15_000;

/// Afterwards it holds what it held when there had been a full table of them, within a tenth.
fn abandon(count: usize) {
    let mut far = Far::begin(SETUP);
    let mut careless = Careless::new(far.at);
    // As many as may be there at a time, and more.
    (0..WARM).for_each(|number| careless.begin(number));
    std::thread::sleep(OVER);
    let before = far.held();
    let (mut careless, begun) = (Careless::new(far.at), Instant::now());
    let mut most = 0;
    for number in 0..count {
        careless.begin(number);
        if number % 4096 == 0 {
            most = most.max(far.resident());
        }
    }
    let took = begun.elapsed();
    drop(careless);
    std::thread::sleep(OVER);
    let kept = far.resident();
    let after = far.held();
    println!(
        "{count} in {took:.1?}, allocated and resident: {before:?} bytes before, {after:?} after"
    );
    println!(
        "resident meanwhile: {most} bytes; {kept} before the C library gave back what is free"
    );
    let enough = |before: usize| before / 10 * 11;
    assert!(after.0 <= enough(before.0) && after.1 <= enough(before.1));
    far.ended();
}

/// R-SES-01, R-SES-05.
#[test]
fn twenty_thousand_abandoned_sessions_leave_nothing_behind() {
    abandon(20_000);
}

#[test]
#[ignore = "takes minutes"]
fn a_million_abandoned_sessions_leave_nothing_behind() {
    abandon(1_000_000);
}
