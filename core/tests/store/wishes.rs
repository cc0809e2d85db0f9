//! What a client has asked for in its session, where the session goes on: subscriptions and the log level.

use std::sync::Arc;
use std::time::Duration;

use http_body_util::BodyExt as _;
use hyper::{Method, Response};
use mcpbolt::chain::{External, Front};
use mcpbolt::io::http::{HttpBody, HttpOptions, HttpService, SharedSessions};
use mcpbolt::io::{Workers, WorkersConfig};
use mcpbolt::limits::Rate;
use mcpbolt::mcp::LogLevel;
use mcpbolt::policy::Policy;
use mcpbolt::server::{Arguments, Context, HandlerError, Resource, Server as McpServer, Tool};
use mcpbolt::store::{LocalStore, StoreKeys, When};
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use tokio::sync::Semaphore;
use tokio::time::timeout;

use crate::answers::{Answer, Answering};
use crate::changes::{Heard, note, until};
use crate::http::send;
use crate::servers::{Program, Server};
use crate::stores::{SOON, Store, on_every_store, open};

/// How many notes a client subscribes to; more than its rate allows at once, and than a process asks for at once.
const NOTES: usize = 100;
/// How many of the first ones it does not want any more.
const ENDED: usize = 3;

/// A process of a server with notes, and a tool that logs.
struct Process {
    server: McpServer,
    at: HttpService,
}

impl Process {
    fn new(store: Store) -> Self {
        Self::with(store, Policy::new())
    }

    fn with(store: Store, policy: Policy) -> Self {
        let log = |_: Arguments, context: Context| async move {
            for level in [LogLevel::Debug, LogLevel::Warning] {
                context.log(level, None, &json!(level.name()));
            }
            "done"
        };
        let notes = (0..NOTES).fold(McpServer::builder("notes", "1.0.0"), |server, n| {
            let read = |_: String, _| async { Ok::<_, HandlerError>("a note") };
            server.resource(Resource::new(note(n), format!("note {n}")), read)
        });
        let notes = notes.subscriptions().tool(Tool::new("log"), log);
        let server = notes.policy(policy).build().unwrap();
        let at = HttpService::new(&server, sharing(store)).unwrap();
        Self { server, at }
    }

    /// A front of the server, whose sessions have connections of their own to it.
    fn behind_front(store: Store) -> Self {
        Self::behind_limited_front(store, Policy::new())
    }

    fn behind_limited_front(store: Store, policy: Policy) -> Self {
        let Self { server, .. } = Self::new(store.clone());
        let front = Front::new(External::server("notes", &server)).policy(policy);
        let hosting = front.hosting(Arc::new(Workers::new(WorkersConfig::default())));
        let at = HttpService::hosting(hosting, sharing(store)).unwrap();
        Self { server, at }
    }
}

fn sharing(store: Store) -> HttpOptions {
    let keys = Arc::new(StoreKeys::new([1; 32], [2; 32]));
    HttpOptions {
        shared_sessions: Some(SharedSessions::new(store, keys)),
        ..HttpOptions::default()
    }
}

fn hello(revision: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": revision, "capabilities": {},
        "clientInfo": {"name": "reader", "version": "1"}}})
}

/// A session of a client.
struct Session(String);

impl Session {
    async fn begin(at: &HttpService, revision: &str) -> Self {
        let begun = send(at, Method::POST, &[], &hello(revision)).await;
        let id = begun.headers()["mcp-session-id"].to_str().unwrap();
        let session = Self(id.to_owned());
        let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        assert_eq!(session.send(at, Method::POST, &ready).await.status(), 202);
        session
    }

    async fn send(&self, at: &HttpService, method: Method, message: &Value) -> Response<HttpBody> {
        send(at, method, &[("Mcp-Session-Id", &*self.0)], message).await
    }

    /// The answer to a request, with what comes before it.
    async fn ask(&self, at: &HttpService, method: &str, params: Value) -> String {
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let answer = self.send(at, Method::POST, &message).await;
        let body = answer.into_body().collect().await.unwrap().to_bytes();
        String::from_utf8(body.to_vec()).unwrap()
    }

    async fn subscribe(&self, at: &HttpService, method: &str, n: usize) {
        let method = format!("resources/{method}");
        let answer = self.ask(at, &method, json!({"uri": note(n)})).await;
        assert!(answer.contains("\"result\""), "{answer}");
    }

