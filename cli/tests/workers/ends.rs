//! Workers that are killed, replaced or ended while clients call.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use crate::serving::Serving;
use crate::tree::{Tree, comes, is_alive, signal};

/// What became of the calls of some clients.
#[derive(Default)]
pub struct Tally {
    answered: AtomicUsize,
    /// Connections that broke off during a call.
    lost: AtomicUsize,
    /// Sessions that their clients had to begin again.
    pub begun_again: AtomicUsize,
    /// Requests that their clients had to send again: their worker could not be reached.
    sent_again: AtomicUsize,
    /// Anything else.
    wrong: AtomicUsize,
}

const CLIENTS: usize = 8;

/// Has clients call, each one call at a time, while `act` runs. Half of them have sessions, and begin another one when they
/// are told to, as R-SES-05 has it.
fn under_load(tree: &Tree, tool: &'static str, act: impl FnOnce(&Tally)) -> Tally {
    let (tally, is_over) = (Tally::default(), AtomicBool::new(false));
    thread::scope(|scope| {
        for number in 0..CLIENTS {
            let mut client = tree.client();
            let (tally, is_over) = (&tally, &is_over);
            scope.spawn(move || {
                let mut session = None::<String>;
                while !is_over.load(Relaxed) {
                    let answer = match (number % 2, &session) {
                        (0, _) => client.call(tool),
                        (_, Some(session)) => client.call_in(session, tool),
                        (_, None) => match client.begin() {
                            Ok(begun) => {
                                session = Some(begun);
                                continue;
                            }
                            Err(lost) => Err(lost),
                        },
                    };
                    match answer {
                        Ok(answer) if answer.status == 200 && !answer.text().is_empty() => {
                            tally.answered.fetch_add(1, Relaxed);
                        }
                        Ok(answer) if answer.status == 404 && session.is_some() => {
                            tally.begun_again.fetch_add(1, Relaxed);
                            session = None;
                        }
                        Ok(answer) if answer.status == 503 && answer.retry_after.is_some() => {
                            tally.sent_again.fetch_add(1, Relaxed);
                            thread::sleep(Duration::from_millis(10));
                        }
                        // The owner of the session was killed meanwhile.
                        Ok(answer) if answer.status == 502 => _ = tally.lost.fetch_add(1, Relaxed),
                        Ok(answer) => {
                            eprintln!("{answer:?}");
                            tally.wrong.fetch_add(1, Relaxed);
                        }
                        Err(error) => {
                            assert!(
                                error.kind() != std::io::ErrorKind::WouldBlock,
                                "a call hangs"
                            );
                            tally.lost.fetch_add(1, Relaxed);
                        }
                    }
                }
            });
        }
        let waits = || comes(|| tally.answered.load(Relaxed) > 50);
        assert!(waits(), "the clients call");
        act(&tally);
        let before = tally.answered.load(Relaxed);
        assert!(
            comes(|| tally.answered.load(Relaxed) > before + 50),
            "calls go on"
        );
        is_over.store(true, Relaxed);
    });
    tally
}

/// One by one, with calls in flight all the time, and without a lost one.
#[test]
fn workers_are_replaced_without_a_lost_call() {
    replaced(&Tree::new(2, &["--log", "info"]));
}

/// Replaces all workers twice while clients call, none of whose calls is lost.
pub fn replaced(tree: &Tree) -> Tally {
    let tally = under_load(tree, "test_tool_with_logging", |_| {
        for _ in 0..2 {
            let old = tree.workers();
            tree.signal("-HUP");
            assert!(tree.has_replaced(&old), "{}", tree.log());
        }
    });
    assert_eq!(tally.lost.load(Relaxed), 0, "{}", tree.log());
    assert_eq!(tally.sent_again.load(Relaxed), 0, "{}", tree.log());
    assert_eq!(tally.wrong.load(Relaxed), 0, "{}", tree.log());
    assert!(!tree.log().contains("takes too long"), "{}", tree.log());
    tally
}

