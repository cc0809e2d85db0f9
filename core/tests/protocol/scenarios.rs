//! Whole conversations between two connections, joined by byte queues, on a virtual clock.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test: panicking is the report"
)]

use std::sync::{Arc, Mutex};
use std::time::Instant;

use mcpbolt::connection::{Config, Progress, RequestOptions, Stray};
use mcpbolt::error::{ConnectionError, RequestError};
use mcpbolt::limits::Limits;
use mcpbolt::mcp::{Era, Revision, Revisions, Side};

use crate::world::{End, World, failure, poll, secs};

/// R-LIF-17.
#[test]
fn every_revision_opens_and_answers() {
    for revision in Revision::ALL {
        let mut world = World::open(revision);
        let peer = world.client.handle().peer().unwrap().clone();
        assert!(
            peer.implementation.contains("\"server\""),
            "{revision}: {peer:?}"
        );
        let mut response = world.ask(RequestOptions::default());
        assert!(poll(&mut response).is_none());
        assert_eq!(world.server.connection.in_flight(), 1);
        world.server.answer("\"content\":[]");
        world.run();
        let message = poll(&mut response).unwrap().unwrap();
        let result = message.as_ref().result().unwrap();
        assert!(result.starts_with("{\"content\":[]"), "{result}");
        // R-RPC-18, R-MET-06: only the stateless era says more.
        let stateless = revision.era() == Era::Stateless;
        assert_eq!(result.contains("\"resultType\":\"complete\""), stateless);
        assert_eq!(
            result.contains("io.modelcontextprotocol/serverInfo"),
            stateless
        );
        assert_eq!(world.server.connection.in_flight(), 0);
        assert_eq!(world.client.handle().pending_count(), 0);
        assert!(world.client.host.strays.is_empty() && world.server.host.strays.is_empty());
    }
}

/// R-DSC-06, R-DSC-07.
#[test]
fn a_probe_finds_the_newest_era_both_speak() {
    for server in Revision::ALL {
        let mut config = Config::new(Side::Server, "server", "1");
        config.revisions = Revisions::only(server);
        let mut world = World::new(Config::new(Side::Client, "client", "1"), config);
        world.run();
        // R-ERA-07: an older server answers the probe with some error, and gets its handshake.
        assert_eq!(
            world.client.handle().revision(),
            Some(server),
            "{:?}",
            world.server.wrote
        );
        assert!(world.client.wrote[0].contains("server/discover"));
    }
}

/// R-LIF-16.
#[test]
fn a_silent_server_gets_its_handshake_after_the_probe() {
    let mut client = End::new(Config::new(Side::Client, "client", "1"), Instant::now());
    let mut now = Instant::now();
    client.step(now);
    assert!(client.last().contains("server/discover"));
    now += Limits::STDIO.probe_timeout + secs(1);
    client.step(now);
    assert!(
        client.last().contains("\"initialize\""),
        "{}",
        client.last()
    );
    now += Limits::STDIO.handshake_timeout + secs(1);
    client.step(now);
    assert_eq!(
        client.handle().close_reason(),
        Some(&ConnectionError::HandshakeTimedOut("initialize"))
    );
    assert_eq!(client.host.closed.len(), 1);
}

