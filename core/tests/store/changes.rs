//! Changes of lists and resources, told to the clients of other processes.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http_body_util::BodyExt as _;
use hyper::{Method, Response};
use mcpbolt::io::http::{HttpBody, HttpOptions, HttpServer, HttpService, SharedSessions};
use mcpbolt::server::{Arguments, HandlerError, Resource, Server as McpServer, Tool};
use mcpbolt::store::{LogBounds, SealedStore, SharedStore, StoreKeys};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::time::{Instant, sleep};

use crate::http::send;
use crate::servers::{Program, Server};
use crate::stores::{LONG, SOON, Store, on_every_store, open};

const NOTES: usize = 50;

/// One process of a server with notes, which change.
struct Process {
    server: McpServer,
    at: HttpService,
}

fn keys(sealing: u8) -> Arc<StoreKeys> {
    Arc::new(StoreKeys::new([1; 32], [sealing; 32]))
}

fn sharing(store: Store) -> HttpOptions {
    HttpOptions {
        shared_sessions: Some(SharedSessions::new(store, keys(2))),
        ..HttpOptions::default()
    }
}

impl Process {
    fn new(store: Store) -> Self {
        let notes = (0..NOTES).fold(McpServer::builder("notes", "1.0.0"), |server, n| {
            let read = |_: String, _| async { Ok::<_, HandlerError>("a note") };
            server.resource(Resource::new(note(n), format!("note {n}")), read)
        });
        let server = notes.list_changes().subscriptions().build().unwrap();
        let at = HttpService::new(&server, sharing(store)).unwrap();
        Self { server, at }
    }

    /// Changes the list of tools.
    fn offer(&self, tool: &str) {
        let changed = self
            .server
            .change(|offer| offer.tool(Tool::new(tool), |_: Arguments, _| async { "done" }));
        changed.unwrap();
    }
}

pub fn note(n: usize) -> String {
    format!("note:{n}")
}

/// What a client hears: how often each notification came.
#[derive(Clone, Default)]
pub struct Heard(Arc<Mutex<BTreeMap<String, usize>>>);

impl Heard {
    /// Reads the events of a response, in a task of its own.
    pub fn of(response: Response<HttpBody>) -> Self {
        assert_eq!(response.status(), 200);
        let heard = Self::default();
        let told = heard.clone();
        tokio::spawn(async move {
            let (mut body, mut open) = (response.into_body(), String::new());
            while let Some(Ok(frame)) = body.frame().await {
                open += std::str::from_utf8(&frame.into_data().unwrap()).unwrap();
                while let Some(end) = open.find("\n\n") {
                    let event: String = open.drain(..end + 2).collect();
                    let data = event.lines().find_map(|line| line.strip_prefix("data: "));
                    let Some(data) = data.filter(|data| !data.is_empty()) else {
                        continue;
                    };
                    let message: Value = serde_json::from_str(data).unwrap();
                    let method = message["method"].as_str().unwrap();
                    let uri = message["params"]["uri"].as_str().unwrap_or_default();
                    let mut told = told.0.lock().unwrap();
                    *told.entry(format!("{method} {uri}")).or_default() += 1;
                }
            }
        });
        heard
    }

    pub fn times(&self, method: &str, uri: &str) -> usize {
        let key = format!("{method} {uri}");
        self.0.lock().unwrap().get(&key).copied().unwrap_or(0)
    }

    pub fn updates(&self, n: usize) -> usize {
        self.times("notifications/resources/updated", &note(n))
    }

    fn changed_tools(&self) -> usize {
        self.times("notifications/tools/list_changed", "")
    }
}

pub async fn until(what: &str, is_so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < SOON, "{what}");
        sleep(Duration::from_millis(2)).await;
    }
}

/// A client of 2025-11-25 that has subscribed to all notes.
async fn subscriber(at: &HttpService) -> Heard {
    let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": {"name": "reader", "version": "1"}}});
    let begun = send(at, Method::POST, &[], &hello).await;
    let session = begun.headers()["mcp-session-id"]
        .to_str()
        .unwrap()
        .to_owned();
    let own = [("Mcp-Session-Id", &*session)];
    let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    assert_eq!(send(at, Method::POST, &own, &ready).await.status(), 202);
    let heard = Heard::of(send(at, Method::GET, &own, &Value::Null).await);
    for n in 0..NOTES {
        let subscribe = json!({"jsonrpc": "2.0", "id": 1, "method": "resources/subscribe",
            "params": {"uri": note(n)}});
        assert_eq!(send(at, Method::POST, &own, &subscribe).await.status(), 200);
    }
    heard
}

