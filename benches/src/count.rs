//! Instructions under callgrind, which the neighbours of a machine do not change.

use std::process::Command;

/// How often the counted work is done, to be freed from what a program does besides.
const RUNS: u64 = 200;

/// Instructions per decoded message of a class, counted in the program `instructions` that lies
/// beside this one; `None` without valgrind or without that program.
pub fn instructions(class: &str) -> Option<u64> {
    Some((collected(class, RUNS)?.checked_sub(collected(class, 0)?)?) / RUNS)
}

/// What callgrind collects when that program decodes `runs` times.
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
