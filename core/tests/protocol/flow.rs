//! More input than can be taken: limits, order, back-pressure, silence.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test: panicking is the report"
)]

use std::sync::Arc;
use std::time::Instant;

use mcpbolt::connection::{
    Answer, Batch, Budget, CallKey, Config, Connection, Disposition, Host, IncomingRequest,
    OpeningMode, Operation, Progress, RequestOptions, RequestSource, Response,
};
use mcpbolt::error::{ConnectionError, RequestError};
use mcpbolt::limits::{COPY_OUT_BYTES, Limits, SHRINK_AFTER, TotalLimits, WAITING_REQUEST_BYTES};
use mcpbolt::mcp::code::OVERLOADED;
use mcpbolt::mcp::{Revision, Side};

use crate::world::{End, World, failure, poll, secs};

/// A server with those limits, and a client that takes the newest revision for granted.
fn world(limit: impl FnOnce(&mut Limits)) -> World {
    let mut config = Config::new(Side::Server, "server", "1");
    limit(&mut config.limits);
    let mut client = Config::new(Side::Client, "client", "1");
    client.opening = OpeningMode::Stateless;
    let mut world = World::new(client, config);
    world.run();
    world
}

/// A server that is initialized.
fn server(limit: impl FnOnce(&mut Limits)) -> End {
    let mut config = Config::new(Side::Server, "server", "1");
    limit(&mut config.limits);
    open(config)
}

fn open(config: Config) -> End {
    let now = Instant::now();
    let mut server = End::new(config, now);
    let hello = "{\"jsonrpc\":\"2.0\",\"id\":\"init\",\"method\":\"initialize\",\"params\":{\"protocolVersion\":\"2025-11-25\",\"capabilities\":{},\"clientInfo\":{\"name\":\"c\",\"version\":\"1\"}}}\n";
    server.receive(hello.as_bytes(), now);
    server.step(now);
    assert!(server.last().contains("\"protocolVersion\""));
    server
}

fn call(id: &str) -> String {
    format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"tools/call\",\"params\":{{\"name\":\"x\"}}}}\n"
    )
}

fn cancel(id: &str) -> String {
    format!(
        "{{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{{\"requestId\":{id}}}}}\n"
    )
}

const PING: &str = "{\"jsonrpc\":\"2.0\",\"id\":\"ping\",\"method\":\"ping\"}\n";

/// Ids of the calls the host has, in order.
fn calls(end: &End) -> Vec<String> {
    let ids = end
        .host
        .calls
        .iter()
        .map(|call| call.reply.id().raw().to_owned());
    ids.collect()
}

fn overloaded(outcome: RequestError) -> bool {
    let RequestError::Peer(error) = outcome else {
        panic!("{outcome:?}")
    };
    assert!(
        error
            .data
            .as_deref()
            .is_some_and(|data| data.contains("\"retryAfter\":"))
    );
    error.code == OVERLOADED
}

#[test]
fn requests_over_the_limit_wait_in_order_and_those_over_the_cap_are_refused_at_once() {
    let mut world = world(|limits| {
        limits.max_incoming = 10;
        // Seven fit, eight do not.
        limits.waiting_cap_bytes = 8 * WAITING_REQUEST_BYTES;
    });
    let mut asked: Vec<Response> = (0..25)
        .map(|_| world.ask(RequestOptions::default()))
        .collect();
    assert_eq!(world.server.host.calls.len(), 10);
    let mut refused: Vec<_> = (0..25).filter(|&n| poll(&mut asked[n]).is_some()).collect();
    let first = refused[0];
    assert!((15..18).contains(&first), "{refused:?}");
    assert_eq!(refused, (first..25).collect::<Vec<_>>(), "the last ones");
    // Each answer lets one begin, in order.
    for (n, response) in asked.iter_mut().take(first).enumerate() {
        assert_eq!(
            world.server.host.calls[0].reply.id().raw(),
            response.key().to_string()
        );
        world.server.answer("");
        world.run();
        assert!(poll(response).unwrap().is_ok(), "{n}");
        assert_eq!(world.server.host.calls.len(), (first - n - 1).min(10));
    }
    // There is room again.
    refused.truncate(0);
    let mut more = world.ask(RequestOptions::default());
    world.server.answer("");
    world.run();
    assert!(poll(&mut more).unwrap().is_ok());
    assert_eq!(world.server.connection.in_flight(), 0);
}

