//! Handlers as tasks of a tokio runtime.

use tokio::runtime::Handle;

use crate::handler::{Job, Spawner};

/// Runs handlers as tasks of the runtime, beside those of the program. A handler that blocks holds up a
/// thread of the runtime, and no client has a share of the threads: where either matters, use
/// [`Workers`](super::Workers), whose handlers may use the runtime as well.
///
/// ```no_run
/// # async fn example(server: mcpbolt::server::Server) -> std::io::Result<()> {
/// # #[cfg(feature = "http")] {
/// use std::sync::Arc;
/// use mcpbolt::io::http::{HttpOptions, HttpService};
/// let spawner = Arc::new(tokio::runtime::Handle::current());
/// let service = HttpService::hosting(server.hosting(spawner), HttpOptions::default())?;
/// # }
/// # Ok(())
/// # }
/// ```
impl Spawner for Handle {
    fn spawn(&self, job: Job) {
        drop(Self::spawn(self, job));
    }
}
