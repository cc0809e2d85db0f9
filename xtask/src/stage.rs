//! Stages: named steps of a long run, each timed, each passed, failed or skipped aloud.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use indicatif::{ProgressBar, ProgressStyle};

use crate::log::Log;
use crate::repo;
use crate::tally::Tally;

/// One step.
pub struct Stage {
    /// What `--only` calls it.
    pub name: &'static str,
    /// What it checks, in one line.
    pub about: &'static str,
    /// Paths from the root without which there is nothing to do yet.
    pub needs: &'static [&'static str],
    pub run: fn(&mut Log) -> Result<()>,
}

impl Stage {
    fn missing(&self) -> Option<&'static str> {
        let gone = |path: &&&str| !repo::root().join(path).exists();
        self.needs.iter().find(gone).copied()
    }
}

/// The stages so named, or all when none is; a name that none has is an error.
pub fn choose<'a>(all: &'a [Stage], names: &[String]) -> Result<Vec<&'a Stage>> {
    let is = |stage: &Stage, name: &String| stage.name == name;
    if let Some(name) = names
        .iter()
        .find(|name| !all.iter().any(|stage| is(stage, name)))
    {
        let known: Vec<_> = all.iter().map(|stage| stage.name).collect();
        bail!("no stage {name}; there are {}", known.join(", "));
    }
    let chosen = |stage: &&Stage| names.is_empty() || names.iter().any(|name| is(stage, name));
    Ok(all.iter().filter(chosen).collect())
}

/// Runs the stages one after the other and prints what became of each, then the counts.
pub fn run_all(stages: &[&Stage], verbose: bool) -> Result<ExitCode> {
    let started = Instant::now();
    let mut all = Tally::default();
    for (index, stage) in stages.iter().enumerate() {
        let place = format!("[{}/{}]", index + 1, stages.len());
        all += run_one(stage, &place, verbose)?;
    }
    println!("{} in all", seconds(started.elapsed()));
    println!(
        "{} passed, {} failed, {} skipped",
        all.passed, all.failed, all.skipped
    );
    Ok(ExitCode::from(u8::from(all.failed > 0)))
}

fn run_one(stage: &Stage, place: &str, verbose: bool) -> Result<Tally> {
    if let Some(path) = stage.missing() {
        println!("{place} SKIPPED  {}: there is no {path}", stage.name);
        return Ok(Tally {
            skipped: 1,
            ..Tally::default()
        });
    }
    let spinner = spinner(&format!("{place} {}: {}", stage.name, stage.about));
    let mut log = Log::create(stage.name, verbose)?;
    let started = Instant::now();
    let done = (stage.run)(&mut log);
    spinner.finish_and_clear();

    let mut tally = log.tally;
    match &done {
        // A stage that ran no tests of its own is one check; so is what failed around them.
        Ok(()) if tally.total() == 0 => tally.passed = 1,
        Err(_) if tally.failed == 0 => tally.failed = 1,
        _ => {}
    }
    let word = if done.is_ok() && tally.failed == 0 {
        "ok"
    } else {
        "FAILED"
    };
    let took = seconds(started.elapsed());
    let counts = match log.tally.total() {
        0 => String::new(),
        _ => format!(
            "  ({} passed, {} failed, {} skipped)",
            tally.passed, tally.failed, tally.skipped
        ),
    };
    println!(
        "{place} {word:<8} {:<10} {took:>9}  {}{counts}",
        stage.name, stage.about
    );
    for skip in &log.skips {
        println!("    {skip}");
    }
    if word != "ok" {
        log.show_tail();
        if let Err(error) = done {
            println!("    {error:#}");
        }
    }
    Ok(tally)
}

/// A line that moves while something runs; on a plain output, one line that says so.
pub fn spinner(text: &str) -> ProgressBar {
    let bar = ProgressBar::new_spinner();
    if let Ok(style) = ProgressStyle::with_template("{spinner} {msg} {elapsed:.dim}") {
        bar.set_style(style);
    }
    if bar.is_hidden() {
        println!("{text} …");
    } else {
        bar.set_message(text.to_owned());
        bar.enable_steady_tick(Duration::from_millis(120));
    }
    bar
}

fn seconds(took: Duration) -> String {
    format!("{:.1} s", took.as_secs_f64())
}
