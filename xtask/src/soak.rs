//! `cargo xtask soak`: what takes longer than a test may.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;

use crate::log::Log;
use crate::repo::cargo;
use crate::stage::{Stage, choose, run_all};
use crate::stages::bindings;

/// Run what takes longer than the tests may
///
/// The ignored tests of the engine in release, the tests of the two packages on their release
/// builds, and the fuzz targets' laws on random input for
/// MCPBOLT_SOAK_SECONDS (default: 3600).
#[derive(clap::Args)]
pub struct Args {
    /// Run only this stage; may be given several times
    #[arg(long, value_name = "STAGE")]
    only: Vec<String>,
    /// Show all output as it comes
    #[arg(long, short)]
    verbose: bool,
}

const STAGES: [Stage; 3] = [
    Stage {
        name: "long-tests",
        about: "the engine's ignored tests",
        needs: &[],
        run: long_tests,
    },
    Stage {
        name: "release",
        about: "the two packages as users get them",
        needs: &[],
        run: bindings::release,
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

fn long_fuzz(log: &mut Log) -> Result<()> {
    log.longest = DAY;
    let seconds = std::env::var("MCPBOLT_SOAK_SECONDS").unwrap_or_else(|_| "3600".to_owned());
    log.run(cargo(&format!(
        "run --release -p mcpbolt-fuzz -- {seconds}"
    )))
}

pub fn run(args: &Args) -> Result<ExitCode> {
    let chosen = choose(&STAGES, &args.only)?;
    run_all(&chosen, args.verbose)
}
