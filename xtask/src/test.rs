//! `cargo xtask test`: every check, in all three languages.

use std::process::ExitCode;

use anyhow::{Result, bail};

use crate::stage::{Deep, Skips, Stage, choose, run_all, run_turns};
use crate::{room, stages};

/// Run every check in all three languages
///
/// Needs cargo, a C compiler, python3, node and npm, and nothing outside this repository; installs the
/// rest into .cache from the registries. Each stage prints its wall-clock time and its processor
/// time. A test that cannot run fails: none is skipped. Logs are kept in .cache/log.
///
/// Other stages need more tools, or run for minutes: instruction counts (valgrind), each feature of the
/// engine alone, all lints of the benches, the documentation, loom, the address and thread sanitizers,
/// minutes of fuzzing, libFuzzer, the minimum supported Rust, other releases of the Python SDK and of
/// Node, a hundred thousand streams that are resumed, the stores on the system's Redis, the linter of
/// Prometheus, a thousand clients of a gateway, and a page in a browser. --deep runs these. If a tool is
/// missing on this machine, it lists all that are missing and fails before it starts.
#[derive(clap::Args)]
pub struct Args {
    /// Run the stages that need more tools or minutes instead
    #[arg(long)]
    deep: bool,
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
    let (all, deep) = (stages::all(), stages::deep());
    if args.list {
        let list = |stage: &Stage, mark| println!("{:<12} {}{mark}", stage.name, stage.about);
        all.iter().for_each(|stage| list(stage, ""));
        deep.iter().for_each(|deep| list(&deep.stage, " (--deep)"));
        return Ok(ExitCode::SUCCESS);
    }
    let is_deep = |name: &String| deep.iter().any(|deep| deep.stage.name == name);
    if args.deep || args.only.iter().any(is_deep) {
        return run_deep(deep, args);
    }
    let chosen = choose(&all, &args.only)?;
    if args.only.is_empty() {
        room::check()?;
    }
    run_turns(stages::turns(&chosen), Skips::Fail, args.verbose)
}

fn run_deep(deep: Vec<Deep>, args: &Args) -> Result<ExitCode> {
    let (stages, missing): (Vec<_>, Vec<_>) = deep
        .into_iter()
        .map(|deep| (deep.stage, deep.missing))
        .unzip();
    let chosen = choose(&stages, &args.only)?;
    let is_chosen = |stage: &Stage| chosen.iter().any(|one| one.name == stage.name);
    let told: Vec<_> = stages
        .iter()
        .zip(missing)
        .filter(|(stage, _)| is_chosen(stage))
        .filter_map(|(stage, missing)| Some(format!("{}: {}", stage.name, missing()?)))
        .collect();
    if !told.is_empty() {
        bail!("some stages cannot run here\n  {}", told.join("\n  "));
    }
    run_all(&chosen, Skips::Fail, args.verbose)
}
