//! What an observer is told of the requests and sessions of both sides, on a virtual clock.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test: panicking is the report"
)]

use std::sync::{Arc, Mutex};

use mcpbolt::connection::{
    Channel, Config, NetworkTransport, ObservedRequest, ObservedSession, Observer, RequestEnd,
    RequestObserver, RequestOptions, RequestOutcome, SessionObserver,
};
use mcpbolt::error::ConnectionError;
use mcpbolt::limits::WAITING_REQUEST_BYTES;
use mcpbolt::mcp::{ErrorKind, Revision, Revisions, Side, TraceContext};

use crate::world::{End, World, failure, poll, secs};

const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
const OWN: &str = "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01";

/// Writes down everything, in the order in which it is told.
#[derive(Clone, Debug, Default)]
struct Notes {
    lines: Arc<Mutex<Vec<String>>>,
    /// The trace context that requests of this side get.
    own: Option<&'static str>,
}

#[derive(Debug)]
struct Request {
    notes: Notes,
    name: String,
}

#[derive(Debug)]
struct Session(Notes, String);

impl Notes {
    fn add(&self, line: String) {
        self.lines.lock().unwrap().push(line);
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.lines.lock().unwrap())
    }
}

impl Observer for Notes {
    fn request(&self, request: &ObservedRequest<'_>) -> Option<Arc<dyn RequestObserver>> {
        let named = [request.tool(), request.prompt(), request.uri()];
        let named = named.into_iter().flatten().map(|name| format!(" {name}"));
        let name = format!("{}{}", request.method(), named.collect::<String>());
        let way = if request.is_sent() { "sends" } else { "gets" };
        let trace = request.trace_context();
        let trace = trace.map_or(String::new(), |it| {
            format!(" within {}", &it.parent[36..52])
        });
        assert_eq!(request.arrived().is_some(), !request.is_sent());
        self.add(format!("{way} {name}{trace}"));
        let notes = self.clone();
        Some(Arc::new(Request { notes, name }))
    }

    fn session(&self, session: &ObservedSession<'_>) -> Option<Box<dyn SessionObserver>> {
        let by = session.channel().map(|channel| channel.transport.name());
        let by = by.unwrap_or("nothing told");
        self.add(format!("session of {} by {by}", session.revision()));
        let name = format!("{:?}", session.side());
        Some(Box::new(Session(self.clone(), name)))
    }
}

impl RequestObserver for Request {
    fn end(&self, end: &RequestEnd) {
        let was_sent = end.request_bytes > 0 && end.begun.is_some();
        let may_be_unsent = [RequestOutcome::Lost, RequestOutcome::Overloaded];
        assert!(was_sent || may_be_unsent.contains(&end.outcome));
        let answered = match end.answer_bytes {
            0 => "",
            _ => ", answered",
        };
        let Request { notes, name } = self;
        notes.add(format!("{name}: {:?}{answered}", end.outcome));
    }

    fn waits(&self, waits: bool) {
        let what = if waits { "waits" } else { "waits no longer" };
        self.notes.add(format!("{} {what}", self.name));
    }

    fn trace_context(&self) -> Option<TraceContext> {
        let parent = self.notes.own?.to_owned();
        Some(TraceContext {
            parent,
            ..TraceContext::default()
        })
    }
}

impl SessionObserver for Session {
    fn end(self: Box<Self>, reason: &ConnectionError) {
        let Session(notes, side) = *self;
        notes.add(format!("{side}: {reason:?}"));
    }
}

struct Seen {
    world: World,
    client: Notes,
    server: Notes,
}

impl Seen {
    fn new(revision: Revision, change: impl FnOnce(&mut Config, &mut Config)) -> Self {
        let (client, server) = (Notes::default(), Notes::default());
        let mut ends = [Side::Client, Side::Server].map(|side| Config::new(side, "end", "1"));
        let [near, far] = &mut ends;
        near.revisions = Revisions::only(revision);
        near.observer = Some(Arc::new(client.clone()));
        far.observer = Some(Arc::new(server.clone()));
        change(near, far);
        let [near, far] = ends;
        let mut world = World::new(near, far);
        let pipe = || Channel::new(NetworkTransport::Pipe);
        world.client.connection.set_channel(pipe);
        world.server.connection.set_channel(pipe);
        world.run();
        Self {
            world,
            client,
            server,
        }
    }

    fn call(&mut self) -> mcpbolt::connection::Response {
        self.world.ask(RequestOptions::default())
    }

