//! Starts clients of a child process, or of a server in this process.

use std::io;
use std::sync::Arc;

use super::child::ChildCommand;
use super::faults::invalid;
use super::running::Running;
use super::workers::{Workers, WorkersConfig};
use crate::client::{Client, ClientBuilder};

impl Client {
    /// Starts a server as a child process and waits until the connection is open. The client reports
    /// this crate's name and version; use [`builder`](Self::builder) to set others.
    ///
    /// ```no_run
    /// use mcpbolt::client::{Client, block_on};
    /// use mcpbolt::io::ChildCommand;
    /// let client = block_on(Client::spawn(ChildCommand::new("path/to/server")))?;
    /// for tool in block_on(client.list_tools())? {
    ///     println!("{}", tool.name);
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`ClientBuilder::spawn`].
    pub async fn spawn(command: ChildCommand) -> io::Result<Self> {
        let builder = Self::builder(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"));
        builder.spawn(command).await
    }
}

impl ClientBuilder {
    /// Starts a server as a child process and waits until the connection is open. A new thread drives
    /// the connection.
    ///
    /// When the last clone of the client is dropped, the child is shut down in the background: its
    /// stdin is closed, then it gets SIGTERM, and at last it is killed.
    ///
    /// # Errors
    /// When the program cannot be started, or the connection cannot be opened; the latter contains a
    /// [`RequestError`](crate::error::RequestError).
    pub async fn spawn(self, command: ChildCommand) -> io::Result<Client> {
        let (client, running) = self.start(command)?;
        client.held_by(Arc::new(running)).until_open().await
    }

    /// Starts a server as a child process, and a client on the connection to it.
    pub(super) fn start(self, command: ChildCommand) -> io::Result<(Client, Running)> {
        let (config, prepared) = self.prepare().map_err(invalid)?;
        let mut made = None;
        let running = command.spawn()?.connect(Arc::new(config), |handle| {
            let (client, host) = prepared.connect(handle.clone(), workers());
            made = Some(client);
            host
        })?;
        let client = made.ok_or_else(|| io::Error::other("the child has no connection"))?;
        Ok((client, running))
    }

    /// Connects to a server in this process and waits until the connection is open: for tests, and for
    /// servers that need no process of their own. The connection is closed when the last clone of the
    /// client is dropped.
    ///
    /// # Errors
    /// When a thread cannot be started, or the connection cannot be opened.
    #[cfg(feature = "server")]
    pub async fn connect(self, server: &crate::server::Server) -> io::Result<Client> {
        use crate::connection::Connection;
        let callers = self.callers();
        let (config, prepared) = self.prepare().map_err(invalid)?;
        let config = super::trace::traced(Arc::new(config))?;
        let now = std::time::Instant::now();
        let near = Connection::new(config, now);
        let (client, host) = prepared.connect(near.handle(), workers());
        let mut far = Connection::new(super::trace::traced(server.config().clone())?, now);
        if let Some(callers) = callers {
            // Before the host is made, which looks for them then.
            far.set_callers(callers);
        }
        let serving = server.host(far.handle(), None, workers());
        super::pair::join((far, serving), (near, host))?;
        client.closing_with_it().until_open().await
    }
}

impl Client {
    /// Closes the connection when the last clone of the client is dropped.
    #[cfg(any(feature = "server", feature = "tokio"))]
    pub(super) fn closing_with_it(self) -> Self {
        self.closing_with(())
    }

    /// The same, and then drops what the connection needs.
    #[cfg(any(feature = "server", feature = "tokio"))]
    pub(super) fn closing_with(self, needed: impl Send + Sync + 'static) -> Self {
        let closing = CloseOnDrop(self.handle().clone());
        self.held_by(Arc::new((closing, needed)))
    }

    pub(super) async fn until_open(self) -> io::Result<Self> {
        self.handle().opened().await.map_err(io::Error::other)?;
        Ok(self)
    }
}

/// Closes a connection when dropped.
#[cfg(any(feature = "server", feature = "tokio"))]
#[derive(Debug)]
pub(super) struct CloseOnDrop(pub crate::connection::Handle);

#[cfg(any(feature = "server", feature = "tokio"))]
impl Drop for CloseOnDrop {
    fn drop(&mut self) {
        self.0.close();
    }
}

pub(super) fn workers() -> Arc<Workers> {
    Arc::new(Workers::new(WorkersConfig::default()))
}
