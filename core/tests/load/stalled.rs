//! Clients that have stopped reading: what they are told stays within its caps, and others do not
//! notice.

use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::json;
use tungstenite::{Message, WebSocket};

use crate::PATIENCE;
use crate::client::{ask, call};
use crate::far::{Far, Setup};
use crate::wire::Wire;

/// The output that may wait for one of them in the engine, which takes up to twice the room for it.
const CAP: usize = (2 * 32) << 10;
/// The cost of one of them, with its call: connection, stream, and the buffers of reading, which
/// is given back after a while of silence.
const EACH: usize = (3 * 64) << 10;

/// The slowest of a hundred but one.
fn p99(far: &Far) -> Duration {
    let mut wire = Wire::open(far.at);
    let call = call(1, "echo", json!({"text": "x"}));
    let mut times: Vec<_> = (0..500)
        .map(|_| {
            let begun = Instant::now();
            ask(&mut wire, &call, 200);
            begun.elapsed()
        })
        .collect();
    times.sort();
    times[times.len() * 99 / 100]
}

/// The arguments and envelope of a call that tells much.
fn tell(times: usize) -> Vec<u8> {
    let mut message = crate::wire::request(
        1,
        "tools/call",
        json!({"name": "tell", "arguments": {"times": times}}),
    );
    let meta = &mut message["params"]["_meta"];
    meta["progressToken"] = 7.into();
    meta["io.modelcontextprotocol/logLevel"] = "debug".into();
    crate::wire::post(&crate::wire::headers(&message), &message.to_string())
}

fn stall<T>(count: usize, times: usize, open: impl Fn(&Far, usize) -> T) {
    let setup = "output_mark=16384 output_cap=32768 replay_bytes=65536 stall_timeout=600000";
    let mut far = Far::begin(Setup(setup));
    p99(&far);
    let alone = p99(&far);
    let before = far.held();
    let stalled: Vec<_> = (0..count).map(|_| open(&far, times)).collect();
    let (mut most, begun) = (0, Instant::now());
    // Until all has been told.
    while far.told() < count {
        most = most.max(far.allocated());
        assert!(begun.elapsed() < PATIENCE * 30, "{} of {count}", far.told());
        std::thread::sleep(Duration::from_millis(20));
    }
    // The best of three: others use this machine, too.
    let beside = (0..3).map(|_| p99(&far)).min().unwrap();
    let each = (most - before.0) / count;
    println!(
        "{count} stalled, {times} notifications each: {each} bytes allocated for each at most; p99 of another: {alone:?} alone, {beside:?} beside them"
    );
    assert!(each <= CAP + EACH, "{each} bytes");
    assert!(beside < alone * 10 + Duration::from_millis(20));
    drop(stalled);
    far.ended();
}

fn http(far: &Far, times: usize) -> Wire {
    let mut wire = Wire::open(far.at);
    wire.send(&tell(times));
    wire
}

fn websocket(far: &Far, times: usize) -> WebSocket<TcpStream> {
    let stream = TcpStream::connect(far.at).unwrap();
    let (mut socket, _) = tungstenite::client(format!("ws://{}/mcp", far.at), stream).unwrap();
    let post = String::from_utf8(tell(times)).unwrap();
    let (_, message) = post.split_once("\r\n\r\n").unwrap();
    socket.send(Message::text(message)).unwrap();
    socket
}

/// R-PRG-05, R-HTP-19.
#[test]
fn a_hundred_stalled_readers_of_http_are_held_to_their_caps() {
    stall(100, 1000, http);
}

#[test]
fn a_hundred_stalled_readers_on_websockets_are_held_to_their_caps() {
    stall(100, 1000, websocket);
}

#[test]
#[ignore = "takes a minute"]
fn a_thousand_stalled_readers_with_ten_thousand_notifications_on_http() {
    stall(1000, 10_000, http);
}

#[test]
#[ignore = "takes a minute"]
fn a_thousand_stalled_readers_with_ten_thousand_notifications_on_websockets() {
    stall(1000, 10_000, websocket);
}
