//! Calls of tasks whose process has ended, on their way to the handlers of this one.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::task::Task;
use crate::connection::{CallKey, StreamId};
use crate::sync::lock;

/// How long a call may be on its way; its connection may have ended.
const PATIENCE: Duration = Duration::from_secs(60);

/// Tells such calls apart.
static NEXT: AtomicU64 = AtomicU64::new(0);

/// Calls of tasks that begin once more, by their keys.
#[derive(Default)]
pub struct Resuming(Mutex<HashMap<CallKey, Resumed>>);

struct Resumed {
    task: Arc<Task>,
    begun: Box<dyn FnOnce() + Send>,
    until: Instant,
}

impl Resuming {
    /// The key of a call that goes to its handler now; `begun` is called when it has arrived.
    pub fn add(
        &self,
        stream: StreamId,
        task: Arc<Task>,
        begun: impl FnOnce() + Send + 'static,
    ) -> CallKey {
        let key = CallKey::detached(stream, NEXT.fetch_add(1, Ordering::Relaxed));
        let now = Instant::now();
        let resumed = Resumed {
            task,
            begun: Box::new(begun),
            until: now + PATIENCE,
        };
        let mut all = lock(&self.0);
        all.retain(|_, other| other.until > now);
        all.insert(key, resumed);
        key
    }

    /// The task of a call that has arrived, if it is one of these.
    pub fn arrived(&self, key: CallKey) -> Option<Arc<Task>> {
        if !key.is_detached() {
            return None;
        }
        let resumed = lock(&self.0).remove(&key)?;
        (resumed.begun)();
        Some(resumed.task)
    }
}

impl fmt::Debug for Resuming {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Resuming").finish_non_exhaustive()
    }
}
