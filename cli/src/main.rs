//! The `mcpbolt` command: looks at a server from the outside, or is one, through the public API
//! alone.
#![allow(
    clippy::print_stdout,
    reason = "a command line tool speaks on its standard output"
)]

mod inspect;
mod log;
mod serve;
mod session;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use session::Start;

/// Look at an MCP server, call its tools, or be one.
#[derive(Parser)]
#[command(name = "mcpbolt", version)]
struct Args {
    /// What to log on stderr: error, warn, info, debug or trace; RUST_LOG says it, too
    #[arg(long, global = true, value_name = "LEVEL")]
    log: Option<String>,
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Show who a server is and what it offers
    Inspect {
        /// Show JSON, schemas included
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        start: Start,
    },
    /// Serve a server that has one of everything, to try clients with
    ///
    /// It is the server of the official conformance suite. Ctrl-C ends it in good order; SIGUSR1
    /// logs its counters.
    Serve(Box<serve::Serve>),
    /// Call a tool and print what it answers
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
        eprintln!("error: {error:#}");
        ExitCode::FAILURE
    })
}
