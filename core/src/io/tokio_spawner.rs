//! Handlers as tasks of a tokio runtime.

use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use tokio::runtime::Handle;

use super::wake::{WakeUps, gather};
use crate::handler::{Job, Jobs, Spawner};
use crate::panics::contain;
use crate::sync::block_on;

/// How long one task begins handlers of a batch before others may take the rest.
const SHARE: Duration = Duration::from_micros(100);

/// Runs handlers as tasks of the runtime, beside those of the program. A handler that blocks holds up a
/// thread of the runtime, and no client has a share of the threads: where either matters, use
/// [`Workers`](super::Workers), whose handlers may use the runtime as well.
///
/// One task begins the handlers that arrived together: those that are done at once need no task of their
/// own, and their answers leave together.
impl Spawner for Handle {
    fn spawn(&self, job: Job) {
        drop(Self::spawn(self, job));
    }

    fn spawn_batch(&self, jobs: Jobs) {
        let handle = self.clone();
        drop(Self::spawn(self, async move { begin_all(&handle, jobs) }));
    }

    fn spawn_blocking(&self, job: Job) {
        // The runtime's own `block_on` would keep the handler from calling it again.
        drop(Self::spawn_blocking(self, || block_on(job)));
    }
}

/// Begins each handler. What is left after a while becomes a batch of its own.
fn begin_all(handle: &Handle, mut jobs: Jobs) {
    let mut wakes = WakeUps::new();
    let begun = Instant::now();
    gather(&mut wakes, || {
        for job in jobs.by_ref() {
            begin(handle, job);
            if begun.elapsed() > SHARE {
                break;
            }
        }
    });
    wakes.drain(..).for_each(|wake| wake.wake());
    let mut rest = jobs.peekable();
    if rest.peek().is_some() {
        handle.spawn_batch(Box::new(rest));
    }
}

/// Polls a handler once. If it waits, it becomes a task, which is polled again at once and so registers its own
/// waker. A panic that a handler leaves behind, such as in a destructor, ends only its job, which answers when
/// it is dropped.
pub(super) fn begin(handle: &Handle, mut job: Job) {
    let mut context = Context::from_waker(Waker::noop());
    let polled = contain("a job", move || match job.as_mut().poll(&mut context) {
        Poll::Pending => Some(job),
        Poll::Ready(()) => None,
    });
    if let Some(job) = polled.flatten() {
        handle.spawn(job);
    }
}
