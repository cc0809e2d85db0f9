//! A server on a byte stream of the program's own, as a tokio task.

use std::fmt;
use std::future::IntoFuture;
use std::io;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};

use super::{Serve, Stored, server_side, spawner, until};
use crate::connection::Framing;
use crate::correlate::CancelToken;
use crate::io::hosted::Hosted;
use crate::io::task::{Terms, drive};
use crate::io::wait::Notifier;
use crate::server::Server;

/// How long requests in flight may take after the end of either side.
const GRACE: Duration = Duration::from_secs(5);

/// A byte stream.
pub struct OnStream<S> {
    stream: S,
    framing: Framing,
}

impl<S> fmt::Debug for OnStream<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OnStream")
            .field("framing", &self.framing)
            .finish_non_exhaustive()
    }
}

impl<S> OnStream<S> {
    pub(super) fn new(stream: S, framing: Framing) -> Self {
        Self { stream, framing }
    }
}

impl Server {
    /// Serves one client on a byte stream: a socket, one end of [`tokio::io::duplex`], or
    /// [`tokio::io::join`] of a reader and a writer. Each message is a line, or follows four bytes of
    /// length if the client begins so. Requests in flight are finished within 5 s after the client has
    /// ended. Await it in a tokio runtime with time enabled.
    ///
    /// ```
    /// use mcpbolt::server::{Arguments, Server, Tool};
    /// use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let server = Server::builder("greeter", "1.0.0")
    ///     .tool(Tool::new("greet"), |_: Arguments, _| async { "hello" })
    ///     .build()?;
    /// let (near, far) = tokio::io::duplex(4096);
    /// let served = tokio::spawn(server.serve_on(near).into_future());
    ///
    /// let mut client = BufReader::new(far);
    /// client.write_all(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n").await?;
    /// let mut answer = String::new();
    /// client.read_line(&mut answer).await?;
    /// assert_eq!(answer, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n");
    /// drop(client);
    /// served.await??;
    /// # Ok(())
    /// # }
    /// ```
    pub fn serve_on<S>(&self, stream: S) -> Serve<OnStream<S>>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        Serve::new(self, OnStream::new(stream, Framing::Detect))
    }
}

/// It fails only when the trace that [`TRACE_VARIABLE`](crate::io::TRACE_VARIABLE) asks for cannot be
/// written.
impl<S> IntoFuture for Serve<OnStream<S>>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    type Output = io::Result<()>;
    type IntoFuture = Stored<io::Result<()>>;

    fn into_future(self) -> Self::IntoFuture {
        let Self {
            server,
            carrier: OnStream { stream, framing },
            shutdown,
        } = self;
        Box::pin(async move {
            let (connection, host) = server_side(&server, spawner())?;
            let notifier = Notifier::new();
            connection.set_wake(notifier.clone());
            let (limits, stop) = (&server.config().limits, CancelToken::new());
            let terms = Terms {
                grace: GRACE,
                opening: limits.handshake_timeout,
                unfinished: limits.stall_timeout,
                opened: None,
                stop: stop.clone(),
            };
            let machine = Hosted::new(connection, framing, host).checking_the_first_byte();
            let served = drive(stream, machine, notifier, Some(terms));
            until(served, shutdown, move || _ = stop.cancel(None)).await;
            Ok(())
        })
    }
}
