//! The programs of this crate, as cargo has built them.

use std::path::PathBuf;
use std::process::Command;

pub fn example(name: &str) -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    let path = tests
        .parent()
        .unwrap()
        .with_file_name("examples")
        .join(name);
    assert!(path.exists(), "cargo has not built {}", path.display());
    path
}

/// Runs a program to its end and returns what it prints.
pub fn run(command: &mut Command) -> String {
    let done = command
        .output()
        .unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let printed = String::from_utf8_lossy(&done.stdout).into_owned();
    let told = String::from_utf8_lossy(&done.stderr);
    assert!(
        done.status.success(),
        "{command:?}: {}\n{printed}\n{told}",
        done.status
    );
    printed
}
