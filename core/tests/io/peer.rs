//! This binary as another process.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::OwnedFd;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use mcpbolt::io::{self, StdioOptions};

use super::lines::Echo;

const ROLE: &str = "MCPBOLT_TEST_PEER";
const GRACE: &str = "MCPBOLT_TEST_GRACE_MS";

/// Not a test: the other process. Without its variable it has nothing to do.
#[test]
fn peer() {
    let Ok(role) = std::env::var(ROLE) else {
        return;
    };
    match role.as_str() {
        "serve" => serve(),
        #[cfg(all(feature = "client", feature = "server"))]
        "mcp" => super::mcp::serve(grace(), false),
        #[cfg(all(feature = "client", feature = "server"))]
        "helped" => super::mcp::serve_helped(grace()),
        "once" => super::mcp::serve(grace(), true),
        #[cfg(all(feature = "client", feature = "server"))]
        "notes" => super::reconnect::serve(),
        "parent" => {
            // Stdin and stdout are the server's, as with a wrapper.
            let mut child = command("serve").spawn().unwrap();
            // In one piece: the child writes there too, perhaps before this.
            let line = format!("CHILD {}\n", child.id());
            std::io::stderr().write_all(line.as_bytes()).unwrap();
            child.wait().unwrap();
        }
        "thread" => {
            let spawn = || command("serve").spawn().unwrap();
            let mut child = std::thread::spawn(spawn).join().unwrap();
            child.wait().unwrap();
        }
        "stderr" => {
            let line = [b'e'; 1024];
            for _ in 0..256 << 10 {
                std::io::stderr().write_all(&line).unwrap();
            }
            serve();
        }
        "tree" => {
            // Two generations that ignore what is polite, in the leader's group.
            let script =
                "trap '' TERM HUP; sleep 1000 & trap '' TERM; sh -c 'sleep 1000; true' & wait";
            Command::new("sh").args(["-c", script]).spawn().unwrap();
            serve();
        }
        "deaf" => {
            // Neither the end of stdin nor SIGTERM moves it.
            let mut shell = Command::new("sh");
            shell.args(["-c", "trap '' TERM; while :; do sleep 1; done"]);
            shell.spawn().unwrap().wait().unwrap();
        }
        "environment" => {
            for (name, value) in std::env::vars() {
                println!("{name}={value}");
            }
            println!("cwd={}", std::env::current_dir().unwrap().display());
            serve();
        }
        other => panic!("no such role: {other}"),
    }
    std::process::exit(7);
}

fn grace() -> Duration {
    Duration::from_millis(std::env::var(GRACE).map_or(5000, |ms| ms.parse().unwrap()))
}

fn serve() -> ! {
    let options = StdioOptions {
        grace: grace(),
        signals: true,
        exit_when_stuck: true,
        ..StdioOptions::default()
    };
    let stdio = io::Stdio::take(options).unwrap();
    eprintln!("READY");
    let report = stdio.run(&mut Echo::default()).unwrap();
    eprintln!("REPORT {report:?}");
    std::process::exit(0);
}

/// The command that starts this binary in that role.
pub fn command(role: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(ARGS).env(ROLE, role);
    command
}

const ARGS: [&str; 4] = ["--exact", "peer::peer", "--nocapture", "--quiet"];

/// The same for our own client.
pub fn child(role: &str) -> io::ChildCommand {
    io::ChildCommand::new(std::env::current_exe().unwrap())
        .args(ARGS)
        .env(ROLE, role)
        .inherit_env(io::TRACE_VARIABLE)
}

/// A peer with its three ends.
pub struct Peer {
    pub process: Child,
    pub stdin: Option<ChildStdin>,
    pub stdout: Option<BufReader<ChildStdout>>,
    stderr: BufReader<std::process::ChildStderr>,
}

impl Peer {
    pub fn start(role: &str, grace: Duration) -> Self {
        Self::with(role, grace, Stdio::piped(), Stdio::piped())
    }

    pub fn over(stdin: OwnedFd, stdout: OwnedFd) -> Self {
        Self::with("serve", Duration::from_secs(5), stdin.into(), stdout.into())
    }

    pub fn with(role: &str, grace: Duration, stdin: Stdio, stdout: Stdio) -> Self {
        let mut process = command(role)
            .env(GRACE, grace.as_millis().to_string())
            .stdin(stdin)
            .stdout(stdout)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        Self {
            stdin: process.stdin.take(),
            stdout: process.stdout.take().map(BufReader::new),
            stderr: BufReader::new(process.stderr.take().unwrap()),
            process,
        }
    }

    /// Reads stderr up to the line that starts so.
    pub fn await_stderr(&mut self, start: &str) -> String {
        loop {
            let mut line = String::new();
            let n = self.stderr.read_line(&mut line).unwrap();
            assert!(n > 0, "stderr ended before {start:?}");
            if line.starts_with(start) {
                return line.trim_end().to_owned();
            }
        }
    }

    pub fn send(&mut self, line: &str) {
        let stdin = self.stdin.as_mut().unwrap();
        stdin.write_all(format!("{line}\n").as_bytes()).unwrap();
    }

    /// The next line of stdout that is not the test harness's.
    pub fn receive(&mut self) -> String {
        next_line(self.stdout.as_mut().unwrap())
    }

    pub fn roundtrip(&mut self, line: &str) {
        self.send(line);
        assert_eq!(self.receive(), line);
    }

    /// Waits for the end; how it ended, its report, and how long it took.
    pub fn finish(mut self) -> (ExitStatus, String, Duration) {
        let start = Instant::now();
        let status = self.process.wait().unwrap();
        let took = start.elapsed();
        let mut rest = String::new();
        self.stderr.read_to_string(&mut rest).unwrap();
        let report = rest.lines().find(|line| line.starts_with("REPORT"));
        (status, report.unwrap_or_default().to_owned(), took)
    }

    pub fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_child(&self.process);
        rustix::process::kill_process(pid, signal).unwrap();
    }
}

/// The next line that is not the test harness's.
pub fn next_line(from: &mut impl BufRead) -> String {
    loop {
        let mut line = String::new();
        assert!(from.read_line(&mut line).unwrap() > 0, "stdout ended");
        let line = line.trim_end();
        if !line.is_empty() && !line.starts_with("running ") {
            return line.to_owned();
        }
    }
}

/// Whether a process still runs; one that nobody has reaped does not.
pub fn is_running(pid: u32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat"))
        .is_ok_and(|stat| !stat.rsplit(')').next().unwrap_or(" Z").starts_with(" Z"))
}

/// Waits until it holds, at most that long.
pub fn eventually(at_most: Duration, mut holds: impl FnMut() -> bool) -> bool {
    let start = Instant::now();
    while !holds() {
        if start.elapsed() > at_most {
            return false;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    true
}