/// R-ERA-07, R-ERA-08: a server that is slow to start takes the probe for its opening, and refuses
/// the handshake that came after it. It is asked once more, and not twice.
#[test]
fn a_server_that_was_slow_to_answer_the_probe_is_asked_again() {
    let refusal = r#""error":{"code":-32022,"message":"no","data":{"supported":["2026-07-28"]}}}"#;
    let discovered = r#""result":{"resultType":"complete","supportedVersions":["2026-07-28"],
        "capabilities":{},"ttlMs":0,"cacheScope":"private"}}"#
        .replace("\n        ", "");
    for (answer, opens) in [(discovered.as_str(), true), (refusal, false)] {
        let mut now = Instant::now();
        let mut client = End::new(Config::new(Side::Client, "client", "1"), now);
        client.step(now);
        now += Limits::STDIO.probe_timeout + secs(1);
        client.step(now);
        let answer_to = |asked: &str, answer: &str| {
            let asked: serde_json::Value = serde_json::from_str(asked).expect("a message");
            format!("{{\"jsonrpc\":\"2.0\",\"id\":{},{answer}\n", asked["id"])
        };
        let late = answer_to(&client.wrote[0], &discovered);
        let refused = answer_to(&client.wrote[1], refusal);
        client.receive(format!("{late}{refused}").as_bytes(), now);
        client.step(now);
        assert!(
            client.last().contains("server/discover"),
            "{:?}",
            client.wrote
        );
        let last = answer_to(client.last(), answer);
        client.receive(last.as_bytes(), now);
        client.step(now);
        let opened = client.handle().revision() == Some(Revision::V2026_07_28);
        assert_eq!(opened, opens, "{:?}", client.wrote);
        assert_eq!(client.host.closed.len(), usize::from(!opens));
        assert_eq!(client.wrote.len(), 3, "{:?}", client.wrote);
    }
}

/// R-PNG-01.
#[test]
fn a_client_answers_a_ping_while_it_waits_for_the_server_to_open() {
    let now = Instant::now();
    let mut config = Config::new(Side::Client, "client", "1");
    config.revisions = Revisions::only(Revision::V2025_11_25);
    let mut client = End::new(config, now);
    client.step(now);
    assert!(client.last().contains("\"initialize\""));
    client.receive(
        b"{\"jsonrpc\":\"2.0\",\"id\":\"p\",\"method\":\"ping\"}\n",
        now,
    );
    client.step(now);
    assert_eq!(
        client.last(),
        "{\"jsonrpc\":\"2.0\",\"id\":\"p\",\"result\":{}}"
    );
}

/// R-ERR-14.
#[test]
fn an_unknown_log_level_in_an_envelope_is_refused() {
    let now = Instant::now();
    let mut server = End::new(Config::new(Side::Server, "server", "1"), now);
    let envelope = "\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\",\"io.modelcontextprotocol/clientCapabilities\":{}";
    for (level, refused) in [("bogus", true), ("debug", false)] {
        let request = format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"server/discover\",\"params\":{{\"_meta\":{{{envelope},\"io.modelcontextprotocol/logLevel\":\"{level}\"}}}}}}\n"
        );
        server.receive(request.as_bytes(), now);
        server.step(now);
        assert_eq!(
            server.last().contains("-32602"),
            refused,
            "{}",
            server.last()
        );
    }
}

/// R-LIF-10, R-LIF-11, R-LIF-16.
#[test]
fn without_a_common_revision_the_client_gives_up() {
    let mut client = Config::new(Side::Client, "client", "1");
    client.revisions = Revisions::only(Revision::V2024_11_05);
    let mut server = Config::new(Side::Server, "server", "1");
    server.revisions = Revisions::only(Revision::V2025_11_25);
    let mut world = World::new(client, server);
    world.run();
    // R-LIF-10: the server offers what it has; R-LIF-11: the client cannot use it.
    assert_eq!(
        world.client.handle().close_reason(),
        Some(&ConnectionError::NoCommonRevision)
    );
}

