//! A server in a process of its own, so that what it holds can be told from what the test holds.

use std::io::{BufRead, BufReader, Lines, Write};
use std::net::SocketAddr;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use mcpbolt::io::{Address, ServeOptions};
use mcpbolt::server::{Arguments, Context, Server, Tool};
use serde_json::Value;

use crate::heap::LIVE;

const ROLE: &str = "MCPBOLT_TEST_LOAD";

/// The settings of the server, as `name=value` with a space between them.
#[derive(Clone, Copy)]
pub struct Setup(pub &'static str);

impl Setup {
    fn options(text: &str) -> ServeOptions {
        let mut options = ServeOptions::default();
        let http = &mut options.http;
        for (name, value) in text.split(' ').filter_map(|word| word.split_once('=')) {
            let number: usize = value.parse().unwrap();
            let time = Duration::from_millis(number as u64);
            match name {
                "max_sessions" => http.max_sessions = number,
                "session_ttl" => http.session_ttl = time,
                "header_timeout" => http.header_timeout = time,
                "stall_timeout" => http.limits.stall_timeout = time,
                "comment_interval" => http.comment_interval = time,
                "output_mark" => http.limits.output_mark_bytes = number,
                "output_cap" => http.limits.output_cap_bytes = number,
                "replay_bytes" => http.replay_bytes = number,
                "grace" => http.grace = time,
                _ => panic!("no such option: {name}"),
            }
        }
        options
    }
}

/// Not a test: the other process. Without its variable it has nothing to do.
#[test]
fn far() {
    let Ok(text) = std::env::var(ROLE) else {
        return;
    };
    let serving = server()
        .serve("http://127.0.0.1:0/mcp")
        .options(Setup::options(&text))
        .start()
        .unwrap();
    let Address::Http(url) = serving.address() else {
        panic!("no HTTP");
    };
    println!("PORT {}", url.port);
    // The other side asks by lines, and says by their end that it is over.
    for line in std::io::stdin().lines().map_while(Result::ok) {
        if line == GIVE_BACK {
            give_back();
        }
        println!("HEAP {}", LIVE.load(Relaxed));
        println!("TOLD {}", TOLD.load(Relaxed));
    }
    serving.stop();
    serving.wait();
    std::process::exit(0);
}

/// The request to return free memory first, which holds up all connections for a while.
const GIVE_BACK: &str = "give back";

/// Calls of `tell` that are over.
static TOLD: AtomicUsize = AtomicUsize::new(0);

fn text(arguments: &Arguments) -> String {
    let arguments: Value = serde_json::from_str(&arguments.0).unwrap();
    arguments["text"].as_str().unwrap_or_default().to_owned()
}

fn server() -> Server {
    Server::builder("load", "1.0.0")
        .list_changes()
        .tool(Tool::new("echo"), |arguments: Arguments, _| async move {
            text(&arguments)
        })
        .tool(
            Tool::new("late"),
            |arguments: Arguments, context: Context| async move {
                context.sleep(Duration::from_millis(300)).await;
                text(&arguments)
            },
        )
        .tool(
            Tool::new("sleep"),
            |_: Arguments, context: Context| async move {
                context.sleep(Duration::from_secs(600)).await;
            },
        )
        .tool(
            Tool::new("tell"),
            |arguments: Arguments, context: Context| async move {
                let arguments: Value = serde_json::from_str(&arguments.0).unwrap();
                for n in 0..arguments["times"].as_u64().unwrap_or_default() {
                    context.progress(n as f64, None, None);
                    context.log(
                        mcpbolt::mcp::LogLevel::Error,
                        None,
                        &"something happened".into(),
                    );
                    if n % 16 == 15 {
                        // Others are served, too.
                        context.sleep(Duration::from_millis(1)).await;
                    }
                }
                TOLD.fetch_add(1, Relaxed);
                "told"
            },
        )
        .build()
        .unwrap()
}

/// Returns free memory to the system: the C library otherwise keeps it for the next
/// allocation.
fn give_back() {
    unsafe extern "C" {
        fn malloc_trim(keep: usize) -> i32;
    }
    // SAFETY: the C library's own function, which takes any number at any time.
    unsafe { malloc_trim(0) };
}

/// The other process; ends with the test.
pub struct Far {
    pub at: SocketAddr,
    process: Child,
    heap: usize,
    told: usize,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Far {
    pub fn begin(setup: Setup) -> Self {
        let mut process = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "far::far", "--nocapture", "--quiet"])
            .env(ROLE, setup.0)
            // One heap for all threads: what is free is scattered over several otherwise.
            .env("MALLOC_ARENA_MAX", "1")
            // A file for each of so many connections is too much.
            .env_remove(mcpbolt::io::TRACE_VARIABLE)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let port = lines
            .find_map(|line| line.unwrap().strip_prefix("PORT ").map(str::to_owned))
            .unwrap();
        let at = ([127, 0, 0, 1], port.parse().unwrap()).into();
        Self {
            at,
            process,
            heap: 0,
            told: 0,
            lines,
        }
    }

    /// Bytes of memory that the process holds.
    pub fn resident(&self) -> usize {
        let status = format!("/proc/{}/status", self.process.id());
        let status = std::fs::read_to_string(status).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kib = line.and_then(|line| line.trim().strip_suffix(" kB"));
        kib.unwrap().trim().parse::<usize>().unwrap() << 10
    }

    fn ask(&mut self, question: &str) {
        writeln!(self.process.stdin.as_mut().unwrap(), "{question}").unwrap();
        // The harness tells that this takes long.
        let mut lines = self.lines.by_ref().map(Result::unwrap);
        let heap = lines.find_map(|line| line.strip_prefix("HEAP ")?.parse().ok());
        let told = lines.find_map(|line| line.strip_prefix("TOLD ")?.parse().ok());
        (self.told, self.heap) = (told.unwrap(), heap.unwrap());
    }

    /// Bytes that it has allocated.
    pub fn allocated(&mut self) -> usize {
        self.ask("?");
        self.heap
    }

    /// The same, and bytes of memory that it holds when what is free has gone back to the system.
    pub fn held(&mut self) -> (usize, usize) {
        self.ask(GIVE_BACK);
        (self.heap, self.resident())
    }

    /// Calls of `tell` that were over when it was last asked what it holds.
    pub fn told(&self) -> usize {
        self.told
    }

    /// Asks it to end.
    pub fn stop(&mut self) {
        drop(self.process.stdin.take());
    }

    /// How long it takes to end, once asked.
    pub fn ended(mut self) -> Duration {
        let begun = Instant::now();
        self.stop();
        assert!(self.process.wait().unwrap().success());
        begun.elapsed()
    }
}

impl Drop for Far {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