#[test]
fn an_overload_error_says_when_to_try_again() {
    let mut world = world(|limits| {
        limits.max_incoming = 1;
        limits.waiting_cap_bytes = 0;
    });
    let _first = world.ask(RequestOptions::default());
    let mut second = world.ask(RequestOptions::default());
    assert!(overloaded(failure(&mut second)));
}

#[test]
fn whoever_waits_can_be_cancelled_and_holds_up_nobody_else() {
    let mut server = server(|limits| limits.max_incoming = 1);
    let now = Instant::now();
    for id in ["0", "\"\"", "9", "\"9\""] {
        server.receive(call(id).as_bytes(), now);
    }
    // The protocol layer answers on; an id that waits is in use; a cancel finds it.
    server.receive(PING.as_bytes(), now);
    server.receive(call("9").as_bytes(), now);
    server.receive(cancel("9").as_bytes(), now);
    server.receive(cancel("\"\"").as_bytes(), now);
    server.step(now);
    let tail = &server.wrote[server.wrote.len() - 2..];
    assert_eq!(
        tail[0],
        "{\"jsonrpc\":\"2.0\",\"id\":\"ping\",\"result\":{}}"
    );
    assert!(
        tail[1].contains("\"id\":9,") && tail[1].contains("-32600"),
        "{tail:?}"
    );
    assert_eq!(calls(&server), ["0"]);
    server.answer("");
    server.step(now);
    assert_eq!(
        calls(&server),
        ["\"9\""],
        "the cancelled ones were never seen"
    );
    assert!(server.host.cancelled.is_empty());
    server.receive(cancel("\"9\"").as_bytes(), now);
    assert_eq!(server.host.cancelled.len(), 1, "one that had begun is told");
    assert_eq!(server.connection.in_flight(), 0);
}

/// In any order within one read, waiting and cancelled calls are told before a new one
/// begins.
#[test]
fn answers_and_cancels_of_one_read_come_before_its_requests() {
    struct Watch {
        response: Response,
        earlier: mcpbolt::connection::Call,
        begun: usize,
    }
    impl Host for Watch {
        fn request(&mut self, _request: IncomingRequest<'_>, _answer: Answer<'_>) -> Disposition {
            Disposition::Deferred(Operation::Own(0))
        }
        fn dispatch(&mut self, batch: Batch) {
            self.begun += batch.len();
            assert!(poll(&mut self.response).is_some_and(|outcome| outcome.is_ok()));
            assert!(self.earlier.cancel.is_cancelled());
        }
        fn cancelled(&mut self, _key: CallKey, _reason: Option<&str>) {}
    }
    // A short answer, and one that is long enough to travel with its block.
    for long in [1, 100_000] {
        let mut server = server(|_| ());
        let now = Instant::now();
        server.receive(call("1").as_bytes(), now);
        let options = RequestOptions::default();
        let response = server.handle().request("ping", None, options).unwrap();
        server.step(now);
        let mut watch = Watch {
            earlier: server.host.calls.remove(0),
            begun: 0,
            response,
        };
        let answer = format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":{},\"result\":{{\"x\":\"{}\"}}}}\n",
            watch.response.key(),
            "y".repeat(long)
        );
        let read = call("2") + &cancel("1") + &call("3") + &answer + &call("1");
        server
            .connection
            .input(server.stream)
            .extend(read.as_bytes());
        server.connection.receive(server.stream, now, &mut watch);
        assert_eq!(watch.begun, 3);
    }
}