/// R-CAN-02, R-CAN-03, R-CAN-05, R-CAN-09, R-RPC-20.
#[test]
fn a_timeout_tells_the_peer_and_a_late_answer_is_a_stray() {
    for revision in [Revision::V2025_06_18, Revision::V2026_07_28] {
        let mut world = World::open(revision);
        let options = RequestOptions {
            timeout: Some(secs(3)),
            ..RequestOptions::default()
        };
        let mut response = world.ask(options);
        world.pass(secs(2));
        assert!(poll(&mut response).is_none());
        world.pass(secs(2));
        assert_eq!(failure(&mut response), RequestError::TimedOut);
        // R-CAN-09: the peer stops too.
        assert_eq!(world.server.host.cancelled.len(), 1);
        assert!(world.server.host.calls[0].cancel.is_cancelled());
        let before = world.server.wrote.len();
        world.server.answer("");
        world.run();
        assert_eq!(
            world.server.wrote.len(),
            before,
            "nothing is written after a cancel (R-CAN-02)"
        );
        // A peer that answers all the same is ignored.
        let late = format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":{},\"result\":{{}}}}\n",
            response.key().get()
        );
        world.client.receive(late.as_bytes(), world.now);
        assert_eq!(world.client.host.strays, [Stray::Answer]);
    }
}

/// R-PRG-02, R-CAN-09.
#[test]
fn progress_extends_the_soft_deadline_and_never_the_hard_one() {
    let mut world = World::open(Revision::V2025_11_25);
    let seen = Arc::new(Mutex::new(Vec::new()));
    let sink = seen.clone();
    let mut response = world.ask(RequestOptions {
        within: None,
        timeout: Some(secs(10)),
        max_timeout: Some(secs(35)),
        progress: Some(Arc::new(move |progress: Progress<'_>| {
            sink.lock().unwrap().push((
                progress.progress,
                progress.total,
                progress.message.map(str::to_owned),
            ));
        })),
        meta: None,
    });
    let call = world.server.host.calls[0].clone();
    assert!(call.reply.wants_progress());
    for step in 1..=4 {
        world.pass(secs(8));
        assert!(poll(&mut response).is_none(), "after {} s", step * 8);
        let progress = Progress {
            progress: f64::from(step),
            total: Some(9.5),
            message: Some("on"),
        };
        world
            .server
            .handle()
            .replies()
            .progress(&call.reply, progress);
        // R-PRG-02: what does not increase is no news.
        world.server.handle().replies().progress(
            &call.reply,
            Progress {
                progress: 0.5,
                ..progress
            },
        );
        world.run();
    }
    assert_eq!(seen.lock().unwrap().len(), 4);
    assert_eq!(
        seen.lock().unwrap()[2],
        (3.0, Some(9.5), Some("on".to_owned()))
    );
    world.pass(secs(4));
    assert_eq!(failure(&mut response), RequestError::TimedOut, "at 36 s");
}

