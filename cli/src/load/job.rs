//! The job that the arguments describe. It is checked before any server is started.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

use super::args::{Args, Kind, Requests};
use super::pair::Relation;
use super::plan::{Pace, Recording};
use super::workload::{
    Calls, Cancellations, Echo, Lists, Replay, Reports, SAMPLING_TOOL, SIZES, Samplings,
    Subscriptions, Workload,
};
use crate::session::Start;

/// How many notifications each call of `progress` reports, unless the arguments say so.
const NOTIFICATIONS: u32 = 20;

/// The servers, what is sent to each, and how the requests follow each other.
pub struct Job {
    pub first: Target,
    pub second: Option<(Relation, Target)>,
    /// Without meaning for a ramp.
    pub pace: Pace,
}

/// A server, and what is sent to it.
pub struct Target {
    pub start: Start,
    pub workload: Workload,
    /// The process of the server, if it is not found by itself.
    pub process: Option<u32>,
}

impl Job {
    pub fn new(args: &Args) -> Result<Self> {
        let (requests, second) = (&args.requests, &args.second);
        refuse_unused(requests)?;
        let moved = |address| args.start.moved_to(address);
        let through = || Some((Relation::Through, moved(second.through.clone()?)));
        // Another server must not see the credentials and variables of the first one.
        let against = || {
            let other = moved(second.against.clone()?);
            let other = other.with_secrets(
                second.other_bearer.clone(),
                second.other_headers.clone(),
                second.other_env.clone(),
            );
            Some((Relation::Against, other))
        };
        let (workload, times) = workload(requests, "")?;
        let first = Target {
            start: args.address.clone().map_or(args.start.clone(), moved),
            workload,
            process: args.results.pid,
        };
        let other = |(relation, start)| {
            let target = Target {
                start,
                workload: self::workload(requests, &second.other_prefix)?.0,
                process: second.other_pid,
            };
            Ok::<_, anyhow::Error>((relation, target))
        };
        let second = through().or_else(against).map(other).transpose()?;
        let is_counted = requests.workload == Some(Kind::Cancel) && args.pace.connections > 1;
        let other = second.as_ref().map(|(_, target)| target);
        let is_command = |target: &Target| target.start.address().is_none();
        ensure!(
            !(is_counted && (is_command(&first) || other.is_some_and(is_command))),
            "--workload cancel takes one connection to a command: each connection starts a process, and stats() counts the calls of one process; leave out --connections"
        );
        Ok(Self {
            first,
            second,
            pace: pace(args, times)?,
        })
    }
}

/// Fails if there is an option that these requests do not use.
fn refuse_unused(requests: &Requests) -> Result<()> {
    use Kind::{Echo, Listen, Progress, Sampling, Sizes};
    let is = |kinds: &[Kind]| requests.workload.is_some_and(|it| kinds.contains(&it));
    let is_call = requests.workload.is_none() && requests.trace.is_none();
    let has_tool = is_call || is(&[Echo, Sizes, Progress, Sampling]);
    let options = [
        (
            "--tool",
            requests.tool.is_some() && !has_tool,
            "calls of one tool, by itself or with --workload echo, sizes, progress or sampling",
        ),
        (
            "--arguments",
            requests.arguments.is_some() && !is_call,
            "--tool without --workload",
        ),
        (
            "--bytes",
            !requests.bytes.is_empty() && !is(&[Echo, Sizes]),
            "--workload echo or sizes",
        ),
        (
            "--notifications",
            requests.notifications.is_some() && !is(&[Progress]),
            "--workload progress",
        ),
        (
            "--uri",
            requests.uri.is_some() && !is(&[Listen]),
            "--workload listen",
        ),
    ];
    for (option, is_unused, of) in options {
        ensure!(!is_unused, "{option} is for {of}; leave it out here");
    }
    Ok(())
}

fn pace(args: &Args, times: Option<Vec<Duration>>) -> Result<Pace> {
    let pace = &args.pace;
    Ok(match (pace.rate, pace.in_flight, times) {
        (Some(rate), ..) => Pace::Rate(rate),
        (None, Some(count), _) => Pace::InFlight(count),
        (None, None, Some(times)) if pace.ramp.is_none() => {
            let speed = args.requests.speed.unwrap_or(1.0);
            Pace::Recorded(Arc::new(Recording::new(times, speed)?))
        }
        _ if args.requests.speed.is_some() => {
            bail!("--speed is for a trace with at_ms; this one has none: use --rate or --in-flight")
        }
        _ => Pace::InFlight(1),
    })
}

/// The requests, and the times of a trace. `prefix` stands before the names of tools.
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
            let count = requests.notifications.unwrap_or(NOTIFICATIONS);
            Workload::Reports(Reports::new(&tool("progress"), count))
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
            let arguments = requests.arguments.as_deref().unwrap_or("{}");
            let expected = requests.expect.as_deref();
            Workload::Calls(Calls::new(&tool(named), arguments, expected)?)
        }
    };
    Ok((workload, None))
}
