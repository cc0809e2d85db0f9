//! A client beside a server whose answers are all scripted.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use mcpbolt::client::{Client, ClientBuilder, block_on};
use mcpbolt::connection::{
    Answer, Batch, CallKey, Config, Connection, Disposition, Handle, Host, IncomingRequest,
    OpeningMode,
};
use mcpbolt::error::{ConnectionError, RequestError};
use mcpbolt::io::{Workers, WorkersConfig, join};
use mcpbolt::limits::Limits;
use mcpbolt::mcp::{Method, Revision, Revisions, Side};
use mcpbolt::model::Root;
use mcpbolt::server::Registry;
use serde_json::{Value, json};

use crate::asks::handshakes;
use crate::schema::assert_may_send;
use crate::server;
use crate::world::{End, World, secs};

/// Gives the next of its answers, whatever is asked, and remembers that.
#[derive(Clone, Default)]
struct Script {
    answers: Arc<Mutex<VecDeque<Value>>>,
    asked: Arc<Mutex<Vec<Value>>>,
}

impl Host for Script {
    fn request(&mut self, request: IncomingRequest<'_>, answer: Answer<'_>) -> Disposition {
        let params = request.message.params().unwrap_or("{}");
        let mut params: Value = serde_json::from_str(params).unwrap();
        params.as_object_mut().unwrap().remove("_meta");
        self.asked.lock().unwrap().push(params);
        let next = self.answers.lock().unwrap().pop_front().unwrap();
        answer.result(|result| result.object(&next.to_string()))
    }

    fn dispatch(&mut self, _: Batch) {}

    fn cancelled(&mut self, _: CallKey, _: Option<&str>) {}
}

/// A client of that script, with the handle of the server's side.
fn scripted(
    revision: Revision,
    answers: impl IntoIterator<Item = Value>,
) -> (Client, Script, Handle) {
    scripted_for(Client::builder("test", "1"), revision, answers)
}