/// R-CAN-09: where the call sets no hard deadline, the limits do.
#[test]
fn progress_extends_no_request_beyond_the_limit() {
    let mut world = World::open(Revision::V2025_11_25);
    let mut response = world.ask(RequestOptions {
        timeout: Some(secs(100)),
        progress: Some(Arc::new(|_: Progress<'_>| {})),
        ..RequestOptions::default()
    });
    let call = world.server.host.calls[0].clone();
    let mut steps = 0;
    while poll(&mut response).is_none() {
        steps += 1;
        assert!(steps <= 10, "{} s", steps * 90);
        let progress = Progress {
            progress: f64::from(steps),
            total: None,
            message: None,
        };
        world
            .server
            .handle()
            .replies()
            .progress(&call.reply, progress);
        world.run();
        world.pass(secs(90));
    }
    assert_eq!(steps, 7, "600 s are over at 630 s");
}

/// R-CAN-01, R-CAN-13.
#[test]
fn dropping_the_response_cancels_and_the_reason_arrives() {
    let mut world = World::open(Revision::V2025_11_25);
    drop(world.ask(RequestOptions::default()));
    world.run();
    world
        .ask(RequestOptions::default())
        .cancel(Some("not needed"));
    world.run();
    let reasons: Vec<_> = world
        .server
        .host
        .cancelled
        .iter()
        .map(|(_, reason)| reason.clone())
        .collect();
    assert_eq!(reasons, [None, Some("not needed".to_owned())]);
    assert_eq!(world.server.connection.in_flight(), 0);
    assert_eq!(world.client.handle().pending_count(), 0);
}

#[test]
fn a_cancel_in_the_same_read_as_its_request_drops_it_unseen() {
    let mut world = World::open(Revision::V2025_11_25);
    let call = "{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"method\":\"tools/call\",\"params\":{\"name\":\"x\"}}\n";
    let cancel = "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":\"a\"}}\n";
    world
        .server
        .receive(format!("{call}{cancel}").as_bytes(), world.now);
    assert!(world.server.host.calls.is_empty() && world.server.host.cancelled.is_empty());
    assert_eq!(world.server.connection.in_flight(), 0);
}

/// R-RPC-06, R-CAN-04.
#[test]
fn a_cancel_hits_only_the_id_of_its_own_type() {
    let mut world = World::open(Revision::V2025_11_25);
    for id in ["9", "\"9\"", "0", "\"\""] {
        let call = format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"tools/call\",\"params\":{{}}}}\n"
        );
        world.server.receive(call.as_bytes(), world.now);
    }
    for id in ["9", "0", "77", "\"0\"", "null", "1.5"] {
        let cancel = format!(
            "{{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{{\"requestId\":{id}}}}}\n"
        );
        world.server.receive(cancel.as_bytes(), world.now);
    }
    let left: Vec<_> = world
        .server
        .host
        .calls
        .iter()
        .filter(|call| !call.cancel.is_cancelled())
        .collect();
    let ids: Vec<_> = left
        .iter()
        .map(|call| call.reply.id().raw().to_owned())
        .collect();
    assert_eq!(ids, ["\"9\"", "\"\""]);
}

#[test]
fn the_end_of_a_connection_reaches_every_waiter_once() {
    let mut world = World::open(Revision::V2026_07_28);
    let mut waiting: Vec<_> = (0..100)
        .map(|_| world.ask(RequestOptions::default()))
        .collect();
    let reason = ConnectionError::PeerExited("exit status: 1".into());
    let End {
        connection, host, ..
    } = &mut world.client;
    connection.close(reason.clone(), host);
    connection.close(ConnectionError::ClosedLocally, host);
    for response in &mut waiting {
        assert_eq!(failure(response), RequestError::Closed(reason.clone()));
    }
    assert_eq!(world.client.host.closed, std::slice::from_ref(&reason));
    assert!(world.client.handle().is_closed());
    let refused = world
        .client
        .handle()
        .request("tools/list", None, RequestOptions::default());
    assert_eq!(refused.unwrap_err(), RequestError::Closed(reason));
    // The other side's calls learn it as well.
    let End {
        connection, host, ..
    } = &mut world.server;
    connection.close(ConnectionError::ClosedByPeer, host);
    assert_eq!(host.cancelled.len(), 100);
    assert!(host.calls.iter().all(|call| call.cancel.is_cancelled()));
}

/// R-STL-01, R-ERA-01, R-ERA-02.
#[test]
fn handshake_and_stateless_requests_share_one_pipe() {
    // R-ERA-13
    let mut world = World::open(Revision::V2025_03_26);
    let meta = "\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\",\"io.modelcontextprotocol/clientCapabilities\":{}}";
    let ping = |id: &str, params: &str| {
        format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"ping\"{params}}}\n")
    };
    for (id, params) in [
        ("1", String::new()),
        ("2", format!(",\"params\":{{{meta}}}")),
        ("3", String::new()),
    ] {
        world
            .server
            .receive(ping(id, &params).as_bytes(), world.now);
    }
    world.server.step(world.now);
    let tail: Vec<_> = world.server.wrote.iter().rev().take(3).rev().collect();
    assert_eq!(tail[0], "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}");
    assert!(
        tail[1].contains("-32601"),
        "R-PNG-03, R-ERA-03: {}",
        tail[1]
    );
    assert_eq!(tail[2], "{\"jsonrpc\":\"2.0\",\"id\":3,\"result\":{}}");
}

