//! A front between a client and a server that are both scripts of lines, on a virtual clock.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::task::{Context, Waker};
use std::time::{Duration, Instant};

use mcpbolt::chain::{ChainNotice, ChainNotification, External, Front, Middleware, Prefix};
use mcpbolt::client::{Client, ClientBuilder, ClientHost};
use mcpbolt::connection::{Connection, Framing, Host as _, StreamId, Wake};
use mcpbolt::error::ConnectionError;
use mcpbolt::handler::{Job, Spawner};
use mcpbolt::mcp::{Era, Revision, Revisions, meta};
use mcpbolt::prelude::CancelToken;
use mcpbolt::server::{Hosting, ServerHost};
use serde::de::IgnoredAny;
use serde_json::{Value, json};

/// One connection to a scripted server.
pub struct Far {
    /// The server that it leads to.
    pub name: &'static str,
    pub revision: Revision,
    connection: Connection,
    host: ClientHost,
    stream: StreamId,
    /// Lines of the front that the script has not handled.
    pub lines: VecDeque<String>,
    pub capabilities: Value,
}

impl Far {
    /// The server says a line.
    pub fn say(&mut self, line: &str, now: Instant) {
        self.say_within(None, line, now);
    }

    /// The same on the stream of that request, where the carrier has one for each.
    pub fn say_within(&mut self, request: Option<u64>, line: &str, now: Instant) {
        self.host.arrives_within(request);
        let input = self.connection.input(self.stream);
        input.extend(line.as_bytes());
        input.extend(b"\n");
        self.connection.receive(self.stream, now, &mut self.host);
    }

    /// The server has forgotten the session, and begins another one.
    pub fn session_ends(&mut self, now: Instant) {
        self.connection.session_ended(now, &mut self.host);
    }

    /// The server ends the connection, before what carries it has ended.
    pub fn close(&mut self) {
        let error = ConnectionError::ClosedByPeer;
        self.connection.close(error, &mut self.host);
    }

    /// Has the transport woken when there is something to send.
    pub fn set_wake(&self, wake: Arc<dyn Wake>) {
        self.connection.set_wake(wake);
    }

    /// The transport takes what there is, and sends what is still to be sent. Returns all, and whether each is sent.
    pub fn sends(&mut self, now: Instant) -> Vec<(Value, bool)> {
        self.connection.handle_submissions(now, &mut self.host);
        let lines = drain(&mut self.connection, self.stream);
        let messages = lines.iter().map(|line| {
            let message = serde_json::from_str(line).unwrap();
            let is_sent = self.may_send(&message, now);
            (message, is_sent)
        });
        messages.collect()
    }

    fn may_send(&mut self, request: &Value, now: Instant) -> bool {
        let id = request["id"].as_u64();
        id.is_some_and(|id| self.connection.may_send(id, now, &mut self.host))
    }
}

/// All connections to the scripted server, in the order in which they were opened.
pub type Fars = Arc<Mutex<Vec<Far>>>;

/// Polls jobs when it is asked to.
#[derive(Default)]
pub struct Jobs(Mutex<Vec<Job>>);

impl Spawner for Jobs {
    fn spawn(&self, job: Job) {
        self.0.lock().unwrap().push(job);
    }
}

impl Jobs {
    fn poll(&self) {
        let jobs = std::mem::take(&mut *self.0.lock().unwrap());
        let mut context = Context::from_waker(Waker::noop());
        let left = jobs.into_iter().filter_map(|mut job| {
            let polled = job.as_mut().poll(&mut context);
            polled.is_pending().then_some(job)
        });
        let left: Vec<_> = left.collect();
        self.0.lock().unwrap().extend(left);
    }
}

/// Middleware that keeps acknowledgements of streams back until the token is cancelled.
pub struct Gate(pub CancelToken);

impl Middleware for Gate {
    fn notice(&self, notification: ChainNotification) -> ChainNotice<'_> {
        Box::pin(async {
            if notification.method == "notifications/subscriptions/acknowledged" {
                self.0.cancelled().await;
            }
            Some(notification)
        })
    }
}

