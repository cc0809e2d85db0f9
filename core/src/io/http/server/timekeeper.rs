//! Timers that outlive requests: an MCP task runs on when the request that began it is answered.
//!
//! The timers are those of a connection without a peer, which a tokio task drives.

use std::future::poll_fn;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use std::time::Instant;

use crate::connection::{
    Answer, Batch, CallKey, Config, Connection, Disposition, Handle, Host, IncomingRequest,
};
use crate::io::wait::{Alarm, Notifier};
use crate::mcp::ErrorKind;

/// Starts when its handle is first requested, and stops when dropped.
pub struct Timekeeper {
    config: Arc<Config>,
    handle: OnceLock<Handle>,
}

impl Timekeeper {
    /// `config` must have neither an idle timeout nor keepalive.
    pub fn new(config: Arc<Config>) -> Self {
        Self {
            config,
            handle: OnceLock::new(),
        }
    }

    /// The handle whose connection runs the timers. Requires a tokio runtime with time enabled.
    pub fn handle(&self) -> &Handle {
        self.handle.get_or_init(|| {
            let mut connection = Connection::new(self.config.clone(), Instant::now());
            let bell = Notifier::new();
            connection.set_wake(bell.clone());
            let handle = connection.handle();
            let mut alarm = Alarm::default();
            tokio::spawn(poll_fn(move |cx| {
                poll(&mut connection, &bell, &mut alarm, cx)
            }));
            handle
        })
    }
}

fn poll(
    connection: &mut Connection,
    bell: &Notifier,
    alarm: &mut Alarm,
    cx: &mut Context<'_>,
) -> Poll<()> {
    loop {
        // A ring from here on wakes the task again.
        bell.watch(cx);
        let now = Instant::now();
        connection.handle_submissions(now, &mut NoPeer);
        connection.handle_timeout(now, &mut NoPeer);
        if connection.is_closed() {
            return Poll::Ready(());
        }
        if !alarm.poll(connection.poll_timeout(), cx) {
            return Poll::Pending;
        }
    }
}

impl Drop for Timekeeper {
    fn drop(&mut self) {
        if let Some(handle) = self.handle.get() {
            handle.close();
        }
    }
}

/// The host of a connection on which nothing arrives.
struct NoPeer;

impl Host for NoPeer {
    fn request(&mut self, _: IncomingRequest<'_>, answer: Answer<'_>) -> Disposition {
        answer.error(
            ErrorKind::MethodNotFound,
            "this connection has no peer",
            None,
        )
    }

    fn dispatch(&mut self, _: Batch) {}

    fn cancelled(&mut self, _: CallKey, _: Option<&str>) {}
}
