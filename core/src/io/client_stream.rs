//! Clients on byte streams of the program's own, as tokio tasks.

use std::io;
use std::sync::Arc;
use std::time::Instant;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::runtime::Handle;

use super::faults::invalid;
use super::hosted::Hosted;
use super::task::drive;
use super::trace::traced;
use super::wait::Notifier;
use crate::client::{Client, ClientBuilder};
use crate::connection::{Connection, Framing};

impl ClientBuilder {
    /// Connects to a server on a byte stream, and waits until the connection is open: a socket, an HTTP
    /// connection that was upgraded, one end of [`tokio::io::duplex`], or [`tokio::io::join`] of a reader and
    /// a writer. Each message is a line. The connection is closed when the last clone of the client is
    /// dropped. The connection and the client's handlers are tasks of the current tokio runtime, which has
    /// time enabled.
    ///
    /// ```
    /// # #[cfg(feature = "server")] {
    /// use mcpbolt::client::Client;
    /// use mcpbolt::server::{Arguments, Server, Tool};
    /// use std::future::IntoFuture;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let server = Server::builder("greeter", "1.0.0")
    ///     .tool(Tool::new("greet"), |_: Arguments, _| async { "hello" })
    ///     .build()?;
    /// let (near, far) = tokio::io::duplex(4096);
    /// tokio::spawn(server.serve_on(far).into_future());
    ///
    /// let client = Client::builder("me", "1.0.0").connect_on(near).await?;
    /// let greeted = client.call_tool("greet", &serde_json::json!({})).await?;
    /// assert_eq!(greeted.text(), "hello");
    /// # Ok(())
    /// # }
    /// # main().unwrap();
    /// # }
    /// ```
    ///
    /// # Errors
    /// When there is no tokio runtime, or the connection cannot be opened; the latter contains a
    /// [`RequestError`](crate::error::RequestError).
    pub async fn connect_on<S>(self, stream: S) -> io::Result<Client>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        self.connect_framed(stream, Framing::Line).await
    }

    /// Connects to a server on a carrier of the program's own, such as a message queue: a `Stream` whose items
    /// are the server's messages, and a `Sink` for the client's. Each item is one JSON-RPC message in UTF-8.
    /// The stream's end, or its first error, is the end of the server. Otherwise as
    /// [`connect_on`](Self::connect_on).
    ///
    /// # Errors
    /// As [`connect_on`](Self::connect_on).
    #[cfg(feature = "codec")]
    pub async fn connect_transport<T, E>(self, transport: T) -> io::Result<Client>
    where
        T: futures_core::Stream<Item = Result<bytes::Bytes, E>>
            + futures_sink::Sink<bytes::Bytes>
            + Unpin
            + Send
            + 'static,
    {
        let stream = super::prefixed::Prefixed::new(transport);
        self.connect_framed(stream, Framing::Length).await
    }

    async fn connect_framed<S>(self, stream: S, framing: Framing) -> io::Result<Client>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let missing = "no tokio runtime: await connect_on or connect_transport within one";
        let runtime = Handle::try_current().map_err(|_| io::Error::other(missing))?;
        let (config, prepared) = self.prepare().map_err(invalid)?;
        let connection = Connection::new(traced(Arc::new(config))?, Instant::now());
        let notifier = Notifier::new();
        connection.set_wake(notifier.clone());
        let (client, host) = prepared.connect(connection.handle(), Arc::new(runtime.clone()));
        let machine = Hosted::new(connection, framing, host);
        runtime.spawn(drive(stream, machine, notifier, None));
        client.closing_with_it().until_open().await
    }
}
