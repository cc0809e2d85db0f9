//! Several processes that serve one address: this one as their supervisor, or as one of them.

use mcpbolt::io::ServeOptions;
#[cfg(unix)]
use mcpbolt::io::WorkerProcess;
use napi::bindgen_prelude::Function;
use napi_derive::napi;

#[cfg(unix)]
use crate::error;
use crate::error::Result;
use crate::link::Link;

/// Whether a supervisor has started this process.
#[napi(catch_unwind)]
pub fn is_worker() -> Result<bool> {
    #[cfg(unix)]
    return WorkerProcess::inherited()
        .map(|worker| worker.is_some())
        .map_err(error::io);
    #[cfg(not(unix))]
    Ok(false)
}

/// Has a server be the one of this process as a worker.
pub fn take_place(options: &mut ServeOptions) -> Result<()> {
    #[cfg(unix)]
    {
        options.worker = WorkerProcess::inherited().map_err(error::io)?;
    }
    #[cfg(not(unix))]
    let _ = options;
    Ok(())
}

/// Starts `command` for each of `workers`, and keeps them running until the link is stopped or, with `signals`, a termination signal
/// arrives; SIGHUP then replaces them. The link reports the address once all serve, and the end. At `health` is said how far they are.
#[cfg(unix)]
#[napi(catch_unwind)]
pub fn supervise(
    command: Vec<String>,
    address: String,
    workers: u32,
    grace_ms: f64,
    health: Option<String>,
    signals: bool,
    wake: Function<'_, (), ()>,
) -> Result<Link> {
    use std::sync::Arc;

    use mcpbolt::io::Address;
    use mcpbolt_cli::SuperviseOptions;
    use serde_json::json;
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

    use crate::inbox::{EndReport, Event, Inbox};
    use crate::kinds::Inbound;
    use crate::link::Side;
    use crate::threads::spawn;

    let place = |text: String| text.parse::<Address>().map_err(error::misuse);
    // Not SIGUSR1, by which Node starts its debugger.
    let heard = [SIGHUP, SIGINT, SIGTERM];
    let options = SuperviseOptions {
        workers: usize::try_from(workers).unwrap_or(usize::MAX),
        grace: crate::json::duration(grace_ms)?,
        health: health.map(place).transpose()?,
        signals: heard.into_iter().filter(|_| signals).collect(),
    };
    let command = command.into_iter().map(Into::into).collect();
    let supervised = mcpbolt_cli::supervise(command, place(address)?, options);
    let supervised = Arc::new(supervised.map_err(error::io)?);
    let inbox = Arc::new(Inbox::new(&wake)?);
    let stopping = supervised.clone();
    let link = Link::new(inbox.clone(), Side::Front, move || stopping.stop());
    spawn("mcpbolt-workers", move || {
        let mut report = EndReport::new(&inbox);
        report.set(json!({ "error": "the engine failed" }).to_string());
        let ended = supervised.wait(|at| {
            inbox.push(Event::text(
                Inbound::Opened,
                json!(at.to_string()).to_string(),
            ));
            Ok(())
        });
        let ended = match (ended, supervised.signal()) {
            (Err(why), _) => json!({ "error": why.to_string() }),
            (Ok(()), None) => json!({ "reason": "stopped", "unanswered": 0 }),
            (Ok(()), Some(signal)) => {
                json!({ "reason": "signal", "signal": signal, "unanswered": 0 })
            }
        };
        report.set(ended.to_string());
    })?;
    Ok(link)
}

/// Other systems cannot hand sockets to other processes.
#[cfg(not(unix))]
#[napi(catch_unwind)]
pub fn supervise(
    _command: Vec<String>,
    _address: String,
    _workers: u32,
    _grace_ms: f64,
    _health: Option<String>,
    _signals: bool,
    _wake: Function<'_, (), ()>,
) -> Result<Link> {
    Err(crate::error::misuse(
        "workers: this system cannot hand sockets to other processes; start several servers at ports of their own, behind a proxy",
    ))
}
