//! The processor time and memory of processes on this machine. Those of servers are known on Linux alone.

use std::fs;
use std::time::Duration;

use super::threads::{self, ByName};

/// The processes of a server.
pub struct Server(Vec<u32>);

/// The use of processor time and memory.
#[derive(Clone, Copy, Debug, Default)]
pub struct Usage {
    /// Processor time.
    pub cpu: Duration,
    /// The part of it without the descendants of the processes.
    pub cpu_alone: Duration,
    /// The memory that they hold, in bytes.
    pub resident_bytes: u64,
    /// The most that each has held, in bytes, added up.
    pub peak_bytes: u64,
}

/// The processor time of this process.
pub fn own_cpu() -> Option<Duration> {
    #[cfg(unix)]
    return {
        use rustix::time::{ClockId, clock_gettime};
        clock_gettime(ClockId::ProcessCPUTime).try_into().ok()
    };
    #[cfg(not(unix))]
    None
}

impl Server {
    /// The server of these processes and their descendants.
    pub fn new(processes: Vec<u32>) -> Self {
        Self(processes)
    }

    /// The processor time of the threads of the processes, without their descendants.
    pub fn threads(&self) -> ByName {
        let mut all = ByName::new();
        for process in &self.0 {
            threads::add(*process, &mut all);
        }
        all
    }

    /// The use so far; `None` if nothing is known.
    pub fn usage(&self) -> Option<Usage> {
        let mut all = self.0.clone();
        let mut next = 0;
        while next < all.len() {
            for child in children(all[next]) {
                if !all.contains(&child) {
                    all.push(child);
                }
            }
            next += 1;
        }
        let roots = self.0.len();
        let each = all.into_iter().enumerate().filter_map(|(number, process)| {
            let used = usage(process)?;
            let cpu_alone = if number < roots {
                used.cpu
            } else {
                Duration::ZERO
            };
            Some(Usage { cpu_alone, ..used })
        });
        each.reduce(|one, other| Usage {
            cpu: one.cpu + other.cpu,
            cpu_alone: one.cpu_alone + other.cpu_alone,
            resident_bytes: one.resident_bytes + other.resident_bytes,
            peak_bytes: one.peak_bytes + other.peak_bytes,
        })
    }
}

fn children(process: u32) -> Vec<u32> {
    let threads = fs::read_dir(format!("/proc/{process}/task"));
    let threads = threads.into_iter().flatten().flatten();
    let lists =
        threads.filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    let of_list = |list: String| {
        list.split_whitespace()
            .filter_map(|pid| pid.parse().ok())
            .collect::<Vec<_>>()
    };
    lists.flat_map(of_list).collect()
}

#[cfg(target_os = "linux")]
fn usage(process: u32) -> Option<Usage> {
    use nix::time::{clock_getcpuclockid, clock_gettime};
    let pid = nix::unistd::Pid::from_raw(i32::try_from(process).ok()?);
    // Of all threads, those that have ended, too.
    let cpu = clock_gettime(clock_getcpuclockid(pid).ok()?).ok()?;
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let bytes = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        let kib = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
        kib.unwrap_or_default() * 1024
    };
    Some(Usage {
        cpu: cpu.into(),
        cpu_alone: cpu.into(),
        resident_bytes: bytes("VmRSS:"),
        peak_bytes: bytes("VmHWM:"),
    })
}

#[cfg(not(target_os = "linux"))]
fn usage(_: u32) -> Option<Usage> {
    None
}
