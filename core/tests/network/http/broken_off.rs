//! Streams of actions whose connection breaks off in the middle, and clients that come back for the rest.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use mcpbolt::client::{ActionFailure, Client, RetryPolicy, block_on};
use mcpbolt::connection::{OpeningMode, Principal};
use mcpbolt::error::{CarrierFault, RequestError};
use mcpbolt::io::Backoff;
use mcpbolt::io::http::{HttpClientOptions, HttpOptions};
use mcpbolt::policy::{Credentials, Policy};
use mcpbolt::server::{Arguments, Context, Json, Server, Tool};
use serde_json::{Value, json};

use super::wire::{PATIENCE, Wire};
use super::{Counted, Serving};

/// The outcome of a server's action.
#[derive(Clone, Default)]
struct Seen {
    begun: Arc<AtomicUsize>,
    under_way: Arc<AtomicUsize>,
}

/// Its action counts to `to`, slowly, with so many bytes beside each number, and rests behind the
/// first.
fn counting(policy: Option<Policy>, seen: &Seen) -> Server {
    let seen = seen.clone();
    let number = json!({"type": "integer"});
    let numbers = json!({"to": number, "bytes": number, "pause": number, "rest": number});
    let count = move |arguments: Arguments, context: Context| {
        seen.begun.fetch_add(1, SeqCst);
        seen.under_way.fetch_add(1, SeqCst);
        let here = Counted(seen.under_way.clone());
        async move {
            let asked: Value = serde_json::from_str(&arguments.0).unwrap();
            let number = |name: &str| asked[name].as_u64().unwrap_or_default();
            let beside = "x".repeat(number("bytes") as usize);
            for n in 0..number("to") {
                context.partial(&json!({"n": n, "beside": beside}));
                let pause = if n == 0 { number("rest") } else { 0 } + number("pause");
                context.sleep(Duration::from_millis(pause)).await;
            }
            drop(here);
            Json(json!({"counted": asked["to"]}))
        }
    };
    let builder = Server::builder("counting", "1").actions(true).tool(
        Tool::new("count")
            .input_schema(json!({"type": "object", "properties": numbers}))
            .annotations(json!({"readOnlyHint": true}))
            .on_get(),
        count,
    );
    match policy {
        Some(policy) => builder.policy(policy),
        None => builder,
    }
    .build()
    .unwrap()
}

/// Passes connections on, and ends each so many bytes behind the first event of its answer.
struct Relay {
    at: SocketAddr,
    to: Arc<Mutex<SocketAddr>>,
    /// For ever when `usize::MAX`.
    bytes: Arc<AtomicUsize>,
    cut: Arc<AtomicUsize>,
    over: Arc<AtomicBool>,
}

impl Relay {
    fn begin(to: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let relay = Self {
            at: listener.local_addr().unwrap(),
            to: Arc::new(Mutex::new(to)),
            bytes: Arc::new(AtomicUsize::new(usize::MAX)),
            cut: Arc::default(),
            over: Arc::default(),
        };
        let (to, bytes, cut) = (relay.to.clone(), relay.bytes.clone(), relay.cut.clone());
        let over = relay.over.clone();
        thread::spawn(move || {
            for client in listener.incoming() {
                if over.load(SeqCst) {
                    return;
                }
                let (client, to) = (client.unwrap(), *to.lock().unwrap());
                let (bytes, cut) = (bytes.load(SeqCst), cut.clone());
                thread::spawn(move || pass(client, to, bytes, &cut));
            }
        });
        relay
    }

    fn client(&self, attempts: u32) -> Client {
        let url = format!("http://{}/mcp", self.at);
        let resume = Backoff {
            first: Duration::from_millis(5),
            longest: Duration::from_millis(20),
            attempts,
        };
        let options = HttpClientOptions {
            resume,
            ..HttpClientOptions::default()
        };
        let builder = Client::builder("test", "1").opening(OpeningMode::Actions);
        block_on(builder.http(&url, options)).unwrap()
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.over.store(true, SeqCst);
        let _ = TcpStream::connect(self.at);
    }
}

fn pass(mut client: TcpStream, to: SocketAddr, bytes: usize, cut: &AtomicUsize) {
    let mut server = TcpStream::connect(to).unwrap();
    let (mut up, mut from) = (server.try_clone().unwrap(), client.try_clone().unwrap());
    thread::spawn(move || {
        let _ = std::io::copy(&mut from, &mut up);
        let _ = up.shutdown(Shutdown::Both);
    });
    let (mut passed, mut event) = (Vec::new(), None);
    let mut byte = [0];
    while matches!(server.read(&mut byte), Ok(1)) {
        if client.write_all(&byte).is_err() {
            break;
        }
        passed.push(byte[0]);
        // The lines of the head end otherwise.
        if event.is_none() && passed.ends_with(b"\n\n") {
            event = Some(passed.len());
        }
        if event.is_some_and(|event| passed.len() - event >= bytes) {
            cut.fetch_add(1, SeqCst);
            break;
        }
    }
    let _ = client.shutdown(Shutdown::Both);
    let _ = server.shutdown(Shutdown::Both);
}

