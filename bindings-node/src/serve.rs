//! A server on this process's stdin and stdout.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use mcpbolt::connection::{Config, Connection, Framing};
use mcpbolt::io::{Ended, Hosted, Report, Stdio, StdioOptions, traced};
use mcpbolt::server::ServerHost;
use napi::bindgen_prelude::Function;
use napi_derive::napi;

use crate::caller::Caller;
use crate::error::{self, Result};
use crate::executor::Handlers;
use crate::inbox::{Farewell, Inbox};
use crate::link::{Link, Side, duration, spawn};
use crate::offer::Offer;

/// How long JavaScript has to notice that the connection is gone before a handler that blocks its thread
/// counts as stuck.
pub const NOTICE: Duration = Duration::from_millis(50);

/// Serves on this process's stdin and stdout, on a thread of the engine.
#[napi(catch_unwind)]
pub fn serve_stdio(
    offer: &mut Offer,
    wake: Function<'_, (), ()>,
    grace_ms: f64,
    signals: bool,
    trace: bool,
) -> Result<Link> {
    let served = offer.serve()?;
    let inbox = Arc::new(Inbox::new(&wake)?);
    let options = StdioOptions {
        grace: duration(grace_ms)?,
        signals,
        ..StdioOptions::default()
    };
    let stdio = Stdio::take(options).map_err(|why| error::io(&why))?;
    let mut config = Config::clone(&served.config);
    config.trace = trace.then(|| inbox.trace());
    let config = traced(Arc::new(config)).map_err(|why| error::io(&why))?;
    let connection = Connection::new(config, Instant::now());
    connection.set_wake(stdio.wake().clone());
    let (handle, stop) = (connection.handle(), stdio.stop());
    let side = Side::Server(served.live.clone());
    let link = Link::new(inbox.clone(), side, move || stop.stop());
    let run = move || {
        let mut farewell = Farewell::new(&inbox);
        farewell.say(report_json(&Err(io::Error::other("the engine failed"))));
        let handlers = Handlers::new(&served, Caller::only(handle.clone()), inbox.clone());
        let host = ServerHost::live(served.live, handle, handlers);
        let mut machine = Hosted::new(connection, Framing::Detect, host);
        let outcome = stdio.run(&mut machine);
        let wedged = matches!(&outcome, Ok(report) if report.unanswered > 0);
        farewell.say(report_json(&outcome));
        drop(farewell);
        if wedged && !inbox.wait_drained(NOTICE) {
            signal_hook::low_level::exit(1);
        }
    };
    spawn("mcpbolt-serve", run)?;
    Ok(link)
}

/// How the server ended, as JSON.
pub fn report_json(outcome: &io::Result<Report>) -> String {
    match outcome {
        Ok(report) => {
            let (reason, signal) = match &report.reason {
                Ended::EndOfInput => ("end of input", None),
                Ended::Signal(number) => ("signal", Some(*number)),
                Ended::ParentDied => ("parent died", None),
                Ended::BrokenPipe(_) => ("broken pipe", None),
                Ended::Stopped => ("stopped", None),
                _ => ("closed", None),
            };
            let signal = signal.map_or(String::new(), |number| format!(",\"signal\":{number}"));
            let unanswered = report.unanswered;
            format!("{{\"reason\":\"{reason}\",\"unanswered\":{unanswered}{signal}}}")
        }
        Err(why) => error::failure_json(why),
    }
}