    /// The levels of what the tool logs.
    async fn logged(&self, at: &HttpService) -> Vec<&'static str> {
        let call = json!({"name": "log", "arguments": {}});
        let answer = self.ask(at, "tools/call", call).await;
        assert!(answer.contains("done"), "{answer}");
        let levels = ["debug", "warning"].into_iter();
        levels
            .filter(|level| answer.contains(&format!("\"level\":\"{level}\"")))
            .collect()
    }

    async fn listen(&self, at: &HttpService) -> Heard {
        Heard::of(self.send(at, Method::GET, &Value::Null).await)
    }
}

/// Has a process tell of every note. Returns those that a client hears of, which come in order.
async fn heard_notes(teller: &Process, heard: &Heard) -> Vec<usize> {
    for n in 0..NOTES {
        teller.server.resource_updated(&note(n));
    }
    until("the last note", || heard.updates(NOTES - 1) > 0).await;
    (0..NOTES).filter(|n| heard.updates(*n) > 0).collect()
}

/// R-RES-06, R-RES-07, R-LOG-02: subscriptions and the log level go on with a session, in every revision that has sessions.
#[test]
fn subscriptions_and_the_log_level_go_on_with_their_session() {
    on_every_store(async |world| {
        for revision in ["2025-03-26", "2025-06-18", "2025-11-25"] {
            let all = [(); 3].map(|()| Process::new(world.connect()));
            let [one, two, three] = &all;
            let session = Session::begin(&one.at, revision).await;
            for n in 0..NOTES - 1 {
                session.subscribe(&one.at, "subscribe", n).await;
            }
            for n in 0..ENDED {
                session.subscribe(&one.at, "unsubscribe", n).await;
            }
            let refused = session.ask(&one.at, "resources/subscribe", json!({"uri": "no:1"}));
            assert!(refused.await.contains("\"error\""));
            assert_eq!(session.logged(&one.at).await, ["warning"]);
            // What a client asks for elsewhere is added.
            session.subscribe(&two.at, "subscribe", NOTES - 1).await;
            let level = |level: &str| json!({ "level": level });
            session
                .ask(&two.at, "logging/setLevel", level("debug"))
                .await;
            for process in [three, two] {
                assert_eq!(session.logged(&process.at).await, ["debug", "warning"]);
                let heard = session.listen(&process.at).await;
                let notes: Vec<_> = (ENDED..NOTES).collect();
                assert_eq!(heard_notes(process, &heard).await, notes);
            }
            // A process that has the session looks when its client listens there.
            assert_eq!(session.logged(&one.at).await, ["warning"]);
            let heard = session.listen(&one.at).await;
            heard_notes(one, &heard).await;
            assert_eq!(session.logged(&one.at).await, ["debug", "warning"]);
        }
    });
}

/// What a client does not want any more while its process asks the store what it has asked for elsewhere, stays so; and what it
/// has asked for before is not asked for once more.
#[test]
fn what_a_client_does_not_want_any_more_does_not_come_back() {
    Runtime::new().unwrap().block_on(async {
        let store: Store = Arc::new(LocalStore::new());
        let two = Process::new(store.clone());
        let [waits, reads, goes_on] = [(); 3].map(|()| Arc::new(Semaphore::new(0)));
        let answer = {
            let (waits, reads, goes_on) = (waits.clone(), reads.clone(), goes_on.clone());
            move |_: &str, when: Option<When>| match waits.try_acquire() {
                Ok(one) if when.is_none() => {
                    one.forget();
                    Answer::Waits(reads.clone(), goes_on.clone())
                }
                _ => Answer::Comes,
            }
        };
        let one = Process::new(Arc::new(Answering { store, answer }));
        let session = Session::begin(&one.at, "2025-11-25").await;
        session.subscribe(&one.at, "subscribe", 0).await;
        session.subscribe(&two.at, "subscribe", NOTES - 1).await;
        waits.add_permits(1);
        let listens = session.listen(&one.at);
        let meanwhile = async {
            reads.acquire().await.unwrap().forget();
            let asked = session.subscribe(&one.at, "unsubscribe", 0);
            // The answer may wait for the other one.
            let mut asked = std::pin::pin!(asked);
            let _ = timeout(Duration::from_millis(500), &mut asked).await;
            goes_on.add_permits(1);
            asked.await;
        };
        let (heard, ()) = timeout(SOON, async { tokio::join!(listens, meanwhile) })
            .await
            .unwrap();
        assert_eq!(heard_notes(&one, &heard).await, [NOTES - 1]);
    });
}