fn numbers(parts: &[String]) -> Vec<u64> {
    let number = |part: &String| serde_json::from_str::<Value>(part).unwrap()["n"].as_u64();
    parts.iter().filter_map(number).collect()
}

/// R-ACT-26: wherever the connection breaks off, each part comes once and so does the end, of an action
/// that ran once.
#[test]
fn a_stream_that_breaks_off_goes_on_where_it_did() {
    let seen = Seen::default();
    let serving = Serving::of(counting(None, &seen), HttpOptions::default());
    let relay = Relay::begin(serving.at);
    let client = relay.client(5);
    for (n, bytes) in [0, 1, 7, 40, 90, 120, 150, 333, 1000]
        .into_iter()
        .enumerate()
    {
        relay.bytes.store(bytes, SeqCst);
        let cut = relay.cut.load(SeqCst);
        let heard = Arc::new(Mutex::new(Vec::new()));
        let hears = heard.clone();
        let counted = client
            .action("count", &json!({"to": 12, "pause": 3}))
            .on_partial(move |part| hears.lock().unwrap().push(part.to_owned()))
            .wait()
            .unwrap();
        let all: Vec<_> = (0..12).collect();
        assert_eq!(numbers(&counted.partials), all, "cut after {bytes}");
        assert_eq!(numbers(&heard.lock().unwrap()), all, "cut after {bytes}");
        assert_eq!(counted.data()["counted"], 12);
        assert_eq!(seen.begun.load(SeqCst), n + 1, "cut after {bytes}");
        assert!(relay.cut.load(SeqCst) > cut, "nothing was cut: {bytes}");
    }
    serving.end();
}

/// R-ACT-26, R-ACT-35: where nobody knows of the stream any more the call fails, says why, and is
/// carried out again only where its caller has said that it may be.
#[test]
fn a_stream_that_nobody_knows_of_is_not_begun_again_unasked() {
    let (first, second) = (Seen::default(), Seen::default());
    let old = Serving::of(counting(None, &first), HttpOptions::default());
    let new = Serving::of(counting(None, &second), HttpOptions::default());
    let again = RetryPolicy {
        tries: 2,
        base: Duration::from_millis(1),
        longest: Duration::from_secs(1),
    };
    for (n, policy) in [None, Some(again)].into_iter().enumerate() {
        let relay = Relay::begin(old.at);
        relay.bytes.store(10, SeqCst);
        let (to, bytes, elsewhere) = (relay.to.clone(), relay.bytes.clone(), new.at);
        let call = relay
            .client(5)
            .action("count", &json!({"to": 5, "pause": 3}))
            .on_partial(move |_| {
                *to.lock().unwrap() = elsewhere;
                bytes.store(usize::MAX, SeqCst);
            });
        let outcome = match policy {
            Some(policy) => call.retry(policy),
            None => call,
        }
        .wait();
        match (policy, outcome) {
            (None, Err(ActionFailure::Request(RequestError::Carrier(error)))) => {
                assert_eq!(error.fault, CarrierFault::SessionLost);
                assert_eq!(error.status, Some(404));
                assert!(error.why.contains("cannot be resumed"), "{error}");
            }
            (Some(_), Ok(counted)) => {
                assert_eq!(numbers(&counted.partials), [0, 1, 2, 3, 4]);
            }
            (_, outcome) => panic!("{outcome:?}"),
        }
        assert_eq!(
            (first.begun.load(SeqCst), second.begun.load(SeqCst)),
            (n + 1, n)
        );
    }
    old.end();
    new.end();
}

/// The stream of an action, and its lines as they come.
fn stream(serving: &Serving, query: &str, headers: &str) -> Wire {
    let mut wire = Wire::open(serving.at);
    wire.send(format!("GET /mcp/stream{query} HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n{headers}\r\n").as_bytes());
    wire
}

fn id_of(chunk: &str) -> &str {
    let mut ids = chunk.lines().filter_map(|line| line.strip_prefix("id: "));
    ids.next().unwrap_or_else(|| panic!("no id: {chunk}"))
}

