//! `cargo xtask existing`: published servers, by themselves and on the engine, in figures.

use std::process::ExitCode;

use anyhow::{Result, ensure};

use crate::python;
use crate::repo::{self, Build, command};

/// Measure servers that others have published on PyPI, by themselves and under `mcpbolt exec`: processor time to the
/// first list of tools, of a later one, and of a call
#[derive(clap::Args)]
pub struct Args {
    /// The servers; all by default
    names: Vec<String>,
}

pub fn run(args: &Args) -> Result<ExitCode> {
    let venv = python::package(Build::Release, &mut |mut command| {
        ensure!(command.status()?.success(), "{command:?} failed");
        Ok(())
    })?;
    let mut measure = command(venv.python(), ["-m", "published.measure"]);
    measure
        .args(&args.names)
        .current_dir(repo::root().join("bindings-python/tests"));
    ensure!(measure.status()?.success(), "a server was not measured");
    Ok(ExitCode::SUCCESS)
}