/// One client of the front.
pub struct Near {
    connection: Connection,
    host: ServerHost,
    stream: StreamId,
    pub lines: VecDeque<String>,
}

pub struct Rig {
    front: Front,
    pub hosting: Arc<dyn Hosting>,
    jobs: Arc<Jobs>,
    pub now: Instant,
    pub fars: Fars,
    pub nears: Vec<Near>,
    far_revision: Revision,
    /// The servers that do not answer requests which open connections.
    pub silent: Vec<&'static str>,
}

impl Rig {
    /// A front before a server of that revision, `hops` times.
    pub fn new(far_revision: Revision, hops: usize) -> Self {
        Self::with(far_revision, hops, |front| front)
    }

    pub fn with(far_revision: Revision, hops: usize, change: impl Fn(Front) -> Front) -> Self {
        Self::over(far_revision, hops, |external| change(Front::new(external)))
    }

    /// The same, with other settings of the server.
    pub fn over(far_revision: Revision, hops: usize, front: impl Fn(External) -> Front) -> Self {
        let (fars, now) = (Fars::default(), Instant::now());
        let mut front = front(external("far", far_revision, &fars, now));
        for _ in 1..hops {
            front = Front::new(External::chain("next", &front));
        }
        Self::before(front, (fars, now), far_revision)
    }

    /// A front before one server that `change` has changed.
    pub fn changing(far_revision: Revision, change: impl Fn(External) -> External) -> Self {
        let (fars, now) = (Fars::default(), Instant::now());
        let front = Front::new(change(external("far", far_revision, &fars, now)));
        Self::before(front, (fars, now), far_revision)
    }

