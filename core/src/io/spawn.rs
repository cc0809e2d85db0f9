//! Starts clients of a child process, or of a server in this process.

use std::io;
use std::sync::Arc;

use super::child::ChildCommand;
use super::faults::invalid;
use super::running::Running;
use super::workers::{Workers, WorkersConfig};
#[cfg(all(unix, feature = "net"))]
use std::time::Instant;

#[cfg(all(unix, feature = "net"))]
use super::{hosted::Hosted, runtime::awaited, trace::traced, wait::Notifier};
use crate::client::{Client, ClientBuilder, Prepared};
#[cfg(all(unix, feature = "net"))]
use crate::connection::{Channel, Connection, Framing, NetworkTransport};
use crate::handler::Spawner;

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
    /// the connection; if it belongs to a front on sockets, the loop of the front's clients does.
    ///
    /// When the last clone of the client is dropped, the child is shut down in the background: its
    /// stdin is closed, then it gets SIGTERM, and at last it is killed.
    ///
    /// # Errors
    /// When the program cannot be started, or the connection cannot be opened; the latter contains a
    /// [`RequestError`](crate::error::RequestError).
    pub async fn spawn(self, command: ChildCommand) -> io::Result<Client> {
        #[cfg(all(unix, feature = "net"))]
        if let Some(spawner) = self.spawner()
            && let Some(event_loop) = spawner.event_loop()
        {
            return self.spawn_on(event_loop, command)?.until_open().await;
        }
        let (client, running) = self.start(command)?;
        client.held_by(Arc::new(running)).until_open().await
    }

    /// Starts a server as a child process, whose connection is driven on that loop.
    #[cfg(all(unix, feature = "net"))]
    fn spawn_on(self, event_loop: &dyn Spawner, command: ChildCommand) -> io::Result<Client> {
        let (config, prepared) = self.prepare().map_err(invalid)?;
        let mut connection = Connection::new(traced(Arc::new(config))?, Instant::now());
        connection.set_channel(|| Channel::new(NetworkTransport::Pipe));
        let notifier = Notifier::new();
        connection.set_wake(notifier.clone());
        let spawner = spawner_of(&prepared);
        let (client, host) = prepared.connect(connection.handle(), spawner);
        let mut machine = Hosted::new(connection, Framing::Line, host);
        let child = command.spawn()?;
        let stop = StopOnDrop(child.stop());
        event_loop.spawn(Box::pin(awaited(async move {
            // Nobody can act on how the child ended.
            let _ = child.run_as_task(&mut machine, notifier).await;
        })));
        Ok(client.held_by(Arc::new(stop)))
    }

    /// Starts a server as a child process, and a client on the connection to it.
    pub(super) fn start(self, command: ChildCommand) -> io::Result<(Client, Running)> {
        let (config, prepared) = self.prepare().map_err(invalid)?;
        let mut made = None;
        let running = command.spawn()?.connect(Arc::new(config), |handle| {
            let spawner = spawner_of(&prepared);
            let (client, host) = prepared.connect(handle.clone(), spawner);
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
        let spawner = spawner_of(&prepared);
        let now = std::time::Instant::now();
        let near = Connection::new(config, now);
        let (client, host) = prepared.connect(near.handle(), spawner);
        let far = super::pair::server_side(server.config(), callers, now)?;
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

/// Stops the loop of a child when dropped.
#[cfg(all(unix, feature = "net"))]
#[derive(Debug)]
struct StopOnDrop(super::driver::Stop);

#[cfg(all(unix, feature = "net"))]
impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.stop();
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

/// Where the handlers of a client run.
pub(super) fn spawner_of(client: &Prepared) -> Arc<dyn Spawner> {
    client.spawner().unwrap_or_else(|| workers())
}
