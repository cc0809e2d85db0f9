//! Handlers as tasks of a tokio runtime.

use tokio::runtime::Handle;

use crate::handler::{Job, Spawner};
use crate::sync::block_on;

/// Runs handlers as tasks of the runtime, beside those of the program. A handler that blocks holds up a
/// thread of the runtime, and no client has a share of the threads: where either matters, use
/// [`Workers`](super::Workers), whose handlers may use the runtime as well.
impl Spawner for Handle {
    fn spawn(&self, job: Job) {
        drop(Self::spawn(self, job));
    }

    fn spawn_blocking(&self, job: Job) {
        // The runtime's own `block_on` would keep the handler from calling it again.
        drop(Self::spawn_blocking(self, || block_on(job)));
    }
}
