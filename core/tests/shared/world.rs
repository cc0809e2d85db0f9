//! Two connections joined by byte queues, on a virtual clock.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test: panicking is the report"
)]
#![allow(dead_code, reason = "not every test uses all of it")]

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use mcpbolt::connection::{
    Answer, Batch, Call, CallKey, Config, Connection, Disposition, Framing, Handle, Host,
    IncomingRequest, Operation, RequestOptions, Response, Stray, StreamId,
};
use mcpbolt::error::{ConnectionError, RequestError};
use mcpbolt::mcp::{ErrorKind, Revision, Revisions, Side};
use mcpbolt::message::Message;

/// Defers every request and remembers everything.
#[derive(Default)]
pub struct Recorder {
    pub calls: Vec<Call>,
    pub cancelled: Vec<(CallKey, Option<String>)>,
    pub closed: Vec<ConnectionError>,
    pub strays: Vec<Stray>,
}

impl Host for Recorder {
    fn request(&mut self, request: IncomingRequest<'_>, answer: Answer<'_>) -> Disposition {
        if request.message.method().as_deref() == Some("inline") {
            return answer.error(ErrorKind::Internal, "inline", None);
        }
        Disposition::Deferred(Operation::Own(7))
    }

    fn dispatch(&mut self, batch: Batch) {
        assert!(!batch.is_empty());
        self.calls.extend(batch.calls());
    }

    fn cancelled(&mut self, key: CallKey, reason: Option<&str>) {
        self.cancelled.push((key, reason.map(str::to_owned)));
    }

    fn closed(&mut self, reason: &ConnectionError) {
        self.closed.push(reason.clone());
    }

    fn stray(&mut self, what: Stray, _frame: &[u8]) {
        self.strays.push(what);
    }
}

pub struct End {
    pub connection: Connection,
    pub host: Recorder,
    pub stream: StreamId,
    /// Everything this end wrote, line by line.
    pub wrote: Vec<String>,
}

impl End {
    pub fn new(config: Config, now: Instant) -> Self {
        let mut connection = Connection::new(Arc::new(config), now);
        let stream = connection.open_stream(Framing::Line);
        Self {
            connection,
            host: Recorder::default(),
            stream,
            wrote: Vec::new(),
        }
    }

    pub fn handle(&self) -> Handle {
        self.connection.handle()
    }

    pub fn step(&mut self, now: Instant) -> Vec<u8> {
        self.connection.handle_submissions(now, &mut self.host);
        if self.connection.poll_timeout().is_some_and(|due| due <= now) {
            self.connection.handle_timeout(now, &mut self.host);
        }
        let output = self.connection.output(self.stream);
        let mut bytes = Vec::new();
        while !output.is_empty() {
            bytes.extend_from_slice(output.head());
            output.advance(output.head().len());
        }
        let text = String::from_utf8(bytes.clone()).unwrap();
        let before = self.wrote.len();
        self.wrote.extend(text.lines().map(str::to_owned));
        for line in &self.wrote[before..] {
            super::schema::assert_may_send(self.side(), self.revision(line), line);
        }
        bytes
    }

    fn side(&self) -> Side {
        self.handle().config().side
    }

    /// The revision a line of this end is of; before any is known, one that has `id: null`.
    fn revision(&self, line: &str) -> Revision {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        let named = line
            .pointer("/params/_meta/io.modelcontextprotocol~1protocolVersion")
            .or_else(|| line.pointer("/params/protocolVersion"));
        named
            .and_then(|name| Revision::parse(name.as_str()?))
            .or_else(|| self.handle().revision())
            .unwrap_or(Revision::V2025_06_18)
    }

    pub fn receive(&mut self, bytes: &[u8], now: Instant) {
        self.connection.input(self.stream).extend(bytes);
        self.connection.receive(self.stream, now, &mut self.host);
    }

    /// Answers the oldest call.
    pub fn answer(&mut self, members: &str) {
        let call = self.host.calls.remove(0);
        self.handle()
            .replies()
            .result(&call.reply, |writer| writer.members(members));
    }

    pub fn last(&self) -> &str {
        self.wrote.last().map_or("", String::as_str)
    }
}

pub struct World {
    pub now: Instant,
    pub client: End,
    pub server: End,
}

impl World {
    pub fn new(client: Config, server: Config) -> Self {
        let now = Instant::now();
        Self {
            now,
            client: End::new(client, now),
            server: End::new(server, now),
        }
    }

    /// One of that revision on both sides, opened.
    pub fn open(revision: Revision) -> Self {
        let mut client = Config::new(Side::Client, "client", "1");
        client.revisions = Revisions::only(revision);
        let mut world = Self::new(client, Config::new(Side::Server, "server", "2"));
        world.run();
        assert_eq!(world.client.handle().revision(), Some(revision));
        world
    }

    /// Moves bytes until both are quiet.
    pub fn run(&mut self) {
        loop {
            let there = self.client.step(self.now);
            let back = self.server.step(self.now);
            if there.is_empty() && back.is_empty() {
                return;
            }
            self.server.receive(&there, self.now);
            self.client.receive(&back, self.now);
        }
    }

    /// Lets time pass, in steps at which something is due.
    pub fn pass(&mut self, duration: Duration) {
        let end = self.now + duration;
        self.run();
        loop {
            let due = [
                self.client.connection.poll_timeout(),
                self.server.connection.poll_timeout(),
            ];
            match due.into_iter().flatten().min().filter(|due| *due <= end) {
                Some(due) => self.now = due.max(self.now),
                None => break,
            }
            self.run();
        }
        self.now = end;
        self.run();
    }

    pub fn ask(&mut self, options: RequestOptions) -> Response {
        let response =
            self.client
                .handle()
                .request("tools/call", Some("{\"name\":\"x\"}"), options);
        self.run();
        response.unwrap()
    }
}

pub fn poll(response: &mut Response) -> Option<Result<Message, RequestError>> {
    match pin!(response).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(outcome) => Some(outcome),
        Poll::Pending => None,
    }
}

pub fn failure(response: &mut Response) -> RequestError {
    poll(response).expect("it is over").expect_err("it failed")
}

pub fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}