/// Copying leaves the buffer in place.
#[test]
fn what_is_long_leaves_with_its_block_and_what_is_short_is_copied() {
    for (len, is_copied) in [(COPY_OUT_BYTES / 2, true), (2 * COPY_OUT_BYTES, false)] {
        let mut server = server(|_| ());
        let text = "x".repeat(len);
        let call = format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"x/y\",\"params\":{{\"x\":\"{text}\"}}}}\n"
        );
        server.receive(call.as_bytes(), Instant::now());
        assert_eq!(calls(&server), ["1"]);
        let capacity = server.connection.input(server.stream).capacity();
        assert_eq!(capacity >= call.len(), is_copied, "{len}: {capacity}");
    }
}

#[test]
fn requests_cancelled_while_they_wait_leave_nothing_behind() {
    let mut server = server(|limits| {
        limits.max_incoming = 1;
        limits.waiting_cap_bytes = 4 * WAITING_REQUEST_BYTES;
    });
    let now = Instant::now();
    server.receive(call("0").as_bytes(), now);
    for id in 1..10_000 {
        server.receive(call(&id.to_string()).as_bytes(), now);
        server.receive(cancel(&id.to_string()).as_bytes(), now);
    }
    server.step(now);
    assert!(!server.last().contains("retryAfter"), "each found room");
    server.receive(call("\"last\"").as_bytes(), now);
    server.answer("");
    server.step(now);
    assert_eq!(calls(&server), ["\"last\""]);
}

#[test]
fn the_defaults_take_five_thousand_calls_at_once() {
    for limits in [Limits::STDIO, Limits::NETWORK] {
        let mut server = server(|own| *own = limits);
        let now = Instant::now();
        let all: String = (0..5000).map(|id| call(&id.to_string())).collect();
        server.receive(all.as_bytes(), now);
        assert_eq!(server.host.calls.len(), 5000);
        let before = server.wrote.len();
        while !server.host.calls.is_empty() {
            server.answer("");
        }
        server.step(now);
        assert_eq!(server.wrote.len() - before, 5000);
        assert!(
            server.wrote[before..]
                .iter()
                .all(|line| line.contains("\"result\""))
        );
    }
}

#[test]
fn requests_wait_while_the_output_is_over_its_mark_and_begin_when_it_is_taken() {
    let mut server = server(|limits| limits.output_mark_bytes = 1000);
    let now = Instant::now();
    server.receive(call("1").as_bytes(), now);
    server.answer(&format!("\"content\":\"{}\"", "x".repeat(2000)));
    server.connection.handle_submissions(now, &mut server.host);
    server.receive(call("2").as_bytes(), now);
    assert_eq!(calls(&server), [""; 0]);
    assert_eq!(server.connection.poll_timeout(), None);
    // The driver writes: now there is something to do at once.
    let output = server.connection.output(server.stream);
    output.advance(output.len());
    assert!(
        server
            .connection
            .poll_timeout()
            .is_some_and(|due| due <= now)
    );
    server.connection.handle_timeout(now, &mut server.host);
    assert_eq!(calls(&server), ["2"]);
    assert_eq!(server.connection.poll_timeout(), None);
}

#[test]
fn progress_that_was_held_back_goes_out_when_there_is_room_again() {
    let mut server = server(|limits| limits.output_mark_bytes = 100);
    let now = Instant::now();
    let ask = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"x\",\"_meta\":{\"progressToken\":\"t\"}}}\n";
    server.receive(ask.as_bytes(), now);
    let to = server.host.calls[0].reply.clone();
    let mut replies = server.handle().replies();
    for n in 1..=50 {
        replies.progress(
            &to,
            Progress {
                progress: f64::from(n),
                total: None,
                message: None,
            },
        );
    }
    drop(replies);
    server.step(now);
    let first = server.wrote.len();
    assert!(server.last().contains("\"progress\":1}") || server.last().contains("\"progress\":2}"));
    assert!(
        server
            .connection
            .poll_timeout()
            .is_some_and(|due| due <= now)
    );
    server.step(now);
    assert_eq!(server.wrote.len(), first + 1);
    assert!(
        server.last().contains("\"progress\":50"),
        "{}",
        server.last()
    );
    assert_eq!(server.connection.poll_timeout(), None);
}

