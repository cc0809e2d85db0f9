//! Serves a [`Server`] on a carrier: stdin and stdout, an address, a byte stream, or messages of the
//! program's own. Each form is a future, and those of a whole process also block.
//!
//! Handlers are tasks of the tokio runtime in which serving begins; on stdio and a runtime of several
//! threads they become tasks when they first wait. Without a runtime they run on threads of the engine.

#[cfg(feature = "http")]
mod address;
#[cfg(feature = "tokio")]
mod own_runtime;
mod run;
mod stdio;
#[cfg(feature = "tokio")]
mod stream;
#[cfg(feature = "codec")]
mod transport;

use std::fmt;
use std::future::{Future, poll_fn};
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::Instant;

#[cfg(feature = "http")]
pub use self::address::OnAddress;
pub use self::stdio::OnStdio;
#[cfg(feature = "tokio")]
pub use self::stream::OnStream;
#[cfg(feature = "codec")]
pub use self::transport::OnTransport;
use super::trace::traced;
use super::workers::{Workers, WorkersConfig};
use crate::connection::Connection;
use crate::handler::Spawner;
use crate::server::{Server, ServerHost};

/// A future of this crate that is stored.
type Stored<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// A server that is about to be served on a carrier `C`. Await it, or call `wait` to block:
///
/// ```no_run
/// # async fn example(server: mcpbolt::server::Server) -> std::io::Result<()> {
/// server.serve_stdio().await?;
/// # Ok(())
/// # }
/// ```
///
/// Dropping the future ends the server: requests in flight are cancelled.
#[must_use = "it serves when it is awaited, or by `wait`"]
pub struct Serve<C> {
    server: Server,
    carrier: C,
    shutdown: Option<Stored<()>>,
}

impl<C> Serve<C> {
    fn new(server: &Server, carrier: C) -> Self {
        Self {
            server: server.clone(),
            carrier,
            shutdown: None,
        }
    }

    /// Ends the server gracefully when `signal` completes: requests in flight are answered within the
    /// grace period, and no new ones begin.
    ///
    /// ```no_run
    /// # async fn example(server: mcpbolt::server::Server) -> std::io::Result<()> {
    /// # async fn ctrl_c() {}
    /// server.serve_stdio().shutdown(ctrl_c()).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn shutdown(mut self, signal: impl Future<Output = ()> + Send + 'static) -> Self {
        self.shutdown = Some(Box::pin(signal));
        self
    }
}

impl<C: fmt::Debug> fmt::Debug for Serve<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Serve")
            .field("server", &self.server)
            .field("carrier", &self.carrier)
            .finish_non_exhaustive()
    }
}

/// The spawner of handlers: the tokio runtime of this thread, or else new threads.
pub(super) fn spawner() -> Arc<dyn Spawner> {
    runtime().unwrap_or_else(|| Arc::new(Workers::new(WorkersConfig::default())))
}

/// The tokio runtime of this thread.
fn runtime() -> Option<Arc<dyn Spawner>> {
    #[cfg(feature = "tokio")]
    if let Ok(handle) = tokio::runtime::Handle::try_current() {
        return Some(Arc::new(handle));
    }
    None
}

/// The server's side of a connection.
///
/// # Errors
/// When the trace that the environment asks for cannot be written.
pub(super) fn server_side(
    server: &Server,
    spawner: Arc<dyn Spawner>,
) -> io::Result<(Connection, ServerHost)> {
    let connection = Connection::new(traced(server.config().clone())?, Instant::now());
    let host = server.host(connection.handle(), None, spawner);
    Ok((connection, host))
}

/// Runs `served` to its end; calls `stop` when `signal` completes first.
async fn until<T>(
    served: impl Future<Output = T>,
    signal: Option<Stored<()>>,
    stop: impl FnOnce(),
) -> T {
    let mut served = pin!(served);
    if let Some(mut signal) = signal {
        let ended = poll_fn(|cx| match served.as_mut().poll(cx) {
            Poll::Ready(ended) => Poll::Ready(Some(ended)),
            Poll::Pending => signal.as_mut().poll(cx).map(|()| None),
        });
        match ended.await {
            Some(ended) => return ended,
            None => stop(),
        }
    }
    served.await
}
