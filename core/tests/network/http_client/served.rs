//! Against this crate's own server, in every revision.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::sync::mpsc;
use std::time::Duration;

use mcpbolt::client::{Client, Interests, block_on};
use mcpbolt::io::http::{HttpClientOptions, HttpOptions};
use mcpbolt::io::{Backoff, Reconnecting};
use mcpbolt::mcp::{Era, Revision};
use mcpbolt::model::Elicited;
use mcpbolt::server::{Arguments, Tool};
use serde_json::json;

use super::serving::{Serving, builder};
use super::{PATIENCE, until};

fn call(client: &Client, tool: &str) -> String {
    let arguments = json!({"text": "hi"});
    client.call_tool(tool, &arguments).wait().unwrap().text()
}

/// R-HTP-02, R-HTP-03, R-HTP-13, R-HDR-01: every message of every revision is understood.
#[test]
fn calls_are_answered_in_every_revision() {
    let serving = Serving::begin();
    for revision in Revision::ALL {
        let client = serving.client(revision);
        assert_eq!(client.revision(), Some(revision));
        assert_eq!(client.server_info()["name"], "test");
        let tools = block_on(client.list_tools()).unwrap();
        assert!(tools.iter().any(|tool| tool.name == "echo"), "{revision}");
        for _ in 0..3 {
            assert_eq!(call(&client, "echo"), "hi", "{revision}");
        }
        let read = block_on(client.read_resource("a:b")).unwrap();
        assert_eq!(read.len(), 1);
        // Longer than any piece in which it travels.
        let long = "x".repeat(1 << 20);
        let echoed = client.call_tool("echo", &json!({"text": long}));
        assert!(echoed.wait().unwrap().text() == long, "{revision}");
    }
}

/// R-ERA-09: what the server speaks is found out.
#[test]
fn the_newest_revision_is_found() {
    let serving = Serving::begin();
    let client = serving.open(Client::builder("test", "1.0.0"));
    assert_eq!(client.revision(), Some(Revision::V2026_07_28));
}

/// R-HTP-04, R-SSE-01.
#[test]
fn progress_arrives_before_the_answer() {
    let serving = Serving::begin();
    for revision in Revision::ALL {
        let client = serving.client(revision);
        let (tell, told) = mpsc::channel();
        let call = client
            .call_tool("steps", &json!({}))
            .on_progress(move |progress| tell.send(progress.progress).unwrap());
        assert_eq!(call.wait().unwrap().text(), "done");
        assert_eq!(
            told.iter().collect::<Vec<_>>(),
            [1.0, 2.0, 3.0],
            "{revision}"
        );
    }
}

/// R-CAN-05, R-CAN-07.
#[test]
fn a_call_that_is_given_up_ends_at_the_server() {
    let serving = Serving::begin();
    for revision in Revision::ALL {
        let client = serving.client(revision);
        let under_way = client.call_tool("sleep", &json!({})).send().unwrap();
        let sleepers = || serving.sleepers.load(Ordering::SeqCst);
        until("it begins", || sleepers() == 1);
        drop(under_way);
        until("it is cancelled", || sleepers() == 0);
        let late = client.call_tool("sleep", &json!({}));
        let late = late.timeout(Duration::from_millis(100)).wait();
        assert_eq!(late.unwrap_err(), mcpbolt::error::RequestError::TimedOut);
        until("it is cancelled, too", || sleepers() == 0);
        // The connection lives.
        assert_eq!(call(&client, "echo"), "hi", "{revision}");
    }
}

#[test]
fn many_calls_at_once_are_all_answered() {
    let serving = Serving::begin();
    for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
        let client = serving.client(revision);
        let calls: Vec<_> = (0..1000)
            .map(|n| {
                let arguments = json!({"text": n.to_string()});
                client.call_tool("echo", &arguments).send().unwrap()
            })
            .collect();
        for (n, call) in calls.into_iter().enumerate() {
            assert_eq!(block_on(call).unwrap().text(), n.to_string());
        }
    }
}

/// A server's questions come on the stream of the call, or in its answer.
#[test]
fn servers_may_ask() {
    let serving = Serving::begin();
    for revision in Revision::ALL
        .into_iter()
        .filter(|it| it.rules().elicitation)
    {
        let asked = builder(revision).on_form(|_, _| async {
            let content = json!({"name": "Ada"});
            Ok(Elicited::Accepted(content.as_object().unwrap().clone()))
        });
        let client = serving.open(asked);
        assert!(call(&client, "ask").contains("Ada"), "{revision}");
    }
}

/// R-HTP-11: what belongs to no request comes on a stream of its own.
#[test]
fn changes_are_told_in_every_revision() {
    let serving = Serving::begin();
    for (n, revision) in (0..).zip(Revision::ALL) {
        let (tell, told) = mpsc::channel();
        let client = builder(revision).on_raw_notice(move |method, _| {
            let _ = tell.send(method.to_owned());
        });
        let client = serving.open(client);
        let interests = Interests {
            tools: true,
            ..Interests::default()
        };
        let listening = match revision.era() {
            Era::Stateless => Some(block_on(client.listen(interests)).unwrap()),
            Era::Handshake => None,
        };
        let mut more = 0;
        until("it is told", || {
            // A client that has only just opened may not be listening yet.
            more += 1;
            let tool = Tool::new(format!("more{n}_{more}"));
            let more = |_: Arguments, _| async { "more" };
            let change = serving.server.change(|offer| offer.tool(tool, more));
            change.unwrap();
            let heard = told.recv_timeout(Duration::from_millis(100));
            heard.is_ok_and(|method| method == "notifications/tools/list_changed")
        });
        drop(listening);
    }
}

