//! Waiting as a task does: for a bell that any thread rings, and for a time.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::task::{Context, Waker};
use std::time::Instant;

use tokio::time::Sleep;

use crate::connection::Wake;
use crate::io::wake::put_off;

/// Wakes the task that polls a connection.
pub struct Bell {
    me: Weak<Self>,
    rung: AtomicBool,
    waker: Mutex<Option<Waker>>,
}

impl Bell {
    pub fn new() -> Arc<Self> {
        Arc::new_cyclic(|me| Self {
            me: me.clone(),
            rung: AtomicBool::new(false),
            waker: Mutex::default(),
        })
    }

    fn waker(&self) -> std::sync::MutexGuard<'_, Option<Waker>> {
        self.waker.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets whom it would wake, and that it was rung.
    #[cfg(feature = "http")]
    pub fn reset(&self) {
        let waker = self.waker().take();
        self.rung.store(false, Ordering::Release);
        drop(waker);
    }

    /// From now on `cx` is woken; whether it should have been already.
    pub fn watch(&self, cx: &Context<'_>) -> bool {
        let mut waker = self.waker();
        match &mut *waker {
            Some(kept) => kept.clone_from(cx.waker()),
            None => *waker = Some(cx.waker().clone()),
        }
        drop(waker);
        self.rung.swap(false, Ordering::AcqRel)
    }
}

impl Wake for Bell {
    fn wake(&self) {
        self.rung.store(true, Ordering::Release);
        let waker = self.waker().take();
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    fn wake_soon(&self) {
        if !put_off(|| self.me.upgrade()) {
            self.wake();
        }
    }
}

/// Wakes the same task when a time has come.
#[derive(Default)]
pub struct Alarm(Option<(Instant, Pin<Box<Sleep>>)>);

impl Alarm {
    /// Whether `due` has come; if not, `cx` is woken when it does.
    pub fn poll(&mut self, due: Option<Instant>, cx: &mut Context<'_>) -> bool {
        let Some(due) = due else {
            self.0 = None;
            return false;
        };
        let new = || (due, Box::pin(tokio::time::sleep_until(due.into())));
        let (set, sleep) = self.0.get_or_insert_with(new);
        if *set != due {
            *set = due;
            sleep.as_mut().reset(due.into());
        }
        sleep.as_mut().poll(cx).is_ready()
    }
}