#[test]
fn an_unsupported_version_is_answered_with_the_list() {
    let mut server = End::new(Config::new(Side::Server, "server", "1"), Instant::now());
    let ask = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\",\"params\":{\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2099-01-01\",\"io.modelcontextprotocol/clientCapabilities\":{}}}}\n";
    server.receive(ask.as_bytes(), Instant::now());
    server.step(Instant::now());
    // R-ERR-17, R-DSC-04
    assert!(server.last().contains("-32022"), "{}", server.last());
    assert!(server.last().contains("\"requested\":\"2099-01-01\""));
    for revision in Revision::ALL {
        assert!(server.last().contains(revision.name()));
    }
}

/// R-STD-10, R-RPC-16.
#[test]
fn a_client_of_the_stateless_era_answers_no_requests() {
    let mut world = World::open(Revision::V2026_07_28);
    let before = world.client.wrote.len();
    let ask = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"roots/list\"}\n";
    world.client.receive(ask.as_bytes(), world.now);
    world.client.step(world.now);
    assert_eq!(world.client.wrote.len(), before, "R-RPC-16");
    assert_eq!(world.client.host.strays, [Stray::Unexpected]);
}

#[test]
fn a_drain_finishes_what_is_in_flight_and_begins_nothing_new() {
    for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
        let mut world = World::open(revision);
        let mut first = world.ask(RequestOptions::default());
        let (now, grace) = (world.now, secs(5));
        let End {
            connection, host, ..
        } = &mut world.server;
        connection.drain(now, grace, ConnectionError::ShuttingDown, host);
        assert!(connection.is_draining() && !connection.is_closed());
        let mut second = world.ask(RequestOptions::default());
        let RequestError::Peer(refused) = failure(&mut second) else {
            panic!("refused by the peer")
        };
        assert_eq!(refused.code, mcpbolt::mcp::code::SHUTTING_DOWN);
        let own = world
            .server
            .handle()
            .request("roots/list", None, RequestOptions::default());
        let shutting_down = RequestError::Closed(ConnectionError::ShuttingDown);
        if revision.era() == Era::Handshake {
            assert_eq!(own.unwrap_err(), shutting_down);
        }
        world.pass(secs(4));
        world.server.answer("");
        world.run();
        assert!(poll(&mut first).unwrap().is_ok());
        assert_eq!(
            world.server.handle().close_reason(),
            Some(&ConnectionError::ShuttingDown)
        );
        assert_eq!(world.server.host.closed, [ConnectionError::ShuttingDown]);
    }
}

#[test]
fn a_drain_ends_with_its_grace_period_and_every_waiter_learns_why() {
    let mut world = World::open(Revision::V2025_11_25);
    let mut response = world.ask(RequestOptions::default());
    world.client.handle().drain(secs(60));
    let refused = world
        .client
        .handle()
        .request("tools/list", None, RequestOptions::default());
    let shutting_down = RequestError::Closed(ConnectionError::ShuttingDown);
    assert_eq!(
        refused.unwrap_err(),
        shutting_down,
        "before the driver knows"
    );
    world.pass(secs(1));
    let End {
        connection, host, ..
    } = &mut world.client;
    // A shorter period holds, a longer one does not.
    connection.drain(world.now, secs(3), ConnectionError::ClosedLocally, host);
    connection.drain(world.now, secs(30), ConnectionError::ClosedLocally, host);
    world.pass(secs(2));
    assert!(poll(&mut response).is_none());
    world.pass(secs(1));
    assert_eq!(failure(&mut response), shutting_down);
    assert!(world.client.handle().is_closed());
}

fn answer(world: &mut World, frame: &str) {
    world
        .client
        .receive(format!("{frame}\n").as_bytes(), world.now);
}

