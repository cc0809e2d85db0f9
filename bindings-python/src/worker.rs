//! Threads that carry out plain functions.
//!
//! A worker keeps the interpreter while calls are quick and many, and their answers wait a
//! moment for each other. They never wait for a slow call: before a function that was slow the
//! last time they are handed over, and the worker on watch hands them over within a tick when a
//! quick one turns out slow.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use pyo3::prelude::*;

use crate::session::{Session, Work};
use crate::{call, outcome};

/// A call longer than this is slow.
const SLOW: Duration = Duration::from_micros(50);
/// Longest that answers wait for each other while calls are quick, and most bytes of them.
const GATHER: Duration = Duration::from_micros(200);
const GATHER_BYTES: usize = 64 << 10;

/// Starts one more worker of a session.
pub fn spawn(session: &Arc<Session>) {
    let session = session.clone();
    // Without a thread the calls wait for the workers there are.
    let _ = std::thread::Builder::new()
        .name("mcpbolt-worker".into())
        .spawn(move || work(&session));
}

fn work(session: &Arc<Session>) {
    let spawn_one = || spawn(session);
    let hand_over = || session.answered.flush();
    let wait = |begin| session.workers.wait(begin, &spawn_one, &hand_over);
    let Some(first) = wait(true) else { return };
    // Fails only when the interpreter is shutting down.
    let _ = Python::try_attach(|py| {
        let mut next = Some(first);
        let mut now = Instant::now();
        let mut gathered_since = now;
        while let Some(work) = next {
            gathered_since = carry_out(py, session, &work, now, gathered_since);
            now = Instant::now();
            next = session.workers.next();
            if next.is_none() {
                session.answered.flush();
                next = py.detach(|| wait(false));
                now = Instant::now();
                gathered_since = now;
            }
        }
    });
}

fn carry_out(
    py: Python<'_>,
    session: &Arc<Session>,
    work: &Work,
    start: Instant,
    gathered_since: Instant,
) -> Instant {
    let Work { call, target, .. } = work;
    if call.cancel.is_cancelled() {
        return gathered_since;
    }
    let mut gathered_since = gathered_since;
    if target.slow.load(Ordering::Relaxed) || start - gathered_since > GATHER {
        session.answered.flush();
        gathered_since = start;
    }
    let outcome = call::invoke(py, session, work);
    let bytes = outcome::answer(py, session, work, outcome, &session.answered);
    target.slow.store(start.elapsed() > SLOW, Ordering::Relaxed);
    if bytes > GATHER_BYTES {
        session.answered.flush();
    }
    gathered_since
}
