//! The `mcpbolt` command: inspects a server, calls its tools, or serves a sample server. It uses only the
//! public API.
#![allow(
    clippy::print_stdout,
    reason = "a command line tool speaks on its standard output"
)]

mod inspect;
mod log;
mod serve;
mod session;
mod shown;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use session::Start;

/// Inspect an MCP server, call its tools, or serve a sample server.
#[derive(Parser)]
#[command(name = "mcpbolt", version)]
struct Args {
    /// What to log on stderr: error, warn, info, debug or trace; RUST_LOG also sets it
    #[arg(long, global = true, value_name = "LEVEL")]
    log: Option<String>,
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Show a server's name and version, and what it offers
    Inspect {
        /// Show JSON, including schemas
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        start: Start,
    },
    /// Serve a sample server that has every feature, to try clients with
    ///
    /// It is the server for the official conformance suite. Ctrl-C shuts it down gracefully, a second Ctrl-C
    /// at once; SIGUSR1 logs its counters.
    Serve(Box<serve::Serve>),
    /// Call a tool and print its result
    Call {
        /// The tool's name
        tool: String,
        /// Its arguments, a JSON object
        #[arg(default_value = "{}")]
        arguments: String,
        /// Show the whole result as JSON
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        start: Start,
    },
}

fn main() -> ExitCode {
    let Args { log, task } = Args::parse();
    log::begin(log.as_deref());
    let done = match task {
        Task::Serve(args) => serve::serve(&args),
        Task::Inspect { json, start } => inspect::inspect(&start, json),
        Task::Call {
            tool,
            arguments,
            json,
            start,
        } => inspect::call(&start, &tool, &arguments, json),
    };
    done.unwrap_or_else(|error| {
        eprintln!("error: {}", shown::lines(&format!("{error:#}")));
        ExitCode::FAILURE
    })
}
