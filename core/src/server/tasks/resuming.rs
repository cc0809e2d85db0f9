//! Calls of tasks whose process has ended, on their way to the handlers of this one.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use super::task::Task;
use crate::connection::{CallKey, StreamId};
use crate::sync::lock;

/// Tells such calls apart.
static NEXT: AtomicU64 = AtomicU64::new(0);

/// Calls of tasks that begin once more, by their keys.
#[derive(Default)]
pub struct Resuming(Mutex<HashMap<CallKey, Resumed>>);

struct Resumed {
    task: Arc<Task>,
    then: Box<dyn FnOnce(bool) + Send>,
}

impl Resuming {
    /// The key of a call that goes to its handler now. `then` is called with `true` when it has arrived, or with `false` when it
    /// is [not waited for](Self::give_up) any longer.
    pub fn add(
        &self,
        stream: StreamId,
        task: Arc<Task>,
        then: impl FnOnce(bool) + Send + 'static,
    ) -> CallKey {
        let key = CallKey::detached(stream, NEXT.fetch_add(1, Ordering::Relaxed));
        let then = Box::new(then);
        lock(&self.0).insert(key, Resumed { task, then });
        key
    }

    /// The task of a call that has arrived, if it is one of these.
    pub fn arrived(&self, key: CallKey) -> Option<Arc<Task>> {
        if !key.is_detached() {
            return None;
        }
        let resumed = lock(&self.0).remove(&key)?;
        (resumed.then)(true);
        Some(resumed.task)
    }

    /// Does not wait for a call any longer, if it has not arrived: its connection has ended, or its handler does not begin.
    pub fn give_up(&self, key: CallKey) {
        let resumed = lock(&self.0).remove(&key);
        if let Some(resumed) = resumed {
            (resumed.then)(false);
        }
    }
}

impl fmt::Debug for Resuming {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Resuming").finish_non_exhaustive()
    }
}
