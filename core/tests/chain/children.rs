//! Clients that share a process.

use std::sync::Arc;
use std::time::{Duration, Instant};

use mcpbolt::chain::{External, Front, Isolation};
use mcpbolt::client::{Client, block_on};
use mcpbolt::connection::{OpeningMode, RequestOptions};
use mcpbolt::error::RequestError;
use mcpbolt::io::{ChildCommand, Workers, WorkersConfig};
use mcpbolt::mcp::{Revision, Revisions};
use mcpbolt::server::Hosting;
use serde_json::{Value, json};

/// A server whose tools say the number of its process.
const SERVER: &str = r#"
while read -r line; do
    id=$(printf %s "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
    case "$line" in
        *'"initialize"'*) result='{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"sh","version":"1"}}' ;;
        *) result='{"content":[],"process":'$$'}' ;;
    esac
    [ -n "$id" ] && echo '{"jsonrpc":"2.0","id":'"$id"',"result":'"$result"'}'
done
"#;

fn shared(idle_time: Duration) -> (Arc<dyn Hosting>, External) {
    let external = External::command("sh", || ChildCommand::new("sh").args(["-c", SERVER]))
        .isolation(Isolation::Shared)
        .idle_time(idle_time)
        .revisions(Revisions::only(Revision::NEWEST_HANDSHAKE));
    let workers = Arc::new(Workers::new(WorkersConfig::default()));
    (Front::new(external.clone()).hosting(workers), external)
}

fn connect(hosting: &Arc<dyn Hosting>) -> Client {
    let client = Client::builder("near", "1").opening(OpeningMode::Handshake);
    block_on(client.connect_hosted(&**hosting)).unwrap()
}

fn process(client: &Client) -> Result<u64, RequestError> {
    let options = RequestOptions::default();
    let call = client
        .handle()
        .request("tools/call", Some(r#"{"name":"x"}"#), options)?;
    let answer = block_on(call)?;
    let result: Value = serde_json::from_str(answer.as_ref().result().unwrap()).unwrap();
    Ok(result["process"]
        .as_u64()
        .unwrap_or_else(|| panic!("{result}")))
}

#[track_caller]
fn comes(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(20), "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn is_running(process: u64) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat"));
    stat.is_ok_and(|stat| !stat.rsplit(')').next().unwrap_or(" Z").starts_with(" Z"))
}

/// R-CHN-14: all have one process, and another one when it has ended.
#[test]
fn all_clients_share_a_process_and_its_successor() {
    let (hosting, external) = shared(Duration::from_secs(3600));
    let clients = [connect(&hosting), connect(&hosting)];
    let first = process(&clients[0]).unwrap();
    assert_eq!(process(&clients[1]).unwrap(), first);
    let killed = std::process::Command::new("kill")
        .args(["-9", &first.to_string()])
        .status();
    assert!(killed.unwrap().success());
    let mut second = first;
    // A call that the end of the process meets has an error.
    comes("a second process", || {
        second = process(&clients[0]).unwrap_or(first);
        second != first
    });
    assert_eq!(process(&clients[1]).unwrap(), second);
    let state = external.health().state();
    assert_eq!((state.opened, state.lost), (2, 1), "{state:?}");
}

#[test]
#[cfg(target_os = "linux")]
fn a_process_that_nobody_needs_ends_and_begins_again_with_the_next_call() {
    let (hosting, external) = shared(Duration::from_millis(50));
    let client = connect(&hosting);
    let first = process(&client).unwrap();
    // It belongs to a session for as long as that lasts.
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(process(&client).unwrap(), first);
    drop(client);
    comes("the end of the process", || !is_running(first));
    let second = process(&connect(&hosting)).unwrap();
    assert_ne!(second, first);
    let state = external.health().state();
    assert_eq!((state.opened, state.lost), (2, 0), "{state:?}");
    assert_eq!(json!(state.is_up), json!(true));
}

/// The number of processes is what `max_connections` bounds, and one that takes its time to end is still there.
#[test]
#[cfg(target_os = "linux")]
fn a_process_begins_when_the_one_whose_place_it_takes_has_ended() {
    let slow = format!("{SERVER}\nsleep 1");
    let command = move || ChildCommand::new("sh").args(["-c", &slow]);
    let external = External::command("sh", command)
        .max_connections(1)
        .revisions(Revisions::only(Revision::NEWEST_HANDSHAKE));
    let workers = Arc::new(Workers::new(WorkersConfig::default()));
    let hosting = Front::new(external).hosting(workers);
    let client = connect(&hosting);
    let first = process(&client).unwrap();
    drop(client);
    // The front learns only after a while that its client is gone.
    let mut next = None;
    comes("another client", || {
        let client = Client::builder("near", "1").opening(OpeningMode::Handshake);
        next = block_on(client.connect_hosted(&*hosting)).ok();
        next.is_some()
    });
    let second = process(&next.unwrap()).unwrap();
    assert_ne!(second, first);
    assert!(!is_running(first));
}

/// A server that knows no handshake is started for one, and then again: one after the other, in the only place.
#[test]
#[cfg(target_os = "linux")]
fn a_server_of_the_other_era_has_one_process_at_a_time() {
    let discovered = r#"{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"resultType":"complete","ttlMs":0,"cacheScope":"private"}"#;
    let running = std::env::temp_dir().join(format!("mcpbolt-one-process-{}", std::process::id()));
    // What a process of this number left that was killed.
    let _ = std::fs::remove_dir(&running);
    let server = format!(
        r#"
mkdir "$RUNNING" || exit 1
while read -r line; do
    id=$(printf %s "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
    case "$line" in
        *'"initialize"'*) answer='"error":{{"code":-32601,"message":"no"}}' ;;
        *'"server/discover"'*) answer='"result":{discovered}' ;;
        *) answer='"result":{{"content":[],"process":'$$',"resultType":"complete"}}' ;;
    esac
    [ -n "$id" ] && echo '{{"jsonrpc":"2.0","id":'"$id"','"$answer"'}}'
done
sleep 0.3
rmdir "$RUNNING"
"#
    );
    let place = running.clone();
    let command = move || {
        let command = ChildCommand::new("sh").args(["-c", &server]);
        command.env("RUNNING", &place)
    };
    let external = External::command("sh", command).max_connections(1);
    let workers = Arc::new(Workers::new(WorkersConfig::default()));
    let hosting = Front::new(external).hosting(workers);
    let client = connect(&hosting);
    process(&client).unwrap();
    drop(client);
    comes("the end of the process", || !running.exists());
}
