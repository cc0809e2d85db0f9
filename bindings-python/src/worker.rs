//! Threads that carry out plain functions.
//!
//! A worker keeps the interpreter while calls are quick and many, and their answers wait a
//! moment for each other. They never wait for a slow call: before a function that was slow the
//! last time they are handed over, and the worker on watch hands them over within a tick when a
//! quick one turns out slow.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use mcpbolt::handler::Spawner;
use pyo3::prelude::*;

use crate::hub::Hub;
use crate::session::Work;
use crate::{attached, call, outcome};

/// A call longer than this is slow.
const SLOW: Duration = Duration::from_micros(50);
/// Longest that answers wait for each other while calls are quick, and most bytes of them.
const GATHER: Duration = Duration::from_micros(200);
const GATHER_BYTES: usize = 64 << 10;
/// How long the network waits for who drives it; one call may take longer, and then another
/// thread drives it.
const VISIT: Duration = Duration::from_micros(100);

/// Starts one more worker of a server; without it calls wait for the workers there are.
pub fn spawn(hub: &Arc<Hub>) -> bool {
    let hub = hub.clone();
    let thread = std::thread::Builder::new().name("mcpbolt-python".into());
    thread.spawn(move || work(&hub)).is_ok()
}

fn work(hub: &Arc<Hub>) {
    let spawn_one = || spawn(hub);
    let hand_over = || hub.hand_over(&hub.answered);
    let wait = |begin| hub.workers.wait(begin, &spawn_one, &hand_over);
    let Some(first) = wait(true) else { return };
    // Fails only when the interpreter is shutting down.
    let _ = Python::try_attach(|py| {
        work_off(py, hub, first, || {
            hub.workers.next().or_else(|| {
                hand_over();
                py.detach(|| wait(false))
            })
        });
    });
}

/// Has a thread of the engine's that drives the network come when its turn is over.
pub fn invite(hub: &Arc<Hub>, crew: &dyn Spawner) {
    let hub = hub.clone();
    crew.spawn(Box::pin(async move { visit(&hub) }));
}

/// What it does then; it goes when there is nothing left to do, and soon: the network waits.
fn visit(hub: &Arc<Hub>) {
    let Some(first) = hub.workers.enter(|| spawn(hub)) else {
        return;
    };
    let begun = Instant::now();
    let worked = attached::visit(|py| {
        work_off(py, hub, first, || {
            let stays = begun.elapsed() < VISIT;
            stays.then(|| hub.workers.next()).flatten()
        });
    });
    if worked.is_none() {
        // The interpreter is shutting down.
        return;
    }
    // Where it goes, those who wait for the answers are woken at once.
    hub.answered.flush();
    if let (true, Some(crew)) = (hub.workers.leave(), hub.crew.get()) {
        invite(hub, &**crew);
    }
}

/// Carries work out until there is none.
fn work_off(py: Python<'_>, hub: &Arc<Hub>, first: Work, more: impl Fn() -> Option<Work>) {
    let (mut next, mut gathered_since) = (Some(first), Instant::now());
    while let Some(work) = next {
        carry_out(py, hub, &work, &mut gathered_since);
        drop(work);
        next = more();
    }
}

fn carry_out(py: Python<'_>, hub: &Arc<Hub>, work: &Work, gathered_since: &mut Instant) {
    let Work { call, target, .. } = work;
    if call.cancel.is_cancelled() {
        return;
    }
    let start = Instant::now();
    if target.slow.load(Ordering::Relaxed) || start - *gathered_since > GATHER {
        hub.hand_over(&hub.answered);
        *gathered_since = start;
    }
    let outcome = call::invoke(py, work);
    let bytes = outcome::answer(py, work, outcome, &hub.answered);
    target.slow.store(start.elapsed() > SLOW, Ordering::Relaxed);
    if bytes > GATHER_BYTES {
        hub.hand_over(&hub.answered);
    }
}
