//! One conversation with one server: opening it, single requests, closing it.

use std::process::ChildStdin;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::carrier::Carrier;
use super::http::Http;
use super::pipe::Pipe;
use super::server::{Server, Start};
use super::wire::{self, Revision, shorten};

/// How long a server may take to answer one request.
const PATIENCE: Duration = Duration::from_secs(20);

/// An open conversation over any carrier.
pub struct Session<C = Pipe> {
    pub server: Server,
    pub carrier: C,
    pub revision: Revision,
    /// From the start of the process to its first `tools/list` answer.
    pub first_list: Duration,
    /// The names of the listed tools.
    pub tools: Vec<String>,
    next_id: u64,
}

impl Session<Pipe> {
    /// Starts the server, performs the handshake if the revision has one, and lists its tools.
    pub fn open(start: &Start, revision: Revision) -> Result<Self> {
        let started = Instant::now();
        let (server, to, from) = Server::start(start)?;
        let mut session = Self {
            server,
            carrier: Pipe::new(to, from)?,
            revision,
            first_list: Duration::ZERO,
            tools: Vec::new(),
            next_id: 1,
        };
        session.shake_hands()?;
        session.list(started)?;
        Ok(session)
    }

    /// Closes the server's input and waits for its exit. Returns how long that took, or `None` if it did not.
    pub fn close(self) -> Option<Duration> {
        let Self {
            mut server,
            carrier,
            ..
        } = self;
        drop::<ChildStdin>(carrier.into_input());
        server.wait(Duration::from_secs(6))
    }
}

impl Session<Http> {
    /// Starts a server that listens on `port`, which replaces `{port}` in its command line, performs the
    /// handshake if the revision has one, and lists its tools.
    pub fn open_http(start: &Start, port: u16, revision: Revision) -> Result<Self> {
        let start = start.on_port(port);
        let started = Instant::now();
        let (server, _to, _from) = Server::start(&start)?;
        let mut session = Self {
            server,
            carrier: Http::new(port, revision),
            revision,
            first_list: Duration::ZERO,
            tools: Vec::new(),
            next_id: 1,
        };
        session.carrier.until_there(PATIENCE)?;
        session.shake_hands()?;
        session.list(started)?;
        Ok(session)
    }
}

impl<C: Carrier> Session<C> {
    /// Performs the handshake if the revision has one.
    fn shake_hands(&mut self) -> Result<()> {
        let revision = self.revision;
        if revision != Revision::Handshake {
            return Ok(());
        }
        let answer = self.ask(|id| wire::initialize(id, revision))?;
        let agreed = &answer["protocolVersion"];
        if agreed != revision.name() {
            bail!("asked for {}, the server speaks {agreed}", revision.name());
        }
        self.tell(wire::INITIALIZED);
        Ok(())
    }

    fn list(&mut self, started: Instant) -> Result<()> {
        let revision = self.revision;
        let mut cursor: Option<String> = None;
        loop {
            let page = self.ask(|id| wire::list(id, revision, cursor.as_deref()))?;
            if cursor.is_none() {
                self.first_list = started.elapsed();
            }
            let tools = page["tools"]
                .as_array()
                .context("tools/list without tools")?;
            let names = tools.iter().filter_map(|tool| tool["name"].as_str());
            self.tools.extend(names.map(str::to_owned));
            match &page["nextCursor"] {
                Value::Null => return Ok(()),
                next => cursor = Some(next.to_string()),
            }
        }
    }

    /// A new id.
    pub fn next_id(&mut self) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        id
    }

    /// Sends a notification.
    pub fn tell(&mut self, message: &str) {
        self.carrier
            .queue(&mut |out| out.extend_from_slice(message.as_bytes()));
    }

    /// Sends a request and waits for its result; ignores other messages.
    pub fn ask(&mut self, request: impl FnOnce(u64) -> String) -> Result<Value> {
        let id = self.next_id();
        self.tell(&request(id));
        let deadline = Instant::now() + PATIENCE;
        let mut answer = None;
        while answer.is_none() {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                bail!("no answer within {} s", PATIENCE.as_secs());
            }
            self.carrier.turn(left, &mut |line| {
                let Ok(message) = serde_json::from_slice::<Value>(line) else {
                    return;
                };
                if message["id"] == id && message["method"].is_null() {
                    answer = Some(message);
                }
            })?;
        }
        let mut answer = answer.unwrap_or_default();
        match answer["result"].take() {
            Value::Null => bail!("an error: {}", shorten(&answer["error"].to_string())),
            result => Ok(result),
        }
    }

    /// Calls a tool and returns the text of its answer.
    pub fn call(&mut self, tool: &str, arguments: &str) -> Result<String> {
        let revision = self.revision;
        let result = self.ask(|id| wire::call(id, revision, tool, arguments))?;
        let raw = serde_json::value::to_raw_value(&result)?;
        Ok(wire::text(&raw)?.into_owned())
    }
}
