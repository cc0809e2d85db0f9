//! Instruction counts under callgrind, which do not depend on the load of the machine.

use std::process::Command;

/// How often the counted work runs. A run without it is subtracted, so only the work itself counts.
const RUNS: u64 = 200;

/// Instructions per decoded message of a class, counted in the program `instructions` in the folder of
/// this one; `None` without valgrind or without that program.
pub fn instructions(class: &str) -> Option<u64> {
    Some((collected(class, RUNS)?.checked_sub(collected(class, 0)?)?) / RUNS)
}

/// The instructions that callgrind counts when that program decodes `runs` times.
fn collected(class: &str, runs: u64) -> Option<u64> {
    let program = std::env::current_exe().ok()?.with_file_name("instructions");
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(program)
        .args([class, &runs.to_string()])
        .output()
        .ok()?;
    let text = String::from_utf8_lossy(&output.stderr);
    let found = text
        .lines()
        .find_map(|line| line.split("Collected :").nth(1));
    found?.trim().parse().ok()
}
