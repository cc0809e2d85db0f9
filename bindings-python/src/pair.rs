//! Two connections of one process, joined by their buffers: a client and a server without a wire.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Thread, park, park_timeout};
use std::time::Instant;

use mcpbolt::connection::Wake;
use mcpbolt::error::ConnectionError;
use mcpbolt::io::Machine;

/// Wakes the thread that drives a pair.
pub struct ThreadWake {
    thread: Thread,
    raised: Arc<AtomicBool>,
}

impl ThreadWake {
    /// Of the thread that calls; the flag says that it was woken.
    pub fn new(raised: &Arc<AtomicBool>) -> Arc<Self> {
        Arc::new(Self {
            thread: std::thread::current(),
            raised: raised.clone(),
        })
    }
}

impl Wake for ThreadWake {
    fn wake(&self) {
        self.raised.store(true, Ordering::Release);
        self.thread.unpark();
    }
}

/// Drives both until one of them is closed and has said so to the other.
pub fn drive(client: &mut impl Machine, server: &mut impl Machine, raised: &AtomicBool) {
    loop {
        let now = Instant::now();
        for machine in [&mut *client as &mut dyn Machine, server] {
            machine.handle_submissions(now);
            if machine.poll_timeout().is_some_and(|due| due <= now) {
                machine.handle_timeout(now);
            }
        }
        let moved = carry(client, server, now) | carry(server, client, now);
        if client.is_closed() || server.is_closed() {
            server.close(ConnectionError::ClosedByPeer);
            client.close(ConnectionError::ClosedByPeer);
            return;
        }
        if moved || raised.swap(false, Ordering::AcqRel) {
            continue;
        }
        match [client.poll_timeout(), server.poll_timeout()]
            .into_iter()
            .flatten()
            .min()
        {
            Some(due) => park_timeout(due.saturating_duration_since(Instant::now())),
            None => park(),
        }
    }
}

/// Moves what one has written to the other. Whether there was any.
fn carry(from: &mut dyn Machine, to: &mut dyn Machine, now: Instant) -> bool {
    let mut moved = false;
    while !from.output().is_empty() && to.wants_read() {
        let head = from.output().head();
        let len = head.len();
        to.input().extend(head);
        from.output().advance(len);
        moved = true;
    }
    if moved {
        to.receive(now);
    }
    moved
}
