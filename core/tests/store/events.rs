//! Streams of sessions over HTTP that break off at one process and go on at another.

use std::sync::Arc;
use std::time::Duration;

use http_body_util::BodyExt as _;
use hyper::Method;
use mcpbolt::io::http::{HttpOptions, HttpService, SharedSessions};
use mcpbolt::server::{Arguments, Context, Server, Tool};
use mcpbolt::store::StoreKeys;
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::http::send;
use crate::stores::{Chance, SOON, Store, on_every_store};

/// Processes that a client may reach.
const PROCESSES: u64 = 3;
/// Clients at a time.
const CLIENTS: u64 = 16;

/// How often a stream is tried on each store; `MCPBOLT_TRIALS` sets it.
fn trials() -> u64 {
    let given = std::env::var("MCPBOLT_TRIALS").ok();
    given.map_or(1_000, |trials| trials.parse().unwrap())
}

/// A process with a tool that tells of its steps, at once or after pauses.
fn process(store: Store) -> HttpService {
    let steps = |arguments: Arguments, context: Context| async move {
        let arguments: Value = serde_json::from_str(&arguments.0).unwrap();
        let pauses = arguments["pauses"].as_array().unwrap();
        for (step, pause) in (1_u32..).zip(pauses) {
            let pause = pause.as_u64().unwrap();
            if pause > 0 {
                context.sleep(Duration::from_micros(pause)).await;
            }
            context.progress(f64::from(step), None, None);
        }
        "done"
    };
    let server = Server::builder("steps", "1.0.0").tool(Tool::new("steps"), steps);
    let keys = Arc::new(StoreKeys::new([1; 32], [2; 32]));
    let options = HttpOptions {
        shared_sessions: Some(SharedSessions::new(store, keys)),
        ..HttpOptions::default()
    };
    HttpService::new(&server.build().unwrap(), options).unwrap()
}

/// What a client has of one stream.
#[derive(Default)]
struct Received {
    last: Option<String>,
    steps: Vec<u64>,
    answers: u64,
    /// What came of the next event.
    open: String,
}

impl Received {
    fn take(&mut self, piece: &[u8]) {
        self.open += std::str::from_utf8(piece).unwrap();
        while let Some(end) = self.open.find("\n\n") {
            let event: String = self.open.drain(..end + 2).collect();
            let field = |name| event.lines().find_map(|line| line.strip_prefix(name));
            if let Some(id) = field("id: ") {
                self.last = Some(id.to_owned());
            }
            let Some(message) = field("data: ").filter(|data| !data.is_empty()) else {
                continue;
            };
            let message: Value = serde_json::from_str(message).unwrap();
            match message["params"]["progress"].as_f64() {
                Some(step) => self.steps.push(step as u64),
                None => {
                    assert_eq!(message["result"]["content"][0]["text"], "done", "{message}");
                    self.answers += 1;
                }
            }
        }
    }
}

/// One call whose stream breaks off at random and goes on at random processes.
async fn trial(all: &[HttpService], session: &str, chance: &mut Chance) {
    let count = 1 + chance.below(12);
    let pauses: Vec<u64> = (0..count)
        .map(|_| match chance.below(3) {
            0 => chance.below(3_000),
            _ => 0,
        })
        .collect();
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
        "name": "steps", "arguments": {"pauses": pauses}, "_meta": {"progressToken": 1}}});
    let own = ("Mcp-Session-Id", session);
    let at = |chance: &mut Chance| &all[chance.below(PROCESSES) as usize];
    let mut response = send(at(chance), Method::POST, &[own], &call).await;
    let mut received = Received::default();
    // Connections whose end their process does not notice.
    let mut stale = Vec::new();
    for resumed in 0.. {
        assert_eq!(response.status(), 200, "resumed {resumed} times");
        let mut pieces = match chance.below(3) {
            0 => chance.below(3),
            1 => chance.below(20),
            _ => u64::MAX,
        };
        let mut body = response.into_body();
        // Without an id there is nothing to resume.
        while pieces > 0 || received.last.is_none() {
            pieces = pieces.saturating_sub(1);
            let Some(frame) = body.frame().await else {
                break;
            };
            received.take(&frame.unwrap().into_data().unwrap());
        }
        if received.answers > 0 {
            break;
        }
        assert!(resumed < 1_000, "{:?} of {count}", received.steps);
        if chance.below(2) == 0 {
            stale.push(body);
        }
        received.open.clear();
        let last = received.last.clone().expect("an id");
        let from = [own, ("Last-Event-ID", &*last)];
        response = send(at(chance), Method::GET, &from, &Value::Null).await;
    }
    let wanted: Vec<u64> = (1..=count).collect();
    assert_eq!((received.steps, received.answers), (wanted, 1));
}

/// R-SSE-03, R-SSE-04, R-SSE-05
#[test]
fn a_stream_goes_on_at_any_process_without_gap_or_duplicate() {
    on_every_store(async |world| {
        let mut chance = Chance::new();
        let all: Arc<[_]> = (0..PROCESSES).map(|_| process(world.connect())).collect();
        let mut clients = JoinSet::new();
        for _ in 0..CLIENTS {
            let (all, mut chance) = (all.clone(), chance.split());
            clients.spawn(async move {
                let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
                    "protocolVersion": "2025-11-25", "capabilities": {},
                    "clientInfo": {"name": "traveller", "version": "1"}}});
                let begun = send(&all[0], Method::POST, &[], &hello).await;
                let session = begun.headers()["mcp-session-id"]
                    .to_str()
                    .unwrap()
                    .to_owned();
                for _ in 0..trials().div_ceil(CLIENTS) {
                    let tried = timeout(SOON, trial(&all, &session, &mut chance)).await;
                    tried.expect("a stream ends with its answer");
                }
            });
        }
        clients.join_all().await;
    });
}
