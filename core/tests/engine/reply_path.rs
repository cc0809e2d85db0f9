//! Requests, cancels, progress and answers in random orders on real threads, over the whole way
//! from the frame that asks to the frame that answers, with ids that are easily confused.
//!
//! `MCPBOLT_STRESS` sets how many requests, `MCPBOLT_SEED` repeats a run.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a test: panicking is the report"
)]

use std::io::Write;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use mcpbolt::connection::{
    Answer, Batch, Call, CallKey, Config, Connection, Disposition, Framing, Handle, Host,
    IncomingRequest, Operation, Progress, StreamId,
};
use mcpbolt::mcp::{ErrorKind, Side};

const IDS: [&str; 4] = ["0", "\"\"", "9", "\"9\""];
const RESPONDERS: usize = 2;

/// SplitMix64.
struct Random(u64);

impl Random {
    fn new() -> Self {
        let given = std::env::var("MCPBOLT_SEED").ok();
        let clock = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        let seed = given.map_or(clock.as_nanos() as u64, |seed| seed.parse().unwrap());
        println!("MCPBOLT_SEED={seed}");
        Self(seed)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ (z >> 31)) % bound
    }
}

/// Hands each call to one of the responders.
struct Dealer {
    responders: Vec<SyncSender<Call>>,
    dealt: usize,
    told: Vec<CallKey>,
}

impl Host for Dealer {
    fn request(&mut self, _request: IncomingRequest<'_>, _answer: Answer<'_>) -> Disposition {
        Disposition::Deferred(Operation::Own(0))
    }

    fn dispatch(&mut self, batch: Batch) {
        for call in batch.calls() {
            let responder = self.dealt % self.responders.len();
            self.dealt += 1;
            self.responders[responder].send(call).unwrap();
        }
    }

    fn cancelled(&mut self, key: CallKey, _reason: Option<&str>) {
        self.told.push(key);
    }
}

/// Answers every call, some of them twice, some late, some with progress before and after.
fn respond(calls: &Receiver<Call>, handle: &Handle, mut random: Random) {
    let mut late: Option<Call> = None;
    for call in calls {
        let message = call.message.as_ref();
        let n = message.arguments().unwrap_or("{}").to_owned();
        let mut replies = handle.replies();
        let progress = |step| Progress {
            progress: f64::from(step),
            total: None,
            message: None,
        };
        for step in 0..random.below(3) as u32 {
            replies.progress(&call.reply, progress(step));
            if random.below(4) == 0 {
                replies.submit();
            }
        }
        match random.below(8) {
            0 => thread::yield_now(),
            1 => replies.submit(),
            _ => {}
        }
        let answers = if random.below(8) == 0 { 2 } else { 1 };
        for _ in 0..answers {
            match random.below(8) {
                0 => replies.error(&call.reply, ErrorKind::Internal, &n, None),
                _ => replies.result(&call.reply, |result| result.raw("of", &n)),
            }
        }
        replies.progress(&call.reply, progress(9));
        // A reply to a call that is long over, under an id that another call may have by now.
        if let Some(late) = late.take() {
            replies.progress(&late.reply, progress(10));
            replies.result(&late.reply, |result| result.raw("of", "\"late\""));
        }
        if random.below(16) == 0 {
            late = Some(call);
        }
    }
}

#[derive(Debug, Default)]
struct Totals {
    asked: u64,
    refused: u64,
    answered: u64,
    cancelled: u64,
    unheard: u64,
    progress: u64,
}

/// The driver's view: which use of each id is open.
struct Scene {
    connection: Connection,
    stream: StreamId,
    host: Dealer,
    open: [Option<u64>; IDS.len()],
    totals: Totals,
    out: Vec<u8>,
}

impl Scene {
    /// Takes what was written and checks each frame against what is open.
    fn take(&mut self) {
        self.out.clear();
        let output = self.connection.output(self.stream);
        while !output.is_empty() {
            let head = output.head();
            self.out.extend_from_slice(head);
            let len = head.len();
            output.advance(len);
        }
        for line in self.out.split(|&byte| byte == b'\n') {
            let line = std::str::from_utf8(line).unwrap();
            if line.is_empty() {
                continue;
            }
            if line.contains("-32600") {
                self.totals.refused += 1;
                continue;
            }
            let n: u64 = between(line, "\"progressToken\":", ",")
                .or_else(|| between(line, "n\\\":", "}"))
                .or_else(|| between(line, "\"n\":", "}"))
                .and_then(|text| text.parse().ok())
                .unwrap_or_else(|| panic!("what is this? {line}"));
            let id = n as usize % IDS.len();
            assert_eq!(
                self.open[id],
                Some(n),
                "about what is not in flight: {line}"
            );
            if line.contains("progressToken") {
                self.totals.progress += 1;
            } else {
                assert!(line.contains(&format!("\"id\":{},", IDS[id])), "{line}");
                self.open[id] = None;
                self.totals.answered += 1;
            }
        }
    }
}

