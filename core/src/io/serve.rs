//! Runs connections on their wires, for programs that have no loop of their own.

use std::io;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Instant;

use super::child::{Child, Exit};
use super::driver::Stop;
use super::hosted::Hosted;
#[cfg(feature = "server")]
use super::stdio::{Report, Stdio, StdioOptions};
use super::trace::traced;
#[cfg(feature = "server")]
use super::workers::{Workers, WorkersConfig};
use crate::connection::{Config, Connection, Framing, Handle, Host};
#[cfg(feature = "server")]
use crate::server::{Server, ServerHost};

/// Serves on this process's stdin and stdout until the client ends; handlers run on threads of the
/// engine.
///
/// The caller should return from `main` soon after: a handler that hangs is abandoned, and ends with
/// the process.
///
/// # Errors
/// When stdin or stdout is not open, the process has no descriptors left, or the trace that
/// [`TRACE_VARIABLE`](super::TRACE_VARIABLE) asks for cannot be written. The [`Report`] says how the
/// wire ended.
#[cfg(feature = "server")]
pub fn serve_stdio(server: &Server, options: StdioOptions) -> io::Result<Report> {
    let workers = Arc::new(Workers::new(WorkersConfig::default()));
    let (connection, host) = server_side(server, workers.clone())?;
    Stdio::take(options)?.drive_by(&workers, connection, host)
}

/// The server's side of a connection whose handlers run on `workers`.
#[cfg(feature = "server")]
pub(super) fn server_side(
    server: &Server,
    workers: Arc<Workers>,
) -> io::Result<(Connection, ServerHost)> {
    let connection = Connection::new(traced(server.config().clone())?, Instant::now());
    let host = server.host(connection.handle(), None, workers);
    Ok((connection, host))
}

/// A child process whose connection is driven by a thread of its own.
///
/// Dropping it shuts the child down in the background.
#[derive(Debug)]
pub struct Running {
    handle: Handle,
    id: u32,
    stop: Stop,
    thread: Option<JoinHandle<io::Result<Exit>>>,
}

impl Child {
    /// Drives a connection to the child on a new thread.
    ///
    /// # Errors
    /// When the thread cannot be started, or the trace that [`TRACE_VARIABLE`](super::TRACE_VARIABLE)
    /// asks for cannot be written. The child is then killed.
    pub fn connect<H>(
        self,
        config: Arc<Config>,
        host: impl FnOnce(&Handle) -> H,
    ) -> io::Result<Running>
    where
        H: Host + Send + 'static,
    {
        let connection = Connection::new(traced(config)?, Instant::now());
        connection.set_wake(self.wake().clone());
        let handle = connection.handle();
        let mut machine = Hosted::new(connection, Framing::Line, host(&handle));
        let (id, stop) = (self.id(), self.stop());
        let drive = move || self.run(&mut machine);
        let thread = thread::Builder::new().name("mcpbolt-child".to_owned());
        Ok(Running {
            handle,
            id,
            stop,
            thread: Some(thread.spawn(drive)?),
        })
    }
}

impl Running {
    /// The connection.
    pub fn handle(&self) -> &Handle {
        &self.handle
    }

    /// The process id of the child, which is also its process group.
    pub fn id(&self) -> u32 {
        self.id
    }

    /// Shuts the child down and waits until it has ended; blocks for at most the waits of its command.
    ///
    /// # Errors
    /// When its exit status was lost.
    pub fn shutdown(mut self) -> io::Result<Exit> {
        self.stop.stop();
        self.join()
    }

    /// Waits until the child has ended.
    ///
    /// # Errors
    /// When its exit status was lost.
    pub fn wait(mut self) -> io::Result<Exit> {
        self.join()
    }

    fn join(&mut self) -> io::Result<Exit> {
        let lost = || io::Error::other("the loop's thread panicked");
        let thread = self.thread.take().ok_or_else(lost)?;
        thread.join().map_err(|_| lost())?
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.stop();
    }
}