/// R-CHN-07: the server behind a front is asked again by the process where the session goes on.
#[test]
fn what_a_client_wants_of_a_server_behind_goes_on() {
    on_every_store(async |world| {
        let [one, two] = [(); 2].map(|()| Process::behind_front(world.connect()));
        let session = Session::begin(&one.at, "2025-11-25").await;
        for n in [3, 5, NOTES - 1] {
            session.subscribe(&one.at, "subscribe", n).await;
        }
        session.subscribe(&one.at, "unsubscribe", 3).await;
        let level = json!({"level": "warning"});
        session.ask(&one.at, "logging/setLevel", level).await;
        assert_eq!(session.logged(&two.at).await, ["warning"]);
        let heard = session.listen(&two.at).await;
        assert_eq!(heard_notes(&two, &heard).await, [5, NOTES - 1]);
    });
}

/// R-SES-06: nothing is left of a session that has ended, except that it has.
#[test]
fn a_session_that_subscribes_ends_everywhere() {
    on_every_store(async |world| {
        let [one, two] = [(); 2].map(|()| Process::new(world.connect()));
        let session = Session::begin(&one.at, "2025-11-25").await;
        session.subscribe(&one.at, "subscribe", 0).await;
        let ended = session.send(&one.at, Method::DELETE, &Value::Null).await;
        assert_eq!(ended.status(), 204);
        let late = session.send(&two.at, Method::GET, &Value::Null).await;
        assert_eq!(late.status(), 404);
    });
}

/// R-S14-05: a client has been counted when it subscribed.
#[test]
fn what_goes_on_counts_against_no_rate() {
    on_every_store(async |world| {
        let rate = Rate {
            burst: NOTES as u32 / 2,
            per_second: 1,
        };
        let slow = || Policy::new().rate(rate);
        for policy in [slow(), slow().share(world.connect())] {
            let one = Process::new(world.connect());
            let two = Process::with(world.connect(), policy);
            let session = Session::begin(&one.at, "2025-11-25").await;
            for n in 0..NOTES {
                session.subscribe(&one.at, "subscribe", n).await;
            }
            let heard = session.listen(&two.at).await;
            assert_eq!(heard_notes(&two, &heard).await.len(), NOTES);
        }
    });
}

/// R-S14-05, R-SES-01: a front counts what begins a session, which then has no id if it is refused; what begins it again at another
/// process counts against no rate.
#[test]
fn a_session_that_a_front_refuses_has_no_id() {
    on_every_store(async |world| {
        let rate = Rate {
            burst: 1,
            per_second: 0,
        };
        let once = || Policy::new().rate(rate);
        for policy in [once(), once().share(world.connect())] {
            let one = Process::behind_front(world.connect());
            let two = Process::behind_limited_front(world.connect(), policy);
            let session = Session::begin(&one.at, "2025-11-25").await;
            let answer = session.ask(&two.at, "tools/list", json!({})).await;
            assert!(answer.contains("\"log\""), "{answer}");
            let refused = send(&two.at, Method::POST, &[], &hello("2025-11-25")).await;
            assert_eq!(refused.status(), 429);
            assert!(!refused.headers().contains_key("mcp-session-id"));
            assert_eq!(two.at.metrics().counts().open_sessions, 1);
        }
    });
}

/// While the store is away, a client has what it asks for at its process, and elsewhere when the store is back.
#[test]
fn what_a_client_wants_follows_when_the_store_is_back() {
    let runtime = Runtime::new().unwrap();
    let mut store = Server::start(Program::Valkey, &[]);
    runtime.block_on(async {
        let connect = || Process::new(Arc::new(open(&store.url())));
        let one = connect();
        let session = Session::begin(&one.at, "2025-11-25").await;
        let heard = session.listen(&one.at).await;
        store.kill();
        session.subscribe(&one.at, "subscribe", NOTES - 1).await;
        session.subscribe(&one.at, "subscribe", 0).await;
        session.subscribe(&one.at, "unsubscribe", 0).await;
        assert_eq!(heard_notes(&one, &heard).await, [NOTES - 1]);
        store.start_again();
        let begun = tokio::time::Instant::now();
        loop {
            let two = Process::new(Arc::new(open(&store.url())));
            let heard = session.listen(&two.at).await;
            for n in 0..NOTES {
                two.server.resource_updated(&note(n));
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
            if heard.updates(NOTES - 1) > 0 {
                assert_eq!(heard.updates(0), 0);
                return;
            }
            assert!(begun.elapsed() < SOON, "the store is never told");
        }
    });
}
