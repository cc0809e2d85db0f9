//! The `mcpbolt` command: looks at a server from the outside, through the public API alone.
#![allow(
    clippy::print_stdout,
    reason = "a command line tool speaks on its standard output"
)]

mod inspect;
mod session;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

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
        /// The command that starts the server
        #[arg(last = true, required = true, value_name = "COMMAND")]
        command: Vec<String>,
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
        /// The command that starts the server
        #[arg(last = true, required = true, value_name = "COMMAND")]
        command: Vec<String>,
    },
}

fn main() -> ExitCode {
    let done = match Args::parse().task {
        Task::Inspect { json, command } => inspect::inspect(&command, json),
        Task::Call {
            tool,
            arguments,
            json,
            command,
        } => inspect::call(&command, &tool, &arguments, json),
    };
    done.unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        ExitCode::FAILURE
    })
}
