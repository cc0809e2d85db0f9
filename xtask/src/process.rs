//! Finds and kills process trees.

use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{Id, WaitPidFlag, waitid};
use nix::unistd::{Pid, SysconfVar, sysconf};

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
            // The process may have ended since it was found.
            let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
        }
    }
}

/// Waits until a child ends, without reaping it. Returns the processor time of the child and of all
/// descendants it has waited for. Zero on systems other than Linux.
pub fn cpu_when_ended(child: u32) -> Duration {
    let Ok(pid) = i32::try_from(child) else {
        return Duration::ZERO;
    };
    let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT;
    // An error means that the child is already reaped: the file is gone, and the time is zero.
    let _ = waitid(Id::Pid(Pid::from_raw(pid)), flags);
    let stat = std::fs::read_to_string(format!("/proc/{child}/stat")).unwrap_or_default();
    // The name in parentheses may contain anything. Fields 14 to 17 of the line (utime, stime, cutime,
    // cstime) are 11 to 14 after it, counted from 0.
    let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields);
    let ticks: u64 = fields
        .split_whitespace()
        .skip(11)
        .take(4)
        .filter_map(|field| field.parse::<u64>().ok())
        .sum();
    let each = sysconf(SysconfVar::CLK_TCK).ok().flatten().unwrap_or(100);
    Duration::from_secs_f64(ticks as f64 / each as f64)
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_what_a_child_started_is_counted() {
        let busy = "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done";
        let script = format!("sh -c '{busy}'; true");
        let mut child = std::process::Command::new("sh")
            .args(["-c", &script])
            .spawn()
            .unwrap();
        let cpu = cpu_when_ended(child.id());
        assert!(child.wait().unwrap().success());
        assert!(
            cpu > Duration::from_millis(20) && cpu < Duration::from_secs(60),
            "{cpu:?}"
        );
    }
}
