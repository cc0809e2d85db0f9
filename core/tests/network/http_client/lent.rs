//! Sessions of 2025-11-25 that share a connection to a server of 2026-07-28 alone, through a front on HTTP.

use std::sync::atomic::Ordering;

use mcpbolt::chain::{External, Front};
use mcpbolt::client::{Client, block_on};
use mcpbolt::io::http::HttpOptions;
use mcpbolt::io::{self, ConnectOptions, ServeOptions};
use mcpbolt::mcp::{Revision, Revisions};
use serde_json::json;

use super::serving::{Serving, builder};
use super::until;

const OLD: Revision = Revision::NEWEST_HANDSHAKE;

/// More than the requests that a client on HTTP has in flight by default.
const SLOW: usize = 200;

/// A front before a server at an address, whose era a client has found out.
fn front(server: &Serving, max_concurrent: Option<usize>) -> io::Serving {
    let address = server.url().parse().unwrap();
    let mut options = ConnectOptions::default();
    options.http.max_concurrent = max_concurrent;
    let external = External::at("far", address, options);
    let anywhere = "http://127.0.0.1:0/mcp".parse().unwrap();
    let front = Front::new(external).serve(&anywhere, ServeOptions::default());
    let front = front.unwrap();
    drop(open(&front));
    front
}

fn open(front: &io::Serving) -> Client {
    let mut options = ConnectOptions::default();
    options.http.max_concurrent = Some(2 * SLOW);
    block_on(builder(OLD).open(front.address(), options)).unwrap()
}

fn speaking(revision: Revision, at: &str) -> Serving {
    let at = at.parse().unwrap();
    Serving::speaking(Revisions::only(revision), at, HttpOptions::default())
}

/// Slow calls of one client take nothing from another.
#[test]
fn slow_calls_of_a_client_hold_up_no_other() {
    let server = speaking(Revision::NEWEST, "127.0.0.1:0");
    let front = front(&server, None);
    let (slow, other) = (open(&front), open(&front));
    let calls: Vec<_> = (0..SLOW)
        .map(|_| slow.call_tool("sleep", &json!({})).send().unwrap())
        .collect();
    until("all are under way", || {
        server.sleepers.load(Ordering::SeqCst) == SLOW
    });
    let answer = other.call_tool("echo", &json!({"text": "a"})).wait();
    assert_eq!(answer.unwrap().text(), "a");
    assert_eq!(server.sleepers.load(Ordering::SeqCst), SLOW);
    drop(calls);
}

/// The same limit, as the program may set it, for requests of a front.
#[test]
fn a_front_has_no_more_requests_under_way_than_the_program_says() {
    let server = speaking(Revision::NEWEST, "127.0.0.1:0");
    let front = front(&server, Some(128));
    let client = open(&front);
    let calls: Vec<_> = (0..SLOW)
        .map(|_| client.call_tool("sleep", &json!({})).send().unwrap())
        .collect();
    let sleepers = || server.sleepers.load(Ordering::SeqCst);
    until("as many as may be are under way", || sleepers() == 128);
    std::thread::sleep(std::time::Duration::from_millis(100));
    assert_eq!(sleepers(), 128);
    drop(calls);
}

/// R-CHN-14, R-ERA-07: another server takes the address, and speaks an older revision.
#[test]
fn sessions_outlive_the_era_of_a_server() {
    let server = speaking(Revision::NEWEST, "127.0.0.1:0");
    let front = front(&server, None);
    let clients = [open(&front), open(&front)];
    let says = |client: &Client| {
        let answer = client.call_tool("echo", &json!({"text": "a"})).wait();
        answer.is_ok_and(|answer| answer.text() == "a")
    };
    assert!(clients.iter().all(says));
    let at = server.address().to_string();
    server.end();
    let server = speaking(OLD, &at);
    for client in &clients {
        until("it is answered again", || says(client));
    }
    drop((clients, server));
}