    /// Both sides have noted these lines since the last time, from their points of view.
    #[track_caller]
    fn saw(&self, client: &[&str], server: &[&str]) {
        assert_eq!(self.client.take(), client, "the client");
        assert_eq!(self.server.take(), server, "the server");
    }
}

#[test]
fn the_opening_is_a_request_and_begins_a_session_that_ends_once() {
    let revision = Revision::V2025_11_25;
    let mut seen = Seen::new(revision, |_, _| {});
    seen.saw(
        &[
            "sends initialize",
            "initialize: Done, answered",
            "session of 2025-11-25 by pipe",
        ],
        &[
            "gets initialize",
            "initialize: Done, answered",
            "session of 2025-11-25 by pipe",
        ],
    );
    for end in [&mut seen.world.client, &mut seen.world.server] {
        let End {
            connection, host, ..
        } = end;
        connection.close(ConnectionError::ClosedByPeer, host);
        connection.close(ConnectionError::ClosedLocally, host);
    }
    seen.saw(&["Client: ClosedByPeer"], &["Server: ClosedByPeer"]);
    let discovered = Seen::new(Revision::V2026_07_28, |_, _| {});
    discovered.saw(
        &[
            "sends server/discover",
            "server/discover: Done, answered",
            "session of 2026-07-28 by pipe",
        ],
        &["gets server/discover", "server/discover: Done, answered"],
    );
}

#[test]
fn each_outcome_is_told_once_by_both_sides() {
    let mut seen = Seen::new(Revision::V2025_11_25, |_, _| {});
    seen.saw_anything();
    let begun = (&["sends tools/call x"][..], &["gets tools/call x"][..]);

    let mut answer = seen.call();
    seen.saw(begun.0, begun.1);
    seen.world.server.answer("");
    seen.world.run();
    assert!(poll(&mut answer).unwrap().is_ok());
    let done = "tools/call x: Done, answered";
    seen.saw(&[done], &[done]);

    let mut answer = seen.call();
    seen.world.server.answer("\"content\":[],\"isError\":true");
    seen.world.run();
    assert!(poll(&mut answer).unwrap().is_ok());
    let failed = "tools/call x: ToolFailed, answered";
    seen.saw(&[begun.0[0], failed], &[begun.1[0], failed]);

    let mut answer = seen.call();
    let call = seen.world.server.host.calls.remove(0);
    let mut replies = seen.world.server.handle().replies();
    replies.error(&call.reply, ErrorKind::Overloaded, "later", None);
    drop(replies);
    seen.world.run();
    failure(&mut answer);
    seen.saw(
        &[begun.0[0], "tools/call x: Failed(-31999, None), answered"],
        &[
            begun.1[0],
            "tools/call x: Failed(-31999, Some(Overloaded)), answered",
        ],
    );

    let handle = seen.world.client.handle();
    let ping = handle.request("ping", None, RequestOptions::default());
    seen.world.run();
    assert!(poll(&mut ping.unwrap()).unwrap().is_ok());
    seen.saw(
        &["sends ping", "ping: Done, answered"],
        &["gets ping", "ping: Done, answered"],
    );

    drop(seen.call());
    seen.world.run();
    let cancelled = "tools/call x: Cancelled";
    seen.saw(&[begun.0[0], cancelled], &[begun.1[0], cancelled]);
    seen.world.server.host.calls.clear();

    let mut late = seen.world.ask(RequestOptions {
        timeout: Some(secs(5)),
        ..RequestOptions::default()
    });
    seen.world.pass(secs(6));
    failure(&mut late);
    seen.saw(
        &[begun.0[0], "tools/call x: TimedOut"],
        &[begun.1[0], cancelled],
    );
    seen.world.server.host.calls.clear();

    let mut lost = seen.call();
    for end in [&mut seen.world.client, &mut seen.world.server] {
        let End {
            connection, host, ..
        } = end;
        connection.close(ConnectionError::ClosedByPeer, host);
    }
    failure(&mut lost);
    seen.saw(
        &[begun.0[0], "tools/call x: Lost", "Client: ClosedByPeer"],
        &[begun.1[0], cancelled, "Server: ClosedByPeer"],
    );
}

impl Seen {
    /// Forgets what was noted.
    fn saw_anything(&self) {
        self.client.take();
        self.server.take();
    }
}

