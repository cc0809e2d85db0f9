//! The options of a client's call, and the rules of its callbacks.

use std::sync::Arc;
use std::time::Duration;

use mcpbolt::client::{Client, block_on};
use mcpbolt::connection::{Config, Progress, RequestOptions, Trace};
use mcpbolt::error::RequestError;
use mcpbolt::io::connect_pair;
use mcpbolt::mcp::{Revision, Revisions, Side};
use mcpbolt::server::{Arguments, Tool};
use serde_json::json;

use crate::world::{self, World, secs};
use crate::{in_each_revision, server};

/// The outcome of a call under way, if there is one.
fn poll(calling: &mut mcpbolt::client::PendingCall) -> Option<Result<(), RequestError>> {
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    match std::pin::Pin::new(calling).poll(&mut context) {
        std::task::Poll::Ready(outcome) => Some(outcome.map(drop)),
        std::task::Poll::Pending => None,
    }
}

/// Both ends by hand, the server's calls unanswered.
fn with_tools(revision: Revision) -> World {
    let mut client = Client::config("client", "1");
    client.revisions = Revisions::only(revision);
    let mut server = Config::new(Side::Server, "server", "2");
    server.capabilities = std::array::from_fn(|_| r#"{"tools":{}}"#.into());
    let mut world = World::new(client, server);
    world.run();
    world
}

/// R-CAN-09.
#[test]
fn a_long_timeout_is_not_cut_unless_the_call_says_so() {
    let mut world = with_tools(Revision::V2025_11_25);
    let client = Client::new(world.client.handle());
    let call = || client.call_tool("x", &json!({})).timeout(secs(3600));
    let mut patient = call().send().unwrap();
    let mut bounded = call().max_timeout(secs(700)).send().unwrap();
    world.pass(secs(699));
    assert_eq!(poll(&mut bounded), None);
    world.pass(secs(2));
    assert_eq!(poll(&mut bounded), Some(Err(RequestError::TimedOut)));
    world.pass(secs(3600 - 703));
    assert_eq!(poll(&mut patient), None);
    world.pass(secs(3));
    assert_eq!(poll(&mut patient), Some(Err(RequestError::TimedOut)));
}

/// R-PRG-02, R-CAN-09: a peer that repeats its progress makes none.
#[test]
fn progress_that_does_not_increase_extends_no_deadline() {
    let mut world = World::open(Revision::V2025_11_25);
    let mut response = world.ask(RequestOptions {
        timeout: Some(secs(10)),
        progress: Some(Arc::new(|_: Progress<'_>| ())),
        ..RequestOptions::default()
    });
    let key = response.key().get();
    let progress = format!(
        "{{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{{\"progressToken\":{key},\"progress\":1}}}}\n"
    );
    world.client.receive(progress.as_bytes(), world.now);
    world.pass(secs(8));
    world.client.receive(progress.as_bytes(), world.now);
    world.pass(secs(4));
    let outcome = world::poll(&mut response).map(|outcome| outcome.map(drop));
    assert_eq!(outcome, Some(Err(RequestError::TimedOut)));
}

/// R-MET-01.
#[test]
fn a_call_carries_members_in_its_meta() {
    for revision in [Revision::V2024_11_05, Revision::V2026_07_28] {
        let mut world = with_tools(revision);
        let client = Client::new(world.client.handle());
        let call = client.call_tool("x", &json!({}));
        let call = call.meta(&json!({"com.example/a": [1], "progressToken": "mine"}));
        let _calling = call.send().unwrap();
        world.run();
        let line: serde_json::Value = serde_json::from_str(world.client.last()).unwrap();
        let meta = &line["params"]["_meta"];
        assert_eq!(meta["com.example/a"], json!([1]));
        assert!(meta.get("progressToken").is_none(), "{meta}");
        let wrong = client.call_tool("x", &json!({})).meta(&json!([])).send();
        assert!(matches!(wrong, Err(RequestError::Misuse(_))), "{wrong:?}");
    }
}

#[test]
fn a_notification_without_a_json_object_is_not_sent() {
    let server = server(1).build().unwrap();
    in_each_revision(&server, |_, client| {
        for wrong in ["[1]", "{\"a\":", "{}{}", "", "1\n2"] {
            let told = client.handle().notify("notifications/x", Some(wrong));
            assert!(matches!(told, Err(RequestError::Misuse(_))), "{wrong}");
        }
        assert_eq!(block_on(client.list_tools()).unwrap().len(), 1);
    });
}

#[test]
fn a_report_of_progress_that_panics_takes_nothing_along() {
    let tool = Tool::new("steps");
    let server = server(0).tool(tool, |_: Arguments, context| async move {
        context.progress(1.0, None, None);
        context.progress(2.0, None, None);
        "done"
    });
    let server = server.build().unwrap();
    in_each_revision(&server, |_, client| {
        let seen = std::sync::Arc::new(std::sync::atomic::AtomicU32::new(0));
        let count = seen.clone();
        let call = client.call_tool("steps", &json!({})).on_progress(move |_| {
            count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            panic!("a report");
        });
        assert_eq!(call.wait().unwrap().text(), "done");
        assert_eq!(seen.load(std::sync::atomic::Ordering::Relaxed), 2);
    });
}

#[test]
fn a_trace_that_panics_takes_nothing_along() {
    let mut config = Client::config("test", "1.0.0");
    config.trace = Some(Trace::new(|_, _| panic!("a trace")));
    let handle = connect_pair(&server(1).build().unwrap(), config).unwrap();
    let client = block_on(Client::open(handle)).unwrap();
    let call = client
        .call_tool("tool-0", &json!({}))
        .timeout(Duration::from_secs(10));
    assert_eq!(call.wait().unwrap().text(), "done");
}

/// R-STD-01: what a program brings may be written on several lines; frames are not.
#[test]
fn pretty_json_in_a_configuration_breaks_no_frame() {
    let server = server(1).build().unwrap();
    for revision in Revision::ALL {
        let mut config = Client::config("test", "1.0.0");
        config.revisions = Revisions::only(revision);
        config.implementation = "{\n  \"name\": \"a b\",\n  \"version\": \"1\"\r\n}".into();
        config.capabilities = std::array::from_fn(|_| "{\n\"roots\": {}\n}".into());
        let client = block_on(Client::open(connect_pair(&server, config).unwrap())).unwrap();
        assert_eq!(block_on(client.list_tools()).unwrap().len(), 1);
    }
}