#[test]
fn a_notification_that_finds_the_output_full_ends_the_connection() {
    let mut server = server(|limits| limits.output_cap_bytes = 10_000);
    let now = Instant::now();
    let handle = server.handle();
    let mut own = handle
        .request("roots/list", None, RequestOptions::default())
        .unwrap();
    for _ in 0..1000 {
        handle
            .notify("notifications/tools/list_changed", None)
            .unwrap();
    }
    let refused = handle.request("roots/list", None, RequestOptions::default());
    assert_eq!(refused.unwrap_err(), RequestError::Overloaded);
    server.connection.handle_submissions(now, &mut server.host);
    assert!(server.connection.output(server.stream).len() <= 10_000);
    assert_eq!(
        failure(&mut own),
        RequestError::Closed(ConnectionError::Stalled)
    );
    assert_eq!(server.host.closed, [ConnectionError::Stalled]);
}

#[test]
fn requests_of_this_side_go_on_when_the_peer_reads_again() {
    let mut server = server(|limits| limits.output_cap_bytes = 3000);
    let now = Instant::now();
    server.receive(call("1").as_bytes(), now);
    server.answer(&format!("\"content\":\"{}\"", "x".repeat(4000)));
    server.connection.handle_submissions(now, &mut server.host);
    let ask = |server: &End| {
        server
            .handle()
            .request("roots/list", None, RequestOptions::default())
    };
    assert_eq!(ask(&server).unwrap_err(), RequestError::Overloaded);
    let output = server.connection.output(server.stream);
    output.advance(output.len());
    // Nobody submits anything, and still the driver is told to look.
    assert!(
        server
            .connection
            .poll_timeout()
            .is_some_and(|due| due <= now)
    );
    server.connection.handle_timeout(now, &mut server.host);
    assert!(ask(&server).is_ok());
}

#[test]
fn a_slow_reader_gets_more_time_and_one_that_stopped_does_not() {
    let mut server = server(|limits| {
        limits.output_cap_bytes = 1000;
        limits.stall_timeout = secs(5);
    });
    let mut now = Instant::now();
    server.receive(call("1").as_bytes(), now);
    server.answer(&format!("\"content\":\"{}\"", "x".repeat(9000)));
    server.connection.handle_submissions(now, &mut server.host);
    assert!(!server.connection.wants_read(server.stream));
    for _ in 0..5 {
        now += secs(6);
        server.connection.output(server.stream).advance(100);
        server.connection.handle_timeout(now, &mut server.host);
        assert!(!server.connection.is_closed());
    }
    now += secs(6);
    server.connection.handle_timeout(now, &mut server.host);
    assert_eq!(
        server.handle().close_reason(),
        Some(&ConnectionError::Stalled)
    );
}

#[test]
fn all_connections_of_a_configuration_have_one_budget() {
    let mut config = Config::new(Side::Server, "server", "1");
    config.budget = Arc::new(Budget::new(TotalLimits {
        max_incoming: 3,
        ..TotalLimits::default()
    }));
    let budget = config.budget.clone();
    let now = Instant::now();
    let (mut a, mut b) = (open(config.clone()), open(config));
    for id in ["1", "2", "3"] {
        a.receive(call(id).as_bytes(), now);
    }
    assert_eq!(budget.requests(), 3);
    b.receive(call("1").as_bytes(), now);
    b.step(now);
    assert!(b.last().contains("retryAfter"), "{}", b.last());
    a.answer("");
    a.step(now);
    b.receive(call("2").as_bytes(), now);
    assert_eq!(calls(&b), ["2"]);
    drop((a, b));
    assert_eq!((budget.requests(), budget.bytes()), (0, 0));
}