#[test]
fn requests_that_wait_are_told_of_and_refused_ones_end_with_the_error() {
    let mut seen = Seen::new(Revision::V2025_11_25, |_, server| {
        server.limits.max_incoming = 1;
        server.limits.waiting_cap_bytes = 2 * WAITING_REQUEST_BYTES;
    });
    seen.saw_anything();
    let answers = [seen.call(), seen.call(), seen.call()];
    let server = seen.server.take();
    assert_eq!(
        server,
        [
            "gets tools/call x",
            "gets tools/call x",
            "tools/call x waits",
            "gets tools/call x",
            "tools/call x: Failed(-31999, Some(Overloaded)), answered",
        ]
    );
    seen.world.server.answer("");
    seen.world.run();
    assert_eq!(
        seen.server.take(),
        [
            "tools/call x: Done, answered",
            "tools/call x waits no longer",
        ]
    );
    drop(answers);
    seen.world.run();
    assert_eq!(seen.server.take(), ["tools/call x: Cancelled"]);
}

/// SEP-414.
#[test]
fn a_request_carries_the_trace_context_of_its_observer_in_place_of_its_callers() {
    for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
        for own in [None, Some(OWN)] {
            let mut seen = Seen::new(revision, |client, _| {
                let notes = Notes {
                    own,
                    ..Notes::default()
                };
                client.observer = Some(Arc::new(notes));
            });
            seen.saw_anything();
            let meta = format!("{{\"traceparent\":\"{PARENT}\",\"kept\":1}}");
            let _answer = seen.world.ask(RequestOptions {
                meta: Some(meta.into()),
                ..RequestOptions::default()
            });
            let within = match own {
                None => "b7ad6b7169203331",
                Some(_) => "00f067aa0ba902b7",
            };
            let line = format!("gets tools/call x within {within}");
            assert_eq!(seen.server.take(), [line]);
            let call = &seen.world.server.host.calls[0];
            assert!(
                call.message
                    .as_ref()
                    .params()
                    .unwrap()
                    .contains("\"kept\":1")
            );
        }
    }
}

#[test]
fn a_refused_batch_of_actions_is_told_as_failed() {
    let notes = Notes::default();
    let mut config = Config::new(Side::Server, "server", "1");
    config.observer = Some(Arc::new(notes.clone()));
    config.actions = true;
    let now = std::time::Instant::now();
    let mut server = End::new(config, now);
    server.receive(
        b"{\"action\":\"batch.execute\",\"params\":{\"operations\":{}}}\n",
        now,
    );
    let lines = notes.take();
    let failed = "tools/call batch.execute: Failed(";
    assert_eq!(lines[0], "gets tools/call batch.execute");
    assert!(
        lines[1].starts_with(failed) && lines[1].ends_with(", answered"),
        "{lines:?}"
    );
    assert_eq!(lines.len(), 2, "{lines:?}");
}

/// What a peer sends may be megabytes long, and an observer keeps it.
#[test]
fn long_texts_of_a_peer_are_cut() {
    let notes = Notes::default();
    let mut config = Config::new(Side::Server, "server", "1");
    config.observer = Some(Arc::new(notes.clone()));
    let now = std::time::Instant::now();
    let mut server = End::new(config, now);
    let (long, escaped) = ("x".repeat(10_000), "\\u0078".repeat(10_000));
    for text in [long, escaped] {
        for (line, told) in [
            (r#"{"jsonrpc":"2.0","id":1,"method":"TEXT"}"#, ""),
            (
                r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"TEXT"}}"#,
                "tools/call ",
            ),
            (
                r#"{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"//TEXT@TEXT"}}"#,
                "resources/read //",
            ),
        ] {
            server.receive(format!("{}\n", line.replace("TEXT", &text)).as_bytes(), now);
            server.step(now);
            let lines = notes.take();
            let slashes = told.matches("//").count() * 2;
            let seen = format!("gets {told}{}", "x".repeat(256 - slashes));
            assert_eq!(lines.first(), Some(&seen), "{told}");
        }
    }
}

#[test]
fn requests_that_cannot_be_routed_are_told_of_too() {
    let notes = Notes::default();
    let mut config = Config::new(Side::Server, "server", "1");
    config.observer = Some(Arc::new(notes.clone()));
    let now = std::time::Instant::now();
    let mut server = End::new(config, now);
    for (line, told) in [
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x"}}"#,
            "tools/call x",
        ),
        (
            r#"{"jsonrpc":"2.0","id":2,"method":"roots/list"}"#,
            "roots/list",
        ),
    ] {
        server.receive(format!("{line}\n").as_bytes(), now);
        server.step(now);
        assert!(server.last().contains("\"error\""), "{}", server.last());
        let lines = notes.take();
        assert_eq!(lines[0], format!("gets {told}"));
        assert!(
            lines[1].starts_with(&format!("{told}: Failed(-")),
            "{lines:?}"
        );
        assert_eq!(lines.len(), 2, "{lines:?}");
    }
}
