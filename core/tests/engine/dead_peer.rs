//! A peer that dies, falls silent, breaks off or talks nonsense at any point: every call ends
//! once, soon, and the connection says that it is over before the next one.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a test: panicking is the report"
)]

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use mcpbolt::connection::{
    Answer, Batch, CallKey, Config, Connection, Disposition, Framing, Handle, Host,
    IncomingRequest, OpeningMode, RequestOptions, Response, StreamId,
};
use mcpbolt::error::{ConnectionError, RequestError};
use mcpbolt::mcp::Side;
use mcpbolt::message::Message;

const CALLS: usize = 100_000;
const CALLS_PER_PEER: usize = 50;
/// The promised times, and the slack of a busy machine.
const PROMISE: Duration = Duration::from_millis(50);
const SLACK: u32 = 10;

struct Nobody;

impl Host for Nobody {
    fn request(&mut self, _request: IncomingRequest<'_>, answer: Answer<'_>) -> Disposition {
        answer.result(|_| ())
    }

    fn dispatch(&mut self, _batch: Batch) {}

    fn cancelled(&mut self, _key: CallKey, _reason: Option<&str>) {}
}

/// The ways in which a connection ends.
#[derive(Clone, Copy, Debug)]
enum Death {
    /// Its end of the stream closes.
    Closes,
    /// The descriptor fails.
    Breaks,
    /// Its process ends.
    Exits,
}

const DEATHS: [Death; 3] = [Death::Closes, Death::Breaks, Death::Exits];

impl Death {
    fn reason(self) -> ConnectionError {
        match self {
            Self::Closes => ConnectionError::ClosedByPeer,
            Self::Breaks => ConnectionError::Io(std::io::ErrorKind::ConnectionReset),
            Self::Exits => ConnectionError::PeerExited("signal: 9".into()),
        }
    }
}

/// The output of the peer of this number, if it lived: answers to the keys, in an order and
/// with faults of its own.
fn script(number: usize, keys: &[u64]) -> Vec<u8> {
    let mut script = Vec::new();
    for step in 0..keys.len() {
        let key = keys[(step * 7 + number) % keys.len()];
        let answer = format!("{{\"jsonrpc\":\"2.0\",\"id\":{key},\"result\":{{\"of\":{key}}}}}\n");
        match (step + number) % 11 {
            0 => script.extend_from_slice(answer.repeat(2).as_bytes()),
            1 => script.extend_from_slice(b"\xff\xfe not json\n"),
            2 => script.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":1e999,\"result\":[}\n"),
            3 => {
                script.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":987654321,\"result\":{}}\n")
            }
            4 => script
                .extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":\"1\",\"result\":{}}\n[]\n\n"),
            5 | 6 => {
                let error = format!(
                    "{{\"jsonrpc\":\"2.0\",\"id\":{key},\"error\":{{\"code\":5,\"message\":\"\"}}}}\n"
                );
                script.extend_from_slice(error.as_bytes());
            }
            // An answer that breaks the rules, or is broken: as good as any other end.
            7 => {
                let error =
                    format!("{{\"jsonrpc\":\"2.0\",\"id\":{key},\"error\":{{\"code\":5}}}}\n");
                script.extend_from_slice(error.as_bytes());
            }
            8 => {
                let broken = format!("{{\"jsonrpc\":\"2.0\",\"id\":{key},\"result\":{{]}}\n");
                script.extend_from_slice(broken.as_bytes());
            }
            _ => script.extend_from_slice(answer.as_bytes()),
        }
    }
    script
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

fn wait(response: &mut Response) -> Result<Message, RequestError> {
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let give_up = Instant::now() + Duration::from_secs(60);
    loop {
        if let Poll::Ready(outcome) =
            Pin::new(&mut *response).poll(&mut Context::from_waker(&waker))
        {
            return outcome;
        }
        thread::park_timeout(Duration::from_secs(60));
        assert!(Instant::now() < give_up, "a caller waits for ever");
    }
}

#[derive(Default)]
struct Tally {
    answered: usize,
    errors: usize,
    bad: usize,
    closed: usize,
    delays: Vec<Duration>,
}