/// R-SUB-10: who reconnects goes on listening when the server is there again, although over HTTP
/// no connection was lost.
#[test]
fn who_reconnects_goes_on_listening() {
    let serving = Serving::begin();
    let (address, url) = (serving.address(), serving.url());
    let (tell, told) = mpsc::channel();
    let open = move || {
        let (tell, url) = (tell.clone(), url.clone());
        let client = builder(Revision::V2026_07_28).on_raw_notice(move |method, _| {
            let _ = tell.send(method.to_owned());
        });
        async move { client.http(&url, HttpClientOptions::default()).await }
    };
    let soon = Backoff {
        first: Duration::from_millis(10),
        longest: Duration::from_millis(100),
        ..Backoff::default()
    };
    let reconnecting = Reconnecting::new(open, soon).unwrap();
    let interests = Interests {
        tools: true,
        ..Interests::default()
    };
    block_on(reconnecting.listen(interests)).unwrap();
    block_on(reconnecting.subscribe("a:b")).unwrap();
    serving.end();
    let serving = Serving::at(address, HttpOptions::default());
    let (mut heard, mut tools) = (BTreeSet::new(), 0);
    until("both are told", || {
        serving.server.resource_updated("a:b");
        tools += 1;
        let tool = Tool::new(format!("more{tools}"));
        let more = |_: Arguments, _| async { "more" };
        serving
            .server
            .change(|offer| offer.tool(tool, more))
            .unwrap();
        heard.extend(told.recv_timeout(Duration::from_millis(100)));
        heard.len() == 2
    });
    assert_eq!(reconnecting.openings(), 1);
}

/// R-SSE-04, R-SSE-08: the server sends its reader away in the middle of a call.
#[test]
fn a_stream_that_ends_early_is_come_back_to() {
    let serving = Serving::begin();
    let client = serving.client(Revision::V2025_11_25);
    let begun = std::time::Instant::now();
    assert_eq!(call(&client, "away"), "back");
    assert!(begun.elapsed() >= Duration::from_millis(70));
    assert!(begun.elapsed() < PATIENCE);
}

/// R-HDR-05, R-HDR-09: the arguments travel in headers as soon as the schema is known, and it is
/// asked for when the server insists.
#[test]
fn arguments_are_mirrored() {
    let serving = Serving::begin();
    let client = serving.client(Revision::V2026_07_28);
    let arguments = json!({"region": " nörd", "in": {"floor": -3}, "lit": true});
    for _ in 0..2 {
        let placed = client.call_tool("placed", &arguments).wait();
        assert_eq!(placed.unwrap().text(), "placed");
    }
    let options = HttpClientOptions::default();
    let other = block_on(builder(Revision::V2026_07_28).http(&serving.url(), options)).unwrap();
    block_on(other.list_tools()).unwrap();
    let placed = other.call_tool("placed", &arguments).wait();
    assert_eq!(placed.unwrap().text(), "placed");
}

/// A server that speaks HTTP/2, as it is known beforehand: all goes over one connection.
#[test]
fn many_calls_share_a_connection_of_http_2() {
    let serving = Serving::begin();
    for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
        let options = HttpClientOptions {
            http2_prior_knowledge: true,
            ..HttpClientOptions::default()
        };
        let client = block_on(builder(revision).http(&serving.url(), options)).unwrap();
        let calls: Vec<_> = (0..300)
            .map(|n| {
                let arguments = json!({"text": n.to_string()});
                client.call_tool("echo", &arguments).send().unwrap()
            })
            .collect();
        for (n, call) in calls.into_iter().enumerate() {
            assert_eq!(block_on(call).unwrap().text(), n.to_string());
        }
        let under_way = client.call_tool("sleep", &json!({})).send().unwrap();
        let sleepers = || serving.sleepers.load(Ordering::SeqCst);
        until("it begins", || sleepers() == 1);
        drop(under_way);
        until("it is cancelled", || sleepers() == 0);
        assert_eq!(call(&client, "echo"), "hi");
    }
}

/// Answers to the server are sent even when no further request may begin, and waiting requests
/// can be cancelled.
#[test]
fn requests_beyond_the_limit_wait_and_answers_do_not() {
    let serving = Serving::begin();
    let asked = builder(Revision::V2025_11_25).on_form(|_, _| async {
        std::thread::sleep(Duration::from_millis(50));
        let content = json!({"name": "Ada"});
        Ok(Elicited::Accepted(content.as_object().unwrap().clone()))
    });
    let options = HttpClientOptions {
        max_concurrent: Some(2),
        ..HttpClientOptions::default()
    };
    let client = block_on(asked.http(&serving.url(), options)).unwrap();
    let ask = |_| client.call_tool("ask", &json!({})).send().unwrap();
    let asking: Vec<_> = (0..6).map(ask).collect();
    for call in asking {
        assert!(block_on(call).unwrap().text().contains("Ada"));
    }
    let sleep = |_| client.call_tool("sleep", &json!({})).send().unwrap();
    let mut sleeping: Vec<_> = (0..4).map(sleep).collect();
    let sleepers = || serving.sleepers.load(Ordering::SeqCst);
    until("two begin", || sleepers() == 2);
    // The last two have not begun: nobody is told of them.
    sleeping.truncate(2);
    let late = client.call_tool("echo", &json!({"text": "hi"}));
    let late = late.send().unwrap();
    std::thread::sleep(Duration::from_millis(50));
    assert_eq!(sleepers(), 2);
    drop(sleeping);
    assert_eq!(block_on(late).unwrap().text(), "hi");
    until("all are cancelled", || sleepers() == 0);
}
