//! Processes and what they started: found, ended.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// A process and its descendants, as far as the system tells (Linux).
pub fn tree(root: u32) -> Vec<u32> {
    let mut all = vec![root];
    let mut next = 0;
    while next < all.len() {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", all[next]));
        for task in tasks.into_iter().flatten().flatten() {
            if let Ok(children) = std::fs::read_to_string(task.path().join("children")) {
                all.extend(
                    children
                        .split_whitespace()
                        .filter_map(|pid| pid.parse::<u32>().ok()),
                );
            }
        }
        next += 1;
    }
    all
}

/// Ends a process and its descendants at once.
pub fn kill_tree(root: u32) {
    for pid in tree(root) {
        if let Ok(pid) = i32::try_from(pid) {
            // It may have ended by itself since it was found.
            let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
        }
    }
}
