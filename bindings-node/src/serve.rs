//! A server on this process's stdin and stdout.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};

use mcpbolt::connection::{Config, Connection, Framing};
use mcpbolt::io::{Ended, Hosted, Report, Stdio, StdioOptions, traced};
use mcpbolt::server::ServerHost;
use napi::bindgen_prelude::Function;
use napi_derive::napi;
use serde_json::json;

use crate::caller::Caller;
use crate::entries::Entries;
use crate::error::{self, Result};
use crate::executor::Handlers;
use crate::inbox::{EndReport, Event, Inbox};
use crate::json::duration;
use crate::kinds::Inbound;
use crate::link::{Finish, Link, Side};
use crate::threads::spawn;

/// How long JavaScript has to notice that the connection is gone before a handler that blocks its thread
/// counts as stuck.
pub const NOTICE: Duration = Duration::from_millis(50);

/// Serves on this process's stdin and stdout, on a thread of the engine. Without a grace period, the program decides
/// how long calls may take, and nothing ends the process.
#[napi(catch_unwind)]
pub fn serve_stdio(
    entries: &mut Entries,
    wake: Function<'_, (), ()>,
    grace_ms: Option<f64>,
    signals: bool,
    trace: bool,
) -> Result<Link> {
    let served = entries.serve()?;
    let inbox = Arc::new(Inbox::new(&wake)?);
    let (stdio, finish, over) = take(grace_ms, signals, &inbox)?;
    let mut config = Config::clone(&served.config);
    config.trace = trace.then(|| inbox.trace());
    let config = traced(Arc::new(config)).map_err(error::io)?;
    let connection = Connection::new(config, Instant::now());
    connection.set_wake(stdio.wake().clone());
    let (handle, stop) = (connection.handle(), stdio.stop());
    let side = Side::Server(served.live.clone());
    let handlers = Handlers::new(&served, Caller::only(handle.clone()), inbox.clone());
    let host = ServerHost::shared(served.live, handle, Box::new(handlers));
    let machine = Hosted::new(connection, Framing::Detect, host);
    let (drive, helper) = stdio.helped(machine).map_err(error::io)?;
    let link = Link::new(inbox.clone(), side, move || stop.stop())
        .finished_by(finish)
        .helping(helper);
    let run = move || {
        let _over = over;
        let mut report = EndReport::new(&inbox);
        report.set(report_json(&Err(io::Error::other("the engine failed"))));
        let outcome = drive();
        let wedged = grace_ms.is_some() && matches!(&outcome, Ok(report) if report.unanswered > 0);
        report.set(report_json(&outcome));
        drop(report);
        if wedged && !inbox.wait_drained(NOTICE) {
            signal_hook::low_level::exit(1);
        }
    };
    spawn("mcpbolt-serve", run)?;
    Ok(link)
}

/// Takes over stdin and stdout, whose end is reported to `inbox`. Also returns how JavaScript has it finish, and what
/// the engine's thread drops last.
pub fn take(
    grace_ms: Option<f64>,
    signals: bool,
    inbox: &Arc<Inbox>,
) -> Result<(Stdio, Finish, Sender<()>)> {
    let options = StdioOptions {
        grace: grace_ms.map_or(Ok(Duration::MAX), duration)?,
        signals,
        ..StdioOptions::default()
    };
    let stdio = Stdio::take(options).map_err(error::io)?;
    let end = Event::text(Inbound::InputEnded, String::new());
    let inbox = inbox.clone();
    let stdio = stdio.on_end_of_input(move || inbox.push_end(end));
    let (over, ended) = channel();
    let finish = Finish {
        stop: stdio.stop(),
        ended,
    };
    Ok((stdio, finish, over))
}

/// How the server ended, as JSON.
pub fn report_json(outcome: &io::Result<Report>) -> String {
    let report = match outcome {
        Ok(report) => report,
        Err(why) => return json!({ "error": why.to_string() }).to_string(),
    };
    let (reason, signal) = match &report.reason {
        Ended::EndOfInput => ("end of input", None),
        Ended::Signal(number) => ("signal", Some(*number)),
        Ended::ParentDied => ("parent died", None),
        Ended::BrokenPipe(_) => ("broken pipe", None),
        Ended::Stopped => ("stopped", None),
        _ => ("closed", None),
    };
    let mut json = json!({ "reason": reason, "unanswered": report.unanswered });
    if let Some(number) = signal {
        json["signal"] = number.into();
    }
    json.to_string()
}
