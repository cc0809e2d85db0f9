//! The command `mcpbolt`, as the package has it.

use napi_derive::napi;

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
