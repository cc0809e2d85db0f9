//! The merged list of 500 tools of 20 servers from what a front keeps, beside a request that has next to no answer, and beside a copy
//! of the same bytes. Answers are checked, then contenders take turns. Figures are CPU time, medians over the rounds.
//!
//! `cargo xtask bench lists [--quick]`
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a program that measures prints its figures and stops at the first surprise"
)]

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use mcpbolt::chain::{External, Front, Prefix};
use mcpbolt::client::block_on;
use mcpbolt::connection::{Connection, Framing, StreamId};
use mcpbolt::handler::{Job, Spawner};
use mcpbolt::json::writer;
use mcpbolt::mcp::{Revision, meta};
use mcpbolt::server::{Arguments, CacheScope, Hosting, Server, ServerHost, Tool};
use mcpbolt_benches::harness::{Contender, measure, print};
use serde_json::{Value, json};

const SERVERS: usize = 20;
const TOOLS: usize = 25;

/// Runs each job on a thread of its own: only those that open connections.
struct Threads;

impl Spawner for Threads {
    fn spawn(&self, job: Job) {
        thread::spawn(|| block_on(job));
    }
}

fn server(index: usize) -> Server {
    let mut server = Server::builder(format!("s{index}"), "1.0.0")
        .cache_lists(Duration::from_secs(3600), CacheScope::Public)
        .page_size(TOOLS.try_into().unwrap());
    for tool in 0..TOOLS {
        let text = "Looks for documents that have all of the words, newest first, in one collection or in all.";
        let tool = Tool::new(format!("tool_{tool}")).description(text);
        server = server.tool(tool, |_: Arguments, _| async { "" });
    }
    server.build().unwrap()
}

/// A client of the stateless era.
struct Near {
    connection: Connection,
    host: ServerHost,
    stream: StreamId,
}

impl Near {
    fn new(hosting: &dyn Hosting) -> Self {
        let mut connection = Connection::new(hosting.config().clone(), Instant::now());
        let stream = connection.open_stream(Framing::Line);
        let host = hosting.host(connection.handle(), None);
        Self {
            connection,
            host,
            stream,
        }
    }

    fn say(&mut self, line: &str) {
        let input = self.connection.input(self.stream);
        input.extend(line.as_bytes());
        self.connection
            .receive(self.stream, Instant::now(), &mut self.host);
    }

    /// Writes what was answered since the last time to `answer`.
    fn hear(&mut self, answer: &mut Vec<u8>) {
        self.connection
            .handle_submissions(Instant::now(), &mut self.host);
        answer.clear();
        for piece in self.connection.output(self.stream).take() {
            answer.extend_from_slice(&piece);
        }
    }

    /// An answer that may take a while.
    fn ask(&mut self, line: &str) -> Vec<u8> {
        self.say(line);
        let mut answer = Vec::new();
        while answer.is_empty() {
            thread::sleep(Duration::from_millis(1));
            self.hear(&mut answer);
        }
        answer
    }
}

fn line(method: &str) -> String {
    let own =
        json!({meta::PROTOCOL_VERSION: Revision::NEWEST.name(), meta::CLIENT_CAPABILITIES: {}});
    let request = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": {"_meta": own}});
    format!("{request}\n")
}

fn main() {
    let is_quick = std::env::args().any(|it| it == "--quick");
    let external = |index: usize| {
        let prefix = Prefix::new(format!("s{index}")).unwrap();
        External::server(format!("s{index}"), &server(index)).prefix(prefix)
    };
    let front = (1..SERVERS).fold(Front::new(external(0)), |front, index| {
        front.join(external(index)).unwrap()
    });
    let hosting = front.hosting(Arc::new(Threads));
    let mut near = Near::new(&*hosting);
    let (list, small) = (line("tools/list"), line("prompts/get"));
    near.ask(&list);
    let kept = near.ask(&list);
    let value: Value = serde_json::from_slice(&kept).unwrap();
    let count = value["result"]["tools"].as_array().unwrap().len();
    assert_eq!(count, SERVERS * TOOLS);
    assert!(value["result"]["ttlMs"].as_u64().unwrap() > 0);

    let text = String::from_utf8(kept).unwrap().trim_end().to_owned();
    let bytes = text.len();
    let (mut other, mut answer, mut copy) = (Near::new(&*hosting), Vec::new(), Vec::new());
    other.ask(&small);
    let mut small_answer = Vec::new();
    let mut contenders = [
        Contender::new("the same bytes, copied twice", || {
            copy.clear();
            writer::append_compact(&mut copy, &text);
            answer.clear();
            answer.extend_from_slice(&copy);
            answer.len()
        }),
        Contender::new("a request without params", || {
            other.say(&small);
            other.hear(&mut small_answer);
            assert!(!small_answer.is_empty());
        }),
        Contender::new("the kept list of all servers", {
            let mut answer = Vec::new();
            move || {
                near.say(&list);
                near.hear(&mut answer);
                assert!(answer.len() + 32 > bytes);
            }
        }),
    ];
    let rounds = if is_quick { 20 } else { 400 };
    print(&measure(
        "500 tools of 20 servers",
        bytes,
        1,
        rounds,
        &mut contenders,
    ));
}
