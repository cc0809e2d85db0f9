//! `cargo xtask demo`: a real session with the server of each language, and one table.

mod actions;
mod contender;
mod picture;
mod script;
mod table;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Result, bail};
use indicatif::{ProgressBar, ProgressStyle};

use crate::load::{Generator, Revision, Start, as_client};
use crate::log::Log;
use crate::machine;
use crate::repo::Build;
use crate::stage::spinner;
use crate::together::Programs;
use contender::Contender;
use script::Script;

/// Build everything, drive a server of each language, print one table
///
/// Starts each server, performs the handshake, lists its tools, and calls them with checked texts of
/// several sizes, one at a time and many at once, with progress, and with a sleep that is cancelled. Then
/// the example clients of the action dialect in each language call its example server in each language.
/// Needs cargo, a C compiler, python3, node and npm, and installs TypeScript into .cache. Each crate is
/// built once for the three languages, in a profile of its own that builds faster than a release and
/// whose figures are somewhat below a release's.
#[derive(clap::Args)]
pub struct Args {
    /// Also install the official SDKs into .cache and drive servers written with them
    #[arg(long)]
    peers: bool,
    /// Short measurements: for a quick look, not for published figures
    #[arg(long)]
    quick: bool,
    /// Build our servers as users get them, which takes several times longer
    #[arg(long)]
    release: bool,
    /// Build our servers quickly, with overflow checks and assertions: for tests, not for figures
    #[arg(long, conflicts_with = "release")]
    debug: bool,
    /// Drive only servers whose name contains this
    #[arg(long, value_name = "TEXT", default_value = "")]
    only: String,
    /// The protocol revision to speak
    #[arg(long, default_value = "2025-11-25")]
    revision: Revision,
    /// Also write the table to this file, one JSON object per line
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Also draw the CPU time of a call on each server, on a logarithmic scale, to this SVG file
    #[arg(long, value_name = "FILE")]
    picture: Option<PathBuf>,
}

pub fn run(args: &Args) -> Result<ExitCode> {
    let how = match (args.debug, args.release) {
        (true, _) => Build::Checked,
        (_, true) => Build::Release,
        _ => Build::Demo,
    };
    let mut known = contender::ours();
    if args.peers {
        known.extend(contender::peers());
    }
    known.retain(|contender| contender.name.contains(&args.only));
    if known.is_empty() {
        bail!("no server has {:?} in its name", args.only);
    }
    let script = if args.quick {
        Script::quick()
    } else {
        Script::full()
    };

    // The load generator is among our programs, so these are built for other servers, too.
    let ours = Some(build(how)?);
    let generator = Generator::of(how);
    let built: Vec<_> = known
        .iter()
        .map(|contender| (contender, prepare(contender, ours.as_ref())))
        .collect();
    let what = format!(
        "ours {}; revision {} over stdio",
        how.told(),
        args.revision.name()
    );
    let machine = machine::describe(&what);
    let bar = progress_bar(built.len() * script.steps.len());
    let mut reports = Vec::new();
    for (contender, start) in built {
        let report = match start {
            Ok(start) => {
                as_client(|| script.play(&generator, contender, &start, args.revision, &bar))
            }
            Err(error) => script::Report::missing(contender.name, format!("{error:#}")),
        };
        if bar.is_hidden() {
            println!("{}", report.summary());
        }
        reports.push(report);
    }
    bar.finish_and_clear();
    println!("{machine}\n");
    print!("{}", table::text(&reports));
    if let Some(file) = &args.json {
        std::fs::write(file, table::json_lines(&reports))?;
    }
    if let Some(file) = &args.picture {
        let is_ours = |name: &str| {
            let named = known.iter().find(|contender| contender.name == name);
            named.is_some_and(Contender::is_ours)
        };
        std::fs::write(file, picture::svg(&reports, is_ours, &machine))?;
    }
    let mut bad = reports.iter().any(|report| !report.is_clean());
    if let Some(programs) = ours.filter(|_| args.only.is_empty()) {
        let spinner = spinner("the action dialect");
        let rows = actions::play(&programs);
        spinner.finish_and_clear();
        let rows = rows?;
        print!("\n{}", actions::table(&rows));
        bad |= rows.iter().any(|row| !row.is_clean());
    }
    Ok(ExitCode::from(u8::from(bad)))
}

/// Builds our servers and clients of all languages in one run.
fn build(how: Build) -> Result<Programs> {
    let mut log = Log::create("demo-build", false)?;
    let built = Programs::build(&["diagnostic", "actions"], how, &mut log);
    if built.is_err() {
        log.show_tail();
    }
    built
}

fn prepare(contender: &Contender, ours: Option<&Programs>) -> Result<Start> {
    if contender.is_ours() {
        return contender.build(ours);
    }
    let spinner = spinner(&format!("building {}", contender.name));
    let start = contender.build(None);
    spinner.finish_and_clear();
    start
}

fn progress_bar(steps: usize) -> ProgressBar {
    let bar = ProgressBar::new(steps as u64);
    if let Ok(style) =
        ProgressStyle::with_template("{spinner} {bar:30} {pos}/{len} {elapsed} {wide_msg}")
    {
        bar.set_style(style);
    }
    // A step takes seconds.
    bar.enable_steady_tick(Duration::from_millis(100));
    bar
}
