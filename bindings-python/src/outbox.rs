//! Gathers answers, for one connection or many, to hand them over together.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use mcpbolt::connection::Replies;

use crate::session::Session;

/// Answers that wait to be handed over together.
#[derive(Default)]
pub struct Outbox(Mutex<Gathered>);

type Batch = (Arc<Session>, Replies);

#[derive(Default)]
struct Gathered {
    /// The answers, in order; the last batch is appended to.
    batches: Vec<Batch>,
    /// The bytes of all batches.
    bytes: usize,
}

/// A batch that is being appended to. A panic meanwhile loses no earlier answer.
struct Taken<'a> {
    outbox: &'a Outbox,
    batch: Option<Batch>,
}

impl Taken<'_> {
    /// Returns the bytes that now wait in all.
    fn put_back(&mut self) -> usize {
        let mut gathered = self.outbox.lock();
        if let Some(batch) = self.batch.take() {
            gathered.bytes += batch.1.len();
            gathered.batches.push(batch);
        }
        gathered.bytes
    }
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        self.put_back();
    }
}

impl Outbox {
    fn lock(&self) -> MutexGuard<'_, Gathered> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds an answer on a connection; returns the bytes that now wait in all.
    ///
    /// `write` may wait for an audit that is behind, so no lock is held meanwhile: another thread would
    /// wait for it with the interpreter, which the audit needs.
    pub fn put(&self, session: &Arc<Session>, write: impl FnOnce(&mut Replies)) -> usize {
        let mut taken = Taken {
            outbox: self,
            batch: Some(self.take_last(session)),
        };
        if let Some((_, replies)) = &mut taken.batch {
            write(replies);
        }
        taken.put_back()
    }

    /// Takes out the last batch if it is of that connection; else a new one.
    fn take_last(&self, session: &Arc<Session>) -> Batch {
        let mut gathered = self.lock();
        let of_session = |last: &mut Batch| Arc::ptr_eq(&last.0, session);
        let Some((session, replies)) = gathered.batches.pop_if(of_session) else {
            return (session.clone(), session.handle.replies());
        };
        gathered.bytes -= replies.len();
        (session, replies)
    }

    /// Hands over all waiting answers, as the last act of their handlers. Use
    /// [`Hub::hand_over`](crate::hub::Hub::hand_over), which wakes the network's thread only once.
    pub fn flush(&self) {
        let mut gathered = self.lock();
        gathered.bytes = 0;
        for (_, mut replies) in gathered.batches.drain(..) {
            replies.submit_last();
        }
    }
}
