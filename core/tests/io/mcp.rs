//! A server and a client of the engine, as two processes.

use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use mcpbolt::client::{Client, block_on};
use mcpbolt::connection::{
    Answer, Batch, CallKey, Config, Connection, Disposition, Framing, Host, IncomingRequest,
};
use mcpbolt::error::{ConnectionError, RequestError};
use mcpbolt::handler::{Job, Spawner};
use mcpbolt::io::{ChildCommand, Hosted, Running, Stderr, Stdio, StdioOptions};
use mcpbolt::mcp::{ErrorKind, Side};
use mcpbolt::server::{Arguments, Server, Tool, schemars, serde};
use serde_json::json;

use super::peer::{child, is_running};

#[derive(serde::Deserialize, schemars::JsonSchema)]
#[serde(crate = "mcpbolt::server::serde")]
#[schemars(crate = "mcpbolt::server::schemars")]
struct Echo {
    text: String,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
#[serde(crate = "mcpbolt::server::serde")]
#[schemars(crate = "mcpbolt::server::schemars")]
struct Block {
    ms: u64,
}

/// The server's process.
pub fn serve(grace: Duration, once: bool) {
    let options = StdioOptions {
        grace,
        signals: true,
        once,
        ..StdioOptions::default()
    };
    let report = server().serve_stdio().options(options).wait().unwrap();
    eprintln!("REPORT {report:?}");
}

/// The server's process, with all handlers on one thread, which helps the loop.
pub fn serve_helped(grace: Duration) {
    struct Helper(mpsc::Sender<Job>);
    impl Spawner for Helper {
        fn spawn(&self, job: Job) {
            self.0.send(job).unwrap();
        }
    }
    let stdio = Stdio::take(StdioOptions {
        grace,
        ..StdioOptions::default()
    });
    let (stdio, server) = (stdio.unwrap(), server());
    let (jobs, waiting) = mpsc::channel();
    let connection = Connection::new(server.config().clone(), Instant::now());
    connection.set_wake(stdio.wake().clone());
    let host = server.host(connection.handle(), None, Arc::new(Helper(jobs)));
    let machine = Hosted::new(connection, Framing::Detect, host);
    let (drive, helper) = stdio.helped(machine).unwrap();
    std::thread::spawn(move || {
        for job in waiting {
            helper.run(|| block_on(job));
        }
    });
    let report = drive().unwrap();
    eprintln!("REPORT {report:?}");
}

fn server() -> Server {
    Server::builder("test", "1.0.0")
        .actions(true)
        .tool(Tool::new("echo"), |echo: Echo, _| async move { echo.text })
        .tool(Tool::new("pid"), |_: Arguments, _| async {
            std::process::id().to_string()
        })
        .tool(Tool::new("block"), |block: Block, _| async move {
            std::thread::sleep(Duration::from_millis(block.ms));
            println!("not for the wire");
            "slept".to_owned()
        })
        .build()
        .unwrap()
}

/// A client that serves nothing itself.
struct Nothing;

impl Host for Nothing {
    fn request(&mut self, _: IncomingRequest<'_>, answer: Answer<'_>) -> Disposition {
        answer.error(ErrorKind::MethodNotFound, "not offered", None)
    }
    fn dispatch(&mut self, _: Batch) {}
    fn cancelled(&mut self, _: CallKey, _: Option<&str>) {}
}

fn connect() -> (Client, Running) {
    connect_to("mcp")
}

fn connect_to(role: &str) -> (Client, Running) {
    let command = child(role).stderr(Stderr::Discard);
    let config = Arc::new(Config::new(Side::Client, "test", "1.0.0"));
    let running = command
        .spawn()
        .unwrap()
        .connect(config, |_| Nothing)
        .unwrap();
    let handle = running.handle().clone();
    block_on(handle.opened()).unwrap();
    (Client::new(handle), running)
}

/// R-STD-11.
#[test]
fn a_client_is_had_in_one_line_and_its_child_ends_with_its_last_clone() {
    let client = block_on(Client::spawn(child("mcp").stderr(Stderr::Discard))).unwrap();
    let pid = client.call_tool("pid", &json!({})).wait().unwrap().text();
    let pid = pid.parse().unwrap();
    let clone = client.clone();
    drop(client);
    let echo = clone.call_tool("echo", &json!({"text": "still here"}));
    assert_eq!(echo.wait().unwrap().text(), "still here");
    assert!(is_running(pid));
    let handle = clone.handle().clone();
    drop(clone);
    let begun = Instant::now();
    while is_running(pid) || !handle.is_closed() {
        assert!(
            begun.elapsed() < Duration::from_secs(30),
            "it is still there"
        );
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn what_cannot_be_started_is_an_error_at_once() {
    let error = block_on(Client::spawn(ChildCommand::new("/no/such/program"))).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::NotFound);
    let deaf = ChildCommand::new("true");
    let error = block_on(Client::spawn(deaf)).unwrap_err();
    let why = error
        .get_ref()
        .and_then(|why| why.downcast_ref::<RequestError>());
    assert!(matches!(why, Some(RequestError::Closed(_))), "{error}");
}

#[test]
fn calls_of_every_size_come_back_in_any_number_at_once() {
    for role in ["mcp", "helped"] {
        calls_of_every_size(connect_to(role));
    }
}

/// The last answer of one call and the first bytes of the next meet at the moment at which the loop falls asleep.
#[test]
fn answers_by_a_helper_are_written_while_the_loop_sleeps_and_while_it_is_awake() {
    let (client, running) = connect_to("helped");
    for round in 0..2000 {
        let echo = |n: usize| {
            let text = format!("{round} {n}");
            let call = client.call_tool("echo", &json!({ "text": text }));
            (text, call.send().unwrap())
        };
        let calls: Vec<_> = (0..round % 4 + 1).map(echo).collect();
        for (text, call) in calls {
            assert_eq!(block_on(call).unwrap().text(), text);
        }
    }
    // The loop ends in a turn of the helper: after the answer nothing is in flight.
    let slow = client.call_tool("block", &json!({ "ms": 300 }));
    let slow = slow.send().unwrap();
    std::thread::sleep(Duration::from_millis(50));
    terminate(&running);
    assert_eq!(block_on(slow).unwrap().text(), "slept");
    assert_eq!(running.wait().unwrap().status.code(), Some(7));
}

fn terminate(running: &Running) {
    let pid = rustix::process::Pid::from_raw(running.id() as i32).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
}

fn calls_of_every_size((client, running): (Client, Running)) {
    for len in [1, 100, 70_000, 3 << 20] {
        let text: String = std::iter::repeat_n('x', len).collect();
        let at_once = if len > 100_000 { 3 } else { 64 };
        let calls: Vec<_> = (0..at_once)
            .map(|n| {
                let call = client.call_tool("echo", &json!({ "text": format!("{n}{text}") }));
                call.send().unwrap()
            })
            .collect();
        for (n, call) in calls.into_iter().enumerate() {
            assert!(block_on(call).unwrap().text() == format!("{n}{text}"));
        }
    }
    let exit = running.shutdown().unwrap();
    assert!(
        exit.status.success() || exit.status.code() == Some(7),
        "{exit:?}"
    );
}

#[test]
fn a_handler_that_blocks_delays_only_itself() {
    let (client, running) = connect();
    let start = Instant::now();
    let blocked = client
        .call_tool("block", &json!({ "ms": 1000 }))
        .send()
        .unwrap();
    for _ in 0..50 {
        let call = client.call_tool("echo", &json!({ "text": "x" }));
        assert_eq!(call.wait().unwrap().text(), "x");
    }
    assert!(
        start.elapsed() < Duration::from_millis(900),
        "{:?}",
        start.elapsed()
    );
    assert_eq!(block_on(blocked).unwrap().text(), "slept");
    drop(running);
}

#[test]
fn however_many_handlers_block_the_rest_goes_on() {
    let (client, running) = connect();
    let block = |ms: u64| client.call_tool("block", &json!({ "ms": ms })).send();
    let blocked: Vec<_> = (0..50).map(|_| block(1000).unwrap()).collect();
    let mut took: Vec<Duration> = (0..20)
        .map(|_| {
            let start = Instant::now();
            let call = client.call_tool("echo", &json!({ "text": "x" }));
            assert_eq!(call.wait().unwrap().text(), "x");
            start.elapsed()
        })
        .collect();
    took.sort();
    // A tick of 2 ms and a thread to be woken; with slack, on a machine that is shared.
    assert!(took[10] < Duration::from_millis(200), "{took:?}");
    for call in blocked {
        assert_eq!(block_on(call).unwrap().text(), "slept");
    }
    drop(running);
}

#[test]
fn a_server_that_is_told_to_end_answers_what_it_has_and_refuses_the_rest() {
    let (client, running) = connect();
    let call = |ms: u64| client.call_tool("block", &json!({ "ms": ms })).send();
    let slow = call(300).unwrap();
    assert_eq!(block_on(call(1).unwrap()).unwrap().text(), "slept");
    terminate(&running);
    std::thread::sleep(Duration::from_millis(50));
    let refused = block_on(call(1).unwrap());
    assert!(
        matches!(&refused, Err(RequestError::Peer(error)) if &*error.message == "shutting down"),
        "{refused:?}"
    );
    assert_eq!(block_on(slow).unwrap().text(), "slept");
    assert!(!running.wait().unwrap().status.success());
}

#[test]
fn every_pending_call_learns_at_once_that_the_server_died() {
    let (client, running) = connect();
    let calls: Vec<_> = (0..100)
        .map(|_| {
            client
                .call_tool("block", &json!({ "ms": 60_000 }))
                .send()
                .unwrap()
        })
        .collect();
    let killer = running.id();
    std::thread::sleep(Duration::from_millis(100));
    let pid = rustix::process::Pid::from_raw(killer as i32).unwrap();
    let start = Instant::now();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    for call in calls {
        let error = block_on(call).unwrap_err();
        let RequestError::Closed(ConnectionError::PeerExited(how)) = &error else {
            panic!("{error:?}")
        };
        assert!(how.contains('9'), "{how}");
    }
    assert!(
        start.elapsed() < Duration::from_millis(500),
        "{:?}",
        start.elapsed()
    );
    let refused = client.call_tool("echo", &json!({ "text": "x" })).wait();
    assert!(
        matches!(refused, Err(RequestError::Closed(_))),
        "{refused:?}"
    );
    assert!(!running.wait().unwrap().status.success());
}

#[test]
fn a_dropped_connection_takes_its_child_along() {
    let (client, running) = connect();
    let pid = running.id();
    let wedged = client
        .call_tool("block", &json!({ "ms": 60_000 }))
        .send()
        .unwrap();
    drop(running);
    assert!(block_on(wedged).is_err());
    assert!(super::peer::eventually(Duration::from_secs(10), || {
        !is_running(pid)
    }));
}

/// R-ACT-20, R-STD-14: a process for one action; what it says on stderr comes with the answer.
#[test]
fn a_process_for_one_action_is_heard_out() {
    let tool = |answer: &str| {
        let script = format!("read -r line; echo 'the disk is old' >&2; echo '{answer}'");
        mcpbolt::io::ChildCommand::new("sh").args(["-c", &script])
    };
    let params = serde_json::json!({"path": "a.txt"});
    let good = r#"{"status":"success","data":{"size":7},"metadata":{"server_id":"sh"}}"#;
    let answer = tool(good).act("file.measure", &params).unwrap();
    assert_eq!(answer.data()["size"], 7);
    let metadata: serde_json::Value = serde_json::from_str(&answer.metadata).unwrap();
    let expected = serde_json::json!({"server_id": "sh", "stderr": "the disk is old\n"});
    assert_eq!(metadata, expected);
    let bad = r#"{"status":"error","error":{"type":"CONFLICT","message":"no"}}"#;
    match tool(bad).act("file.measure", &params) {
        Err(mcpbolt::client::ActionFailure::Answered(error)) => {
            assert_eq!(error.spelling, "CONFLICT");
            assert!(error.metadata().contains("the disk is old"), "{error:?}");
        }
        other => panic!("{other:?}"),
    }
    // None of its output is an answer; its stderr is the only explanation.
    match tool("").act("file.measure", &params) {
        Err(failure @ mcpbolt::client::ActionFailure::Silent { .. }) => {
            assert!(
                failure
                    .to_string()
                    .ends_with("the program wrote: the disk is old"),
                "{failure}"
            );
        }
        other => panic!("{other:?}"),
    }
    let none = mcpbolt::io::ChildCommand::new("/nowhere/at/all").act("a", &params);
    assert!(none.is_err());
}
