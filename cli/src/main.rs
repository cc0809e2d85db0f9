//! The `mcpbolt` command: looks at a server from the outside, through the public API alone.
#![allow(
    clippy::print_stdout,
    reason = "a command line tool speaks on its standard output"
)]

mod inspect;
mod session;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use session::Start;

/// Look at an MCP server, and call its tools.
#[derive(Parser)]
#[command(name = "mcpbolt", version)]
struct Args {
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
    let done = match Args::parse().task {
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