/// A worker that is killed takes with it what it was doing, and nothing else: at most one call of each client.
#[test]
fn a_killed_worker_loses_its_own_calls_alone_and_is_replaced() {
    let tree = Tree::new(2, &["--log", "info"]);
    let tally = under_load(&tree, "test_tool_with_logging", |_| {
        let old = tree.workers();
        signal("-KILL", old[0]);
        let is_replaced = || {
            let now = tree.workers();
            now.len() == 2 && !now.contains(&old[0])
        };
        assert!(comes(is_replaced), "{}", tree.log());
        assert!(tree.workers().contains(&old[1]), "the other one serves on");
    });
    assert!(
        tally.lost.load(Relaxed) <= CLIENTS,
        "{}",
        tally.lost.load(Relaxed)
    );
    assert_eq!(tally.wrong.load(Relaxed), 0);
    let log = tree.log();
    assert!(
        log.contains("SIGKILL") && log.contains("another starts"),
        "{log}"
    );
}

#[test]
fn a_tree_that_is_asked_to_end_answers_what_it_was_asked() {
    let mut tree = Tree::new(2, &["--health", "http://127.0.0.1:0"]);
    let workers = tree.workers();
    let mut client = tree.client();
    let session = client.begin().unwrap();
    let mut call = client.open(&session, "test_tool_with_logging");
    let begun = call.next().unwrap();
    assert_eq!(begun["method"], "notifications/message", "{begun}");
    tree.signal("-TERM");
    let status = tree.serving.process.wait().unwrap();
    assert!(status.success(), "{status}: {}", tree.log());
    let answer = std::iter::from_fn(|| call.next()).find(|message| message["id"] == 1);
    assert!(answer.unwrap()["result"]["content"].is_array());
    assert!(!workers.into_iter().any(is_alive));
}

/// A client that comes while calls in flight end goes elsewhere at once, as to another machine of a load balancer.
#[test]
fn a_tree_that_is_asked_to_end_refuses_connections_while_calls_go_on() {
    let socket = std::env::temp_dir().join(format!("mcpbolt-refuses-{}", std::process::id()));
    let unix = format!("unix:{}", socket.display());
    for (address, reuse_port) in [
        ("tcp:127.0.0.1:0", None),
        ("tcp:127.0.0.1:0", Some("--reuse-port")),
        (&unix, None),
    ] {
        let own = ["serve", address, "--workers", "2", "--grace", "600"];
        let own: Vec<_> = own.into_iter().chain(reuse_port).collect();
        let mut tree = Tree::of(Serving::with(&own));
        let at = tree.serving.address.clone();
        let connect = || -> std::io::Result<Box<dyn Stream>> {
            Ok(match at.strip_prefix("tcp:") {
                Some(place) => Box::new(TcpStream::connect(place)?),
                None => Box::new(UnixStream::connect(&socket)?),
            })
        };
        let mut stream = BufReader::new(connect().unwrap());
        stream.get_mut().write_all(ASKS.as_bytes()).unwrap();
        let asked = line(&mut stream, "elicitation/create");
        tree.signal("-TERM");
        // The file of a Unix socket is removed.
        let expected = match at.starts_with("unix:") {
            true => ErrorKind::NotFound,
            false => ErrorKind::ConnectionRefused,
        };
        let refused = || connect().is_err_and(|it| it.kind() == expected);
        assert!(comes(refused), "{address}");
        assert!(tree.serving.process.try_wait().unwrap().is_none());
        let question: serde_json::Value = serde_json::from_str(&asked).unwrap();
        let id = &question["id"];
        let answer =
            format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{\"action\":\"decline\"}}}}\n");
        stream.get_mut().write_all(answer.as_bytes()).unwrap();
        let answer = line(&mut stream, "\"id\":2,\"result\"");
        assert!(answer.contains("\"content\""), "{answer}");
        drop(stream);
        let status = tree.serving.process.wait().unwrap();
        assert!(status.success(), "{address}: {}", tree.log());
        assert!(!tree.log().contains("WARN"), "{}", tree.log());
    }
}