/// One source has three quarters of the requests in flight, on however many connections.
#[test]
fn a_source_leaves_room_in_the_budget_for_others() {
    let mut config = Config::new(Side::Server, "server", "1");
    config.budget = Arc::new(Budget::new(TotalLimits {
        max_incoming: 4,
        ..TotalLimits::default()
    }));
    let budget = config.budget.clone();
    let now = Instant::now();
    let from = |last| {
        let mut end = open(config.clone());
        end.connection
            .set_source(&RequestSource::of_address([10, 0, 0, last].into()));
        end
    };
    let (mut a, mut same, mut other) = (from(1), from(1), from(2));
    for id in ["1", "2", "3"] {
        a.receive(call(id).as_bytes(), now);
    }
    same.receive(call("1").as_bytes(), now);
    same.step(now);
    assert!(same.last().contains("retryAfter"), "{}", same.last());
    other.receive(call("1").as_bytes(), now);
    assert_eq!((calls(&other).len(), budget.requests()), (1, 4));
    for end in [&mut a, &mut other] {
        end.answer("");
        end.step(now);
    }
    same.receive(call("2").as_bytes(), now);
    assert_eq!(calls(&same), ["2"]);
    drop(a);
    same.receive(call("3").as_bytes(), now);
    assert_eq!(calls(&same), ["2", "3"], "what it had is given back");
}

/// Many sources that take what they may leave room for the next one.
#[test]
fn many_sources_leave_room_in_the_budget_for_one_more() {
    let mut config = Config::new(Side::Server, "server", "1");
    config.budget = Arc::new(Budget::new(TotalLimits {
        max_incoming: 100,
        ..TotalLimits::default()
    }));
    let now = Instant::now();
    let mut ends = Vec::new();
    for last in 1..=20 {
        let mut end = open(config.clone());
        end.connection
            .set_source(&RequestSource::of_address([10, 0, 0, last].into()));
        for id in 0..100 {
            end.receive(call(&id.to_string()).as_bytes(), now);
        }
        ends.push(end);
    }
    let held: Vec<usize> = ends.iter().map(|end| calls(end).len()).collect();
    assert_eq!(held, [&[75][..], &[1; 19]].concat());
}

fn budget_of(max_bytes: usize) -> (Config, Arc<Budget>) {
    let mut config = Config::new(Side::Server, "server", "1");
    config.budget = Arc::new(Budget::new(TotalLimits {
        max_bytes,
        ..TotalLimits::default()
    }));
    let budget = config.budget.clone();
    (config, budget)
}

/// Messages that never arrive to their end are held all the same; over the budget those that are long are
/// refused, and what is short is served from the reserve.
#[test]
fn what_has_half_arrived_counts_in_the_budget() {
    let (config, budget) = budget_of(1 << 20);
    let now = Instant::now();
    // Leaves a block of memory that the next long message takes; only its own part of it counts.
    let mut earlier = open(budget_of(64 << 20).0);
    earlier.receive(&vec![b' '; 8 << 20], now);
    drop(earlier);
    let (mut a, mut b) = (open(config.clone()), open(config));
    let begun = format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":77,\"x\":\"{}",
        "y".repeat(200_000)
    );
    a.receive(begun.as_bytes(), now);
    assert!(budget.bytes() > 200_000);
    a.receive(&vec![b'y'; 1 << 20], now);
    a.step(now);
    assert!(a.last().contains("\"id\":77"), "{}", a.last());
    assert!(a.last().contains("retryAfter"), "{}", a.last());
    assert!(budget.bytes() < 1_000, "{}", budget.bytes());
    b.receive(call("1").as_bytes(), now);
    assert_eq!(calls(&b), ["1"]);
    // The rest of the message is skipped.
    let rest = format!("{}\"}}\n{}", "y".repeat(100_000), call("2"));
    a.receive(rest.as_bytes(), now);
    assert_eq!(calls(&a), ["2"]);
    drop((a, b));
    assert_eq!(budget.bytes(), 0);
}

