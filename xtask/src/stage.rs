//! Stages: named steps of a long run, each timed, each passed or failed.

use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};

use crate::log::Log;
use crate::repo;
use crate::tally::Tally;

/// One step.
pub struct Stage {
    /// Its name for `--only`.
    pub name: &'static str,
    /// The check that it does, in one line.
    pub about: &'static str,
    /// Paths from the root that must exist, or the stage fails.
    pub needs: &'static [&'static str],
    pub run: fn(&mut Log) -> Result<()>,
}

/// A stage with requirements beyond those of `cargo xtask test`.
pub struct Deep {
    pub stage: Stage,
    /// Returns what is missing on this machine, and how to install it.
    pub missing: fn() -> Option<String>,
}

impl Stage {
    fn missing(&self) -> Option<&'static str> {
        let gone = |path: &&&str| !repo::root().join(path).exists();
        self.needs.iter().find(gone).copied()
    }
}

/// Returns the named stages, or all if no name is given. An unknown name is an error.
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

/// Whether a stage may skip tests.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Skips {
    /// A skipped test counts as failed.
    Fail,
    /// Skipped tests are counted and listed.
    Told,
}

/// Runs the stages one after the other and prints the outcome of each, then the counts.
pub fn run_all(stages: &[&Stage], skips: Skips, verbose: bool) -> Result<ExitCode> {
    run_turns(vec![vec![stages.to_vec()]], skips, verbose)
}

/// Runs turn after turn. The lanes of a turn run at once, the stages of a lane one after the other.
pub fn run_turns(turns: Vec<Vec<Vec<&Stage>>>, skips: Skips, verbose: bool) -> Result<ExitCode> {
    let run = Run {
        skips,
        count: turns.iter().flatten().map(Vec::len).sum(),
        verbose,
        begun: AtomicUsize::new(0),
        bars: MultiProgress::new(),
        sum: Mutex::default(),
    };
    let started = Instant::now();
    for turn in turns {
        std::thread::scope(|scope| {
            for lane in turn {
                scope.spawn(|| lane.into_iter().for_each(|stage| run.one(stage)));
            }
        });
    }
    let (all, cpu) = run.sum.into_inner().unwrap_or_default();
    let bad = all.failed + skips.bad(all);
    println!(
        "{} in all, {} of processor time",
        seconds(started.elapsed()),
        seconds(cpu)
    );
    println!(
        "{} passed, {} failed, {} skipped",
        all.passed, all.failed, all.skipped
    );
    Ok(ExitCode::from(u8::from(bad > 0)))
}

impl Skips {
    /// How many skipped tests count as failed.
    fn bad(self, tally: Tally) -> u64 {
        match self {
            Self::Fail => tally.skipped,
            Self::Told => 0,
        }
    }
}

struct Run {
    skips: Skips,
    count: usize,
    verbose: bool,
    begun: AtomicUsize,
    bars: MultiProgress,
    sum: Mutex<(Tally, Duration)>,
}

impl Run {
    fn one(&self, stage: &Stage) {
        let number = self.begun.fetch_add(1, Ordering::Relaxed) + 1;
        let place = format!("[{number}/{}]", self.count);
        let text = format!("{place} {}: {}", stage.name, stage.about);
        let bar = spin(self.bars.add(ProgressBar::new_spinner()), &text);
        let done = played(stage, &place, self.skips, self.verbose);
        bar.finish_and_clear();
        let (told, tally, cpu) = done.unwrap_or_else(|error| {
            let failed = Tally {
                failed: 1,
                ..Tally::default()
            };
            let told = format!("{place} FAILED   {}: {error:#}\n", stage.name);
            (told, failed, Duration::ZERO)
        });
        self.bars.suspend(|| print!("{told}"));
        if let Ok(mut sum) = self.sum.lock() {
            sum.0 += tally;
            sum.1 += cpu;
        }
    }
}

/// Runs a stage. Returns the lines to print, its counts and its processor time.
fn played(
    stage: &Stage,
    place: &str,
    skips: Skips,
    verbose: bool,
) -> Result<(String, Tally, Duration)> {
    if let Some(path) = stage.missing() {
        bail!("there is no {path}");
    }
    let mut log = Log::create(stage.name, verbose)?;
    let started = Instant::now();
    let done = (stage.run)(&mut log);

    let mut tally = log.tally;
    match &done {
        // A stage without tests of its own counts as one check; so does a failure outside its tests.
        Ok(()) if tally.total() == 0 => tally.passed = 1,
        Err(_) if tally.failed == 0 => tally.failed = 1,
        _ => {}
    }
    let is_good = done.is_ok() && tally.failed + skips.bad(tally) == 0;
    let word = if is_good { "ok" } else { "FAILED" };
    let (took, cpu) = (seconds(started.elapsed()), seconds(log.cpu));
    let counts = match log.tally.total() {
        0 => String::new(),
        _ => format!(
            "  ({} passed, {} failed, {} skipped)",
            tally.passed, tally.failed, tally.skipped
        ),
    };
    let mut told = format!(
        "{place} {word:<8} {:<12} {took:>9}, CPU {cpu:>9}  {}{counts}\n",
        stage.name, stage.about
    );
    for skip in &log.skips {
        told += &format!("    {skip}\n");
    }
    if !is_good {
        told += &log.tail();
        if let Err(error) = done {
            told += &format!("    {error:#}\n");
        }
    }
    Ok((told, tally, log.cpu))
}

/// A spinner line while something runs; if the output is not a terminal, one plain line.
pub fn spinner(text: &str) -> ProgressBar {
    spin(ProgressBar::new_spinner(), text)
}

fn spin(bar: ProgressBar, text: &str) -> ProgressBar {
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
