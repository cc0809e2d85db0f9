//! `cargo xtask bench`: the measuring programs of `benches/`.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Result, bail};

use crate::repo::{self, cargo};

/// Measure one part of the engine beside its peers
#[derive(clap::Args)]
pub struct Args {
    /// What to measure
    part: Part,
    /// Also write one JSON line per figure to this file
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Also make the plot and the README's table of these figures (codec only)
    #[arg(long)]
    publish: bool,
    /// Handed on to the measuring program
    #[arg(last = true)]
    rest: Vec<String>,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Part {
    /// Decoding, framing, encoding
    Codec,
    /// The tables of pending requests
    Correlate,
    /// Whole connections in memory
    Echo,
}

pub fn run(args: &Args) -> Result<ExitCode> {
    let (name, features) = match args.part {
        Part::Codec => ("codec", "peers"),
        Part::Correlate => ("correlate", "tables"),
        Part::Echo => ("echo", ""),
    };
    let source = repo::root().join(format!("benches/src/bin/{name}.rs"));
    if !source.exists() {
        bail!("there is no {}", source.display());
    }
    let mut bench = cargo(&format!(
        "run --release -p mcpbolt-benches --features={features} --bin {name} --"
    ));
    if matches!(args.part, Part::Echo) && args.json.is_some() {
        bail!("echo has one figure, which it prints; there is no JSON of it");
    }
    if let Some(file) = &args.json {
        if matches!(args.part, Part::Codec) {
            // It counts instructions by the program that lies beside it.
            let beside = "build --release -p mcpbolt-benches --features=peers --bin instructions";
            if !cargo(beside).status()?.success() {
                bail!("the counting program does not build");
            }
        }
        bench.arg("--json").arg(std::path::absolute(file)?);
    }
    if args.publish {
        bench.arg("--publish").arg(repo::root());
    }
    let status = bench.args(&args.rest).status()?;
    Ok(ExitCode::from(u8::from(!status.success())))
}