fn between<'a>(text: &'a str, before: &str, after: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(before)?;
    Some(rest.split_once(after)?.0)
}

fn run(requests: u64) {
    let mut random = Random::new();
    let now = Instant::now();
    let mut connection = Connection::new(Arc::new(Config::new(Side::Server, "s", "1")), now);
    let stream = connection.open_stream(Framing::Line);
    let handle = connection.handle();
    thread::scope(|scope| {
        let responders = (0..RESPONDERS).map(|_| {
            let (sender, receiver) = sync_channel(64);
            let (handle, random) = (handle.clone(), Random(random.below(u64::MAX)));
            scope.spawn(move || respond(&receiver, &handle, random));
            sender
        });
        let host = Dealer {
            responders: responders.collect(),
            dealt: 0,
            told: Vec::new(),
        };
        let mut scene = Scene {
            connection,
            stream,
            host,
            open: [None; IDS.len()],
            totals: Totals::default(),
            out: Vec::new(),
        };
        let hello = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{\"protocolVersion\":\"2025-11-25\",\"capabilities\":{},\"clientInfo\":{\"name\":\"c\",\"version\":\"1\"}}}\n";
        scene.connection.input(stream).extend(hello.as_bytes());
        scene.connection.receive(stream, now, &mut scene.host);
        scene.connection.output(stream).clear();
        drive(&mut scene, requests, now, &mut random);
        println!("{:?}", scene.totals);
        let Totals {
            asked,
            refused,
            answered,
            cancelled,
            unheard,
            ..
        } = scene.totals;
        assert_eq!(asked, refused + answered + cancelled + unheard);
        assert_eq!(scene.host.told.len() as u64, cancelled);
        assert_eq!(scene.connection.in_flight(), 0);
    });
}

fn drive(scene: &mut Scene, requests: u64, now: Instant, random: &mut Random) {
    let mut next = [0u64; IDS.len()];
    let mut batch = Vec::new();
    while scene.totals.asked < requests || scene.open.iter().any(Option::is_some) {
        scene.connection.handle_submissions(now, &mut scene.host);
        scene.take();
        batch.clear();
        // Calls and cancels of this read, and what they are going to do.
        let begun = scene.open;
        for _ in 0..random.below(6) {
            let id = random.below(IDS.len() as u64) as usize;
            if random.below(3) > 0 && scene.totals.asked < requests {
                let n = next[id] * IDS.len() as u64 + id as u64;
                next[id] += 1;
                writeln!(
                    batch,
                    "{{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"tools/call\",\"params\":{{\"name\":\"x\",\"arguments\":{{\"n\":{n}}},\"_meta\":{{\"progressToken\":{n}}}}}}}",
                    IDS[id]
                )
                .unwrap();
                scene.totals.asked += 1;
                if scene.open[id].is_none() {
                    scene.open[id] = Some(n);
                }
            } else {
                writeln!(
                    batch,
                    "{{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{{\"requestId\":{}}}}}",
                    IDS[id]
                )
                .unwrap();
                match scene.open[id].take() {
                    Some(n) if begun[id] == Some(n) => scene.totals.cancelled += 1,
                    Some(_) => scene.totals.unheard += 1,
                    None => {}
                }
            }
        }
        scene.connection.input(scene.stream).extend(&batch);
        scene.connection.receive(scene.stream, now, &mut scene.host);
        if batch.is_empty() {
            thread::yield_now();
        }
    }
    scene.connection.handle_submissions(now, &mut scene.host);
    scene.take();
}

/// R-CAN-02, R-CAN-03, R-CAN-11, R-PRG-03, R-PRG-06, R-RPC-06, R-RPC-20, R-RPC-26.
#[test]
fn every_call_is_answered_or_cancelled_and_nothing_follows() {
    let given = std::env::var("MCPBOLT_STRESS");
    run(given.map_or(200_000, |count| count.parse().unwrap()));
}

#[test]
#[ignore = "takes a minute or more"]
fn ten_million_calls_are_answered_or_cancelled_and_nothing_follows() {
    run(10_000_000);
}
