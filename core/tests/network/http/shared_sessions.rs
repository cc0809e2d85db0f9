//! Sessions that every process of a server accepts: several servers over one store.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

use http_body_util::BodyExt;
use hyper::header::HeaderMap;
use hyper::{Method, Request, Response};
use mcpbolt::io::http::{HttpBody, HttpOptions, HttpService, Principal, SharedSessions};
use mcpbolt::limits::Quota;
use mcpbolt::model::{Elicitation, Elicited};
use mcpbolt::server::{Arguments, Context, HandlerError, Server, Tool};
use mcpbolt::store::{
    Blob, BlobVersion, Bucket, HolderId, Leased, LocalStore, LogBounds, LogPage, SharedStore,
    StoreError, StoreFault, StoreFuture, StoreKeys, Subscription, Taken, When,
};
use serde_json::{Value, json};

use crate::http::Serving;
use crate::http::sessions::{Client, ERA, events};
use crate::http::wire::PATIENCE;

/// A store that counts what it is asked, and can be away, full, or without its marks.
#[derive(Debug, Default)]
struct Watched {
    inner: LocalStore,
    asked: AtomicUsize,
    appended: AtomicUsize,
    is_away: AtomicBool,
    is_full: AtomicBool,
    has_no_marks: AtomicBool,
}

impl Watched {
    fn ask<'a, T: 'a>(&self, verb: StoreFuture<'a, T>) -> StoreFuture<'a, T> {
        self.asked.fetch_add(1, SeqCst);
        match self.is_away.load(SeqCst) {
            true => Box::pin(async { Err(StoreError::new(StoreFault::Unavailable, "away")) }),
            false => verb,
        }
    }
}

impl SharedStore for Watched {
    fn get<'a>(&'a self, name: &'a str) -> StoreFuture<'a, Option<Blob>> {
        match self.has_no_marks.load(SeqCst) {
            true => Box::pin(async { Ok(None) }),
            false => self.ask(self.inner.get(name)),
        }
    }

    fn put<'a>(
        &'a self,
        name: &'a str,
        value: &'a [u8],
        keep: Duration,
        when: When,
    ) -> StoreFuture<'a, Option<BlobVersion>> {
        self.ask(self.inner.put(name, value, keep, when))
    }

    fn remove<'a>(&'a self, name: &'a str, when: When) -> StoreFuture<'a, bool> {
        self.ask(self.inner.remove(name, when))
    }

    fn append<'a>(
        &'a self,
        log: &'a str,
        entry: &'a [u8],
        bounds: LogBounds,
        fence: u64,
    ) -> StoreFuture<'a, Option<u64>> {
        self.appended.fetch_add(1, SeqCst);
        match self.is_full.load(SeqCst) {
            true => Box::pin(async { Err(StoreError::new(StoreFault::Full, "full")) }),
            false => self.ask(self.inner.append(log, entry, bounds, fence)),
        }
    }

    fn read<'a>(
        &'a self,
        log: &'a str,
        after: Option<u64>,
        most: usize,
    ) -> StoreFuture<'a, LogPage> {
        self.ask(self.inner.read(log, after, most))
    }

    fn publish<'a>(&'a self, topic: &'a str) -> StoreFuture<'a, ()> {
        self.ask(self.inner.publish(topic))
    }

    fn subscribe<'a>(&'a self, topic: &'a str) -> StoreFuture<'a, Subscription> {
        self.ask(self.inner.subscribe(topic))
    }

    fn lease<'a>(
        &'a self,
        name: &'a str,
        holder: HolderId,
        note: &'a [u8],
        keep: Duration,
    ) -> StoreFuture<'a, Leased> {
        self.ask(self.inner.lease(name, holder, note, keep))
    }

    fn release<'a>(&'a self, name: &'a str, holder: HolderId) -> StoreFuture<'a, bool> {
        self.ask(self.inner.release(name, holder))
    }

    fn take<'a>(&'a self, name: &'a str, bucket: Bucket, tokens: u32) -> StoreFuture<'a, Taken> {
        self.ask(self.inner.take(name, bucket, tokens))
    }

    fn spend<'a>(&'a self, name: &'a str, quota: Quota, calls: u64) -> StoreFuture<'a, Taken> {
        self.ask(self.inner.spend(name, quota, calls))
    }

    fn once<'a>(&'a self, name: &'a str, keep: Duration) -> StoreFuture<'a, bool> {
        self.ask(self.inner.once(name, keep))
    }
}