/// R-ACT-24, R-ACT-26: what is said to who comes back: the rest, with the ids that it would have had;
/// nothing, where there is nothing; that it is not there, where it is not, or is another's.
#[test]
fn who_comes_back_is_told_what_there_is() {
    let verify = |credentials: &Credentials<'_>| match credentials {
        Credentials::Bearer(name) => Ok(Principal::new(*name)),
        _ => Err("no token".to_owned()),
    };
    let seen = Seen::default();
    let server = counting(Some(Policy::new().verifier(verify)), &seen);
    let serving = Serving::of(server, HttpOptions::default());
    let (alice, bob) = (
        "Authorization: Bearer alice\r\n",
        "Authorization: Bearer bob\r\n",
    );
    let mut wire = stream(&serving, "?action=count&to=4&pause=1", alice);
    assert_eq!(wire.begin().status, 200);
    let first = wire.chunk();
    let first = id_of(&first).to_owned();
    wire.break_off();
    let back = |id: &str, who: &str| {
        let headers = format!("{who}Last-Event-ID: {id}\r\n");
        // As a browser does: at the same address.
        stream(&serving, "?action=count&to=4&pause=1", &headers).answer()
    };
    let rest = back(&first, alice);
    let numbers: Vec<_> = rest
        .events()
        .iter()
        .map(|event| event["data"]["n"].clone())
        .collect();
    assert_eq!(
        numbers,
        [json!(1), json!(2), json!(3), Value::Null],
        "{rest:?}"
    );
    assert_eq!(rest.events()[3]["type"], "complete");
    assert_eq!(
        back(&first, alice).body,
        rest.body,
        "it is kept for a while"
    );
    let last = rest
        .body
        .lines()
        .filter_map(|line| line.strip_prefix("id: "))
        .next_back()
        .unwrap();
    assert_eq!(back(last, alice).status, 204);
    let (name, _) = first.rsplit_once('_').unwrap();
    for (id, who) in [
        (&*first, bob),
        (&format!("{name}_9"), alice),
        (&format!("{name}_+1"), alice),
        (name, alice),
        ("0_1", alice),
        ("\"", alice),
    ] {
        let refused = back(id, who);
        assert_eq!(refused.status, 404, "{id}: {refused:?}");
        let error = &refused.json()["error"];
        assert_eq!(error["type"], "RESOURCE_NOT_FOUND");
        assert_eq!(error["details"]["last_event_id"], id);
    }
    assert_eq!(seen.begun.load(SeqCst), 1);
    serving.end();
}

fn until(what: &str, is: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is() {
        assert!(begun.elapsed() < PATIENCE, "{what}");
        thread::sleep(Duration::from_millis(2));
    }
}

/// R-ACT-26, R-CAN-06: an action whose client does not come back in time is given up; at once, where
/// nothing is kept.
#[test]
fn what_nobody_comes_back_for_is_given_up() {
    for ttl in [Duration::ZERO, Duration::from_millis(300)] {
        let seen = Seen::default();
        let options = HttpOptions {
            action_ttl: ttl,
            ..HttpOptions::default()
        };
        let serving = Serving::of(counting(None, &seen), options);
        let mut wire = stream(&serving, "?action=count&to=1000000&pause=1", "");
        assert_eq!(wire.begin().status, 200);
        let first = id_of(&wire.chunk()).to_owned();
        wire.break_off();
        let left = Instant::now();
        until("it was given up", || seen.under_way.load(SeqCst) == 0);
        assert!(left.elapsed() >= ttl.mul_f64(0.9), "given up too soon");
        let headers = format!("Last-Event-ID: {first}\r\n");
        assert_eq!(stream(&serving, "", &headers).answer().status, 404);
        serving.end();
    }
}

/// R-ACT-26, R-SSE-10: what comes while nobody reads has its bound, beyond which it waits; none of it
/// is lost.
#[test]
fn what_nobody_reads_waits_where_it_is_too_much() {
    let seen = Seen::default();
    let options = HttpOptions {
        replay_bytes: 4096,
        ..HttpOptions::default()
    };
    let serving = Serving::of(counting(None, &seen), options);
    let query = "?action=count&to=300&bytes=1000&pause=0&rest=300";
    let mut wire = stream(&serving, query, "");
    assert_eq!(wire.begin().status, 200);
    let first = id_of(&wire.chunk()).to_owned();
    wire.break_off();
    until("it was carried out", || {
        seen.begun.load(SeqCst) == 1 && seen.under_way.load(SeqCst) == 0
    });
    let headers = format!("Last-Event-ID: {first}\r\n");
    let rest = stream(&serving, "", &headers).answer();
    let numbers: Vec<_> = rest
        .events()
        .iter()
        .filter_map(|it| it["data"]["n"].as_u64())
        .collect();
    assert_eq!(numbers, (1..300).collect::<Vec<_>>());
    serving.end();
}
