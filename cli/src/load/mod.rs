//! `mcpbolt load`: sends requests to a server, checks the answers, and measures.
//!
//! ```text
//!   args ─▶ plan (when), workload (what), side (to whom)
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

use anyhow::{Context, Result, ensure};
use serde::Serialize;

pub use self::args::{Args, EXAMPLES};
use self::args::{Kind, Requests};
use self::drive::drive;
use self::interrupt::Interrupt;
use self::live::Live;
use self::pair::Relation;
use self::plan::{Pace, Plan, Recording};
use self::report::Report;
use self::side::{Approach, Side};
use self::threshold::{Figures, Threshold};
use self::workload::{
    Calls, Cancellations, Echo, Lists, MARK_BYTES, Replay, Reports, SAMPLING_TOOL, SIZES,
    Samplings, Subscriptions, Workload,
};
use crate::session::Start;
use crate::shown;

/// The failure of messages that no request has asked for.
const STRAY: &str = "a message of the server was an answer to no request in flight (repeated, or unknown), progress out of order, or not valid";

/// Loads the server, prints the table, and returns 1 if a bound is crossed. At a signal, this is done with what was
/// measured up to then, and the status is that of the signal.
pub fn load(args: &Args) -> Result<u8> {
    check(args)?;
    let interrupt = Interrupt::default();
    let done = measure(args, &interrupt);
    let Some(status) = interrupt.status() else {
        return done;
    };
    let why = done.map_or_else(|error| format!("{error:#}"), |_| "interrupted".to_owned());
    shown::tell(&format!("error: {}", shown::line(&why)));
    Ok(status)
}

fn measure(args: &Args, interrupt: &Interrupt) -> Result<u8> {
    let live = Live::new(args.results.live);
    let start = match &args.address {
        Some(address) => args.start.moved_to(address.clone()),
        None => args.start.clone(),
    };
    let second = &args.second;
    let other = second.through.as_ref().map(|at| (Relation::Through, at));
    let other = other.or(second.against.as_ref().map(|at| (Relation::Against, at)));
    match (args.pace.ramp, other) {
        (Some(rates), _) => ramp(args, &start, rates, &live, interrupt),
        (None, Some((relation, address))) => {
            let other = args.start.moved_to(address.clone());
            // Credentials for one server are not for another one to see.
            let other = match relation {
                Relation::Through => other,
                Relation::Against => other
                    .with_credentials(second.other_bearer.clone(), second.other_headers.clone()),
            };
            pair(args, relation, [&start, &other], &live, interrupt)
        }
        (None, None) => single(args, &start, &live, interrupt),
    }
}

fn check(args: &Args) -> Result<()> {
    let is_some = |time: Duration| !time.is_zero();
    ensure!(
        args.pace.connections > 0,
        "--connections must be at least 1"
    );
    ensure!(
        args.pace.duration.is_none_or(is_some),
        "--duration must be more than 0"
    );
    ensure!(args.second.rounds > 0, "--rounds must be at least 1");
    ensure!(
        args.requests.bytes.iter().all(|bytes| *bytes >= MARK_BYTES),
        "--bytes must be at least {MARK_BYTES}, so that each text is different"
    );
    Ok(())
}

/// One server, one pace.
fn single(args: &Args, start: &Start, live: &Live, interrupt: &Interrupt) -> Result<u8> {
    let (side, times) = open(args, start, "", args.results.pid)?;
    let plan = plan(args, times, Duration::from_secs(10), interrupt)?;
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
    start: &Start,
    rates: (f64, f64),
    live: &Live,
    interrupt: &Interrupt,
) -> Result<u8> {
    let (side, _) = open(args, start, "", args.results.pid)?;
    let plan = plan(args, None, Duration::from_secs(3), interrupt)?;
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
    starts: [&Start; 2],
    live: &Live,
    interrupt: &Interrupt,
) -> Result<u8> {
    let prefix = &args.second.other_prefix;
    let (first, times) = open(args, starts[0], "", args.results.pid)?;
    let (second, _) = open(args, starts[1], prefix, args.second.other_pid)?;
    let plan = plan(args, times, Duration::from_secs(1), interrupt)?;
    let sides = [first.clone(), second.clone()];
    let pair = pair::run(relation, sides, &plan, args.second.rounds, live);
    let strays = [close(first, interrupt), close(second, interrupt)];
    let mut pair = pair?;
    pair.first.failed(STRAY, strays[0]);
    pair.second.failed(STRAY, strays[1]);
    finish(args, &pair.table(), &pair, &pair, || plot::of_pair(&pair))
}

