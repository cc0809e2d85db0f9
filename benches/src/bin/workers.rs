//! Calls of `mcpbolt serve --workers`: the processor time of one with as many workers as there are cores, beside one worker; and
//! what it adds to a call that it comes to another worker than its session's. Answers are checked, and contenders take turns.
//!
//! `cargo xtask bench workers [--quick]`
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a program that measures prints its figures and stops at the first surprise"
)]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::available_parallelism;
use std::time::{Duration, Instant};

use mcpbolt_benches::rounds::{interval, median};
use serde_json::Value;

const TOOL: &str = "test_simple_text";
const TEXT: &str = "This is a simple text response for testing.";
/// Calls in flight. On HTTP/1.1 each has a socket of its own, so all workers are at work.
const IN_FLIGHT: &str = "32";

fn main() {
    let is_quick = std::env::args().any(|it| it == "--quick");
    let (rounds, length, calls) = match is_quick {
        true => (3, "300ms", 200),
        false => (20, "1s", 2000),
    };
    let built = std::env::current_exe().unwrap();
    let command = built.with_file_name("mcpbolt");
    let cores = available_parallelism().map_or(2, usize::from).max(2);
    cost_of_workers(&command, cores, rounds, length);
    cost_of_a_hop(&command, rounds, calls);
}

fn cost_of_workers(command: &Path, workers: usize, rounds: usize, length: &str) {
    let (one, many) = (Tree::new(command, 1), Tree::new(command, workers));
    let (mut ones, mut manys, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..rounds {
        let (of_one, of_many) = (one.load(length), many.load(length));
        ones.push(of_one);
        manys.push(of_many);
        ratios.push(of_many / of_one);
    }
    println!(
        "{workers} workers: {:.1} µs of CPU a call, one worker {:.1} µs",
        median(manys),
        median(ones)
    );
    println!("           {} times as much", interval(ratios));
}

fn cost_of_a_hop(command: &Path, rounds: usize, calls: usize) {
    let tree = Tree::new(command, 2);
    let mut own = Connection::new(&tree.place);
    let mut other = Connection::new(&tree.place);
    while other.worker() == own.worker() {
        other = Connection::new(&tree.place);
    }
    let session = own.session.clone();
    let (mut direct, mut passed, mut added) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..rounds {
        let (mut directs, mut passeds) = (Vec::new(), Vec::new());
        for _ in 0..calls {
            directs.push(own.call(&session));
            passeds.push(other.call(&session));
        }
        let (one, other) = (median(directs), median(passeds));
        direct.push(one);
        passed.push(other);
        added.push(other - one);
    }
    println!(
        "p50 at another worker than the session's: {:.1} µs, at its own {:.1} µs",
        median(passed),
        median(direct)
    );
    println!("           {} µs more", interval(added));
}

/// A running `mcpbolt serve --workers`; ends when dropped.
struct Tree {
    process: Child,
    command: PathBuf,
    address: String,
    place: String,
}

impl Tree {
    fn new(command: &Path, workers: usize) -> Self {
        let mut process = Command::new(command)
            .args(["serve", "http://127.0.0.1:0/mcp", "--log", "warn"])
            .args(["--workers", &workers.to_string()])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut address = String::new();
        let mut said = BufReader::new(process.stdout.take().unwrap());
        said.read_line(&mut address).unwrap();
        let address = address.trim().to_owned();
        let place = address.strip_prefix("http://").unwrap();
        let place = place.strip_suffix("/mcp").unwrap().to_owned();
        Self {
            process,
            command: command.to_owned(),
            address,
            place,
        }
    }

    /// The processor time of a call in microseconds, of all processes of the server together.
    fn load(&self, length: &str) -> f64 {
        let name = format!("mcpbolt-bench-workers-{}", std::process::id());
        let report = std::env::temp_dir().join(name);
        let output = Command::new(&self.command)
            .args(["load", &self.address, "--tool", TOOL, "--expect", TEXT])
            .args(["--in-flight", IN_FLIGHT])
            .args(["--warm-up", "200ms", "--duration", length, "--json"])
            .arg(&report)
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        let figures: Value = serde_json::from_slice(&std::fs::read(&report).unwrap()).unwrap();
        std::fs::remove_file(report).unwrap();
        assert_eq!(figures["errors"], 0, "{figures}");
        figures["server_cpu_us_per_call"].as_f64().unwrap()
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        // The workers end when it has.
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

/// A connection to one worker, with a session of that worker.
struct Connection {
    stream: BufReader<TcpStream>,
    place: String,
    session: String,
}

impl Connection {
    fn new(place: &str) -> Self {
        let stream = TcpStream::connect(place).unwrap();
        stream.set_nodelay(true).unwrap();
        let mut connection = Self {
            stream: BufReader::new(stream),
            place: place.to_owned(),
            session: String::new(),
        };
        let (head, _) = connection.post(
            "",
            r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"b","version":"1"}}}"#,
        );
        let name = header(&head, "mcp-session-id").unwrap();
        connection.session =
            format!("Mcp-Session-Id: {name}\r\nMCP-Protocol-Version: 2025-06-18\r\n");
        let session = connection.session.clone();
        connection.post(
            &session,
            r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
        );
        connection
    }

    /// The number of its worker.
    fn worker(&self) -> &str {
        let name = self.session.lines().next().unwrap();
        name.rsplit_once('-').unwrap().1
    }

    /// Calls the tool, and returns how long that takes, in microseconds.
    fn call(&mut self, session: &str) -> f64 {
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"{TOOL}","arguments":{{}}}}}}"#
        );
        let begun = Instant::now();
        let (_, body) = self.post(session, &body);
        let took: Duration = begun.elapsed();
        assert!(body.contains(TEXT), "{body}");
        took.as_secs_f64() * 1e6
    }

    fn post(&mut self, headers: &str, body: &str) -> (String, String) {
        let (place, length) = (&self.place, body.len());
        let request = format!(
            "POST /mcp HTTP/1.1\r\nHost: {place}\r\nAccept: application/json, text/event-stream\r\n\
             Content-Type: application/json\r\nContent-Length: {length}\r\n{headers}\r\n{body}"
        );
        self.stream.get_mut().write_all(request.as_bytes()).unwrap();
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            assert_ne!(self.stream.read_line(&mut head).unwrap(), 0, "{head}");
        }
        assert!(head.starts_with("HTTP/1.1 20"), "{head}");
        let length = header(&head, "content-length").map_or(0, |it| it.parse().unwrap());
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body).unwrap();
        (head, String::from_utf8(body).unwrap())
    }
}

fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    let mut pairs = head.lines().filter_map(|line| line.split_once(": "));
    let found = pairs.find(|(own, _)| own.eq_ignore_ascii_case(name));
    found.map(|(_, value)| value)
}
