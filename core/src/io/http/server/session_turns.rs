//! What concerns one session is done one after the other, and holds up no other session.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard};

use crate::sync::lock;

/// The sessions that somebody has a turn at, or waits for one.
#[derive(Default)]
pub struct SessionTurns(Mutex<HashMap<Arc<str>, Arc<AsyncMutex<()>>>>);

/// A turn at a session; the next one begins when it is dropped.
pub struct SessionTurn<'a> {
    all: &'a SessionTurns,
    id: &'a Arc<str>,
    /// `None` once this is dropped.
    session: Option<Arc<AsyncMutex<()>>>,
    held: Option<OwnedMutexGuard<()>>,
}

impl SessionTurns {
    pub async fn at<'a>(&'a self, id: &'a Arc<str>) -> SessionTurn<'a> {
        let session = lock(&self.0).entry(id.clone()).or_default().clone();
        // Exists before it waits, so that it is forgotten if nobody waits for it any more.
        let mut turn = SessionTurn {
            all: self,
            id,
            session: Some(session.clone()),
            held: None,
        };
        turn.held = Some(session.lock_owned().await);
        turn
    }
}

impl Drop for SessionTurn<'_> {
    fn drop(&mut self) {
        self.held = None;
        let mut all = lock(&self.all.0);
        self.session = None;
        // Others are made, and dropped, under the lock.
        if all
            .get(self.id)
            .is_some_and(|it| Arc::strong_count(it) == 1)
        {
            all.remove(self.id);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use super::*;

    #[test]
    fn turns_at_one_session_follow_each_other_and_leave_nothing() {
        let all = SessionTurns::default();
        let (a, b) = (Arc::from("a"), Arc::from("b"));
        let cx = &mut Context::from_waker(Waker::noop());
        let Poll::Ready(first) = pin!(all.at(&a)).poll(cx) else {
            panic!("nobody has it")
        };
        {
            let mut second = pin!(all.at(&a));
            assert!(second.as_mut().poll(cx).is_pending());
            assert!(pin!(all.at(&b)).poll(cx).is_ready(), "another session");
            {
                let mut given_up = pin!(all.at(&a));
                assert!(given_up.as_mut().poll(cx).is_pending());
            }
            drop(first);
            assert!(second.as_mut().poll(cx).is_ready());
        }
        assert!(lock(&all.0).is_empty());
    }
}
