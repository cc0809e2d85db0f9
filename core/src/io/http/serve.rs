//! A server on a socket.

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::time::Duration;

use hyper::Request;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::{TcpListener, TcpStream};

use super::options::HttpOptions;
use super::service::HttpService;
use crate::server::Server;

/// How long to wait before the next connection is taken when the process has run out of
/// descriptors.
const OUT_OF_DESCRIPTORS: Duration = Duration::from_millis(100);

/// A server that listens on a socket.
#[derive(Debug)]
pub struct HttpServer {
    listener: TcpListener,
    service: HttpService,
}

impl HttpServer {
    /// Begins to listen. Within a tokio runtime with I/O and time.
    ///
    /// # Errors
    /// When the address cannot be listened on; as [`HttpService::new`].
    pub async fn bind(
        server: &Server,
        address: impl tokio::net::ToSocketAddrs,
        options: HttpOptions,
    ) -> io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        let service = HttpService::new(server, options)?;
        Ok(Self { listener, service })
    }

    /// Where it listens: tells the port that the system chose.
    ///
    /// # Errors
    /// When the system does not know.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Serves until `stop` ends; then takes no new connection, and what is in flight is answered
    /// within the grace period.
    pub async fn run(self, stop: impl Future<Output = ()>) {
        let Self { listener, service } = self;
        let mut http = auto::Builder::new(TokioExecutor::new());
        http.http1()
            .timer(TokioTimer::new())
            .header_read_timeout(service.options().header_timeout);
        http.http2().timer(TokioTimer::new());
        let graceful = GracefulShutdown::new();
        let mut stop = std::pin::pin!(stop);
        loop {
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                () = &mut stop => break,
            };
            match accepted {
                Ok((stream, _)) => begin(&http, &graceful, stream, &service),
                // One connection's misfortune, or none left to be had: others go on.
                Err(error) if is_of_one_connection(&error) => {}
                Err(_) => tokio::time::sleep(OUT_OF_DESCRIPTORS).await,
            }
        }
        drop(listener);
        service.stop();
        let grace = service.options().grace;
        let _ = tokio::time::timeout(grace, graceful.shutdown()).await;
    }
}

fn begin(
    http: &auto::Builder<TokioExecutor>,
    graceful: &GracefulShutdown,
    stream: TcpStream,
    service: &HttpService,
) {
    // Without it an answer in two writes waits for the other side's delayed acknowledgement.
    let _ = stream.set_nodelay(true);
    let service = service.clone();
    let respond = service_fn(move |request: Request<hyper::body::Incoming>| {
        let service = service.clone();
        async move { Ok::<_, Infallible>(service.respond(request).await) }
    });
    let connection = http.serve_connection(TokioIo::new(stream), respond);
    let connection = graceful.watch(connection.into_owned());
    tokio::spawn(async move {
        // That a client is gone is no error of the server's.
        let _ = connection.await;
    });
}

fn is_of_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(
        error.kind(),
        ConnectionAborted | ConnectionRefused | ConnectionReset
    )
}

/// Serves on a socket until the process is asked to end (SIGINT, SIGTERM), with a runtime of its
/// own. `ready` is told where it listens.
///
/// ```no_run
/// use mcpbolt::io::http::{HttpOptions, serve_http};
/// use mcpbolt::server::Server;
/// let server = Server::builder("hello", "1.0.0").build()?;
/// serve_http(&server, "127.0.0.1:8000", HttpOptions::default(), |at| {
///     eprintln!("http://{at}/mcp");
/// })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// As [`HttpServer::bind`].
pub fn serve_http(
    server: &Server,
    address: impl ToSocketAddrs,
    options: HttpOptions,
    ready: impl FnOnce(SocketAddr),
) -> io::Result<()> {
    let addresses: Vec<_> = address.to_socket_addrs()?.collect();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let http = HttpServer::bind(server, &addresses[..], options).await?;
        ready(http.local_addr()?);
        http.run(asked_to_end()).await;
        Ok(())
    })
}

async fn asked_to_end() {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        if let Ok(mut term) = signal(SignalKind::terminate()) {
            tokio::select! {
                _ = term.recv() => {}
                _ = tokio::signal::ctrl_c() => {}
            }
            return;
        }
    }
    let _ = tokio::signal::ctrl_c().await;
}
