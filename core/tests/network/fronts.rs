//! What a front makes of its connections to servers, as such a server sees it.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test: panicking is the report"
)]

use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use mcpbolt::chain::{External, Front};
use mcpbolt::client::{Client, block_on};
use mcpbolt::connection::OpeningMode;
use mcpbolt::io::{ConnectOptions, ServeOptions, Serving, serve_with};

use crate::ending::serve;

type Verbs = Arc<Mutex<Vec<String>>>;

fn front() -> (Serving, Verbs) {
    let verbs = Verbs::default();
    let far = serve(verbs.clone()).parse().unwrap();
    let front = Front::new(External::at("far", far, ConnectOptions::default()));
    let anywhere = "http://127.0.0.1:0/mcp".parse().unwrap();
    let serving = front.serve(&anywhere, ServeOptions::default()).unwrap();
    (serving, verbs)
}

/// A client with a session.
fn open(serving: &Serving, standing_stream: bool) -> Client {
    let mut options = ConnectOptions::default();
    options.http.standing_stream = standing_stream;
    let client = Client::builder("test", "1").opening(OpeningMode::Handshake);
    block_on(client.open(serving.address(), options)).unwrap()
}

fn wait_for(verbs: &Verbs, verb: &str) {
    let begun = Instant::now();
    while !verbs.lock().unwrap().iter().any(|it| it == verb) {
        assert!(
            begun.elapsed() < Duration::from_secs(20),
            "no {verb} in {:?}",
            verbs.lock()
        );
        thread::sleep(Duration::from_millis(5));
    }
}

/// R-HTP-11: a stream that nobody reads costs both servers memory and a connection.
#[test]
fn a_server_is_asked_for_its_stream_once_the_client_reads_it() {
    let (serving, verbs) = front();
    drop(open(&serving, false));
    wait_for(&verbs, "DELETE");
    let seen = verbs.lock().unwrap().clone();
    assert!(!seen.iter().any(|verb| verb == "GET"), "{seen:?}");
    let _client = open(&serving, true);
    wait_for(&verbs, "GET");
}

/// R-SES-06.
#[test]
fn sessions_with_servers_are_ended_before_the_front_is() {
    let (serving, verbs) = front();
    let _client = open(&serving, false);
    serving.stop();
    serving.wait();
    assert_eq!(verbs.lock().unwrap().last().unwrap(), "DELETE");
}

/// The same where clients share the session, and where the program keeps the front.
#[test]
fn what_clients_share_is_ended_with_the_front() {
    let verbs = Verbs::default();
    let far = serve(verbs.clone()).parse().unwrap();
    let front = Front::new(External::at("far", far, ConnectOptions::default()));
    let mut kept = None;
    let host = |spawner| kept.insert(front.hosting(spawner)).clone();
    let anywhere = "http://127.0.0.1:0/mcp".parse().unwrap();
    let serving = serve_with(host, &anywhere, ServeOptions::default()).unwrap();
    let client = Client::builder("test", "1").opening(OpeningMode::Stateless);
    let options = ConnectOptions::default();
    let client = block_on(client.open(serving.address(), options)).unwrap();
    // This server has no tools.
    assert!(block_on(client.list_tools()).is_err());
    serving.stop();
    serving.wait();
    assert_eq!(verbs.lock().unwrap().last().unwrap(), "DELETE");
}