/// A caller's thread: asks, waits for every outcome, and looks whether the handle knows.
fn caller(connections: impl Iterator<Item = (Handle, Vec<Response>, Instant)>) -> Tally {
    let mut tally = Tally::default();
    for (handle, responses, fault) in connections {
        for mut response in responses {
            let key = response.key().get();
            match wait(&mut response) {
                Ok(message) => {
                    let expected = format!("{{\"of\":{key}}}");
                    assert_eq!(message.as_ref().result(), Some(expected.as_str()));
                    tally.answered += 1;
                }
                Err(RequestError::Peer(error)) => {
                    assert_eq!(error.code, 5);
                    tally.errors += 1;
                }
                Err(RequestError::BadAnswer(_)) => tally.bad += 1,
                Err(RequestError::Closed(_)) => {
                    tally.closed += 1;
                    tally.delays.push(fault.elapsed());
                    assert!(handle.is_closed(), "known before the next call");
                }
                Err(other) => panic!("{other:?}"),
            }
            // Once, and not again.
            let again = Pin::new(&mut response).poll(&mut Context::from_waker(Waker::noop()));
            assert!(matches!(again, Poll::Ready(Err(RequestError::Misuse(_)))));
        }
        assert!(handle.is_closed() && handle.pending_count() == 0);
        let next = handle.request("tools/list", None, RequestOptions::default());
        assert!(matches!(next, Err(RequestError::Closed(_))));
    }
    tally
}

#[test]
fn every_call_to_a_dying_peer_ends_once_and_soon() {
    let mut config = Config::new(Side::Client, "client", "1");
    config.opening = OpeningMode::Stateless;
    let config = Arc::new(config);
    let (hand_over, calls) = channel();
    let tally = thread::scope(|scope| {
        let caller = scope.spawn(move || caller(calls.into_iter()));
        for number in 0..CALLS / CALLS_PER_PEER {
            let now = Instant::now();
            let mut connection = Connection::new(config.clone(), now);
            let stream = connection.open_stream(Framing::Line);
            connection.handle_submissions(now, &mut Nobody);
            let handle = connection.handle();
            let ask = |_| handle.request("tools/call", None, RequestOptions::default());
            let responses: Vec<_> = (0..CALLS_PER_PEER).filter_map(|n| ask(n).ok()).collect();
            assert_eq!(responses.len(), CALLS_PER_PEER);
            let keys: Vec<_> = responses.iter().map(|one| one.key().get()).collect();
            let script = script(number, &keys);
            // Some die before they were asked, some within any byte of an answer.
            let cut = number * 31 % (script.len() + 1);
            if number % 7 > 0 {
                connection.handle_submissions(now, &mut Nobody);
            }
            let (before, after) = script[..cut].split_at(cut / 2);
            connection.input(stream).extend(before);
            connection.receive(stream, now, &mut Nobody);
            let fault = Instant::now();
            hand_over.send((handle.clone(), responses, fault)).unwrap();
            die(&mut connection, stream, after, DEATHS[number % 3], now);
        }
        drop(hand_over);
        caller.join().unwrap()
    });
    let Tally {
        answered,
        errors,
        bad,
        closed,
        mut delays,
    } = tally;
    assert_eq!(answered + errors + bad + closed, CALLS);
    delays.sort();
    let p99 = delays[delays.len() * 99 / 100];
    println!(
        "{answered} answered, {errors} errors, {bad} bad, {closed} closed; p99 {p99:?} after the fault"
    );
    assert!(
        answered > CALLS / 10 && errors > CALLS / 100 && bad > CALLS / 100 && closed > CALLS / 10
    );
    assert!(p99 < PROMISE * SLACK, "{p99:?}");
}

fn die(connection: &mut Connection, stream: StreamId, last: &[u8], death: Death, now: Instant) {
    connection.input(stream).extend(last);
    connection.receive(stream, now, &mut Nobody);
    if matches!(death, Death::Closes) {
        connection.receive_end(stream, now, &mut Nobody);
    }
    connection.close(death.reason(), &mut Nobody);
    assert!(connection.is_closed() && !connection.wants_read(stream));
    connection.receive(stream, now, &mut Nobody);
}
