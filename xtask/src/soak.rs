//! `cargo xtask soak`: checks that take longer than a test may.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;

use crate::flood;
use crate::guarded;
use crate::language::Language;
use crate::log::Log;
use crate::repo::{self, cargo, command};
use crate::stage::{Skips, Stage, choose, run_all};
use crate::stages::bindings;

/// Run the checks that take longer than a test may
///
/// Runs the ignored tests of the engine in release; the tests of the two packages on their release
/// builds; a million calls, cancellations and exceptions of each, with limits on the memory left behind;
/// all kinds of clients on one server process; a million calls of clients with keys and a quota; hostile
/// floods beside honest clients (each attack for MCPBOLT_FLOOD_SECONDS, default: 60; only on the server
/// of MCPBOLT_FLOOD_LANGUAGE, if set); and the fuzzed properties on random input for MCPBOLT_SOAK_SECONDS (default: 3600).
#[derive(clap::Args)]
pub struct Args {
    /// Run only this stage; may be given several times
    #[arg(long, value_name = "STAGE")]
    only: Vec<String>,
    /// List the stages instead
    #[arg(long)]
    list: bool,
    /// Show all output as it comes
    #[arg(long, short)]
    verbose: bool,
}

const STAGES: [Stage; 9] = [
    Stage {
        name: "long-tests",
        about: "the engine's ignored tests",
        needs: &[],
        run: long_tests,
    },
    Stage {
        name: "python",
        about: "the Python package as users get it",
        needs: &[],
        run: bindings::release_python,
    },
    Stage {
        name: "python-leaks",
        about: "a million calls, cancels and exceptions in Python: what is left of them",
        needs: &[],
        run: bindings::python_leaks,
    },
    Stage {
        name: "node",
        about: "the Node package as users get it, with many more rounds where a leak would show",
        needs: &[],
        run: bindings::release_node,
    },
    Stage {
        name: "node-leaks",
        about: "a million calls, cancels and rejections in Node: what is left of them",
        needs: &[],
        run: bindings::node_leaks,
    },
    Stage {
        name: "mixed",
        about: "one server process: clients of two eras and of the action dialect, 10,000 calls each",
        needs: &["interop/mixed.py"],
        run: mixed,
    },
    Stage {
        name: "guarded",
        about: "a million calls through servers with a verifier, a policy and a quota: what is left of them",
        needs: &[],
        run: guarded::stage,
    },
    Stage {
        name: "flood",
        about: "2,000 hostile connections beside 20 honest clients, for a minute each time",
        needs: &[],
        run: flood::stage,
    },
    Stage {
        name: "long-fuzz",
        about: "the laws of the codec on random input",
        needs: &["fuzz/src/main.rs"],
        run: long_fuzz,
    },
];

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

fn long_tests(log: &mut Log) -> Result<()> {
    log.longest = DAY;
    log.run(cargo(
        "test --release -p mcpbolt --all-features -- --ignored --show-output",
    ))
}

fn mixed(log: &mut Log) -> Result<()> {
    for language in Language::ALL {
        let mut run = command(repo::interpreter(), ["interop/mixed.py", "--server"]);
        run.arg(language.name());
        log.run(run)?;
    }
    Ok(())
}

fn long_fuzz(log: &mut Log) -> Result<()> {
    log.longest = DAY;
    let seconds = std::env::var("MCPBOLT_SOAK_SECONDS").unwrap_or_else(|_| "3600".to_owned());
    log.run(cargo(&format!(
        "run --release -p mcpbolt-fuzz -- {seconds}"
    )))
}

pub fn run(args: &Args) -> Result<ExitCode> {
    if args.list {
        for stage in &STAGES {
            println!("{:<14} {}", stage.name, stage.about);
        }
        return Ok(ExitCode::SUCCESS);
    }
    let chosen = choose(&STAGES, &args.only)?;
    run_all(&chosen, Skips::Told, args.verbose)
}
