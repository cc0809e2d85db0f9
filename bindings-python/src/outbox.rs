//! Answers that are handed over together, to one connection or to many.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use mcpbolt::connection::Replies;

use crate::session::Session;

/// Answers that wait for each other.
#[derive(Default)]
pub struct Outbox(Mutex<Gathered>);

#[derive(Default)]
struct Gathered {
    /// In order; the last one is written on.
    batches: Vec<(Arc<Session>, Replies)>,
    /// Bytes of all but the last.
    before: usize,
}

impl Outbox {
    fn lock(&self) -> MutexGuard<'_, Gathered> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds an answer on that connection; gives the bytes that wait now, of all.
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

    /// Hands over what waits, as the last act of handlers: see
    /// [`Hub::hand_over`](crate::hub::Hub::hand_over).
    pub fn flush(&self) {
        let mut gathered = self.lock();
        gathered.before = 0;
        for (_, mut replies) in gathered.batches.drain(..) {
            replies.submit_last();
        }
    }
}