fn keys(sealing: u8) -> Arc<StoreKeys> {
    Arc::new(StoreKeys::new([1; 32], [sealing; 32]))
}

/// The options of a process.
fn over(store: &Arc<Watched>) -> HttpOptions {
    sharing(SharedSessions::new(store.clone(), keys(2)))
}

fn sharing(shared: SharedSessions) -> HttpOptions {
    HttpOptions {
        shared_sessions: Some(shared),
        ..HttpOptions::default()
    }
}

/// A process whose tool tells what it knows of its client.
fn process(options: HttpOptions) -> HttpService {
    let who = |_: Arguments, context: Context| async move {
        let peer = context.connection().peer().unwrap();
        format!(
            "{} {} {}",
            context.revision(),
            peer.capabilities,
            peer.implementation
        )
    };
    let step = |arguments: Arguments, context: Context| async move {
        context.progress(1.0, None, None);
        let how_long = match &*arguments.0 {
            arguments if arguments.contains("forever") => 3600,
            arguments if arguments.contains("a while") => 4,
            _ => 0,
        };
        if how_long > 0 {
            context.sleep(Duration::from_secs(how_long)).await;
        }
        "done"
    };
    let ask = |_: Arguments, context: Context| async move {
        let fields = json!({"type": "object", "properties": {"at": {"type": "string"}}});
        match context.elicit(Elicitation::form("Where?", fields)).await? {
            Elicited::Accepted(at) => Ok::<_, HandlerError>(Value::from(at).to_string()),
            _ => Ok("nowhere".to_owned()),
        }
    };
    let server = Server::builder("process", "1.0.0")
        .tool(Tool::new("ask"), ask)
        .tool(Tool::new("who"), who)
        .tool(Tool::new("step"), step);
    HttpService::new(&server.build().unwrap(), options).unwrap()
}

/// What one client says, to any process.
#[derive(Clone, Default)]
struct Talk {
    session: Option<String>,
    principal: Option<&'static str>,
}

impl Talk {
    async fn begin(at: &HttpService, principal: Option<&'static str>, revision: &str) -> Self {
        let mut talk = Self {
            session: None,
            principal,
        };
        let (status, headers, body) = talk.send(at, Method::POST, &hello(revision)).await;
        assert_eq!(status, 200, "{body}");
        let id = headers["mcp-session-id"].to_str().unwrap().to_owned();
        assert!(id.len() <= 200, "{}", id.len());
        talk.session = Some(id);
        let opened = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        assert_eq!(talk.send(at, Method::POST, &opened).await.0, 202);
        talk
    }

    async fn send(
        &self,
        at: &HttpService,
        method: Method,
        message: &Value,
    ) -> (u16, HeaderMap, String) {
        let (head, body) = self.answer(at, method, None, message).await.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        let body = String::from_utf8(body.to_vec()).unwrap();
        (head.status.as_u16(), head.headers, body)
    }

    /// Calls the tool that tells of one step.
    async fn step(&self, at: &HttpService, how_long: &str) -> Response<HttpBody> {
        let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
            "name": "step", "arguments": {how_long: true}, "_meta": {"progressToken": 1}}});
        self.answer(at, Method::POST, None, &call).await
    }

    /// The stream behind an event, or that of what belongs to no request.
    async fn stream(&self, at: &HttpService, last: Option<&str>) -> Response<HttpBody> {
        self.answer(at, Method::GET, last, &Value::Null).await
    }

    async fn answer(
        &self,
        at: &HttpService,
        method: Method,
        last: Option<&str>,
        message: &Value,
    ) -> Response<HttpBody> {
        let mut request = Request::builder()
            .method(method)
            .uri("/mcp")
            .header("Host", "localhost");
        request = request.header("Content-Type", "application/json");
        request = request.header("Accept", "application/json, text/event-stream");
        if let Some(id) = &self.session {
            request = request.header("Mcp-Session-Id", id);
        }
        if let Some(last) = last {
            request = request.header("Last-Event-ID", last);
        }
        let mut request = request.body(message.to_string()).unwrap();
        if let Some(principal) = self.principal {
            request.extensions_mut().insert(Principal::new(principal));
        }
        at.respond(request).await
    }

    /// What the tool knows; the status if there is no answer.
    async fn who(&self, at: &HttpService) -> Result<String, u16> {
        let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
            "params": {"name": "who", "arguments": {}}});
        let (status, _, body) = self.send(at, Method::POST, &call).await;
        if status != 200 {
            return Err(status);
        }
        let answer: Value = serde_json::from_str(&body).unwrap();
        Ok(answer["result"]["content"][0]["text"]
            .as_str()
            .unwrap()
            .to_owned())
    }

    async fn end(&self, at: &HttpService) -> u16 {
        self.send(at, Method::DELETE, &Value::Null).await.0
    }

    /// Waits until the process does not accept the session any more.
    async fn ends_at(&self, at: &HttpService) {
        let ended = async {
            while self.who(at).await.is_ok() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let ended = tokio::time::timeout(PATIENCE, ended).await;
        ended.expect("the process is told");
    }
}