/// A client's self-description is kept within a bound, and counted.
#[test]
fn little_is_kept_of_a_long_introduction() {
    let (config, budget) = budget_of(64 << 20);
    let mut peer = End::new(config, Instant::now());
    let long = "x".repeat(1 << 20);
    let hello = format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{{\"protocolVersion\":\"2025-11-25\",\
         \"capabilities\":{{\"experimental\":{{\"x\":\"{long}\"}},\"roots\":{{}}}},\
         \"clientInfo\":{{\"icons\":[\"{long}\"],\"name\":\"c\",\"version\":\"1\"}}}}}}\n"
    );
    peer.receive(hello.as_bytes(), Instant::now());
    let handle = peer.handle();
    let kept = handle.peer().unwrap();
    assert_eq!(&*kept.implementation, r#"{"name":"c","version":"1"}"#);
    assert_eq!(&*kept.capabilities, r#"{"roots":{}}"#);
    // The room that it took on its way is given back after a run of short messages.
    for _ in 0..SHRINK_AFTER {
        peer.receive(PING.as_bytes(), Instant::now());
        peer.step(Instant::now());
    }
    peer.receive(PING.as_bytes(), Instant::now());
    assert!(budget.bytes() < 10_000, "{}", budget.bytes());
    drop((peer, handle));
    assert_eq!(budget.bytes(), 0);
}

/// A peer that leaves a long answer unread gives way when others need the room.
#[test]
fn who_reads_nothing_is_let_go_when_the_budget_is_used_up() {
    let (mut config, budget) = budget_of(1 << 20);
    config.limits.stall_timeout = secs(10);
    let now = Instant::now();
    let long = |bytes| format!("\"x\":\"{}\"", "x".repeat(bytes));
    let (mut idle, mut other) = (open(config.clone()), open(config));
    idle.receive(call("1").as_bytes(), now);
    idle.answer(&long(600_000));
    idle.connection.handle_submissions(now, &mut idle.host);
    idle.connection
        .handle_timeout(now + secs(11), &mut idle.host);
    assert!(!idle.connection.is_closed(), "nobody needs the room");
    other.receive(call("1").as_bytes(), now);
    other.answer(&long(400_000));
    other.connection.handle_submissions(now, &mut other.host);
    idle.receive(call("2").as_bytes(), now + secs(12));
    assert!(calls(&idle).is_empty(), "it is refused");
    idle.connection
        .handle_timeout(now + secs(22), &mut idle.host);
    assert_eq!(
        idle.handle().close_reason(),
        Some(&ConnectionError::Stalled)
    );
    other.receive(call("3").as_bytes(), now + secs(22));
    assert_eq!(calls(&other), ["3"]);
    drop((idle, other));
    assert_eq!(budget.bytes(), 0);
}

/// R-PNG-02.
#[test]
fn a_silent_peer_is_asked_and_one_that_stays_silent_is_given_up() {
    let mut world = World::open(Revision::V2025_11_25);
    let mut config = Config::new(Side::Server, "server", "1");
    config.limits.keepalive_interval = Some(secs(10));
    config.limits.keepalive_timeout = secs(3);
    world.server = open(config);
    let before = world.server.wrote.len();
    let start = world.now;
    // The other side is a client that answers pings.
    world.pass(secs(35));
    let pings = world.server.wrote[before..]
        .iter()
        .filter(|line| line.contains("\"ping\""));
    assert!((2..=3).contains(&pings.count()), "{:?}", world.server.wrote);
    assert!(world.server.host.strays.is_empty() && !world.server.connection.is_closed());
    // From here on it hears nothing.
    let mut now = start + secs(35);
    while let Some(due) = world.server.connection.poll_timeout() {
        now = now.max(due);
        world.server.step(now);
    }
    assert_eq!(
        world.server.handle().close_reason(),
        Some(&ConnectionError::Unresponsive)
    );
    assert!(now <= start + secs(50), "{:?}", now - start);
}

#[test]
fn an_idle_connection_is_closed_and_a_busy_one_is_not() {
    let mut world = world(|limits| limits.idle_timeout = Some(secs(30)));
    let _response = world.ask(RequestOptions {
        timeout: Some(secs(300)),
        ..RequestOptions::default()
    });
    world.pass(secs(100));
    assert!(
        !world.server.connection.is_closed(),
        "something is in flight"
    );
    world.server.answer("");
    world.pass(secs(100));
    assert_eq!(
        world.server.handle().close_reason(),
        Some(&ConnectionError::Idle)
    );
}

/// R-RPC-05.
#[test]
fn ten_thousand_calls_with_one_id_on_one_pipe_run_one_at_a_time() {
    let mut server = server(|_| ());
    let now = Instant::now();
    let storm = call("1").repeat(10_000);
    let before = server.wrote.len();
    server.receive(storm.as_bytes(), now);
    assert_eq!(calls(&server), ["1"]);
    server.answer("\"content\":[\"the first\"]");
    server.step(now);
    let lines = &server.wrote[before..];
    let (refused, answered): (Vec<_>, Vec<_>) =
        lines.iter().partition(|line| line.contains("-32600"));
    assert_eq!((refused.len(), answered.len()), (9_999, 1));
    assert!(answered[0].contains("the first"));
    assert!(refused.iter().all(|line| line.contains("\"id\":1,")));
    // After the answer the id is free.
    for n in 0..100 {
        server.receive(call("1").as_bytes(), now);
        server.answer(&format!("\"n\":{n}"));
        server.step(now);
        assert!(server.last().contains(&format!("{{\"n\":{n}}}")));
    }
}

#[test]
fn dropping_a_connection_tells_whoever_waits() {
    let now = Instant::now();
    let connection = Connection::new(Arc::new(Config::new(Side::Client, "c", "1")), now);
    let handle = connection.handle();
    drop(connection);
    let refused = handle.request("tools/list", None, RequestOptions::default());
    assert_eq!(
        refused.unwrap_err(),
        RequestError::Closed(ConnectionError::ClosedLocally)
    );
}

#[test]
fn a_peer_that_stops_reading_is_given_up() {
    let mut config = Config::new(Side::Server, "server", "1");
    config.limits.output_cap_bytes = 100_000;
    config.limits.stall_timeout = secs(5);
    let mut server = End::new(config, Instant::now());
    let now = Instant::now();
    let ask = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n";
    while server.connection.wants_read(server.stream) {
        server.receive(ask.repeat(100).as_bytes(), now);
    }
    let held = server.connection.output(server.stream).len();
    assert!((100_000..110_000).contains(&held), "{held} bytes");
    server
        .connection
        .handle_timeout(now + secs(4), &mut server.host);
    assert!(!server.connection.is_closed());
    server
        .connection
        .handle_timeout(now + secs(6), &mut server.host);
    assert_eq!(
        server.handle().close_reason(),
        Some(&ConnectionError::Stalled)
    );
}

/// R-PRG-05.
#[test]
fn under_back_pressure_only_the_newest_progress_is_kept() {
    let mut config = Config::new(Side::Server, "server", "1");
    config.limits.output_mark_bytes = 0;
    let mut client = Config::new(Side::Client, "client", "1");
    client.opening = OpeningMode::Stateless;
    let mut world = World::new(client, config);
    world.run();
    let progress: mcpbolt::connection::ProgressFn = Arc::new(|_: Progress<'_>| ());
    let options = RequestOptions {
        progress: Some(progress),
        ..RequestOptions::default()
    };
    let _first = world.ask(options.clone());
    let call = world.server.host.calls[0].clone();
    let mut replies = world.server.handle().replies();
    for i in 1..=1000 {
        let progress = Progress {
            progress: f64::from(i),
            total: None,
            message: None,
        };
        replies.progress(&call.reply, progress);
    }
    replies.result(&call.reply, |_| ());
    drop(replies);
    world.server.step(world.now);
    // R-PRG-05: the first goes out at once, the last before the answer.
    let lines: Vec<_> = world
        .server
        .wrote
        .iter()
        .filter(|line| line.contains("progress"))
        .collect();
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert!(lines[1].contains("\"progress\":1000"));
    assert!(world.server.last().contains("\"result\""));
}
