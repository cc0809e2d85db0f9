//! A thousand peers that have stopped reading: what they are sent stays within their caps, and
//! others do not notice.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test: panicking is the report"
)]

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use mcpbolt::connection::{
    Answer, Batch, Call, CallKey, Config, Connection, Disposition, Framing, Host, IncomingRequest,
    Operation, Progress, StreamId,
};
use mcpbolt::error::ConnectionError;
use mcpbolt::mcp::{LogLevel, Side};

use crate::alone;
use crate::heap::{LIVE, PEAK};

#[derive(Default)]
struct Keeper {
    calls: Vec<Call>,
}

impl Host for Keeper {
    fn request(&mut self, _request: IncomingRequest<'_>, _answer: Answer<'_>) -> Disposition {
        Disposition::Deferred(Operation::Own(0))
    }

    fn dispatch(&mut self, batch: Batch) {
        self.calls.extend(batch.calls());
    }

    fn cancelled(&mut self, _key: CallKey, _reason: Option<&str>) {}
}

struct Peer {
    connection: Connection,
    stream: StreamId,
    host: Keeper,
}

const HELLO: &str = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{\"protocolVersion\":\"2025-11-25\",\"capabilities\":{},\"clientInfo\":{\"name\":\"c\",\"version\":\"1\"}}}\n";
const CALL: &str = "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/call\",\"params\":{\"name\":\"x\",\"_meta\":{\"progressToken\":2}}}\n";

impl Peer {
    fn new(config: &Arc<Config>, now: Instant) -> Self {
        let mut connection = Connection::new(config.clone(), now);
        let stream = connection.open_stream(Framing::Line);
        let mut peer = Self {
            connection,
            stream,
            host: Keeper::default(),
        };
        peer.receive(HELLO, now);
        peer
    }

    fn receive(&mut self, text: &str, now: Instant) {
        self.connection.input(self.stream).extend(text.as_bytes());
        self.connection.receive(self.stream, now, &mut self.host);
    }

    fn turn(&mut self, now: Instant) {
        self.connection.handle_submissions(now, &mut self.host);
    }

    /// A call from its frame to its answer's.
    fn serve(&mut self, now: Instant) -> Duration {
        let start = Instant::now();
        self.receive(CALL, now);
        let call = self.host.calls.pop().unwrap();
        let mut replies = self.connection.handle().replies();
        replies.result(&call.reply, |_| ());
        drop(replies);
        self.turn(now);
        let output = self.connection.output(self.stream);
        assert!(!output.is_empty());
        output.clear();
        start.elapsed()
    }
}

fn p99(peer: &mut Peer, now: Instant) -> Duration {
    let mut times: Vec<_> = (0..1000).map(|_| peer.serve(now)).collect();
    times.sort();
    times[990]
}

const PEERS: usize = 1000;
const CAP: usize = 64 << 10;

/// Sends each stalled peer many notifications; the most bytes that held at once.
fn flood(
    peers: &mut [Peer],
    notifications: u32,
    now: Instant,
    mut send: impl FnMut(&mut Peer, u32),
) -> usize {
    let before = LIVE.load(Relaxed);
    PEAK.store(before, Relaxed);
    for n in 0..notifications {
        for peer in &mut *peers {
            send(peer, n);
            if n % 16 == 15 {
                peer.turn(now);
            }
        }
    }
    PEAK.load(Relaxed) - before
}

#[test]
fn a_thousand_stalled_peers_hold_no_more_than_their_caps() {
    stall(1000);
}

#[test]
#[ignore = "takes half a minute"]
fn a_thousand_stalled_peers_with_ten_thousand_notifications_each_hold_no_more() {
    stall(10_000);
}

fn stall(notifications: u32) {
    let _alone = alone();
    let now = Instant::now();
    let mut config = Config::new(Side::Server, "server", "1");
    config.limits.output_mark_bytes = CAP / 4;
    config.limits.output_cap_bytes = CAP / 2;
    let config = Arc::new(config);
    let mut healthy = Peer::new(&config, now);
    healthy.connection.output(healthy.stream).clear();
    let alone = p99(&mut healthy, now);
    let mut peers: Vec<_> = (0..PEERS)
        .map(|_| {
            let mut peer = Peer::new(&config, now);
            peer.receive(CALL, now);
            peer
        })
        .collect();

    let peak = flood(&mut peers, notifications, now, |peer, n| {
        let mut replies = peer.connection.handle().replies();
        let to = &peer.host.calls[0].reply;
        let progress = f64::from(n);
        replies.progress(
            to,
            Progress {
                progress,
                total: None,
                message: None,
            },
        );
        replies.log(to, LogLevel::Error, None, "\"something happened\"");
    });
    println!("progress and log messages: {peak} bytes for {PEERS} peers");
    assert!(peak <= PEERS * CAP, "{peak} bytes");
    assert!(peers.iter().all(|peer| !peer.connection.is_closed()));
    let beside = p99(&mut healthy, now);
    println!("p99 of a healthy peer: {alone:?} alone, {beside:?} beside them");
    // Another process may take the core for a few slices of the scheduler.
    assert!(beside < alone * 10 + Duration::from_millis(20));

    // The answer is not dropped, and the newest progress goes before it.
    let peer = &mut peers[0];
    let mut replies = peer.connection.handle().replies();
    replies.result(&peer.host.calls[0].reply, |_| ());
    drop(replies);
    peer.turn(now);
    let output = peer.connection.output(peer.stream);
    let text = String::from_utf8(output.head().to_vec()).unwrap();
    let tail: Vec<_> = text.lines().rev().take(2).collect();
    assert!(
        tail[0].contains("\"result\":{}")
            && tail[1].contains(&format!("\"progress\":{}", notifications - 1))
    );

    // A message that may be neither dropped nor joined ends the connection instead.
    let peak = flood(&mut peers, notifications, now, |peer, _| {
        let handle = peer.connection.handle();
        handle
            .notify("notifications/tools/list_changed", None)
            .unwrap();
    });
    println!("other notifications: {peak} bytes more");
    assert!(peak <= PEERS * CAP, "{peak} bytes");
    for peer in &peers {
        let reason = peer.connection.handle().close_reason().cloned();
        assert_eq!(reason, Some(ConnectionError::Stalled));
    }
}
