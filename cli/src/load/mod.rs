//! `mcpbolt load`: calls a tool of a server at a rate, or with a number of calls in flight, and measures.

mod drive;
mod plan;
mod process;
mod report;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use mcpbolt::mcp::Revision;

use crate::session::{Session, Start};
use crate::shown;

use self::drive::{Load, drive};
use self::plan::{Pace, Template};
use self::process::Server;
use self::report::Report;

/// What to call, how often, and what is too bad.
#[derive(clap::Args)]
pub struct Args {
    /// The tool
    #[arg(long, value_name = "NAME")]
    tool: String,
    /// Its arguments, a JSON object; {n} in it becomes the number of the call
    #[arg(long, value_name = "JSON", default_value = "{}")]
    arguments: String,
    /// The text that each answer must have; {n} in it becomes the number of the call
    #[arg(long, value_name = "TEXT")]
    expect: Option<String>,
    /// Calls per second, however long the server takes: latency counts from the time at which a call is due
    #[arg(long, value_name = "CALLS", conflicts_with = "in_flight")]
    rate: Option<f64>,
    /// Calls in flight, each followed by the next one as soon as it is answered; 1 without --rate
    #[arg(long, value_name = "COUNT")]
    in_flight: Option<usize>,
    /// How long to measure: 500ms, 30s, 5m
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = plan::duration)]
    duration: Duration,
    /// How long to load before that
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = plan::duration)]
    warm_up: Duration,
    /// How long to wait for an answer
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = plan::duration)]
    timeout: Duration,
    /// Connections, which take turns
    #[arg(long, value_name = "COUNT", default_value_t = 1)]
    connections: usize,
    /// The revision to speak; the newest of the server by default
    #[arg(long, value_name = "REVISION")]
    revision: Option<Revision>,
    /// The process of the server, if it is not the command and does not listen on this machine
    #[arg(long, value_name = "PID")]
    pid: Option<u32>,
    /// A file for the report, in JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Fail if more calls than this failed, in per cent
    #[arg(
        long,
        value_name = "PERCENT",
        default_value_t = 0.0,
        help_heading = "When to fail"
    )]
    max_errors: f64,
    /// Fail if the 99th percentile of latency is above this
    #[arg(long, value_name = "TIME", value_parser = plan::duration, help_heading = "When to fail")]
    max_p99: Option<Duration>,
    #[command(flatten)]
    start: Start,
}

/// Loads the server, prints the table, and returns 1 if it is too bad.
pub fn load(args: &Args) -> Result<u8> {
    let arguments = Template::new(&args.arguments);
    let of_first: serde_json::Value =
        serde_json::from_str(&arguments.of(0)).context("--arguments is not JSON")?;
    ensure!(of_first.is_object(), "--arguments must be a JSON object");
    ensure!(args.connections > 0, "--connections must be at least 1");
    ensure!(!args.duration.is_zero(), "--duration must be more than 0");
    let pace = match args.rate {
        Some(rate) => Pace::open(rate)?,
        None => Pace::closed(args.in_flight.unwrap_or(1))?,
    };
    let revision = args.revision;
    let sessions: Vec<_> = (0..args.connections)
        .map(|_| Session::open_in(&args.start, revision))
        .collect::<Result<_>>()?;
    let of_children: Vec<_> = sessions.iter().filter_map(Session::child).collect();
    let processes = match (args.pid, args.start.local_port()) {
        (Some(pid), _) => vec![pid],
        (None, Some(port)) => process::listeners(port),
        (None, None) => of_children,
    };
    let clients = sessions.iter().map(|session| session.client.clone());
    let outcome = drive(Load {
        clients: clients.collect(),
        tool: &args.tool,
        arguments,
        expected: args.expect.as_deref().map(Template::new),
        pace,
        warm_up: args.warm_up,
        duration: args.duration,
        timeout: args.timeout,
        server: Server::new(processes),
    })?;
    let report = Report::new(&outcome);
    shown::print(&shown::lines(&report.table()))?;
    if let Some(file) = &args.json {
        let json = serde_json::to_string_pretty(&report)? + "\n";
        std::fs::write(file, json).with_context(|| format!("writing {}", file.display()))?;
    }
    for session in sessions {
        if let Err(error) = session.close() {
            eprintln!("warning: {}", shown::line(&format!("{error:#}")));
        }
    }
    let faults = report.beyond(args.max_errors, args.max_p99);
    for fault in &faults {
        eprintln!("error: {fault}");
    }
    Ok(u8::from(!faults.is_empty()))
}