/// A client of 2026-07-28 that listens to all notes.
async fn listener(at: &HttpService) -> Heard {
    let notes: Vec<_> = (0..NOTES).map(note).collect();
    let listen = json!({"jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen", "params": {
        "notifications": {"toolsListChanged": true, "resourceSubscriptions": notes}, "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "reader", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {}}}});
    let head = [
        ("MCP-Protocol-Version", "2026-07-28"),
        ("Mcp-Method", "subscriptions/listen"),
    ];
    Heard::of(send(at, Method::POST, &head, &listen).await)
}

/// Tells of a change until all have heard of it, as processes only hear of each other once they have begun.
async fn acquainted(teller: &Process, all: &[&Heard]) {
    let begun = Instant::now();
    while !all.iter().all(|heard| heard.updates(0) > 0) {
        assert!(begun.elapsed() < SOON, "nobody hears of anything");
        teller.server.resource_updated(&note(0));
        sleep(Duration::from_millis(10)).await;
    }
}

/// R-RES-06, R-SUB-05, R-TOL-07: a change that one process tells reaches the clients of all, once.
#[test]
fn clients_of_every_process_hear_of_a_change() {
    on_every_store(async |world| {
        let [one, two] = [(); 2].map(|()| Process::new(world.connect()));
        let (near, far) = (subscriber(&one.at).await, subscriber(&two.at).await);
        let listening = listener(&two.at).await;
        let all = [&near, &far, &listening];
        acquainted(&one, &all).await;
        acquainted(&two, &all).await;
        for n in 1..NOTES {
            let teller = if n % 2 == 0 { &one } else { &two };
            teller.server.resource_updated(&note(n));
        }
        let heard_all = || (1..NOTES).all(|n| all.iter().all(|heard| heard.updates(n) > 0));
        until("every update", heard_all).await;
        one.offer("first");
        until("the tools of one", || {
            all.iter().all(|it| it.changed_tools() > 0)
        })
        .await;
        for heard in all {
            let times: Vec<_> = (1..NOTES).map(|n| heard.updates(n)).collect();
            assert!(times.iter().all(|times| *times == 1), "{times:?}");
            assert_eq!(heard.changed_tools(), 1);
            // Nobody is told of lists that have not changed.
            assert_eq!(heard.times("notifications/prompts/list_changed", ""), 0);
        }
    });
}

/// A process that listens tells of changes before it has had a request.
#[test]
fn a_process_without_requests_tells_of_changes() {
    on_every_store(async |world| {
        let [one, two] = [(); 2].map(|()| Process::new(world.connect()));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let listening = HttpServer::on(listener, one.at.clone());
        let serving = tokio::spawn(listening.run(std::future::pending()));
        acquainted(&one, &[&subscriber(&two.at).await]).await;
        serving.abort();
    });
}

/// Of a server at several addresses, changes are told as long as there is one.
#[test]
fn changes_are_told_by_another_address_when_the_first_is_gone() {
    on_every_store(async |world| {
        let [mut one, two] = [(); 2].map(|()| Process::new(world.connect()));
        let far = subscriber(&two.at).await;
        drop(subscriber(&one.at).await);
        let other = HttpService::new(&one.server, sharing(world.connect())).unwrap();
        let near = subscriber(&other).await;
        one.at = other;
        acquainted(&one, &[&near, &far]).await;
        acquainted(&two, &[&near, &far]).await;
    });
}

/// While keys are replaced, a process may be told what it cannot read: then everything may have changed, and what follows is
/// heard.
#[test]
fn a_change_that_cannot_be_read_holds_back_no_other() {
    on_every_store(async |world| {
        let [one, two] = [(); 2].map(|()| Process::new(world.connect()));
        let all = [&subscriber(&one.at).await, &subscriber(&two.at).await];
        acquainted(&one, &all).await;
        let stranger = SealedStore::new(world.connect(), keys(3));
        let bounds = LogBounds {
            entries: 1_000,
            bytes: 1 << 20,
            keep: LONG,
        };
        let told = stranger.append("changes", b"{}", bounds, 0).await;
        told.unwrap();
        until("everything", || {
            all.iter().all(|heard| heard.changed_tools() > 0)
        })
        .await;
        one.server.resource_updated(&note(9));
        until("a later change", || {
            all.iter().all(|heard| heard.updates(9) > 1)
        })
        .await;
    });
}

/// What the store has lost is told as a change of everything, and what it could not take is told when it is back.
#[test]
fn clients_look_again_when_the_store_is_back() {
    let runtime = Runtime::new().unwrap();
    for program in Program::ALL {
        let mut store = Server::start(program, &[]);
        runtime.block_on(async {
            let [one, two] = [(); 2].map(|()| Process::new(Arc::new(open(&store.url()))));
            let (near, far) = (subscriber(&one.at).await, listener(&two.at).await);
            acquainted(&one, &[&near, &far]).await;
            store.kill();
            one.server.resource_updated(&note(7));
            until("its own client", || near.updates(7) == 1).await;
            assert_eq!(far.updates(7), 0);
            store.start_again();
            until("the other process", || far.updates(7) > 0).await;
            // Everything may have changed, since the log is another one.
            until("the tools", || far.changed_tools() > 0).await;
        });
    }
}