/// The same for a client made by `builder`.
fn scripted_for(
    builder: ClientBuilder,
    revision: Revision,
    answers: impl IntoIterator<Item = Value>,
) -> (Client, Script, Handle) {
    let script = Script::default();
    script.answers.lock().unwrap().extend(answers);
    let mut config = Registry::new().config("script", "1");
    config.capabilities = std::array::from_fn(|_| r#"{"tools":{"listChanged":true}}"#.into());
    let far = Connection::new(Arc::new(config), Instant::now());
    let builder = builder.revisions(Revisions::only(revision));
    let (config, prepared) = builder.prepare().unwrap();
    let near = Connection::new(Arc::new(config), Instant::now());
    let (handle, server) = (near.handle(), far.handle());
    let workers = Arc::new(Workers::new(WorkersConfig::default()));
    let (client, host) = prepared.connect(handle.clone(), workers);
    join((far, script.clone()), (near, host)).unwrap();
    block_on(handle.opened()).unwrap();
    (client, script, server)
}

const NEWEST: Revision = Revision::V2026_07_28;

fn page(names: &[&str], more: Value) -> Value {
    let tool = |name: &&str| json!({"name": name, "inputSchema": {"type": "object"}});
    let mut page = json!({"tools": names.iter().map(tool).collect::<Vec<_>>()});
    page.as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    page
}

/// R-PAG-02, R-PAG-03, R-PAG-05, R-PAG-07, R-PAG-08: a cursor is given back as it came, and only its absence ends a list.
#[test]
fn cursors_are_the_servers_affair() {
    for revision in [Revision::V2024_11_05, NEWEST] {
        let strange = "{\"page\": \u{1F600}}\\";
        let (client, script, _) = scripted(
            revision,
            [
                page(&["a", "b", "c"], json!({"nextCursor": ""})),
                page(&[], json!({"nextCursor": strange})),
                page(&["d"], json!({"nextCursor": null})),
                page(&["a"], json!({"nextCursor": "x"})),
                page(&["b"], json!({"nextCursor": "x"})),
            ],
        );
        let tools = block_on(client.list_tools()).unwrap();
        let names: Vec<_> = tools.iter().map(|tool| &*tool.name).collect();
        assert_eq!(names, ["a", "b", "c", "d"]);
        let asked = std::mem::take(&mut *script.asked.lock().unwrap());
        assert_eq!(
            asked,
            [json!({}), json!({"cursor": ""}), json!({"cursor": strange})]
        );
        let endless = block_on(client.list_tools()).unwrap_err();
        assert!(matches!(endless, RequestError::BadAnswer(_)), "{endless}");
        assert_eq!(
            script.asked.lock().unwrap()[0],
            json!({}),
            "nothing is kept of an earlier list"
        );
    }
}

/// R-RPC-19, R-TOL-06.
#[test]
fn what_is_left_out_has_its_meaning_and_what_is_unknown_none() {
    let answer = |kind: Value| json!({"content": [], "resultType": kind});
    let (client, ..) = scripted(
        NEWEST,
        [
            answer(json!("complete")),
            answer(json!("sideways")),
            answer(json!("task")),
        ],
    );
    let call = || client.call_tool("x", &json!({})).wait();
    assert!(!call().unwrap().is_error);
    for _ in 0..2 {
        assert!(matches!(call().unwrap_err(), RequestError::BadAnswer(_)));
    }
    // A revision without the member, whose results have none.
    let (client, ..) = scripted(Revision::V2025_11_25, [json!({})]);
    assert_eq!(
        client.call_tool("x", &json!({})).wait().unwrap().content,
        []
    );
}

/// R-TSX-12: a call that fails while its task goes on cancels the task; the task of a call that fails
/// because the task failed is over.
#[test]
fn a_call_that_fails_leaves_no_task_behind() {
    for (status, cancels) in [("sideways", true), ("failed", false)] {
        let task = |status: &str| json!({"taskId": "7", "status": status});
        let mut created = task("working");
        created["resultType"] = json!("task");
        let builder = Client::builder("test", "1").tasks();
        let answers = [created, task(status), json!({}), json!({})];
        let (client, script, _) = scripted_for(builder, NEWEST, answers);
        client.call_tool("x", &json!({})).wait().unwrap_err();
        // A list that comes after all that the call sent.
        let _ = block_on(client.list_tools());
        let asked = script.asked.lock().unwrap().clone();
        let of_the_task = asked.iter().filter(|asked| asked["taskId"] == "7");
        assert_eq!(of_the_task.count(), 1 + usize::from(cancels), "{asked:?}");
    }
}

/// R-CCH-03, R-CCH-04, R-CCH-06 to R-CCH-08.
#[test]
fn lists_are_kept_as_long_as_the_server_says() {
    let hint = |ttl: i64| json!({"ttlMs": ttl, "cacheScope": "private"});
    let first = |ttl: i64| {
        let mut more = hint(ttl);
        more["nextCursor"] = json!("2");
        page(&["a"], more)
    };
    let (client, script, server) = scripted(
        NEWEST,
        [
            first(3_600_000),
            page(&["b"], hint(0)),
            page(&["b"], hint(-5)),
            page(&["c"], hint(20)),
            page(&["d"], hint(3_600_000)),
        ],
    );
    let list = || block_on(client.list_tools()).unwrap().len();
    let asked = || script.asked.lock().unwrap().len();
    assert_eq!((list(), asked()), (2, 2));
    // The first page is fresh, the second never was; each ages by itself.
    assert_eq!((list(), asked()), (2, 3));
    // It is another list now.
    server.notify(Method::ToolsChanged.name(), None).unwrap();
    block_on(async { client.handle().sleep(Duration::from_millis(1)).await });
    let begun = Instant::now();
    while asked() < 4 {
        assert!(
            begun.elapsed() < Duration::from_secs(30),
            "the change is not noticed"
        );
        match list() {
            1 => break,
            _ => script
                .answers
                .lock()
                .unwrap()
                .push_front(page(&["b"], hint(0))),
        }
    }
    std::thread::sleep(Duration::from_millis(30));
    let before = asked();
    assert_eq!(list(), 1);
    assert_eq!(asked(), before + 1, "its time was up");
    assert_eq!((list(), asked()), (1, before + 1), "and now it is kept");
    // Before 2026-07-28 nothing is kept, whatever is said.
    let pages = [page(&["a"], hint(3_600_000)), page(&["a"], hint(3_600_000))];
    let (client, script, _) = scripted(Revision::V2025_11_25, pages);
    for count in 1..=2 {
        block_on(client.list_tools()).unwrap();
        assert_eq!(script.asked.lock().unwrap().len(), count);
    }
}

/// R-LIF-01, R-LIF-02, R-LIF-05, R-LIF-06, R-LIF-09, R-RPC-04.
#[test]
fn a_handshake_says_what_it_must_and_no_id_comes_twice() {
    let mut client = Client::config("client", "1");
    client.opening = OpeningMode::Handshake;
    let server = Config::new(Side::Server, "server", "2");
    let mut world = World::new(client, server);
    world.run();
    let wrote: Vec<Value> = world
        .client
        .wrote
        .iter()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let hello = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "client", "version": "1"}});
    assert_eq!(
        (&wrote[0]["method"], &wrote[0]["params"]),
        (&json!("initialize"), &hello)
    );
    assert_eq!(
        wrote[1],
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"})
    );
    assert_eq!(wrote.len(), 2);
    assert_eq!(
        world.server.wrote.len(),
        1,
        "nothing answers a notification"
    );
    assert_may_send(Side::Client, Revision::V2025_11_25, &world.client.wrote[0]);
    for _ in 0..100 {
        drop(world.ask(mcpbolt::connection::RequestOptions::default()));
    }
    world.run();
    let asked = world
        .client
        .wrote
        .iter()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    let mut ids: Vec<_> = asked.filter_map(|line| line.get("id")?.as_u64()).collect();
    let count = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!((count, ids.len()), (101, 101));
}

/// R-LIF-16: a client that speaks no handshake has nothing to fall back to.
#[test]
fn a_client_without_a_handshake_says_that_the_server_is_silent() {
    let mut now = Instant::now();
    let mut config = Config::new(Side::Client, "client", "1");
    config.revisions = Revisions::only(NEWEST);
    let mut client = End::new(config, now);
    client.step(now);
    assert!(client.last().contains("server/discover"));
    now += Limits::STDIO.handshake_timeout + secs(1);
    client.step(now);
    assert_eq!(
        client.handle().close_reason(),
        Some(&ConnectionError::HandshakeTimedOut("server/discover"))
    );
}

/// R-ROO-02, R-ERR-21.
#[test]
fn a_server_hears_of_other_roots() {
    let (told, hears) = std::sync::mpsc::channel();
    let told = Mutex::new(told);
    let server = server(1).on_roots_changed(move |_| told.lock().unwrap().send(()).unwrap());
    let server = server.build().unwrap();
    let build = |builder: ClientBuilder| builder.roots([]);
    crate::asks::with_clients(&server, handshakes(), build, |_, client| {
        assert_eq!(
            client.handle().config().capabilities(Revision::V2025_11_25),
            r#"{"roots":{"listChanged":true}}"#
        );
        client.set_roots([Root::new("file:///a")]).unwrap();
        hears.recv_timeout(Duration::from_secs(30)).unwrap();
    });
}
