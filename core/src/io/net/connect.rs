//! Connections that this side opens.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use super::upgrade::{self, UpgradeRequest};
use super::websocket::WebSocket;
use crate::client::{Client, ClientBuilder};
use crate::connection::{Channel, Connection, Framing};
use crate::io::address::Url;
use crate::io::faults::invalid;
#[cfg(any(not(unix), not(feature = "tls")))]
use crate::io::faults::unsupported;
use crate::io::hosted::Hosted;
use crate::io::open::ConnectOptions;
use crate::io::runtime::{drive_client, runtime};
use crate::io::spawn::spawner_of;
use crate::io::task::drive;
use crate::io::trace::traced;
use crate::io::wait::Notifier;
use crate::limits::Limits;

/// A byte stream of any transport.
pub trait ByteStream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> ByteStream for S {}

type AnyStream = Box<dyn ByteStream>;

/// Opens a TCP connection.
///
/// # Errors
/// Why it cannot be opened.
pub async fn tcp(host: &str, port: u16) -> io::Result<TcpStream> {
    let stream = TcpStream::connect((host, port)).await?;
    super::socket::prepare(&stream, Limits::NETWORK.stall_timeout);
    Ok(stream)
}

/// Opens a connection to a Unix socket.
///
/// # Errors
/// Why it cannot be opened.
#[cfg(unix)]
pub async fn unix(path: &Path) -> io::Result<AnyStream> {
    Ok(Box::new(tokio::net::UnixStream::connect(path).await?))
}

/// Fails: this system has no Unix sockets.
#[cfg(not(unix))]
pub async fn unix(_: &Path) -> io::Result<AnyStream> {
    Err(unsupported("this system has no Unix sockets"))
}

/// Opens a WebSocket.
///
/// # Errors
/// Why it cannot be opened.
pub async fn websocket(url: &Url, options: &ConnectOptions) -> io::Result<AnyStream> {
    let asked = UpgradeRequest::new(url, options)?;
    let stream = tcp(&url.host, url.port).await?;
    let stream: AnyStream = match url.secure {
        false => Box::new(stream),
        true => behind_tls(stream, &url.host, options).await?,
    };
    upgrade::upgrade(stream, asked).await
}

/// Performs the TLS handshake.
#[cfg(feature = "tls")]
async fn behind_tls(
    stream: TcpStream,
    host: &str,
    options: &ConnectOptions,
) -> io::Result<AnyStream> {
    // WebSocket starts on HTTP/1.1.
    let config = crate::io::trust::config(
        &options.root_certificates,
        options.certificate.as_ref(),
        &[b"http/1.1"],
    )?;
    let name = rustls::pki_types::ServerName::try_from(host.to_owned()).map_err(invalid)?;
    let connector = tokio_rustls::TlsConnector::from(Arc::new(config));
    Ok(Box::new(connector.connect(name, stream).await?))
}

#[cfg(not(feature = "tls"))]
async fn behind_tls(_: TcpStream, _: &str, _: &ConnectOptions) -> io::Result<AnyStream> {
    Err(unsupported(
        "this program has no TLS built in: feature `tls` of mcpbolt",
    ))
}

impl ClientBuilder {
    /// Turns the builder into a client on the connection that `connect` opens.
    ///
    /// # Errors
    /// Why the connection could not be opened.
    pub(in crate::io) async fn on<F>(
        self,
        framing: Framing,
        options: &ConnectOptions,
        channel: Channel,
        connect: impl FnOnce(ConnectOptions) -> F,
    ) -> io::Result<Client>
    where
        F: Future<Output = io::Result<AnyStream>> + Send + 'static,
    {
        let (config, prepared) = self.prepare().map_err(invalid)?;
        let config = traced(Arc::new(config))?;
        let runtime = runtime()?;
        let (allowed, connecting) = (options.connect_timeout, connect(options.clone()));
        let late = |_| io::Error::from(io::ErrorKind::TimedOut);
        let connecting = async move {
            tokio::time::timeout(allowed, connecting)
                .await
                .map_err(late)?
        };
        // Aborts the task if this future is dropped.
        let mut tasks = JoinSet::new();
        tasks.spawn_on(connecting, runtime.handle());
        let joined = tasks.join_next().await.ok_or(io::ErrorKind::TimedOut)?;
        let stream = joined.map_err(io::Error::other)??;
        let now = Instant::now();
        let longest = config.limits.max_message_bytes;
        let mut connection = Connection::new(config, now);
        connection.set_channel(|| channel);
        let notifier = Notifier::new();
        connection.set_wake(notifier.clone());
        let spawner = spawner_of(&prepared);
        let (client, host) = prepared.connect(connection.handle(), spawner);
        match framing {
            Framing::WebSocket { masked } => {
                let beat = options.heartbeat;
                let machine = WebSocket::new(connection, host, masked, longest, beat, now);
                drive_client(drive(stream, machine, notifier, None))?;
            }
            framing => {
                let machine = Hosted::new(connection, framing, host);
                drive_client(drive(stream, machine, notifier, None))?;
            }
        }
        client.closing_with_it().until_open().await
    }
}