#[test]
fn an_answer_that_says_cancelled_is_a_cancelled_request() {
    // R-ERR-27
    let mut world = World::open(Revision::V2025_11_25);
    let mut response = world.ask(RequestOptions::default());
    let key = response.key();
    answer(
        &mut world,
        &format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":{key},\"error\":{{\"code\":-32800,\"message\":\"Request cancelled\"}}}}"
        ),
    );
    assert_eq!(
        failure(&mut response),
        RequestError::Cancelled(Some("Request cancelled".into()))
    );
}

#[test]
fn one_dialect_answers_cancelled_requests_and_no_revision_does() {
    for told in [false, true] {
        let mut world = World::open(Revision::V2025_11_25);
        let mut config = Config::new(Side::Server, "server", "2");
        config.answer_cancelled = told;
        world.server = End::new(config, world.now);
        let hello = world.client.wrote[0].clone() + "\n";
        world.server.receive(hello.as_bytes(), world.now);
        let call = "{\"jsonrpc\":\"2.0\",\"id\":\"c\",\"method\":\"tools/call\",\"params\":{\"name\":\"x\"}}\n";
        let cancel = "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":\"c\"}}\n";
        world.server.step(world.now);
        let before = world.server.wrote.len();
        world.server.receive(call.as_bytes(), world.now);
        for _ in 0..2 {
            world.server.receive(cancel.as_bytes(), world.now);
        }
        world.server.answer("");
        world.server.step(world.now);
        let after = &world.server.wrote[before..];
        assert_eq!(after.len(), usize::from(told), "{after:?}");
        assert!(
            after
                .iter()
                .all(|line| line.contains("\"id\":\"c\"") && line.contains("-32800"))
        );
    }
}

#[test]
fn a_string_of_digits_is_our_id_only_where_that_is_allowed() {
    for lenient in [false, true] {
        let mut client = Config::new(Side::Client, "client", "1");
        client.revisions = Revisions::only(Revision::V2025_11_25);
        client.lenient_ids = lenient;
        let mut world = World::new(client, Config::new(Side::Server, "server", "2"));
        world.run();
        let mut response = world.ask(RequestOptions::default());
        let key = response.key();
        answer(
            &mut world,
            &format!("{{\"jsonrpc\":\"2.0\",\"id\":\"{key}\",\"result\":{{}}}}"),
        );
        assert_eq!(poll(&mut response).is_some(), lenient);
        assert_eq!(world.client.host.strays.is_empty(), lenient);
        // Other strings are strays for everybody.
        for id in ["\"\"", "\"x\"", "\"01\"", "\" 1\"", "\"1.0\""] {
            let before = world.client.host.strays.len();
            let frame = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{}}}}");
            answer(&mut world, &frame);
            assert_eq!(world.client.host.strays.len(), before + 1, "{id}");
        }
    }
}

#[test]
fn initialize_is_never_cancelled_by_anybody() {
    // R-LIF-13
    let mut client = Config::new(Side::Client, "client", "1");
    client.opening = mcpbolt::connection::OpeningMode::Handshake;
    let mut client = End::new(client, Instant::now());
    let now = Instant::now();
    client.step(now);
    client.step(now + Limits::STDIO.handshake_timeout + secs(1));
    assert!(client.connection.is_closed());
    assert!(client.wrote.iter().all(|line| !line.contains("cancelled")));
    // A server is done with it before anything else arrives.
    let mut world = World::open(Revision::V2025_11_25);
    let cancel = "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":1}}\n";
    world.server.receive(cancel.as_bytes(), world.now);
    let mut response = world.ask(RequestOptions::default());
    world.server.answer("");
    world.run();
    assert!(poll(&mut response).unwrap().is_ok());
}