    /// A front before several servers, each with its name, which is its prefix unless it is `plain`.
    pub fn joined(members: &[(&'static str, Revision)]) -> Self {
        Self::joined_with(members, |front| front)
    }

    pub fn joined_with(
        members: &[(&'static str, Revision)],
        change: impl Fn(Front) -> Front,
    ) -> Self {
        Self::joined_over(members, |external| external, change)
    }

    /// The same, with other settings of the servers and of the front.
    pub fn joined_over(
        members: &[(&'static str, Revision)],
        server: impl Fn(External) -> External,
        change: impl Fn(Front) -> Front,
    ) -> Self {
        let (fars, now) = (Fars::default(), Instant::now());
        let mut all = members.iter().map(|(name, revision)| {
            let external = server(external(name, *revision, &fars, now));
            match *name {
                "plain" => external,
                prefix => external.prefix(Prefix::new(prefix).unwrap()),
            }
        });
        let front = Front::new(all.next().unwrap());
        let front = all.fold(front, |front, external| front.join(external).unwrap());
        Self::before(change(front), (fars, now), Revision::NEWEST_HANDSHAKE)
    }

    fn before(front: Front, (fars, now): (Fars, Instant), far_revision: Revision) -> Self {
        let jobs = Arc::new(Jobs::default());
        Self {
            hosting: front.hosting(jobs.clone()),
            front,
            jobs,
            now,
            fars,
            nears: Vec::new(),
            far_revision,
            silent: Vec::new(),
        }
    }

    /// Another front before the server takes the place of this one, whose calls wait that long for their clients. Returns what hosts
    /// the one before.
    pub fn succeed(&mut self, patience: Duration) -> Arc<dyn Hosting> {
        let external = external("far", self.far_revision, &self.fars, self.now);
        self.front = Front::new(external).succeeding(&self.front, patience);
        let hosting = self.front.hosting(self.jobs.clone());
        std::mem::replace(&mut self.hosting, hosting)
    }

    /// The only connection to a server.
    #[track_caller]
    pub fn far(&self, name: &str) -> usize {
        let fars = self.fars.lock().unwrap();
        let mut found = (0..fars.len()).filter(|index| fars[*index].name == name);
        let far = found.next().unwrap();
        assert_eq!(found.next(), None, "several connections to {name}");
        far
    }

    /// The server answers the request that opens the connection.
    pub fn far_opens(&mut self, far: usize) {
        let opening = self.far_hears(far);
        let result = opened(&mut self.fars.lock().unwrap()[far], &opening);
        self.answer(far, &opening, &result.unwrap());
    }

    /// Adds a client. In the stateless era over HTTP (`Framing::Whole`), each request has a connection of its own.
    pub fn connect(&mut self, framing: Framing) -> usize {
        let mut connection = Connection::new(self.hosting.config().clone(), self.now);
        let stream = connection.open_stream(framing);
        let host = self.hosting.host(connection.handle(), None);
        self.nears.push(Near {
            connection,
            host,
            stream,
            lines: VecDeque::new(),
        });
        self.nears.len() - 1
    }

    /// Adds a client of the handshake era and opens its session.
    pub fn open(&mut self, revision: Revision, capabilities: &Value) -> usize {
        self.open_and_hear_listen(revision, capabilities).0
    }

    /// The same, and the request with which the front listens to a server of the stateless era.
    pub fn open_and_hear_listen(
        &mut self,
        revision: Revision,
        capabilities: &Value,
    ) -> (usize, Value) {
        let near = self.connect(Framing::Line);
        let info = json!({"name": "near", "version": "1"});
        let params = json!({"protocolVersion": revision.name(), "capabilities": capabilities, "clientInfo": info});
        self.say(near, &request("open", "initialize", &params));
        let opened = self.hear(near);
        assert_eq!(
            opened["result"]["protocolVersion"],
            revision.name(),
            "{opened}"
        );
        self.say(
            near,
            r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
        );
        if self.far_revision.era() == Era::Stateless {
            // The front listens to the lists on behalf of the client.
            let last = self.fars.lock().unwrap().len() - 1;
            let listen = self.far_hears(last);
            assert_eq!(listen["method"], "subscriptions/listen");
            return (near, listen);
        }
        (near, Value::Null)
    }

    /// The client says a line.
    pub fn say(&mut self, near: usize, line: &str) {
        let near = &mut self.nears[near];
        let input = near.connection.input(near.stream);
        input.extend(line.as_bytes());
        input.extend(b"\n");
        near.connection
            .receive(near.stream, self.now, &mut near.host);
        self.step();
    }

    /// The whole body of an HTTP request.
    pub fn post(&mut self, line: &str) -> usize {
        let index = self.connect(Framing::Whole);
        let near = &mut self.nears[index];
        near.connection.input(near.stream).extend(line.as_bytes());
        near.connection
            .receive_end(near.stream, self.now, &mut near.host);
        self.step();
        index
    }

    /// The client is gone.
    pub fn leave(&mut self, near: usize) {
        let near = &mut self.nears[near];
        near.connection
            .close(ConnectionError::ClosedByPeer, &mut near.host);
        self.step();
    }

    /// The server says a line on that connection.
    pub fn far_says(&mut self, far: usize, line: &str) {
        self.fars.lock().unwrap()[far].say(line, self.now);
        self.step();
    }

    /// The server says a line on the stream of one of its requests.
    pub fn far_says_within(&mut self, far: usize, request: &Value, line: &str) {
        let request = request["id"].as_u64();
        self.fars.lock().unwrap()[far].say_within(request, line, self.now);
        self.step();
    }

    /// The connection to the server breaks.
    pub fn break_off(&mut self, far: usize) {
        self.far_closes(far);
        self.carrier_ends(far);
    }

    /// The server ends the connection, before what carries it has ended.
    pub fn far_closes(&mut self, far: usize) {
        self.fars.lock().unwrap()[far].close();
        self.step();
    }

    /// The server has forgotten the session of the connection, and begins another one.
    pub fn session_ends(&mut self, far: usize) {
        self.fars.lock().unwrap()[far].session_ends(self.now);
    }

    /// Whether the transport would still send that request.
    pub fn is_awaited(&mut self, far: usize, request: &Value) -> bool {
        self.fars.lock().unwrap()[far].may_send(request, self.now)
    }

    /// What carries the connection to the server has ended: for a command, its process.
    pub fn carrier_ends(&mut self, far: usize) {
        self.fars.lock().unwrap()[far].host = ClientHost::new();
        self.step();
    }

    /// Time passes.
    pub fn pass(&mut self, time: Duration) {
        self.now += time;
        self.step();
    }

    /// Moves everything as far as it goes.
    pub fn step(&mut self) {
        loop {
            self.jobs.poll();
            let mut moved = false;
            for near in &mut self.nears {
                near.connection.handle_submissions(self.now, &mut near.host);
                if near
                    .connection
                    .poll_timeout()
                    .is_some_and(|due| due <= self.now)
                {
                    near.connection.handle_timeout(self.now, &mut near.host);
                }
                let said = drain(&mut near.connection, near.stream);
                moved |= !said.is_empty();
                near.lines.extend(said);
            }
            let count = self.fars.lock().unwrap().len();
            for index in 0..count {
                moved |= self.step_far(index);
            }
            if !moved {
                return;
            }
        }
    }

    fn step_far(&mut self, index: usize) -> bool {
        let mut fars = self.fars.lock().unwrap();
        let is_silent = self.silent.contains(&fars[index].name);
        let Far {
            connection,
            host,
            stream,
            ..
        } = &mut fars[index];
        let stream = *stream;
        connection.handle_submissions(self.now, host);
        if connection.poll_timeout().is_some_and(|due| due <= self.now) {
            connection.handle_timeout(self.now, host);
        }
        let said = drain(connection, stream);
        let moved = !said.is_empty();
        for line in said {
            // A line with a lone surrogate is no value, and opens nothing.
            let message: Value = serde_json::from_str(&line).unwrap_or_default();
            if message["method"] == "notifications/initialized" {
                continue;
            }
            let far = &mut fars[index];
            match opened(far, &message).filter(|_| !is_silent) {
                None => far.lines.push_back(line),
                Some(result) => {
                    let answer = json!({"jsonrpc": "2.0", "id": message["id"], "result": result});
                    far.say(&answer.to_string(), self.now);
                }
            }
        }
        moved
    }

    /// The next line that the client hears; waits for the threads of further hops.
    #[track_caller]
    pub fn hear_line(&mut self, near: usize) -> String {
        self.wait(|rig| rig.nears[near].lines.pop_front())
    }

    #[track_caller]
    pub fn hear(&mut self, near: usize) -> Value {
        serde_json::from_str(&self.hear_line(near)).unwrap()
    }

    /// The next line that the server hears on that connection.
    #[track_caller]
    pub fn far_line(&mut self, far: usize) -> String {
        self.wait(|rig| rig.fars.lock().unwrap().get_mut(far)?.lines.pop_front())
    }

    #[track_caller]
    pub fn far_hears(&mut self, far: usize) -> Value {
        serde_json::from_str(&self.far_line(far)).unwrap()
    }

    /// The server answers a request that it heard.
    pub fn answer(&mut self, far: usize, request: &Value, result: &Value) {
        let answer = json!({"jsonrpc": "2.0", "id": request["id"], "result": result});
        self.far_says(far, &answer.to_string());
    }

    #[track_caller]
    fn wait<T>(&mut self, mut find: impl FnMut(&mut Self) -> Option<T>) -> T {
        let begun = Instant::now();
        loop {
            self.step();
            if let Some(found) = find(self) {
                return found;
            }
            assert!(begun.elapsed() < Duration::from_secs(10), "nothing came");
            std::thread::sleep(Duration::from_micros(200));
        }
    }

    /// The client has heard nothing more.
    #[track_caller]
    pub fn assert_is_waiting(&mut self, near: usize) {
        assert!(self.is_waiting(near));
    }

    /// Whether there is nothing more for the client to hear.
    pub fn is_waiting(&mut self, near: usize) -> bool {
        self.step();
        self.nears[near].lines.is_empty()
    }

    /// The servers have heard nothing more.
    #[track_caller]
    pub fn assert_far_heard_nothing(&self) {
        for far in self.fars.lock().unwrap().iter() {
            assert!(far.lines.is_empty(), "{:?}", far.lines);
        }
    }

    /// Nothing that was said is left, but for streams that the front listens to.
    #[track_caller]
    pub fn assert_only_listens(&mut self) {
        self.step();
        for far in self.fars.lock().unwrap().iter_mut() {
            far.lines
                .retain(|line| !line.contains("subscriptions/listen"));
        }
        self.assert_quiet();
    }

    /// Nothing that was said is left.
    #[track_caller]
    pub fn assert_quiet(&mut self) {
        self.step();
        for near in &self.nears {
            assert!(near.lines.is_empty(), "{:?}", near.lines);
        }
        self.assert_far_heard_nothing();
    }
}

fn drain(connection: &mut Connection, stream: StreamId) -> Vec<String> {
    let pieces = connection.output(stream).take();
    let bytes: Vec<u8> = pieces.flatten().collect();
    let text = String::from_utf8(bytes).unwrap();
    // Over HTTP, messages follow one another without line ends.
    let mut values = serde_json::Deserializer::from_str(&text).into_iter::<IgnoredAny>();
    let mut lines = Vec::new();
    let mut from = 0;
    while let Some(value) = values.next() {
        value.unwrap_or_else(|error| panic!("{error}: {text}"));
        let to = values.byte_offset();
        lines.push(text[from..to].trim().to_owned());
        from = to;
    }
    lines
}

/// A link to a scripted server.
fn external(name: &'static str, revision: Revision, fars: &Fars, now: Instant) -> External {
    let all = fars.clone();
    let link = move |client: ClientBuilder| {
        let (config, prepared) = client.prepare().unwrap();
        let mut connection = Connection::new(Arc::new(config), now);
        let stream = connection.open_stream(Framing::Line);
        let spawner: Arc<dyn Spawner> = Arc::new(Jobs::default());
        let (client, host) = prepared.connect(connection.handle(), spawner);
        all.lock().unwrap().push(Far {
            name,
            revision,
            connection,
            host,
            stream,
            lines: VecDeque::new(),
            capabilities: Value::Null,
        });
        let opened = async move {
            client
                .handle()
                .opened()
                .await
                .map_err(std::io::Error::other)?;
            Ok::<Client, std::io::Error>(client)
        };
        Box::pin(opened) as _
    };
    External::new(name, link).revisions(Revisions::only(revision))
}

/// The answer to a request that opens a connection.
fn opened(far: &mut Far, message: &Value) -> Option<Value> {
    let revision = far.revision.name();
    match message["method"].as_str()? {
        "initialize" => {
            far.capabilities = message["params"]["capabilities"].clone();
            Some(
                json!({"protocolVersion": revision, "capabilities": offer(), "serverInfo": server()}),
            )
        }
        "server/discover" => Some(
            json!({"supportedVersions": [revision], "capabilities": offer(), "resultType": "complete", "ttlMs": 0, "cacheScope": "private", "_meta": {meta::SERVER_INFO: server()}}),
        ),
        _ => None,
    }
}

fn offer() -> Value {
    let changes = json!({"listChanged": true});
    json!({"tools": changes, "prompts": changes, "resources": {"subscribe": true, "listChanged": true}, "logging": {}, "completions": {}})
}

fn server() -> Value {
    json!({"name": "script", "version": "1"})
}

/// A request as a line.
pub fn request(id: impl Into<Value>, method: &str, params: &Value) -> String {
    json!({"jsonrpc": "2.0", "id": id.into(), "method": method, "params": params}).to_string()
}

/// The same in the stateless era, of a client with these capabilities.
pub fn stateless(
    id: impl Into<Value>,
    method: &str,
    params: Value,
    capabilities: &Value,
) -> String {
    let mut params = params;
    params["_meta"][meta::PROTOCOL_VERSION] = Revision::NEWEST.name().into();
    params["_meta"][meta::CLIENT_CAPABILITIES] = capabilities.clone();
    request(id, method, &params)
}