/// Opens the connections of a side. `prefix` stands before the names of tools. Returns the times of the trace, too.
fn open(
    args: &Args,
    start: &Start,
    prefix: &str,
    process: Option<u32>,
) -> Result<(Arc<Side>, Option<Vec<Duration>>)> {
    let (workload, times) = workload(&args.requests, prefix)?;
    let pace = &args.pace;
    let approach = Approach {
        start,
        connections: pace.connections,
        revision: pace.revision,
        timeout: pace.timeout,
        process,
    };
    Ok((Arc::new(Side::open(&approach, workload)?), times))
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

/// The plan of the runs. Up to here, a signal ends the process.
fn plan(
    args: &Args,
    times: Option<Vec<Duration>>,
    duration: Duration,
    interrupt: &Interrupt,
) -> Result<Plan> {
    interrupt.listen()?;
    let pace = &args.pace;
    let speed = args.requests.speed;
    let how = match (pace.rate, pace.in_flight, times) {
        (Some(rate), ..) => Pace::Rate(rate),
        (None, Some(count), _) => Pace::in_flight(count)?,
        (None, None, Some(times)) => Pace::Recorded(Arc::new(Recording { times, speed })),
        (None, None, None) => Pace::in_flight(1)?,
    };
    Ok(Plan {
        pace: how,
        warm_up: pace.warm_up,
        duration: pace.duration.unwrap_or(duration),
        interrupt: interrupt.clone(),
    })
}

fn workload(requests: &Requests, prefix: &str) -> Result<(Workload, Option<Vec<Duration>>)> {
    if let Some(file) = &requests.trace {
        let (replay, times) = Replay::read(file)?;
        ensure!(
            prefix.is_empty(),
            "a trace has the names of tools in it: --other-prefix does not go with --trace"
        );
        return Ok((Workload::Replay(replay), times));
    }
    let tool = |name: &str| {
        let name = requests.tool.as_deref().unwrap_or(name);
        format!("{prefix}{name}")
    };
    let lengths = |default: &[usize]| match requests.bytes.as_slice() {
        [] => default.to_owned(),
        bytes => bytes.to_owned(),
    };
    let workload = match requests.workload {
        Some(Kind::Echo) => Workload::Echo(Echo::new(&tool("echo"), &lengths(&[100]))),
        Some(Kind::Sizes) => Workload::Echo(Echo::new(&tool("echo"), &lengths(&SIZES))),
        Some(Kind::List) => Workload::Lists(Lists::default()),
        Some(Kind::Progress) => {
            Workload::Reports(Reports::new(&tool("progress"), requests.notifications))
        }
        Some(Kind::Cancel) => Workload::Cancellations(Cancellations::new(prefix)),
        Some(Kind::Listen) => Workload::Subscriptions(Subscriptions {
            uri: requests.uri.clone(),
        }),
        Some(Kind::Sampling) => Workload::Samplings(Samplings::new(tool(SAMPLING_TOOL))),
        None => {
            let named = requests.tool.as_deref();
            let named =
                named.context("what to send is missing: add --tool, --workload or --trace")?;
            let expected = requests.expect.as_deref();
            let calls = Calls::new(&tool(named), &requests.arguments, expected)?;
            Workload::Calls(calls)
        }
    };
    Ok((workload, None))
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