fn hello(revision: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": revision,
        "capabilities": {"roots": {"listChanged": true}, "sampling": {}, "elicitation": {}},
        "clientInfo": {"name": "talk", "title": "A talk", "version": "1.2.3"}}})
}

/// R-SES-02, R-SES-03
#[tokio::test]
async fn a_session_goes_on_at_a_process_that_never_saw_it() {
    let store = Arc::new(Watched::default());
    let (one, two) = (process(over(&store)), process(over(&store)));
    for revision in ERA {
        let talk = Talk::begin(&one, None, revision).await;
        let known = talk.who(&one).await.unwrap();
        assert!(
            known.starts_with(revision) && known.contains("A talk"),
            "{known}"
        );
        // The requests that come first come at once.
        let before = two.metrics().counts().sessions;
        let all = (0..10).map(|_| talk.who(&two));
        for told in futures::future::join_all(all).await {
            assert_eq!(told.unwrap(), known);
        }
        assert_eq!(two.metrics().counts().sessions, before + 1);
        // From then on nothing is looked up.
        let asked = store.asked.load(SeqCst);
        for _ in 0..20 {
            assert_eq!(talk.who(&one).await.unwrap(), known);
            assert_eq!(talk.who(&two).await.unwrap(), known);
        }
        assert_eq!(store.asked.load(SeqCst), asked);
    }
}

/// R-SES-07
#[tokio::test]
async fn a_session_is_accepted_from_its_principal_and_by_the_same_keys() {
    let store = Arc::new(Watched::default());
    let (one, two) = (process(over(&store)), process(over(&store)));
    let alice = Talk::begin(&one, Some("alice"), "2025-11-25").await;
    for other in [Some("bob"), None] {
        let stolen = Talk {
            principal: other,
            ..alice.clone()
        };
        assert_eq!(stolen.who(&two).await, Err(404));
        assert_eq!(stolen.end(&two).await, 404);
    }
    assert!(alice.who(&two).await.is_ok());
    let apart = SharedSessions::new(store.clone(), keys(3));
    assert_eq!(alice.who(&process(sharing(apart))).await, Err(404));
    let other_server = SharedSessions {
        scope: "other:".into(),
        ..SharedSessions::new(store.clone(), keys(2))
    };
    assert_eq!(alice.who(&process(sharing(other_server))).await, Err(404));
    assert_eq!(alice.who(&process(HttpOptions::default())).await, Err(404));
    // While keys are replaced, a process accepts what the old ones have sealed.
    let both = StoreKeys::new([1; 32], [3; 32]).also_opens([2; 32]);
    let both = process(sharing(SharedSessions::new(store, Arc::new(both))));
    assert!(alice.who(&both).await.is_ok());
    let mut forged = alice.clone();
    let id = forged.session.as_mut().unwrap();
    let other = if id[30..].starts_with('A') { "B" } else { "A" };
    id.replace_range(30..31, other);
    assert_eq!(forged.who(&both).await, Err(404));
}