/// R-RPC-08 to R-RPC-10.
#[test]
fn an_answer_that_is_no_valid_answer_ends_its_request() {
    let broken = [
        "\"result\":{},\"error\":{\"code\":1,\"message\":\"\"}}",
        "\"result\":7}",
        "\"error\":{\"code\":\"x\"}}",
        "\"result\":{]}",
        "\"result\":{\"text\":\"\u{1}\"}}",
    ];
    for members in broken {
        let mut world = World::open(Revision::V2025_11_25);
        let mut response = world.ask(RequestOptions::default());
        let key = response.key();
        answer(
            &mut world,
            &format!("{{\"jsonrpc\":\"2.0\",\"id\":{key},{members}"),
        );
        let outcome = failure(&mut response);
        assert!(
            matches!(outcome, RequestError::BadAnswer(_)),
            "{members}: {outcome:?}"
        );
        assert_eq!(world.client.host.strays, [Stray::BadFrame]);
        // A stray message ends nothing.
        let mut other = world.ask(RequestOptions::default());
        answer(
            &mut world,
            &format!("{{\"jsonrpc\":\"2.0\",\"id\":{key},{members}"),
        );
        assert!(poll(&mut other).is_none());
    }
}

#[test]
fn a_cancel_reaches_the_tokens_made_from_the_calls_own() {
    let mut world = World::open(Revision::V2025_11_25);
    let response = world.ask(RequestOptions::default());
    let token = world.server.host.calls[0].cancel.child().child();
    response.cancel(Some("enough"));
    world.run();
    assert_eq!(token.reason(), Some("enough"));
}

#[test]
fn long_frames_travel_in_their_turn_among_short_ones() {
    let mut world = World::open(Revision::V2025_11_25);
    let long = "x".repeat(100 << 10);
    let texts = ["a", &long, "b", "c", &long, "d"];
    let ask = |text: &&str| {
        let params = format!("{{\"name\":\"{text}\"}}");
        let handle = world.client.handle();
        handle.request("tools/call", Some(&params), RequestOptions::default())
    };
    let mut responses: Vec<_> = texts.iter().map(|text| ask(text).unwrap()).collect();
    world.run();
    let calls = std::mem::take(&mut world.server.host.calls);
    let names: Vec<_> = calls
        .iter()
        .map(|call| call.message.as_ref().name().unwrap())
        .collect();
    assert!(names == texts, "the requests in their order");

    // In one piece, which is long; and its frames are long and short.
    let mut replies = world.server.handle().replies();
    for (call, text) in calls.iter().zip(texts) {
        let content = format!("[{{\"type\":\"text\",\"text\":\"{text}\"}}]");
        replies.result(&call.reply, |result| result.raw("content", &content));
    }
    replies.submit();
    world.run();
    let ids: Vec<_> = responses.iter().map(|response| response.key()).collect();
    let wrote = &world.server.wrote[world.server.wrote.len() - texts.len()..];
    for ((line, id), text) in wrote.iter().zip(&ids).zip(texts) {
        let expected = format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{\"content\":[{{\"type\":\"text\",\"text\":\"{text}\"}}]}}}}"
        );
        assert!(*line == expected, "the answers in their order");
    }
    assert!(
        responses
            .iter_mut()
            .all(|response| poll(response).unwrap().is_ok())
    );
}

/// R-ERR-06, R-ERR-26: a peer's code is handed on as it came, and none is made up for what failed here.
#[test]
fn codes_of_a_peer_mean_what_the_peer_says_and_local_failures_have_none() {
    let mut world = World::open(Revision::V2026_07_28);
    for code in [-32000, -32001, -32002, -32005, -32019, -1, 7] {
        let mut response = world.ask(RequestOptions::default());
        let key = response.key();
        let error = format!("{{\"code\":{code},\"message\":\"m\"}}");
        answer(
            &mut world,
            &format!("{{\"jsonrpc\":\"2.0\",\"id\":{key},\"error\":{error}}}"),
        );
        let outcome = failure(&mut response);
        assert!(matches!(outcome, RequestError::Peer(_)) && outcome.code() == Some(code));
    }
    let mut response = world.ask(RequestOptions::default());
    world.pass(secs(3600));
    let outcome = failure(&mut response);
    assert_eq!((&outcome, outcome.code()), (&RequestError::TimedOut, None));
}
