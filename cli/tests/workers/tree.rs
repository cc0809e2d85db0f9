//! A supervisor with its workers.

use std::io::{BufRead, BufReader};
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit};

use crate::client::Client;
use crate::serving::Serving;

/// A running `mcpbolt serve --workers`; ends, with its workers, when dropped.
pub struct Tree {
    pub serving: Serving,
    log: Arc<Mutex<String>>,
}

/// Sends a signal.
pub fn signal(name: &str, process: u32) {
    let sent = Command::new("kill")
        .args([name, &process.to_string()])
        .status();
    assert!(sent.unwrap().success());
}

/// Limits how many descriptors a process may have; ones that it has stay. Returns the limit before.
pub fn limit_descriptors(process: u32, limit: u64) -> u64 {
    let process = Pid::from_raw(process.try_into().unwrap());
    let before = prlimit(
        process,
        Resource::Nofile,
        Rlimit {
            current: Some(limit),
            maximum: getrlimit(Resource::Nofile).maximum,
        },
    );
    before.unwrap().current.unwrap()
}

/// Whether a process is there and has not ended.
pub fn is_alive(process: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    let state = stat.rsplit_once(") ").map(|(_, rest)| rest.as_bytes()[0]);
    state.is_some_and(|state| state != b'Z')
}

/// Whether something comes to be so.
pub fn comes(is_so: impl Fn() -> bool) -> bool {
    let deadline = Instant::now() + Duration::from_secs(60);
    while Instant::now() < deadline {
        if is_so() {
            return true;
        }
        thread::sleep(Duration::from_millis(20));
    }
    false
}

impl Tree {
    pub fn new(workers: usize, args: &[&str]) -> Self {
        let workers = workers.to_string();
        let own = ["serve", "http://127.0.0.1:0/mcp", "--workers", &workers];
        Self::of(Serving::with(&[&own, args].concat()))
    }

    pub fn of(mut serving: Serving) -> Self {
        let log = Arc::<Mutex<String>>::default();
        let (errors, lines) = (serving.process.stderr.take().unwrap(), log.clone());
        thread::spawn(move || {
            for line in BufReader::new(errors).lines().map_while(Result::ok) {
                let mut log = lines.lock().unwrap();
                log.push_str(&line);
                log.push('\n');
            }
        });
        Self { serving, log }
    }

    pub fn log(&self) -> String {
        self.log.lock().unwrap().clone()
    }

    pub fn client(&self) -> Client {
        Client::at(&self.serving.address)
    }

    /// The process ids of the workers.
    pub fn workers(&self) -> Vec<u32> {
        let own = self.serving.process.id();
        let all = std::fs::read_dir("/proc").unwrap();
        let ids = all.filter_map(|entry| entry.unwrap().file_name().to_str()?.parse::<u32>().ok());
        let is_child = |id: &u32| {
            let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
            let parent = stat
                .rsplit_once(") ")
                .and_then(|(_, rest)| rest.split(' ').nth(1));
            parent.is_some_and(|parent| parent == own.to_string()) && is_alive(*id)
        };
        ids.filter(is_child).collect()
    }

    pub fn signal(&self, name: &str) {
        signal(name, self.serving.process.id());
    }

    /// Waits until every one of these processes has been replaced by another.
    pub fn has_replaced(&self, old: &[u32]) -> bool {
        comes(|| {
            let now = self.workers();
            now.len() == old.len() && old.iter().all(|one| !now.contains(one))
        })
    }
}
