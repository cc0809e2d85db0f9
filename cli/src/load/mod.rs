//! `mcpbolt load`: sends requests to a server, checks the answers, and measures.
//!
//! ```text
//!   args ─▶ job: plan (when), workload (what), side (to whom)
//!                        ▼
//!             drive: one run ─▶ tally ─▶ report
//!                ▲
//!       ramp (rising rates), pair (two servers in turns, with bootstrap)
//!                        ▼
//!             table, JSON, plot, threshold
//! ```

mod args;
mod bootstrap;
mod drive;
mod figures;
mod interrupt;
mod job;
mod listening;
mod live;
mod pair;
mod plan;
mod plot;
mod process;
mod ramp;
mod report;
mod side;
mod tally;
mod threads;
mod threshold;
mod units;
mod workload;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use serde::Serialize;

pub use self::args::{Args, EXAMPLES};
use self::drive::drive;
use self::interrupt::Interrupt;
use self::job::{Job, Target};
use self::live::Live;
use self::pair::Relation;
use self::plan::{Pace, Plan};
use self::report::Report;
use self::side::{Approach, Side};
use self::threshold::{Figures, Threshold};
use crate::shown;

/// The failure of messages that no request has asked for.
const STRAY: &str = "a message of the server was an answer to no request in flight (repeated, or unknown), progress out of order, or not valid";

/// Loads the server, prints the table, and returns 1 if a bound is crossed, 2 if the arguments are wrong. A signal
/// ends the measurement early: the report covers the time before it, and the status is that of the signal.
pub fn load(args: &Args) -> Result<u8> {
    let job = match Job::new(args) {
        Ok(job) => job,
        Err(error) => {
            shown::tell(&format!("error: {}", shown::lines(&format!("{error:#}"))));
            return Ok(2);
        }
    };
    let interrupt = Interrupt::default();
    let live = Live::new(args.results.live);
    let done = match (args.pace.ramp, job.second) {
        (Some(rates), _) => ramp(args, job.first, rates, &live, &interrupt),
        (None, Some((relation, second))) => {
            let targets = [job.first, second];
            pair(args, relation, targets, job.pace, &live, &interrupt)
        }
        (None, None) => single(args, job.first, job.pace, &live, &interrupt),
    };
    let Some(status) = interrupt.status() else {
        return done;
    };
    let why = done.map_or_else(|error| format!("{error:#}"), |_| "interrupted".to_owned());
    shown::tell(&format!("error: {}", shown::line(&why)));
    Ok(status)
}

/// One server, one pace.
fn single(
    args: &Args,
    target: Target,
    pace: Pace,
    live: &Live,
    interrupt: &Interrupt,
) -> Result<u8> {
    let side = open(args, target)?;
    let plan = plan(args, pace, Duration::from_secs(10), interrupt)?;
    let outcome = drive(&side, &plan, &Arc::default(), live)?;
    let mut report = Report::new(&side.name, &outcome);
    report.failed(STRAY, close(side, interrupt));
    finish(args, &report.table(), &report, &report, || {
        plot::of_run(&report)
    })
}

/// One server, rising rates.
fn ramp(
    args: &Args,
    target: Target,
    rates: (f64, f64),
    live: &Live,
    interrupt: &Interrupt,
) -> Result<u8> {
    let side = open(args, target)?;
    let plan = plan(args, Pace::Rate(rates.0), Duration::from_secs(3), interrupt)?;
    let pace = &args.pace;
    let ramp = ramp::run(&side, &plan, rates, pace.steps, pace.knee_p99, live);
    let strays = close(side, interrupt);
    let mut ramp = ramp?;
    ramp.strays = strays;
    finish(args, &ramp.table(), &ramp, &ramp, || plot::of_ramp(&ramp))
}

/// Two servers in turns.
fn pair(
    args: &Args,
    relation: Relation,
    targets: [Target; 2],
    pace: Pace,
    live: &Live,
    interrupt: &Interrupt,
) -> Result<u8> {
    let [first, second] = targets;
    let (first, second) = (open(args, first)?, open(args, second)?);
    let plan = plan(args, pace, Duration::from_secs(1), interrupt)?;
    let sides = [first.clone(), second.clone()];
    let pair = pair::run(relation, sides, &plan, args.second.rounds, live);
    let strays = [close(first, interrupt), close(second, interrupt)];
    let mut pair = pair?;
    pair.first.failed(STRAY, strays[0]);
    pair.second.failed(STRAY, strays[1]);
    finish(args, &pair.table(), &pair, &pair, || plot::of_pair(&pair))
}

/// Opens the connections of a side.
fn open(args: &Args, target: Target) -> Result<Arc<Side>> {
    let pace = &args.pace;
    let approach = Approach {
        start: &target.start,
        connections: pace.connections,
        revision: pace.revision,
        timeout: pace.timeout,
        process: target.process,
    };
    Ok(Arc::new(Side::open(&approach, target.workload)?))
}

/// The plan of the runs. Up to here, a signal ends the process.
fn plan(args: &Args, how: Pace, duration: Duration, interrupt: &Interrupt) -> Result<Plan> {
    interrupt.listen()?;
    let pace = &args.pace;
    Ok(Plan {
        pace: how,
        warm_up: pace.warm_up,
        duration: pace.duration.unwrap_or(duration),
        interrupt: interrupt.clone(),
    })
}

/// Closes a side. Returns how many messages of the server were of no use; after a signal they are not waited for.
fn close(side: Arc<Side>, interrupt: &Interrupt) -> u64 {
    let strays = match interrupt.has_come() {
        true => 0,
        false => side.strays(),
    };
    match Arc::try_unwrap(side) {
        Ok(side) => side.close(),
        Err(side) => side.abandon(),
    }
    strays
}

/// Prints the table, writes the files, and tells of crossed bounds.
fn finish(
    args: &Args,
    table: &str,
    report: &impl Serialize,
    figures: &dyn Figures,
    plot: impl FnOnce() -> String,
) -> Result<u8> {
    shown::print(&shown::lines(table))?;
    let write = |file: &Path, text: String| {
        std::fs::write(file, text).with_context(|| format!("writing {}", file.display()))
    };
    let results = &args.results;
    if let Some(file) = &results.json {
        write(file, serde_json::to_string_pretty(report)? + "\n")?;
    }
    if let Some(file) = &results.plot {
        write(file, plot())?;
    }
    let by_default = "errors>0".parse::<Threshold>()?;
    let says_errors = results.fail_if.iter().any(Threshold::is_of_errors);
    let by_default = (!says_errors).then_some(&by_default);
    let all = results.fail_if.iter().chain(by_default);
    let crossed = all.filter_map(|bound| bound.crossed(figures));
    let failures: Vec<_> = figures.missing().into_iter().chain(crossed).collect();
    for sentence in &failures {
        shown::tell(&format!("error: {sentence}"));
    }
    Ok(u8::from(!failures.is_empty()))
}
