//! `cargo xtask demo`: a real session with the server of each language, and one table.

mod actions;
mod contender;
mod script;
mod table;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Result, bail};
use indicatif::{ProgressBar, ProgressStyle};

use crate::load::{Revision, Start, as_client};
use crate::machine;
use crate::repo::Build;
use crate::stage::spinner;
use contender::Contender;
use script::Script;

/// Build everything, drive a server of each language, print one table
///
/// Each server is started, greeted, asked for its tools, and called with checked texts of several
/// sizes, one at a time and many at once, with progress, and with a sleep that is cancelled. Then
/// the servers of the action dialect's example are called by its clients, each language by each.
/// Needs cargo, python3 and node; installs the rest into .cache.
#[derive(clap::Args)]
pub struct Args {
    /// Also install the official SDKs into .cache and drive servers written with them
    #[arg(long)]
    peers: bool,
    /// Short measurements: for a look, not for figures
    #[arg(long)]
    quick: bool,
    /// Build our servers quickly, with overflow and assertions checked: for tests, not for figures
    #[arg(long)]
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
}

pub fn run(args: &Args) -> Result<ExitCode> {
    let mut known = contender::ours(Build::asked(args.debug));
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

    let built: Vec<_> = known
        .iter()
        .map(|contender| (contender, prepare(contender)))
        .collect();
    let what = format!("revision {} over stdio", args.revision.name());
    let machine = machine::describe(&what);
    let bar = progress_bar(built.len() * script.steps.len());
    let mut reports = Vec::new();
    for (contender, start) in built {
        let report = match start {
            Ok(start) => as_client(|| script.play(contender.name, &start, args.revision, &bar)),
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
    let mut bad = reports.iter().any(|report| !report.is_clean());
    if args.only.is_empty() {
        let spinner = spinner("the action dialect");
        let rows = actions::play(Build::asked(args.debug));
        spinner.finish_and_clear();
        let rows = rows?;
        print!("\n{}", actions::table(&rows));
        bad |= rows.iter().any(|row| !row.is_clean());
    }
    Ok(ExitCode::from(u8::from(bad)))
}

fn prepare(contender: &Contender) -> Result<Start> {
    let spinner = spinner(&format!("building {}", contender.name));
    let start = contender.build();
    spinner.finish_and_clear();
    start
}

fn progress_bar(steps: usize) -> ProgressBar {
    let bar = ProgressBar::new(steps as u64);
    if let Ok(style) = ProgressStyle::with_template("{bar:30} {pos}/{len} {wide_msg}") {
        bar.set_style(style);
    }
    bar
}
