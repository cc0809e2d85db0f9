//! A client whose server dies, again and again.

use std::collections::BTreeSet;
use std::io;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use mcpbolt::client::{Client, Interests, Notice, block_on};
use mcpbolt::error::{ConnectionError, RequestError};
use mcpbolt::io::{Backoff, Reconnecting, Stderr};
use mcpbolt::mcp::{Era, Revision, Revisions};
use mcpbolt::server::{Arguments, Context, HandlerError, Resource, ResourceContents, Server, Tool};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use super::peer::child;

const PATIENCE: Duration = Duration::from_secs(30);

const SOON: Backoff = Backoff {
    first: Duration::from_millis(10),
    longest: Duration::from_secs(3600),
    attempts: 100,
};

/// The server's process.
pub fn serve() {
    let own = Arc::new(OnceLock::<Server>::new());
    let (touches, grows) = (own.clone(), own.clone());
    let server = Server::builder("notes", "1.0.0")
        .list_changes()
        .subscriptions()
        .resource(Resource::new("note:1", "a note"), |uri, _| async {
            Ok(ResourceContents::text(uri, "text"))
        })
        .tool(Tool::new("pid"), |_: Arguments, _| async {
            std::process::id().to_string()
        })
        .tool(Tool::new("touch"), move |_: Arguments, _| {
            let server = touches.clone();
            async move { server.wait().resource_updated("note:1") }
        })
        .tool(Tool::new("grow"), move |_: Arguments, _| {
            let server = grows.clone();
            async move {
                let more = |_: Arguments, _| async { "more" };
                server
                    .wait()
                    .change(|offer| offer.tool(Tool::new("more"), more))?;
                Ok::<_, HandlerError>("grown")
            }
        })
        .tool(
            Tool::new("sleep"),
            |_: Arguments, context: Context| async move {
                context.sleep(Duration::from_secs(60)).await;
                "slept"
            },
        );
    let server = server.build().unwrap();
    own.set(server.clone()).unwrap();
    server.serve_stdio().wait().unwrap();
}

/// A server that comes back, and what its clients are told.
fn notes(revision: Revision) -> (Reconnecting, Receiver<String>) {
    let (tell, told) = mpsc::channel();
    let tell = Arc::new(Mutex::new(tell));
    let open = move || {
        let tell = tell.clone();
        let builder = Client::builder("test", "1.0.0").revisions(Revisions::only(revision));
        let builder = builder.on_notice(move |notice| {
            let word = match notice {
                Notice::ResourceUpdated { uri } => uri,
                other => format!("{other:?}"),
            };
            let _ = tell.lock().unwrap().send(word);
        });
        builder.spawn(child("notes").stderr(Stderr::Discard))
    };
    (Reconnecting::new(open, SOON).unwrap(), told)
}

pub fn pid(client: &Client) -> u32 {
    let result = client.call_tool("pid", &json!({})).wait().unwrap();
    result.text().parse().unwrap()
}

pub fn kill(pid: u32) {
    kill_process(Pid::from_raw(pid as i32).unwrap(), Signal::KILL).unwrap();
}

/// R-SUB-07, R-STD-09: what is in flight fails, and what was asked for is asked for again.
#[test]
fn a_server_that_dies_comes_back_with_what_was_asked_of_it() {
    for revision in [Revision::V2025_06_18, Revision::V2026_07_28] {
        let (server, told) = notes(revision);
        block_on(server.subscribe("note:1")).unwrap();
        if revision.era() == Era::Stateless {
            let interests = Interests {
                tools: true,
                ..Interests::default()
            };
            block_on(server.listen(interests)).unwrap();
        }
        assert_eq!(block_on(server.list_tools()).unwrap().len(), 4);
        let mut pids = BTreeSet::new();
        for life in 1..=3 {
            let client = block_on(server.client()).unwrap();
            assert_eq!(server.openings(), life);
            let own = pid(&client);
            assert!(pids.insert(own), "another process");
            for (tool, word) in [("touch", "note:1"), ("grow", "ToolsChanged")] {
                let done = client.call_tool(tool, &json!({})).wait().unwrap();
                assert!(!done.is_error, "{done:?}");
                assert_eq!(
                    told.recv_timeout(PATIENCE).unwrap(),
                    word,
                    "{revision} {life}"
                );
            }
            let sleeping = client.call_tool("sleep", &json!({})).send().unwrap();
            kill(own);
            let lost = block_on(sleeping).unwrap_err();
            let exited = RequestError::Closed(ConnectionError::PeerExited("".into()));
            assert_eq!(
                std::mem::discriminant(&lost),
                std::mem::discriminant(&exited)
            );
            assert!(lost.to_string().contains("signal: 9"), "{lost}");
            let refused = client.call_tool("pid", &json!({})).wait();
            assert_eq!(refused, Err(lost), "that connection stays lost");
        }
        block_on(server.unsubscribe("note:1")).unwrap();
        let client = block_on(server.client()).unwrap();
        let sleeping = client.call_tool("sleep", &json!({})).send().unwrap();
        kill(pid(&client));
        // Now the loss is known.
        block_on(sleeping).unwrap_err();
        let client = block_on(server.client()).unwrap();
        client.call_tool("touch", &json!({})).wait().unwrap();
        client.call_tool("grow", &json!({})).wait().unwrap();
        let next = told.recv_timeout(PATIENCE).unwrap();
        assert_eq!(next, "ToolsChanged", "nobody asks for the note any more");
        server.close();
        let closed = RequestError::Closed(ConnectionError::ClosedLocally);
        assert_eq!(block_on(server.client()).unwrap_err(), closed);
    }
}

/// R-STD-09: each wait is twice the one before, and there is an end.
#[test]
fn what_never_opens_is_given_up() {
    let tries = Arc::new(AtomicU32::new(0));
    let counted = tries.clone();
    let backoff = Backoff {
        first: Duration::from_millis(20),
        longest: Duration::from_millis(50),
        attempts: 4,
    };
    let begun = Instant::now();
    let open = move || {
        counted.fetch_add(1, Ordering::Relaxed);
        std::future::ready(Err(io::Error::from(io::ErrorKind::NotFound)))
    };
    let server = Reconnecting::new(open, backoff).unwrap();
    let gone = RequestError::Closed(ConnectionError::Io(io::ErrorKind::NotFound));
    assert_eq!(block_on(server.client()).unwrap_err(), gone);
    assert!(begun.elapsed() >= Duration::from_millis((20 + 40 + 50) / 2));
    assert_eq!((tries.load(Ordering::Relaxed), server.openings()), (4, 0));
}

/// R-STL-04: a process serves conversations of any thread, one behind or beside the other, and
/// ends with the last of them.
#[test]
fn a_process_is_tied_to_no_thread_and_no_conversation() {
    let spawn = || block_on(Client::spawn(child("notes").stderr(Stderr::Discard))).unwrap();
    let client = std::thread::spawn(spawn).join().unwrap();
    let own = pid(&client);
    let conversations: Vec<_> = (0..4)
        .map(|_| {
            let client = client.clone();
            std::thread::spawn(move || (0..10).all(|_| pid(&client) == own))
        })
        .collect();
    drop(client.call_tool("sleep", &json!({})).send().unwrap());
    for conversation in conversations {
        assert!(conversation.join().unwrap());
    }
    assert_eq!(pid(&client), own);
}
