//! A task of the background that ends with what it serves.

use std::future::Future;

use tokio::task::AbortHandle;

/// A task that follows a log of the store. It ends with this value.
pub struct Following(AbortHandle);

impl Following {
    /// Begins the task, in the context of the current runtime.
    pub fn begin(task: impl Future<Output = ()> + Send + 'static) -> Self {
        Self(tokio::spawn(task).abort_handle())
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        self.0.abort();
    }
}
