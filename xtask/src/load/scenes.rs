//! A cancelled call.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::session::Session;
use super::wire;

/// Starts a sleep of a minute, cancels it once it runs, and returns how long the server took to stop
/// it. It is an error if the server never stops it, or miscounts.
pub fn cancelled_sleep(session: &mut Session) -> Result<Duration> {
    let before = stats(session)?;
    let id = session.next_id();
    let call = wire::call(id, session.revision, "sleep", r#"{"ms":60000}"#);
    session.tell(&call);
    wait_for(session, "the sleep does not start", |now| {
        now.started == before.started + 1
    })?;
    let cancelled = Instant::now();
    session.tell(&wire::cancelled(id));
    let after = wait_for(session, "the sleep goes on after its cancellation", |now| {
        now.active == before.active
    })?;
    let took = cancelled.elapsed();
    if after.finished != before.finished || after.cancelled != before.cancelled + 1 {
        bail!("the cancelled sleep was counted as finished");
    }
    Ok(took)
}

/// The counters of `sleep`.
struct Stats {
    active: u64,
    started: u64,
    finished: u64,
    cancelled: u64,
}

fn stats(session: &mut Session) -> Result<Stats> {
    let text = session.call("stats", "{}")?;
    let counters: Value = serde_json::from_str(&text).context("stats is not JSON")?;
    let count = |name: &str| {
        counters[name]
            .as_u64()
            .with_context(|| format!("stats without {name}"))
    };
    Ok(Stats {
        active: count("active")?,
        started: count("started")?,
        finished: count("finished")?,
        cancelled: count("cancelled")?,
    })
}

fn wait_for(
    session: &mut Session,
    why_not: &'static str,
    done: impl Fn(&Stats) -> bool,
) -> Result<Stats> {
    let deadline = Instant::now() + Duration::from_secs(5);
    loop {
        let now = stats(session)?;
        if done(&now) {
            return Ok(now);
        }
        if Instant::now() > deadline {
            bail!("{why_not}");
        }
        std::thread::sleep(Duration::from_micros(200));
    }
}
