//! `cargo xtask test`: everything that is checked, in all three languages.

use std::process::ExitCode;

use anyhow::Result;

use crate::stage::{choose, run_all};
use crate::{room, stages};

/// Run every check in all three languages
///
/// Needs cargo, python3 and node; installs the rest into .cache. Each stage prints its time; what
/// cannot run here is skipped aloud and counted. Logs are kept in .cache/log.
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

pub fn run(args: &Args) -> Result<ExitCode> {
    let all = stages::all();
    if args.list {
        for stage in &all {
            println!("{:<10} {}", stage.name, stage.about);
        }
        return Ok(ExitCode::SUCCESS);
    }
    let chosen = choose(&all, &args.only)?;
    if args.only.is_empty() {
        room::check()?;
    }
    run_all(&chosen, args.verbose)
}
