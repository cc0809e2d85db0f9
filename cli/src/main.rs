//! The program `mcpbolt`.

use std::process::ExitCode;

fn main() -> ExitCode {
    mcpbolt_cli::run(std::env::args_os().skip(1), &[]).into()
}
