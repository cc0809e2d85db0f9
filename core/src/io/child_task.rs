//! A child process whose connection is driven by a task of a tokio runtime, instead of a thread of its own.
//!
//! The poll that the child's loop sleeps in is a descriptor itself, which the poll of the runtime watches.

use std::future::poll_fn;
use std::io;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use super::child::{AttendedChild, Child, Exit};
use super::driver::Poller;
use super::machine::Machine;
use super::wait::{Alarm, Notifier};

impl Child {
    /// Drives `machine`, whose connection wakes `notifier`, as [`run`](Self::run) does.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub(super) async fn run_as_task(
        self,
        machine: &mut impl Machine,
        notifier: Arc<Notifier>,
    ) -> io::Result<Exit> {
        let mut child = self.attended;
        #[expect(
            deprecated,
            reason = "its successor needs AsFd, which mio::Poll lacks; the poller owns its descriptor"
        )]
        let mut poller = AsyncFd::with_interest(self.poller, Interest::READABLE)?;
        let mut alarm = Alarm::default();
        let turn = |cx: &mut Context<'_>| {
            // A ring from here on wakes the task again.
            notifier.watch(cx);
            poll_turn(&mut child, machine, &mut poller, &mut alarm, cx)
        };
        let ended = poll_fn(turn).await?;
        child.finish(machine, ended)
    }
}

/// Runs one turn. Ready with the time at which the child has ended.
fn poll_turn(
    child: &mut AttendedChild,
    machine: &mut impl Machine,
    poller: &mut AsyncFd<Poller>,
    alarm: &mut Alarm,
    cx: &mut Context<'_>,
) -> Poll<io::Result<Instant>> {
    child.driver.wake().run();
    while let Poll::Ready(ready) = poller.poll_read_ready_mut(cx) {
        let mut ready = ready?;
        ready.clear_ready();
        let events = ready.get_inner_mut().poll(Some(Duration::ZERO))?;
        child.driver.awake(events);
    }
    let now = Instant::now();
    let Some((until, more)) = child.turn(machine, now) else {
        return Poll::Ready(Ok(now));
    };
    let is_awake = child.driver.sleep(None, more).is_some();
    if alarm.poll(until, cx) || is_awake {
        cx.waker().wake_by_ref();
    }
    Poll::Pending
}