/// The next line that has this text.
fn line(from: &mut impl BufRead, text: &str) -> String {
    let mut line = String::new();
    while !line.contains(text) {
        line.clear();
        assert_ne!(from.read_line(&mut line).unwrap(), 0, "{text}");
    }
    line
}

trait Stream: Read + Write {}
impl<T: Read + Write> Stream for T {}

/// A client that calls a tool, which asks it something.
const ASKS: &str = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{\"protocolVersion\":\"2025-06-18\",\
    \"capabilities\":{\"elicitation\":{}},\"clientInfo\":{\"name\":\"a\",\"version\":\"1\"}}}\n\
    {\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n\
    {\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/call\",\"params\":{\"name\":\"test_elicitation\",\"arguments\":{}}}\n";

#[test]
fn no_worker_outlives_its_supervisor() {
    let mut tree = Tree::new(3, &[]);
    let workers = tree.workers();
    assert_eq!(workers.len(), 3);
    tree.serving.process.kill().unwrap();
    tree.serving.process.wait().unwrap();
    assert!(comes(|| !workers.iter().copied().any(is_alive)));
}

/// R-HTP-07: the check of each worker is that of a server alone.
#[test]
fn a_tree_whose_workers_cannot_begin_fails_and_says_why() {
    for (args, why) in [
        (
            ["serve", "http://0.0.0.0:0/mcp", "--workers", "2"],
            "no verifier",
        ),
        (["serve", "stdio:", "--workers", "2"], "one process"),
        (
            ["serve", "unix:/no/such/folder/a", "--workers", "2"],
            "/no/such/folder",
        ),
        (["serve", "tcp:127.0.0.1:0", "--workers", "0"], "--workers"),
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_mcpbolt"))
            .args(args)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "{args:?}");
        assert!(said.contains(why), "{args:?}: {said}");
        assert!(output.stdout.is_empty(), "{args:?}");
    }
}

/// On every carrier but stdio.
#[test]
fn workers_share_any_socket() {
    let socket = std::env::temp_dir().join(format!("mcpbolt-workers-{}", std::process::id()));
    let unix = format!("unix:{}", socket.display());
    for address in ["ws://127.0.0.1:0/", "tcp:127.0.0.1:0", &unix] {
        let mut tree = Tree::of(Serving::with(&["serve", address, "--workers", "2"]));
        for _ in 0..2 {
            let old = tree.workers();
            let output = tree.serving.run(&["call", "test_simple_text"]);
            assert!(output.status.success(), "{address}: {output:?}");
            tree.signal("-HUP");
            assert!(tree.has_replaced(&old), "{address}: {}", tree.log());
        }
        tree.signal("-TERM");
        assert!(tree.serving.process.wait().unwrap().success());
    }
    assert!(!socket.exists(), "the file of the socket is removed");
}

/// A second signal waits for nobody.
#[test]
fn a_tree_that_is_asked_twice_ends_at_once() {
    let mut serving = Command::new(env!("CARGO_BIN_EXE_mcpbolt"))
        .args([
            "serve",
            "tcp:127.0.0.1:0",
            "--workers",
            "1",
            "--grace",
            "60",
        ])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut address = [0; 64];
    let read = serving.stdout.as_mut().unwrap().read(&mut address).unwrap();
    let address = std::str::from_utf8(&address[..read]).unwrap().trim();
    let mut stream = TcpStream::connect(address.strip_prefix("tcp:").unwrap()).unwrap();
    stream.write_all(ASKS.as_bytes()).unwrap();
    line(
        &mut BufReader::new(stream.try_clone().unwrap()),
        "elicitation/create",
    );
    signal("-TERM", serving.id());
    // Two signals that come together are one.
    thread::sleep(Duration::from_secs(1));
    assert!(serving.try_wait().unwrap().is_none(), "a call is in flight");
    signal("-TERM", serving.id());
    serving.wait().unwrap();
}
