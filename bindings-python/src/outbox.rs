//! Gathers answers, for one connection or many, to hand them over together.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use mcpbolt::connection::Replies;

use crate::session::Session;

/// Answers that wait to be handed over together.
#[derive(Default)]
pub struct Outbox(Mutex<Gathered>);

#[derive(Default)]
struct Gathered {
    /// The answers, in order; the last batch is appended to.
    batches: Vec<(Arc<Session>, Replies)>,
    /// The bytes of all batches but the last.
    before: usize,
}

impl Outbox {
    fn lock(&self) -> MutexGuard<'_, Gathered> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds an answer on a connection; returns the bytes that now wait in all.
    pub fn put(&self, session: &Arc<Session>, write: impl FnOnce(&mut Replies)) -> usize {
        let mut gathered = self.lock();
        let Gathered { batches, before } = &mut *gathered;
        if let Some((last, replies)) = batches.last_mut() {
            if Arc::ptr_eq(last, session) {
                write(replies);
                return *before + replies.len();
            }
            *before += replies.len();
        }
        let mut replies = session.handle.replies();
        write(&mut replies);
        let waiting = *before + replies.len();
        batches.push((session.clone(), replies));
        waiting
    }

    /// Hands over all waiting answers, as the last act of their handlers. Use
    /// [`Hub::hand_over`](crate::hub::Hub::hand_over), which wakes the network's thread only once.
    pub fn flush(&self) {
        let mut gathered = self.lock();
        gathered.before = 0;
        for (_, mut replies) in gathered.batches.drain(..) {
            replies.submit_last();
        }
    }
}
