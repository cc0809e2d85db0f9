//! Describes the machine that produced the figures.

use std::fs;

/// One line: processor, cores, system, `what` is measured, and how server and client share the cores.
pub fn describe(what: &str) -> String {
    let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = info
        .lines()
        .find_map(|line| line.strip_prefix("model name")?.split_once(": "))
        .map_or("unknown processor", |(_, name)| name);
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let system = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let shared = match cores {
        1 => "the server shares the only core with its client",
        _ => "the server has one core, its client another",
    };
    format!(
        "{model}, {cores} cores, {} {}; {what}; {shared}",
        std::env::consts::OS,
        system.trim()
    )
}