/// R-RPC-04: ids of requests differ in a session, also at processes that have it at once. So an answer that comes to another
/// process than its question settles no question there.
#[tokio::test]
async fn an_answer_settles_the_question_that_it_answers() {
    let store = Arc::new(Watched::default());
    let both = [(); 2].map(|()| process(over(&store)));
    let talk = Talk::begin(&both[0], None, "2025-11-25").await;
    let mut asked = Vec::new();
    for at in &both {
        let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
            "params": {"name": "ask", "arguments": {}}});
        let mut stream = talk.answer(at, Method::POST, None, &call).await.into_body();
        let mut read = String::new();
        while !read.contains("elicitation/create") {
            let frame = tokio::time::timeout(PATIENCE, stream.frame()).await;
            let frame = frame.expect("a question").unwrap().unwrap();
            read += std::str::from_utf8(&frame.into_data().unwrap()).unwrap();
        }
        let data = read
            .lines()
            .find(|line| line.contains("elicitation/create"));
        let question: Value = serde_json::from_str(&data.unwrap()["data:".len()..]).unwrap();
        asked.push((question["id"].clone(), stream));
    }
    let answer = |id: &Value, at: &str| {
        json!({"jsonrpc": "2.0", "id": id,
        "result": {"action": "accept", "content": {"at": at}}})
    };
    for (here, (id, _)) in asked.iter().enumerate() {
        for at in [1 - here, here] {
            let said = if at == here { "right" } else { "wrong" };
            let taken = talk.send(&both[at], Method::POST, &answer(id, said)).await;
            assert_eq!(taken.0, 202);
        }
    }
    for (_, stream) in asked {
        let events = whole(stream).await;
        let answer = &events.last().unwrap().1;
        let text = answer["result"]["content"][0]["text"].as_str();
        assert_eq!(text, Some(r#"{"at":"right"}"#), "{answer}");
    }
}

/// R-SES-05, R-SES-06
#[tokio::test]
async fn a_session_that_its_client_ends_ends_everywhere() {
    let store = Arc::new(Watched::default());
    let all = [(); 3].map(|()| process(over(&store)));
    let [one, two, three] = &all;
    let talk = Talk::begin(one, None, "2025-06-18").await;
    assert!(talk.who(two).await.is_ok());
    assert_eq!(talk.end(one).await, 204);
    assert_eq!(talk.who(one).await, Err(404));
    assert_eq!(talk.who(three).await, Err(404), "it never saw the session");
    talk.ends_at(two).await;
    assert_eq!(two.metrics().counts().open_sessions, 0);
    // A process that has no session of a client can end it, too.
    let other = Talk::begin(one, None, "2025-06-18").await;
    assert_eq!(other.end(three).await, 204);
    let ends = store.appended.load(SeqCst);
    for place in [three, one, three] {
        assert_eq!(other.end(place).await, 204, "a request that is repeated");
    }
    assert_eq!(store.appended.load(SeqCst), ends, "an end is told once");
    assert_eq!(other.who(three).await, Err(404));
}

/// R-SES-06: what a client appends to an id makes no other session.
#[tokio::test]
async fn an_ended_session_has_no_other_names() {
    let store = Arc::new(Watched::default());
    let (one, two) = (process(over(&store)), process(over(&store)));
    let talk = Talk::begin(&one, None, "2025-11-25").await;
    let named = |suffix: &str| Talk {
        session: talk.session.as_ref().map(|id| format!("{id}{suffix}")),
        ..talk.clone()
    };
    assert_eq!(named("-a").who(&two).await, Err(404));
    let sessions = two.metrics().counts().sessions;
    for name in ["-1", "-2", ""] {
        assert!(named(name).who(&two).await.is_ok(), "{name}");
    }
    assert_eq!(two.metrics().counts().sessions, sessions + 1);
    assert_eq!(talk.end(&one).await, 204);
    named("-1").ends_at(&two).await;
}

/// R-SES-06: an end that other processes were not told of is repeated.
#[tokio::test]
async fn an_end_that_was_half_noted_is_noted_again() {
    let store = Arc::new(Watched::default());
    let (one, two) = (process(over(&store)), process(over(&store)));
    let talk = Talk::begin(&one, None, "2025-11-25").await;
    assert!(talk.who(&two).await.is_ok());
    // The mark is taken, the entry is not.
    store.is_full.store(true, SeqCst);
    assert_eq!(talk.end(&one).await, 503);
    store.is_full.store(false, SeqCst);
    assert_eq!(talk.end(&one).await, 204);
    let noted = store.inner.read("sessions that ended", None, 10).await;
    let id = talk.session.as_deref().unwrap().as_bytes();
    for entry in noted.unwrap().entries {
        assert!(!entry.bytes.windows(id.len()).any(|part| part == id));
    }
    talk.ends_at(&two).await;
}

#[tokio::test]
async fn without_the_store_sessions_go_on_and_are_not_ended() {
    let store = Arc::new(Watched::default());
    let (one, two) = (process(over(&store)), process(over(&store)));
    let talk = Talk::begin(&one, None, "2025-11-25").await;
    store.is_away.store(true, SeqCst);
    assert!(talk.who(&two).await.is_ok());
    assert_eq!(talk.end(&one).await, 503);
    store.is_away.store(false, SeqCst);
    assert_eq!(talk.end(&one).await, 204);
    assert_eq!(talk.who(&one).await, Err(404));
    // The other process asks again once in a second until the store is back.
    talk.ends_at(&two).await;
}

/// The events of a body that ends.
async fn whole(body: HttpBody) -> Vec<(String, Value)> {
    let body = tokio::time::timeout(PATIENCE, body.collect()).await;
    let body = body.expect("the stream ends").unwrap().to_bytes();
    events(std::str::from_utf8(&body).unwrap())
}

/// R-SSE-04: a stream goes on where it is while the store is away, and elsewhere once the store is back.
#[tokio::test]
async fn without_the_store_a_stream_stays_with_its_process() {
    let store = Arc::new(Watched::default());
    let (one, two) = (process(over(&store)), process(over(&store)));
    let talk = Talk::begin(&one, None, "2025-11-25").await;
    store.is_away.store(true, SeqCst);
    let all = whole(talk.step(&one, "briefly").await.into_body()).await;
    assert_eq!(all.len(), 3, "{all:?}");
    let first = Some(&*all[0].0);
    assert_eq!(
        whole(talk.stream(&one, first).await.into_body()).await,
        all[1..]
    );
    let refused = talk.stream(&two, first).await;
    assert_eq!(refused.status(), 503);
    assert!(refused.headers().contains_key("retry-after"));
    store.is_away.store(false, SeqCst);
    let written = async {
        loop {
            // Until the store knows of the stream, the client gets the standing one.
            let resumed = talk.stream(&two, first).await.into_body();
            let ended = tokio::time::timeout(Duration::from_millis(100), resumed.collect()).await;
            if let Ok(body) = ended {
                let body = body.unwrap().to_bytes();
                return events(std::str::from_utf8(&body).unwrap());
            }
        }
    };
    let rest = tokio::time::timeout(PATIENCE, written).await;
    assert_eq!(rest.expect("the store gets the stream"), all[1..]);
    // A client has only the streams of its own session.
    let other = Talk::begin(&one, None, "2025-11-25").await;
    let _standing = other.stream(&two, None).await;
    assert_eq!(other.stream(&two, first).await.status(), 409);
}

/// R-SSE-10: streams that the store does not take cost nothing once they have ended.
#[tokio::test]
async fn streams_that_the_store_refuses_are_given_up() {
    let store = Arc::new(Watched::default());
    let one = process(over(&store));
    let talk = Talk::begin(&one, None, "2025-11-25").await;
    for is_away in [false, true] {
        store.is_full.store(!is_away, SeqCst);
        store.is_away.store(is_away, SeqCst);
        for _ in 0..20 {
            let all = whole(talk.step(&one, "briefly").await.into_body()).await;
            assert_eq!(all.len(), 3, "{all:?}");
        }
        let given_up = async {
            let mut before = usize::MAX;
            while before != store.appended.load(SeqCst) {
                before = store.appended.load(SeqCst);
                // Longer than the pause between two attempts.
                tokio::time::sleep(Duration::from_secs(5)).await;
            }
        };
        let given_up = tokio::time::timeout(2 * PATIENCE, given_up).await;
        given_up.expect("the streams are given up");
    }
}

/// R-SSE-10: a stream whose process is dead ends wherever its client waits for more.
#[tokio::test]
async fn a_stream_of_a_dead_process_ends() {
    let inner = LocalStore::new();
    let connect = || {
        let inner = inner.clone();
        Arc::new(Watched {
            inner,
            ..Watched::default()
        })
    };
    let (own, other) = (connect(), connect());
    let (one, two) = (process(over(&own)), process(over(&other)));
    let talk = Talk::begin(&one, None, "2025-11-25").await;
    let mut begun = talk.step(&one, "forever").await.into_body();
    let first = begun.frame().await.unwrap().unwrap().into_data().unwrap();
    let first = events(std::str::from_utf8(&first).unwrap());
    let first = Some(&*first[0].0);
    let _standing = talk.stream(&two, None).await;
    let resumed = talk.stream(&two, first).await;
    assert_eq!(resumed.status(), 200);
    // The store hears no more of the process.
    own.is_away.store(true, SeqCst);
    let kept = whole(resumed.into_body()).await;
    assert_eq!(kept.len(), 1, "{kept:?}");
    assert_eq!(kept[0].1["params"]["progress"], 1.0);
    let last = Some(&*kept[0].0);
    assert_eq!(talk.stream(&two, last).await.status(), 409);
}

/// R-SSE-04: a store that has lost its marks, as in a restart, does not have living processes taken for dead.
#[tokio::test]
async fn a_stream_is_followed_while_the_mark_of_its_process_is_missing() {
    let store = Arc::new(Watched::default());
    let (one, two) = (process(over(&store)), process(over(&store)));
    let talk = Talk::begin(&one, None, "2025-11-25").await;
    let mut begun = talk.step(&one, "a while").await.into_body();
    let mut last = None;
    while last.is_none() {
        let piece = begun.frame().await.unwrap().unwrap().into_data().unwrap();
        let piece = events(std::str::from_utf8(&piece).unwrap());
        let step = piece.into_iter().find(|(_, it)| it["params"].is_object());
        last = step.map(|(id, _)| id);
    }
    let _standing = talk.stream(&two, None).await;
    store.has_no_marks.store(true, SeqCst);
    let resumed = talk.stream(&two, last.as_deref()).await;
    assert_eq!(resumed.status(), 200);
    let rest = whole(resumed.into_body()).await;
    assert_eq!(rest.len(), 1, "{rest:?}");
    assert_eq!(rest[0].1["result"]["content"][0]["text"], "done");
}

/// R-SSE-10: a client that resumes a stream again displaces its reader, at other processes as at the stream's own.
#[tokio::test]
async fn a_stream_has_one_reader_at_another_process() {
    let store = Arc::new(Watched::default());
    let (one, two) = (process(over(&store)), process(over(&store)));
    let talk = Talk::begin(&one, None, "2025-11-25").await;
    let mut begun = talk.step(&one, "forever").await.into_body();
    let first = begun.frame().await.unwrap().unwrap().into_data().unwrap();
    let first = events(std::str::from_utf8(&first).unwrap());
    let first = Some(&*first[0].0);
    let mut last = talk.stream(&two, first).await.into_body();
    for _ in 0..3 {
        let next = talk.stream(&two, first).await.into_body();
        whole(std::mem::replace(&mut last, next)).await;
    }
    // The last one goes on.
    let ended = tokio::time::timeout(Duration::from_millis(500), last.collect()).await;
    assert!(ended.is_err());
}

#[tokio::test]
async fn a_session_is_accepted_for_its_time() {
    let store = Arc::new(Watched::default());
    let brief = || {
        let shared = SharedSessions {
            max_age: Duration::from_secs(2),
            ..SharedSessions::new(store.clone(), keys(2))
        };
        process(sharing(shared))
    };
    let (one, two) = (brief(), brief());
    let talk = Talk::begin(&one, None, "2025-11-25").await;
    let over = async {
        // Each process of these meets the session for the first time.
        while talk.who(&brief()).await.is_ok() {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    tokio::time::timeout(PATIENCE, over)
        .await
        .expect("its time is over");
    assert_eq!(talk.who(&two).await, Err(404));
    assert!(talk.who(&one).await.is_ok(), "it uses its session");
}

/// On two ports: streams of requests and the standing stream, and a process that is started again.
#[test]
fn streams_of_a_session_are_those_of_each_process() {
    let store = Arc::new(Watched::default());
    let (one, two) = (Serving::begin(over(&store)), Serving::begin(over(&store)));
    let here = Client::open(one.at, "2025-11-25", json!({}));
    let there = here.elsewhere(two.at);
    let mut steps = there.call(3, "steps", json!({}));
    steps["params"]["_meta"] = json!({"progressToken": "p"});
    assert_eq!(events(&there.post(&steps).body).len(), 5);
    let subscribe = json!({"jsonrpc": "2.0", "id": 4, "method": "resources/subscribe",
        "params": {"uri": "a:b"}});
    for (client, serving) in [(&here, &one), (&there, &two)] {
        assert_eq!(client.post(&subscribe).status, 200);
        serving.server.resource_updated("a:b");
    }
    let first = |client: &Client, last: Option<&str>| events(&client.get(last).chunk()).remove(0);
    let (id, updated) = first(&here, None);
    assert_eq!(updated["method"], "notifications/resources/updated");
    // The other process has an event of its own, which the id of this one does not skip.
    let (other, updated) = first(&there, Some(&id));
    assert_eq!(updated["method"], "notifications/resources/updated");
    assert_ne!(id, other);
    one.end();
    let again = Serving::begin(over(&store));
    let back = here.elsewhere(again.at);
    assert_eq!(
        back.post(&back.call(5, "echo", json!({"text": "hi"})))
            .status,
        200
    );
}
