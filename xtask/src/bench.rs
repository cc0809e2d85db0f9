//! `cargo xtask bench`: the measuring programs of `benches/`, and packages beside their peers.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Result, bail};

use crate::beside;
use crate::diagnostic::Language;
use crate::repo::{self, cargo};

/// Measure one part of the engine beside its peers, or the package of one language
///
/// With --lang, servers that do the same take turns: bare loops, the official SDK's and its like, this
/// package's, and theirs on this package. The table gives the CPU time of one call, and how many times
/// better that is than whom each is compared with.
#[derive(clap::Args)]
pub struct Args {
    /// What to measure of the engine
    #[arg(required_unless_present = "lang", conflicts_with = "lang")]
    part: Option<Part>,
    /// The language whose package is measured
    #[arg(long)]
    lang: Option<Language>,
    /// How often each server has its turn (--lang)
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// One short round: for a look, not for figures (--lang)
    #[arg(long)]
    quick: bool,
    /// Build our package quickly, with overflow and assertions checked (--lang)
    #[arg(long)]
    debug: bool,
    /// Only servers whose name contains this (--lang)
    #[arg(long, value_name = "TEXT", default_value = "")]
    only: String,
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
    match (args.lang, args.part) {
        (Some(language), _) => beside(language, args),
        (None, Some(part)) => alone(part, args),
        (None, None) => bail!("name a part, or a language"),
    }
}

fn beside(language: Language, args: &Args) -> Result<ExitCode> {
    let (rounds, length) = match args.quick {
        true => (1, Duration::from_millis(200)),
        false => (args.rounds, Duration::from_secs(1)),
    };
    let measure = beside::Measure {
        rounds,
        length,
        warm_up: length,
        only: &args.only,
        json: args.json.as_deref(),
        debug: args.debug,
    };
    beside::run(language, &measure)?;
    Ok(ExitCode::SUCCESS)
}

fn alone(part: Part, args: &Args) -> Result<ExitCode> {
    let (name, features) = match part {
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
    if matches!(part, Part::Echo) && args.json.is_some() {
        bail!("echo has one figure, which it prints; there is no JSON of it");
    }
    if let Some(file) = &args.json {
        if matches!(part, Part::Codec) {
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
