//! Everything at once through the narrowest pipes there are: both sides send a message of 64 MiB
//! and 10,000 progress notifications while the child floods its stderr. It completes, in bounded
//! memory, on both sides.
#![allow(clippy::unwrap_used, reason = "a test: panicking is the report")]

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use mcpbolt::client::{Client, ClientHost, block_on};
use mcpbolt::io::{ChildCommand, Stderr};
use mcpbolt::mcp::{Revision, Revisions};
use mcpbolt::server::{Context, Server, Tool, schemars, serde};
use serde_json::json;

use crate::alone;
use crate::heap::{LIVE, PEAK};

const ROLE: &str = "MCPBOLT_TEST_DUPLEX";
const MESSAGE: usize = 64 << 20;
const REPORTS: u32 = 10_000;
/// The bytes that either side may hold at its worst: input and output, each as a frame, as text of
/// the user's, and once more while a buffer grows or an answer is put into its envelope.
const MOST_HELD: usize = 7 * MESSAGE;

#[derive(serde::Deserialize, schemars::JsonSchema)]
#[serde(crate = "mcpbolt::server::serde")]
#[schemars(crate = "mcpbolt::server::schemars")]
struct Take {
    text: String,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
#[serde(crate = "mcpbolt::server::serde")]
#[schemars(crate = "mcpbolt::server::schemars")]
struct Nothing {}

/// Not a test: the other process. Without its variable it has nothing to do.
#[test]
fn peer() {
    if std::env::var(ROLE).is_err() {
        return;
    }
    for end in [
        &std::io::stdin() as &dyn std::os::fd::AsFd,
        &std::io::stdout(),
    ] {
        assert_eq!(rustix::pipe::fcntl_setpipe_size(end, 4096).unwrap(), 4096);
    }
    std::thread::spawn(|| {
        let line = [b'e'; 1023];
        while std::io::stderr().write_all(&line).is_ok()
            && std::io::stderr().write_all(b"\n").is_ok()
        {}
    });
    let server = Server::builder("flood", "1.0.0")
        .tool(Tool::new("take"), |take: Take, _| async move {
            take.text.len().to_string()
        })
        .tool(
            Tool::new("give"),
            |_: Nothing, context: Context| async move {
                for n in 1..=REPORTS {
                    context.progress(n.into(), Some(REPORTS.into()), None);
                }
                "g".repeat(MESSAGE)
            },
        )
        .tool(Tool::new("peak"), |_: Nothing, _| async {
            PEAK.load(Relaxed).to_string()
        })
        .build()
        .unwrap();
    server.serve_stdio().wait().unwrap();
    std::process::exit(0);
}

/// R-PRG-05, R-STD-12.
#[test]
fn sixty_four_mib_and_ten_thousand_notifications_each_way_through_pipes_of_4_kib() {
    let _alone = alone();
    PEAK.store(LIVE.load(Relaxed), Relaxed);
    let mut config = Client::config("flood", "1.0.0");
    config.revisions = Revisions::only(Revision::V2025_11_25); // its clients report progress, too
    let floods = Arc::new(AtomicUsize::new(0));
    let lines = floods.clone();
    let running = ChildCommand::new(std::env::current_exe().unwrap())
        .args(["--exact", "duplex_flood::peer", "--nocapture", "--quiet"])
        .env(ROLE, "1")
        .stderr(Stderr::Lines(Box::new(move |_| {
            lines.fetch_add(1, Relaxed);
        })))
        .spawn()
        .unwrap()
        .connect(Arc::new(config), |_| ClientHost::new())
        .unwrap();
    let handle = running.handle().clone();
    block_on(handle.opened()).unwrap();
    let client = Client::new(handle.clone());

    let seen = Arc::new([AtomicUsize::new(0), AtomicUsize::new(0)]);
    let news = seen.clone();
    let give = client
        .call_tool("give", &json!({}))
        .on_progress(move |progress| {
            let last = news[0].swap(progress.progress as usize, Relaxed);
            assert!(last < progress.progress as usize, "in order");
            news[1].fetch_add(1, Relaxed);
        })
        .send()
        .unwrap();
    let take = client
        .call_tool("take", &json!({ "text": "t".repeat(MESSAGE) }))
        .send()
        .unwrap();
    for n in 0..REPORTS {
        let params = format!(r#"{{"progressToken":"of nothing","progress":{n}}}"#);
        handle
            .notify("notifications/progress", Some(&params))
            .unwrap();
    }

    assert_eq!(block_on(take).unwrap().text(), MESSAGE.to_string());
    let text = block_on(give).unwrap().text();
    assert!(text.len() == MESSAGE && text.bytes().all(|byte| byte == b'g'));
    assert_eq!(seen[0].load(Relaxed), REPORTS as usize, "the last report");
    println!("{} reports", seen[1].load(Relaxed));
    assert!(floods.load(Relaxed) > 1000, "{floods:?} lines of stderr");
    drop(text);

    let here = PEAK.load(Relaxed);
    let there = client.call_tool("peak", &json!({})).wait().unwrap().text();
    let there: usize = there.parse().unwrap();
    println!(
        "at most {} MiB here and {} MiB there",
        here >> 20,
        there >> 20
    );
    assert!(here <= MOST_HELD, "{here} bytes here");
    assert!(there <= MOST_HELD, "{there} bytes there");
    running.shutdown().unwrap();
}
