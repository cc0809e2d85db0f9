//! `cargo xtask existing`: published servers, by themselves and on the engine, in figures.

use std::process::{Command, ExitCode};

use anyhow::{Result, bail, ensure};

use crate::language::Language;
use crate::repo::{self, Build, command};
use crate::{node, python};

/// Measure servers that others have published on PyPI or npm, by themselves and under `mcpbolt exec`: processor time
/// to the first list of tools, of a later one, and of a call
#[derive(clap::Args)]
pub struct Args {
    /// The language of the servers: python or node
    #[arg(long, value_enum, default_value = "python")]
    lang: Language,
    /// The servers; all by default
    names: Vec<String>,
}

pub fn run(args: &Args) -> Result<ExitCode> {
    let build = &mut |mut command: Command| {
        ensure!(command.status()?.success(), "{command:?} failed");
        Ok(())
    };
    let (mut measure, tests) = match args.lang {
        Language::Rust => bail!("there are published servers in python and node"),
        Language::Python => {
            let venv = python::package(Build::Release, build)?;
            let measure = command(venv.python(), ["-m", "published.measure"]);
            (measure, "bindings-python/tests")
        }
        Language::Node => {
            node::package(Build::Release, build)?;
            (
                command("node", ["measure.mjs"]),
                "bindings-node/test/published",
            )
        }
    };
    measure
        .args(&args.names)
        .current_dir(repo::root().join(tests));
    ensure!(measure.status()?.success(), "a server was not measured");
    Ok(ExitCode::SUCCESS)
}
