//! Decides which task handles what handlers submit to a session: the POST that waits for its answer, or else
//! the session's own task. So an answer usually costs one wake-up, of the task that sends it.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed, Ordering::SeqCst, fence};
use std::sync::{Arc, Weak};
use std::task::Context;

use crate::connection::Wake;
use crate::io::wake::put_off;
use crate::wakeup::Ring;

/// No POST leads.
const NONE: u64 = 0;

/// Wakes one task of a session.
pub struct SessionBell {
    me: Weak<Self>,
    /// Wakes the session's own task.
    own: Ring,
    /// Wakes the POST that leads.
    post: Ring,
    /// The number of the reader of that POST.
    leader: AtomicU64,
}

impl SessionBell {
    pub fn new() -> Arc<Self> {
        Arc::new_cyclic(|me| Self {
            me: me.clone(),
            own: Ring::new(),
            post: Ring::new(),
            leader: AtomicU64::new(NONE),
        })
    }

    /// Wakes the session's own task.
    pub fn wake_own(&self) {
        self.own.ring();
    }

    /// Registers the session's own task.
    pub fn watch(&self, cx: &Context<'_>) {
        self.own.watch(cx);
    }

    /// Has the POST of that reader, whose task is that of `cx`, lead from now on. Returns whether there is
    /// something to handle.
    pub fn lead(&self, reader: u64, cx: &Context<'_>) -> bool {
        self.leader.store(reader, SeqCst);
        self.post.watch(cx)
    }

    /// Has that POST lead no longer. Returns whether there is something left to handle.
    pub fn step_down(&self, reader: u64) -> bool {
        let led = self.leader.compare_exchange(reader, NONE, SeqCst, Relaxed);
        // Either this sees the ring of another thread, or that thread sees that no POST leads.
        fence(SeqCst);
        led.is_ok() && self.post.reset()
    }
}

impl Wake for SessionBell {
    fn wake(&self) {
        let leader = self.leader.load(SeqCst);
        if leader == NONE {
            return self.own.ring();
        }
        self.post.ring();
        fence(SeqCst);
        if self.leader.load(Relaxed) != leader {
            self.own.ring();
        }
    }

    fn wake_soon(&self) {
        if !put_off(|| self.me.upgrade()) {
            self.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::sync::atomic::AtomicUsize;
    use std::task::Poll;
    use std::time::Duration;

    use super::*;

    /// Each submission is handled in every order of steps: by a POST that leads, by one that steps down, or
    /// by the session's own task.
    #[test]
    fn no_submission_is_left() {
        const ROUNDS: usize = 20_000;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_time()
            .build()
            .unwrap();
        let bell = SessionBell::new();
        let (asked, done) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let handle = |done: &AtomicUsize, asked: &AtomicUsize| {
            done.fetch_max(asked.load(SeqCst), SeqCst);
        };
        let own = {
            let (bell, asked, done) = (bell.clone(), asked.clone(), done.clone());
            runtime.spawn(poll_fn(move |cx| {
                bell.watch(cx);
                handle(&done, &asked);
                Poll::<()>::Pending
            }))
        };
        let posts = {
            let (bell, asked, done) = (bell.clone(), asked.clone(), done.clone());
            runtime.spawn(async move {
                for reader in 1.. {
                    poll_fn(|cx| {
                        if bell.lead(reader, cx) {
                            handle(&done, &asked);
                        }
                        Poll::Ready(())
                    })
                    .await;
                    tokio::task::yield_now().await;
                    if bell.step_down(reader) {
                        handle(&done, &asked);
                    }
                    tokio::task::yield_now().await;
                }
            })
        };
        for round in 1..=ROUNDS {
            asked.store(round, SeqCst);
            bell.wake();
            let begun = std::time::Instant::now();
            while done.load(SeqCst) < round {
                std::hint::spin_loop();
                // A POST that leads and is rung handles it with its next poll at the latest.
                assert!(begun.elapsed() < Duration::from_secs(20), "{round}");
            }
        }
        own.abort();
        posts.abort();
    }
}
