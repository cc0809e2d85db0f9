//! Development tasks: `cargo xtask --help`.
#![allow(
    clippy::print_stdout,
    reason = "a command line tool speaks on its standard output"
)]

mod api;
mod attacks;
mod bench;
mod beside;
mod columns;
mod conformance;
mod demo;
mod diagnostic;
mod eras;
mod existing;
mod flood;
mod guarded;
mod language;
mod load;
mod log;
mod machine;
mod node;
mod process;
mod python;
mod repo;
mod requirements;
mod room;
mod schemas;
#[path = "../../core/tests/shared/shapes.rs"]
mod shapes;
mod soak;
mod stage;
mod stages;
mod tally;
mod test;
mod together;
mod tokens;
mod toolchain;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Builds, checks, measures and shows mcpbolt in its three languages.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", version)]
struct Args {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    Test(test::Args),
    Demo(demo::Args),
    Soak(soak::Args),
    Attacks(attacks::Args),
    Tokens(tokens::Args),
    Diagnostic(diagnostic::Args),
    Bench(bench::Args),
    Conformance(conformance::Args),
    Eras(eras::Args),
    Existing(existing::Args),
    Requirements(requirements::Args),
    Schemas(schemas::Args),
    Api(api::Args),
}

fn main() -> ExitCode {
    let done = match Args::parse().task {
        Task::Test(args) => test::run(&args),
        Task::Demo(args) => demo::run(&args),
        Task::Soak(args) => soak::run(&args),
        Task::Attacks(args) => attacks::run(&args),
        Task::Tokens(args) => tokens::run(&args),
        Task::Diagnostic(args) => diagnostic::run(&args),
        Task::Bench(args) => bench::run(&args),
        Task::Conformance(args) => conformance::run(&args),
        Task::Eras(args) => eras::run(&args),
        Task::Existing(args) => existing::run(&args),
        Task::Requirements(args) => requirements::run(&args),
        Task::Schemas(args) => schemas::run(&args),
        Task::Api(args) => api::run(&args),
    };
    done.unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        ExitCode::FAILURE
    })
}
