//! A server process: started on a core of its own, measured, ended.

use std::fs;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use nix::sys::signal::{Signal, kill};
use nix::time::{clock_getcpuclockid, clock_gettime};
use nix::unistd::Pid;

use super::cores::as_server;
use crate::process;

/// How to start a server.
#[derive(Clone, Debug, Default)]
pub struct Start {
    /// The program and its arguments.
    pub words: Vec<String>,
    /// Variables to add to our environment.
    pub env: Vec<(String, String)>,
    /// The file for its standard error; without one, standard error is discarded.
    pub stderr: Option<PathBuf>,
}

impl Start {
    /// A copy with `{port}` replaced by the port.
    pub fn on_port(&self, port: u16) -> Self {
        let port = port.to_string();
        Self {
            words: self
                .words
                .iter()
                .map(|word| word.replace("{port}", &port))
                .collect(),
            ..self.clone()
        }
    }
}

/// A running server. Dropping it ends the server and all its descendants.
pub struct Server {
    child: Child,
}

impl Server {
    /// Starts the server with pipes, on the server's core.
    pub fn start(start: &Start) -> Result<(Self, ChildStdin, ChildStdout)> {
        let mut command = Command::new(&start.words[0]);
        command
            .args(&start.words[1..])
            .envs(start.env.iter().map(|(key, value)| (key, value)))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(match &start.stderr {
                Some(path) => Stdio::from(fs::File::create(path)?),
                None => Stdio::null(),
            });
        let mut child = as_server(|| command.spawn())
            .with_context(|| format!("starting {}", start.words[0]))?;
        let stdin = child.stdin.take().context("no pipe to the server")?;
        let stdout = child.stdout.take().context("no pipe from the server")?;
        Ok((Self { child }, stdin, stdout))
    }

    /// CPU time of the server and its descendants, in all their threads.
    pub fn cpu(&self) -> Duration {
        process::tree(self.child.id()).into_iter().map(cpu).sum()
    }

    /// The id of its process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// The most memory that it has held, in bytes.
    pub fn peak_bytes(&self) -> u64 {
        process::tree(self.child.id())
            .into_iter()
            .map(peak_bytes)
            .sum()
    }

    /// Waits for the server to exit by itself. Returns how long that took, or `None` after `limit`.
    pub fn wait(&mut self, limit: Duration) -> Option<Duration> {
        let started = Instant::now();
        while started.elapsed() < limit {
            if let Ok(Some(_)) = self.child.try_wait() {
                return Some(started.elapsed());
            }
            std::thread::sleep(Duration::from_micros(200));
        }
        None
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Ok(Some(_)) = self.child.try_wait() {
            return;
        }
        if let Ok(pid) = i32::try_from(self.child.id()) {
            let _ = kill(Pid::from_raw(pid), Signal::SIGTERM);
        }
        if self.wait(Duration::from_secs(2)).is_none() {
            process::kill_tree(self.child.id());
            let _ = self.child.wait();
        }
    }
}

/// The CPU time of a process, including ended threads.
fn cpu(pid: u32) -> Duration {
    let read = || {
        let clock = clock_getcpuclockid(Pid::from_raw(i32::try_from(pid).ok()?)).ok()?;
        Some(Duration::from(clock_gettime(clock).ok()?))
    };
    read().unwrap_or_default()
}

fn peak_bytes(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .and_then(|value| value.trim().trim_end_matches(" kB").parse::<u64>().ok())
        .map_or(0, |kib| kib * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_process_clock_counts_what_a_child_burns() {
        let start = Start {
            words: [
                "sh",
                "-c",
                "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; read x",
            ]
            .map(str::to_owned)
            .to_vec(),
            ..Start::default()
        };
        let (mut server, stdin, _stdout) = Server::start(&start).unwrap();
        let deadline = Instant::now() + Duration::from_secs(20);
        while server.cpu() < Duration::from_millis(20) && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(5));
        }
        assert!(server.cpu() >= Duration::from_millis(20));
        assert!(server.peak_bytes() > 100_000);
        drop(stdin);
        assert!(server.wait(Duration::from_secs(20)).is_some());
    }
}
