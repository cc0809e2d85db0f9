//! A server on stdin and stdout.

use std::future::IntoFuture;
use std::io;
use std::sync::{Arc, Mutex};
use std::thread;

use super::{Serve, Stored, server_side, until};
use crate::correlate::CancelToken;
use crate::handler::Spawner;
use crate::io::driver::Stop;
use crate::io::stdio::{Report, Stdio, StdioOptions};
use crate::io::workers::{Workers, WorkersConfig};
use crate::server::Server;
use crate::sync::lock;

/// This process's stdin and stdout.
#[derive(Clone, Debug, Default)]
pub struct OnStdio {
    options: StdioOptions,
}

impl OnStdio {
    #[cfg(feature = "http")]
    pub(super) fn new(options: StdioOptions) -> Self {
        Self { options }
    }
}

impl Server {
    /// Serves on this process's stdin and stdout until the client ends.
    ///
    /// Awaited within a tokio runtime, handlers are tasks of the runtime; where it has several threads, a thread
    /// of the engine begins them, and they become tasks when they first wait. [`wait`](Serve::wait) blocks,
    /// and runs handlers on threads of the engine, which costs least; with the feature `tokio` those may use
    /// tokio as well. In both forms, return from `main` soon after: a handler that hangs is abandoned, and
    /// ends with the process.
    ///
    /// ```no_run
    /// use mcpbolt::server::{Arguments, Server, Tool};
    ///
    /// fn main() -> Result<(), Box<dyn std::error::Error>> {
    ///     let server = Server::builder("greeter", "1.0.0")
    ///         .tool(Tool::new("greet"), |_: Arguments, _| async { "hello" })
    ///         .build()?;
    ///     server.serve_stdio().wait()?;
    ///     Ok(())
    /// }
    /// ```
    pub fn serve_stdio(&self) -> Serve<OnStdio> {
        Serve::new(self, OnStdio::default())
    }
}

impl Serve<OnStdio> {
    /// Sets the options.
    pub fn options(mut self, options: StdioOptions) -> Self {
        self.carrier.options = options;
        self
    }

    /// Serves on this thread and threads of the engine until the client ends.
    ///
    /// # Errors
    /// When stdin or stdout is not open, the process has no descriptors left, or the trace that
    /// [`TRACE_VARIABLE`](crate::io::TRACE_VARIABLE) asks for cannot be written. The [`Report`] says how
    /// the wire ended.
    pub fn wait(self) -> io::Result<Report> {
        #[cfg(feature = "tokio")]
        let _context = super::own_runtime::enter()?;
        let workers = Arc::new(Workers::new(WorkersConfig::default()));
        let (connection, host) = server_side(&self.server, workers.clone())?;
        let stdio = Stdio::take(self.carrier.options)?;
        if let Some(signal) = self.shutdown {
            let stop = stdio.stop();
            workers.spawn(Box::pin(async move {
                signal.await;
                stop.stop();
            }));
        }
        stdio.drive_by(&workers, connection, host)
    }
}

/// The errors are those of [`wait`](Serve::wait).
impl IntoFuture for Serve<OnStdio> {
    type Output = io::Result<Report>;
    type IntoFuture = Stored<io::Result<Report>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let workers = Arc::new(Workers::beginning_tasks());
            let spawner = own_thread().unwrap_or_else(|| workers.clone());
            let (connection, host) = server_side(&self.server, spawner)?;
            let stdio = Stdio::take(self.carrier.options)?;
            let stop = StopOnDrop(stdio.stop());
            let (ended, report) = (CancelToken::new(), Arc::new(Mutex::new(None)));
            let (ends, reports) = (ended.clone(), report.clone());
            thread::Builder::new()
                .name("mcpbolt-stdio".to_owned())
                .spawn(move || {
                    *lock(&reports) = Some(stdio.drive_by(&workers, connection, host));
                    ends.cancel(None);
                })?;
            until(ended.cancelled(), self.shutdown, || stop.0.stop()).await;
            let report = lock(&report).take();
            report.unwrap_or_else(|| Err(io::Error::other("the loop's thread panicked")))
        })
    }
}

/// The current tokio runtime if it has one thread only, on which the program then expects its handlers.
fn own_thread() -> Option<Arc<dyn Spawner>> {
    #[cfg(feature = "tokio")]
    if let Ok(handle) = tokio::runtime::Handle::try_current()
        && handle.runtime_flavor() == tokio::runtime::RuntimeFlavor::CurrentThread
    {
        return Some(Arc::new(handle));
    }
    None
}

struct StopOnDrop(Stop);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.stop();
    }
}
