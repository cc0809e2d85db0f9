//! `cargo xtask soak`: what takes longer than a test may.

use std::process::ExitCode;

use anyhow::Result;

use crate::log::Log;
use crate::repo::cargo;
use crate::stage::{Stage, run_all};

/// Run what takes longer than the tests may: the ignored tests, in release
///
/// MCPBOLT_SOAK_SECONDS sets how long each open-ended test goes on (default: its own).
#[derive(clap::Args)]
pub struct Args {
    /// Show all output as it comes
    #[arg(long, short)]
    verbose: bool,
}

pub fn run(args: &Args) -> Result<ExitCode> {
    let core = Stage {
        name: "soak-core",
        about: "the engine's long tests",
        needs: &[],
        run: |log: &mut Log| {
            log.run(cargo(
                "test --release -p mcpbolt --all-features -- --ignored --show-output",
            ))
        },
    };
    let fuzz = Stage {
        name: "soak-fuzz",
        about: "the laws of the fuzz targets, for long",
        needs: &[],
        run: |log: &mut Log| {
            log.run(cargo(
                "test --release -p mcpbolt-fuzz -- --ignored --show-output",
            ))
        },
    };
    run_all(&[&core, &fuzz], args.verbose)
}
