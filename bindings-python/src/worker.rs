//! Threads that carry out plain functions.
//!
//! A worker stays attached to the interpreter while calls are quick and many, and their answers are
//! gathered for a moment. Answers never wait for a slow call: they are handed over before a function that
//! was slow the last time, and if a quick one turns out slow, the worker on watch hands them over within
//! a tick.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use mcpbolt::handler::Spawner;
use pyo3::prelude::*;
use rustix::thread::gettid;

use crate::beside::Beside;
use crate::hub::Hub;
use crate::panics::{self, caught};
use crate::session::Work;
use crate::verifier::Question;
use crate::{attached, call, failures, outcome};

/// Something for a worker thread to do.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "nearly all of it is calls")]
pub enum Duty {
    /// A call of a plain function.
    Call(Work),
    /// A plain function that a task of the event loop waits for.
    Beside(Beside),
    /// Credentials that a plain function verifies.
    Verify(Arc<Question>),
}

/// A call that takes longer than this is slow.
const SLOW: Duration = Duration::from_micros(50);
/// How long answers are gathered at most while calls are quick, and how many bytes.
const GATHER: Duration = Duration::from_micros(200);
const GATHER_BYTES: usize = 64 << 10;
/// How long a thread of the network may run calls before it returns. A single call may take longer;
/// another thread then drives the network.
const VISIT: Duration = Duration::from_micros(100);

/// Starts one more worker thread of a server; returns whether it could. If not, calls wait for the
/// existing workers.
pub fn spawn(hub: &Arc<Hub>) -> bool {
    let hub = hub.clone();
    let thread = std::thread::Builder::new().name("mcpbolt-python".into());
    let run = move || {
        let mut begin = true;
        // Each call is guarded separately. After a panic anywhere else, the thread starts over.
        while caught(|| work(&hub, begin)).is_err() {
            begin = false;
        }
    };
    thread.spawn(run).is_ok()
}

fn work(hub: &Arc<Hub>, begin: bool) {
    panics::point("worker");
    let here = gettid();
    let spawn_one = || spawn(hub);
    let hand_over = || hub.hand_over(&hub.answered);
    let wait = |begin| hub.workers.wait(here, begin, &spawn_one, &hand_over);
    let Some(first) = wait(begin) else { return };
    // Fails only when the interpreter is shutting down.
    let _ = Python::try_attach(|py| {
        work_off(py, hub, first, || {
            hub.workers.next(here).or_else(|| {
                hand_over();
                py.detach(|| wait(false))
            })
        });
    });
}

/// Has the engine's thread that drives the network run calls as a guest when its turn is over.
pub fn invite(hub: &Arc<Hub>, crew: &dyn Spawner) {
    let hub = hub.clone();
    crew.spawn(Box::pin(async move { visit(&hub) }));
}

/// Runs calls on the network's thread as a guest, until there are none or [`VISIT`] has passed.
fn visit(hub: &Arc<Hub>) {
    let here = gettid();
    let Some(first) = hub.workers.enter(here, || spawn(hub)) else {
        return;
    };
    let begun = Instant::now();
    let worked = attached::visit(|py| {
        // The guest leaves properly even if a call panics.
        let _ = caught(|| {
            work_off(py, hub, first, || {
                let stays = begun.elapsed() < VISIT;
                stays.then(|| hub.workers.next(here)).flatten()
            });
        });
    });
    if worked.is_none() {
        // The interpreter is shutting down.
        return;
    }
    // The guest returns to the network, which sends the answers at once.
    hub.answered.flush();
    if let (true, Some(crew)) = (hub.workers.leave(here), hub.crew.get()) {
        invite(hub, &**crew);
    }
}

/// Carries out work until there is none.
fn work_off(py: Python<'_>, hub: &Arc<Hub>, first: Duty, more: impl Fn() -> Option<Duty>) {
    if let Some(greet) = &hub.interpreter.greet
        && let Err(error) = greet.bind(py).call0()
    {
        failures::report(
            py,
            &hub.served.failed,
            error,
            "greeting a thread failed",
            None,
        );
    }
    let (mut next, mut gathered_since) = (Some(first), Instant::now());
    while let Some(duty) = next {
        match duty {
            Duty::Call(work) => carry_out(py, hub, &work, &mut gathered_since),
            Duty::Beside(call) => {
                // It may take long; answers do not wait for it.
                hub.hand_over(&hub.answered);
                call.run(py);
            }
            Duty::Verify(question) => {
                hub.hand_over(&hub.answered);
                question.run(py);
            }
        }
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
    let carried = caught(|| {
        panics::point("call");
        let outcome = call::invoke(py, work);
        outcome::answer(py, work, outcome, &hub.answered)
    });
    let bytes = carried.unwrap_or_else(|panic| outcome::panicked(work, &panic, &hub.answered));
    target.slow.store(start.elapsed() > SLOW, Ordering::Relaxed);
    if bytes > GATHER_BYTES {
        hub.hand_over(&hub.answered);
    }
}
