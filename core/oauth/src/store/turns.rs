//! Takes turns on keys within a process, in order of arrival.

use std::collections::HashMap;
use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

/// The keys that are held, and who waits for them. Its size is the number of callers.
#[derive(Clone, Default)]
pub struct KeyTurns(Arc<Mutex<HashMap<String, Queue>>>);

/// The tickets for one key; the first one holds it.
#[derive(Default)]
struct Queue {
    next: u64,
    waiting: VecDeque<(u64, Option<Waker>)>,
}

impl KeyTurns {
    /// Waits for a turn on `key`. Dropping the future gives the place in the queue up.
    pub fn turn(&self, key: &str) -> TurnWait {
        let mut queues = self.queues();
        let queue = queues.entry(key.to_owned()).or_default();
        let ticket = queue.next;
        queue.next += 1;
        queue.waiting.push_back((ticket, None));
        TurnWait(Some(Turn {
            turns: self.clone(),
            key: key.to_owned(),
            ticket,
        }))
    }

    fn queues(&self) -> MutexGuard<'_, HashMap<String, Queue>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The future of a [`Turn`].
pub struct TurnWait(Option<Turn>);

impl Future for TurnWait {
    type Output = Turn;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Turn> {
        let is_first = self.0.as_ref().is_none_or(|turn| {
            let mut queues = turn.turns.queues();
            let Some(queue) = queues.get_mut(&turn.key) else {
                return true;
            };
            if queue
                .waiting
                .front()
                .is_some_and(|(first, _)| *first == turn.ticket)
            {
                return true;
            }
            let place = queue
                .waiting
                .iter_mut()
                .find(|(ticket, _)| *ticket == turn.ticket);
            if let Some((_, waker)) = place {
                *waker = Some(cx.waker().clone());
            }
            false
        });
        match self.0.take_if(|_| is_first) {
            Some(turn) => Poll::Ready(turn),
            None => Poll::Pending,
        }
    }
}

/// A place in the queue for a key. Dropping it lets the next one have its turn.
pub struct Turn {
    turns: KeyTurns,
    key: String,
    ticket: u64,
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut queues = self.turns.queues();
        let Some(queue) = queues.get_mut(&self.key) else {
            return;
        };
        queue.waiting.retain(|(ticket, _)| *ticket != self.ticket);
        let next = queue.waiting.front_mut().map(|(_, waker)| waker.take());
        if next.is_none() {
            queues.remove(&self.key);
        }
        drop(queues);
        if let Some(Some(waker)) = next {
            waker.wake();
        }
    }
}
