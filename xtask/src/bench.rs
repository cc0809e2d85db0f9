//! `cargo xtask bench`: the measuring programs of `benches/`, and comparisons of packages with others.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Result, bail};

use crate::beside;
use crate::diagnostic::{self, run_aside};
use crate::language::Language;
use crate::repo::{self, Build, cargo, command};
use crate::{node, python};

/// Measure one part of the engine beside other libraries, or the package of one language
///
/// With --lang alone, servers with the same tool take turns: bare loops, those of the official SDK and
/// similar packages, this package's, and SDK servers on this package. The table gives the CPU time of one
/// call, and how many times better that is than the compared server. After the build, which takes
/// minutes, this takes about 5 s for each server and round: with 5 rounds some 9 minutes for Python, and
/// 18 for Node, whose servers are warmed up for longer.
///
/// With both, one part of that package is measured, on its release build. All check the answers first.
#[derive(clap::Args)]
pub struct Args {
    /// The part of the engine to measure; with --lang, of a package
    #[arg(required_unless_present = "lang")]
    part: Option<Part>,
    /// The language whose package is measured
    #[arg(long)]
    lang: Option<Language>,
    /// How many turns each server has (--lang)
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// One short round: for a quick look, not for published figures (--lang, lists, load, spans, token, workers)
    #[arg(long)]
    quick: bool,
    /// Build our package quickly, with overflow checks and assertions (--lang)
    #[arg(long)]
    debug: bool,
    /// Only servers whose name contains this (--lang)
    #[arg(long, value_name = "TEXT", default_value = "")]
    only: String,
    /// Also write one JSON line per figure to this file
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Also write these figures to the plot and the table of benches/CODEC.md (codec only)
    #[arg(long)]
    publish: bool,
    /// Arguments for the measuring program
    #[arg(last = true)]
    rest: Vec<String>,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Part {
    /// Decoding, framing, encoding (also --lang node; 2 minutes)
    Codec,
    /// The tables of pending requests
    Correlate,
    /// Whole connections in memory
    Echo,
    /// The merged list of a front, from what it keeps
    Lists,
    /// The load generator itself, beside a loop on rmcp's client (two minutes)
    Load,
    /// Calls over HTTP with access tokens and proofs, beside calls without (a minute)
    Token,
    /// Calls of several workers at one address, beside one worker (two minutes)
    Workers,
    /// Messages of 1 to 64 MB, beside the Rust server (--lang node; 2 minutes)
    Large,
    /// From the start of a process to its first answer (--lang node; half a minute)
    Cold,
    /// What telemetry adds to a call, beside a span by hand (also --lang node or python; a minute)
    Spans,
}

pub fn run(args: &Args) -> Result<ExitCode> {
    match (args.lang, args.part) {
        (Some(language), Some(part)) => within(language, part, args),
        (Some(language), None) => beside(language, args),
        (None, Some(part)) => alone(part, args),
        (None, None) => bail!("name a part, or a language"),
    }
}

fn beside(language: Language, args: &Args) -> Result<ExitCode> {
    let (rounds, length) = match args.quick {
        true => (1, Duration::from_millis(200)),
        false => (args.rounds, Duration::from_secs(1)),
    };
    let lengths = match language {
        // JavaScript is compiled at run time, so it needs a longer warm-up.
        Language::Node => 3,
        Language::Python | Language::Rust => 1,
    };
    let measure = beside::Measure {
        rounds,
        length,
        warm_up: lengths * length,
        only: &args.only,
        json: args.json.as_deref(),
        debug: args.debug,
    };
    beside::run(language, &measure)?;
    Ok(ExitCode::SUCCESS)
}

/// Runs a measuring program of the package itself, on its release build.
fn within(language: Language, part: Part, args: &Args) -> Result<ExitCode> {
    if let (Language::Python, Part::Spans) = (language, part) {
        let venv = python::package(Build::asked(args.debug), &mut run_aside)?;
        let mut bench = command(venv.python(), ["bindings-python/benches/spans.py"]);
        let status = bench.args(args.quick.then_some("--quick")).status()?;
        return Ok(ExitCode::from(u8::from(!status.success())));
    }
    let name = match (language, part) {
        (Language::Node, Part::Spans) => "spans",
        (Language::Node, Part::Codec) => "codec",
        (Language::Node, Part::Large) => "large",
        (Language::Node, Part::Cold) => "cold",
        (_, _) => bail!("{} has no benchmark of that name", language.name()),
    };
    node::package(Build::asked(args.debug), &mut run_aside)?;
    let mut bench = command("node", [format!("bindings-node/benches/{name}.mjs")]);
    if matches!(part, Part::Large) {
        let rust = diagnostic::build(Language::Rust, Build::asked(args.debug), &mut run_aside)?;
        bench.arg(rust.join(" "));
    }
    if args.quick {
        bench.arg("--quick");
    }
    if let Some(file) = &args.json {
        bench.arg("--json").arg(std::path::absolute(file)?);
    }
    let status = bench.args(&args.rest).status()?;
    Ok(ExitCode::from(u8::from(!status.success())))
}

fn alone(part: Part, args: &Args) -> Result<ExitCode> {
    let (name, features) = match part {
        Part::Codec => ("codec", "peers"),
        Part::Correlate => ("correlate", "tables"),
        Part::Echo => ("echo", ""),
        Part::Lists => ("lists", ""),
        Part::Load => ("load", "load"),
        Part::Spans => ("spans", ""),
        Part::Token => ("token", "tokens"),
        Part::Workers => ("workers", ""),
        Part::Large | Part::Cold => bail!("this benchmark measures a package: add --lang node"),
    };
    let source = repo::root().join(format!("benches/src/bin/{name}.rs"));
    if !source.exists() {
        bail!("there is no {}", source.display());
    }
    if matches!(part, Part::Load | Part::Workers) {
        let build = "build --release -p mcpbolt-cli --bin mcpbolt --example workloads";
        if !cargo(build).status()?.success() {
            bail!("the command does not build");
        }
    }
    let mut bench = cargo(&format!(
        "run --release -p mcpbolt-benches --features={features} --bin {name} --"
    ));
    if matches!(
        part,
        Part::Echo | Part::Lists | Part::Load | Part::Spans | Part::Token | Part::Workers
    ) && args.json.is_some()
    {
        bail!("{name} prints its figures; there is no JSON of them");
    }
    if matches!(
        part,
        Part::Lists | Part::Load | Part::Spans | Part::Token | Part::Workers
    ) && args.quick
    {
        bench.arg("--quick");
    }
    if let Some(file) = &args.json {
        if matches!(part, Part::Codec) {
            // The codec program counts instructions with the program `instructions` in the same folder.
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
