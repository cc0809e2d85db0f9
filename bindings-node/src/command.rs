//! The command `mcpbolt`, as the package has it.

use napi_derive::napi;

use crate::error::{self, Result};

/// The subcommands that JavaScript runs itself.
const OWN: [(&str, &str); 3] = [
    (
        "run",
        "Serve the server that a JavaScript module exports, at any address",
    ),
    (
        "dev",
        "Serve as run does, and restart the server when its files change",
    ),
    (
        "exec",
        "Run a program unchanged, with the servers that it starts on the engine",
    ),
];

/// Runs the command with these arguments, all but those of `OWN`, and returns its exit status. Blocks until it is done.
#[napi(catch_unwind)]
pub fn command(arguments: Vec<String>) -> u8 {
    mcpbolt_cli::run(arguments.into_iter().map(Into::into), &OWN)
}

/// Replaces this process by another program, which keeps its id, its environment, and stdin, stdout and stderr. Returns only
/// when that fails.
#[cfg(unix)]
#[napi(catch_unwind)]
pub fn become_program(program: String, arguments: Vec<String>) -> Result<()> {
    use std::io::{stderr, stdin, stdout};
    use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
    use std::os::unix::process::CommandExt;
    // Node has the system close its own descriptors, but not copies of them.
    let copy = |fd: BorrowedFd<'_>| fd.try_clone_to_owned().map_err(error::io);
    let copies: [OwnedFd; 3] = [
        copy(stdin().as_fd())?,
        copy(stdout().as_fd())?,
        copy(stderr().as_fd())?,
    ];
    let [input, output, errors] = copies;
    let mut command = std::process::Command::new(program);
    command.args(arguments);
    command.stdin(input).stdout(output).stderr(errors);
    Err(error::io(command.exec()))
}

/// Other systems cannot replace a process.
#[cfg(not(unix))]
#[napi(catch_unwind)]
pub fn become_program(_program: String, _arguments: Vec<String>) -> Result<()> {
    Err(error::misuse("this system cannot replace a process"))
}
