//! Waiting in a task: for a notification from any thread, and for a time.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::Context;
use std::time::Instant;

use tokio::time::Sleep;

use crate::connection::Wake;
use crate::io::wake::put_off;
use crate::wakeup::Ring;

/// Wakes the task that polls a connection.
pub struct Notifier {
    me: Weak<Self>,
    ring: Ring,
}

impl Notifier {
    pub fn new() -> Arc<Self> {
        Arc::new_cyclic(|me| Self {
            me: me.clone(),
            ring: Ring::new(),
        })
    }

    /// Forgets the registered waker, and that it was rung.
    #[cfg(feature = "http")]
    pub fn reset(&self) {
        self.ring.reset();
    }

    /// Registers the waker of `cx`. Returns whether the task was notified before.
    pub fn watch(&self, cx: &Context<'_>) -> bool {
        self.ring.watch(cx)
    }
}

impl Wake for Notifier {
    fn wake(&self) {
        self.ring.ring();
    }

    fn wake_soon(&self) {
        if !put_off(|| self.me.upgrade()) {
            self.wake();
        }
    }
}

/// Wakes the polling task at a given time.
#[derive(Default)]
pub struct Alarm(Option<(Instant, Pin<Box<Sleep>>)>);

impl Alarm {
    /// Returns whether `due` has come; if not, wakes `cx` when it does. If `due` is later than in the last call, the
    /// timer is moved only once it fires.
    pub fn poll(&mut self, due: Option<Instant>, cx: &mut Context<'_>) -> bool {
        let Some(due) = due else {
            self.0 = None;
            return false;
        };
        let new = || (due, Box::pin(tokio::time::sleep_until(due.into())));
        let (set, sleep) = self.0.get_or_insert_with(new);
        loop {
            if due >= *set && sleep.as_mut().poll(cx).is_pending() {
                return false;
            }
            if due == *set {
                return true;
            }
            *set = due;
            sleep.as_mut().reset(due.into());
        }
    }
}
