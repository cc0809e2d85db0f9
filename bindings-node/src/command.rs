//! The command `mcpbolt`, as the package has it.

use napi_derive::napi;

/// The subcommand that JavaScript runs itself.
const RUN: (&str, &str) = (
    "run",
    "Serve the server that a JavaScript module exports, at any address",
);

/// Runs the command with these arguments, all but `run`, and returns its exit status. Blocks until it is done.
#[napi(catch_unwind)]
pub fn command(arguments: Vec<String>) -> u8 {
    mcpbolt_cli::run(arguments.into_iter().map(Into::into), &[RUN])
}
