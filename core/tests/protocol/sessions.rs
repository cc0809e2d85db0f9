//! One session of many streams, as HTTP has it: each exchange is a scope of its own, and a cancel
//! comes on another stream than its request.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test: panicking is the report"
)]

use std::time::Instant;

use mcpbolt::connection::{Config, Framing, Stray, StreamId};
use mcpbolt::limits::Limits;
use mcpbolt::mcp::Side;

use crate::world::End;

struct Session {
    server: End,
    now: Instant,
}

impl Session {
    fn open(answer_cancelled: bool) -> Self {
        let mut config = Config::new(Side::Server, "server", "1");
        config.answer_cancelled = answer_cancelled;
        config.limits = Limits {
            max_incoming: 20_000,
            ..Limits::NETWORK
        };
        let now = Instant::now();
        let mut server = End::new(config, now);
        let hello = "{\"jsonrpc\":\"2.0\",\"id\":\"init\",\"method\":\"initialize\",\"params\":{\"protocolVersion\":\"2025-11-25\",\"capabilities\":{},\"clientInfo\":{\"name\":\"c\",\"version\":\"1\"}}}\n";
        server.receive(hello.as_bytes(), now);
        server.step(now);
        Self { server, now }
    }

    /// One message on a stream of its own.
    fn post(&mut self, message: &str) -> StreamId {
        let stream = self.server.connection.open_stream(Framing::Line);
        let connection = &mut self.server.connection;
        connection.input(stream).extend(message.as_bytes());
        connection.receive(stream, self.now, &mut self.server.host);
        stream
    }

    fn call(&mut self, id: &str, text: &str) -> StreamId {
        self.post(&format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"tools/call\",\"params\":{{\"name\":\"{text}\"}}}}\n"
        ))
    }

    fn cancel(&mut self, id: &str) -> StreamId {
        self.post(&format!(
            "{{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{{\"requestId\":{id},\"reason\":\"enough\"}}}}\n"
        ))
    }

    /// Takes over what the host submitted.
    fn step(&mut self) {
        let End {
            connection, host, ..
        } = &mut self.server;
        connection.handle_submissions(self.now, host);
    }

    /// The output on a stream since the last look.
    fn wrote(&mut self, stream: StreamId) -> String {
        let output = self.server.connection.output(stream);
        let mut text = String::new();
        while !output.is_empty() {
            text.push_str(std::str::from_utf8(output.head()).unwrap());
            output.advance(output.head().len());
        }
        text
    }

    /// How many calls have come to the host and are not cancelled.
    fn running(&self) -> usize {
        let calls = self.server.host.calls.iter();
        calls.filter(|call| !call.cancel.is_cancelled()).count()
    }
}

/// R-RPC-05: each exchange is its own scope.
#[test]
fn ten_thousand_calls_with_one_id_on_streams_of_their_own_get_their_own_answers() {
    const CALLS: usize = 10_000;
    let mut session = Session::open(false);
    let streams: Vec<_> = (0..CALLS)
        .map(|n| session.call("1", &n.to_string()))
        .collect();
    let calls = std::mem::take(&mut session.server.host.calls);
    assert_eq!(calls.len(), CALLS);
    // In another order than they came.
    let mut replies = session.server.handle().replies();
    for n in (0..CALLS).map(|n| n * 7919 % CALLS) {
        let call = &calls[n];
        let name = call.message.as_ref().name().unwrap().into_owned();
        replies.result(&call.reply, |result| result.string("echo", &name));
    }
    drop(replies);
    session.step();
    for (n, stream) in streams.into_iter().enumerate() {
        assert_eq!(
            session.wrote(stream),
            format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{{\"echo\":\"{n}\"}}}}\n")
        );
    }
    assert_eq!(session.server.connection.in_flight(), 0);
}

/// R-CAN-07, R-CAN-11, R-HTP-04: the response of that stream contains an answer, whether or not the peer
/// wants one for its cancellations on the same stream (R-CAN-02).
#[test]
fn a_cancel_from_another_stream_ends_the_one_request_of_that_id() {
    for told in [false, true] {
        let mut session = Session::open(told);
        let (nine, text) = (session.call("9", "a"), session.call("\"9\"", "b"));
        let cancel = session.cancel("9");
        assert_eq!(session.running(), 1);
        assert_eq!(
            session.server.host.calls[0].cancel.reason(),
            Some("enough"),
            "the reason is kept"
        );
        assert_eq!(session.server.host.cancelled.len(), 1);
        // Both answer, and only the other is heard.
        session.server.answer("\"n\":1");
        session.server.answer("\"n\":2");
        session.step();
        let answers = [session.wrote(nine), session.wrote(text)];
        assert!(answers[0].contains("-32800"), "{answers:?}");
        assert_eq!(answers[0].lines().count(), 1);
        assert!(answers[1].contains("\"n\":2"), "{answers:?}");
        assert_eq!(session.wrote(cancel), "", "nothing answers a notification");
        assert_eq!(session.server.connection.in_flight(), 0);
    }
}

#[test]
fn a_cancel_that_may_mean_several_requests_ends_none() {
    let mut session = Session::open(false);
    session.call("1", "a");
    session.call("1", "b");
    session.cancel("1");
    assert_eq!(session.running(), 2);
    assert_eq!(session.server.host.strays, [Stray::Cancel]);
    // One of them is over: now it is clear which.
    session.server.answer("");
    session.step();
    session.cancel("1");
    assert_eq!(session.running(), 0);
}

/// R-CAN-04: a relay that numbers requests anew, and forwards cancels as they are, names ids that
/// are not in flight. A request that comes with such an id is a call like any other.
#[test]
fn a_cancel_of_an_id_that_is_not_in_flight_loses_no_later_call() {
    for told in [false, true] {
        let mut session = Session::open(told);
        let cancel = session.cancel("77");
        let stream = session.call("77", "a");
        assert_eq!(session.running(), 1);
        session.server.answer("\"n\":1");
        session.step();
        assert!(session.wrote(stream).contains("\"n\":1"));
        assert_eq!(session.wrote(cancel), "");
    }
}

/// R-CAN-03, R-CAN-04: with clients that number every request alike, a late cancel would hit the
/// next one.
#[test]
fn a_cancel_that_comes_too_late_does_not_meet_the_next_request_of_that_id() {
    let mut session = Session::open(false);
    session.call("1", "a");
    session.server.answer("");
    session.step();
    session.cancel("1");
    session.post("{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"ping\"}\n");
    session.cancel("2");
    session.call("1", "b");
    session.call("2", "c");
    assert_eq!(session.running(), 2);
}
