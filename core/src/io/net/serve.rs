//! Serves at any address, on threads of the server's own.

use std::future::Future;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::sync::watch;

use super::listen::{Reach, SocketListener, fill, listen};
use super::listener::Listener;
use super::metrics::{Counted, Metrics};
use super::places::{Place, Places};
use super::reception::{Accepted, Reception};
use super::tenure::Tenure;
use super::threads::{self, Threads, aside};
use crate::connection::{Channel, Connection, Framing, NetworkTransport, RequestSource};
use crate::handler::Spawner;
use crate::io::address::{Address, Url};
use crate::io::faults::unsupported;
use crate::io::hosted::Hosted;
use crate::io::http::{HttpOptions, HttpServer, HttpService};
use crate::io::stdio::{Stdio, StdioOptions};
#[cfg(unix)]
use crate::io::supervise::WorkerProcess;
use crate::io::task::FAREWELL;
use crate::io::trace::traced;
use crate::io::workers::{Workers, WorkersConfig};
use crate::server::Hosting;
use crate::sync::lock;

/// Options of a server at an address.
#[derive(Clone, Debug)]
pub struct ServeOptions {
    /// Options of HTTP and WebSocket. Limits, grace and header timeout also apply to TCP and Unix
    /// sockets. The path is taken from the address.
    pub http: HttpOptions,
    /// Options of stdin and stdout.
    pub stdio: StdioOptions,
    /// Certificate and key, for `https` and `wss`.
    pub tls: Option<TlsOptions>,
    /// Number of threads that drive sockets, in addition to the threads that run handlers. `None`: the
    /// threads that run handlers also drive the sockets, one at a time. That is best until the traffic
    /// needs more than one processor.
    pub threads: Option<usize>,
    /// Maximum number of connections at a time, 65,536 by default. When it is reached, a new connection
    /// takes the place of the oldest one that has not finished its handshake (a first answer over HTTP,
    /// a first message elsewhere), unless the address of that one has fewer connections; otherwise the
    /// new connection is closed at once.
    pub max_connections: usize,
    /// Maximum number of connections of one address (IPv6: one /64 network) at a time. By default three
    /// quarters of `max_connections`; the last quarter is left for addresses that have few. Clients of
    /// Unix sockets and [trusted proxies](HttpOptions::trusted_proxies) are exempt.
    pub max_connections_per_peer: Option<usize>,
    /// A socket that listens already, in place of one that the server binds: its port counts, not that of the address.
    /// `None` by default.
    pub listener: Option<Listener>,
    /// This process as one of several that serve the address. Its listener is used, it ends when its supervisor says so,
    /// and it passes requests of other workers' sessions on to them. `None` by default.
    #[cfg(unix)]
    pub worker: Option<WorkerProcess>,
}

impl Default for ServeOptions {
    fn default() -> Self {
        Self {
            http: HttpOptions::default(),
            stdio: StdioOptions::default(),
            tls: None,
            threads: None,
            max_connections: 65_536,
            max_connections_per_peer: None,
            listener: None,
            #[cfg(unix)]
            worker: None,
        }
    }
}

/// The identity of a server behind TLS, and of the clients that it accepts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsOptions {
    /// A PEM file with the server's certificate and the chain of its issuers.
    pub certificate: PathBuf,
    /// A PEM file with the private key.
    pub key: PathBuf,
    /// A PEM file with the root certificates that must have issued the certificate of each client
    /// (mutual TLS). The client's certificate is passed to the
    /// [verifier](crate::policy::Policy::verifier). `None`: clients are not asked for a certificate.
    pub clients: Option<PathBuf>,
}

/// A running server. Dropping it does not stop the server.
#[derive(Debug)]
pub struct Serving {
    address: Address,
    stop: Stopper,
    metrics: Arc<Metrics>,
    over: Mutex<Receiver<()>>,
}

/// Stops a server, from any thread.
#[derive(Clone, Debug)]
pub struct Stopper(Stop);

impl Stopper {
    /// Stops the server, as [`Serving::stop`] does.
    pub fn stop(&self) {
        match &self.0 {
            Stop::Stdio(stop) => stop.stop(),
            Stop::Sockets(stop) => drop(stop.send_replace(true)),
        }
    }
}

#[derive(Clone, Debug)]
enum Stop {
    Stdio(crate::io::driver::Stop),
    Sockets(watch::Sender<bool>),
}

/// Serves a hosted server, in whichever language, at an address. It runs on threads of its own until it
/// is stopped; on `stdio:` also until the client ends. For a Rust server, see
/// [`Server::serve`](crate::server::Server::serve).
///
/// # Errors
/// - When the address cannot be listened on, a file of the options cannot be read, the trace that the
///   environment asks for cannot be written, or a thread cannot be started.
/// - [`PermissionDenied`](io::ErrorKind::PermissionDenied) when other machines can reach the address,
///   no credentials are checked and [`HttpOptions::anonymous`] is not set.
/// - [`InvalidInput`](io::ErrorKind::InvalidInput) when `hosts` or `origins` are not valid.
/// - [`Unsupported`](io::ErrorKind::Unsupported) when only a client can use the address, or it needs a
///   feature that is not built in.
pub fn serve(
    hosting: Arc<dyn Hosting>,
    address: &Address,
    options: ServeOptions,
) -> io::Result<Serving> {
    serve_with(|_| hosting, address, options)
}

/// Like [`serve`], but `host` receives the spawner that runs jobs on the server's threads. On a socket,
/// unless `threads` is set, a job runs directly after the network turn that spawned it, on the same
/// thread.
///
/// # Errors
/// As [`serve`].
pub fn serve_with(
    host: impl FnOnce(Arc<dyn Spawner>) -> Arc<dyn Hosting> + Send,
    address: &Address,
    options: ServeOptions,
) -> io::Result<Serving> {
    if is_stdio(address)? {
        let workers = Arc::new(Workers::new(WorkersConfig::default()));
        return on_stdio(&*host(workers), options);
    }
    aside(|| {
        let threads = Threads::new(options.threads)?;
        let hosting = host(threads.spawner());
        on_sockets(threads, hosting, address, options)
    })
}

pub(crate) fn is_stdio(address: &Address) -> io::Result<bool> {
    match address {
        Address::Stdio(words) if words.is_empty() => Ok(true),
        Address::Stdio(_) => Err(unsupported("a server's own stdin and stdout are stdio:")),
        _ => Ok(false),
    }
}

fn on_stdio(hosting: &dyn Hosting, options: ServeOptions) -> io::Result<Serving> {
    let config = traced(hosting.config().clone())?;
    let metrics = Metrics::of(config.budget.clone());
    let stdio = Stdio::take(options.stdio)?;
    let stop = Stopper(Stop::Stdio(stdio.stop()));
    let mut connection = Connection::new(config, Instant::now());
    connection.set_channel(|| Channel::new(NetworkTransport::Pipe));
    connection.set_wake(stdio.wake().clone());
    let host = hosting.host(connection.handle(), None);
    let mut machine = Hosted::new(connection, Framing::Detect, host);
    let over = threads::begin("mcpbolt-stdio", move || {
        // Nobody can act on how the connection ended.
        let _ = stdio.run(&mut machine);
    })?;
    Ok(Serving {
        address: Address::Stdio(Vec::new()),
        stop,
        metrics,
        over: Mutex::new(over),
    })
}

fn on_sockets(
    threads: Threads,
    hosting: Arc<dyn Hosting>,
    address: &Address,
    options: ServeOptions,
) -> io::Result<Serving> {
    let stop = watch::Sender::new(false);
    let stopped = asked_to(stop.subscribe());
    let bound = threads.block_on(bind(hosting.clone(), address, options, stopped))?;
    let serves = async move {
        bound.serves.await;
        hosting.ended();
    };
    let over = threads.run(serves)?;
    Ok(Serving {
        address: bound.address,
        stop: Stopper(Stop::Sockets(stop)),
        metrics: bound.metrics,
        over: Mutex::new(over),
    })
}

/// A server that listens.
pub(crate) struct Bound {
    pub address: Address,
    metrics: Arc<Metrics>,
    /// Serves until the server is asked to stop.
    pub serves: Pin<Box<dyn Future<Output = ()> + Send>>,
}

/// Listens at an address other than `stdio:`, in the tokio runtime of the caller.
///
/// # Errors
/// As [`serve`].
pub(crate) async fn bind(
    hosting: Arc<dyn Hosting>,
    address: &Address,
    options: ServeOptions,
    stopped: impl Future<Output = ()> + Send + 'static,
) -> io::Result<Bound> {
    #[cfg(feature = "resource-server")]
    crate::io::http::connect_issuers(hosting.policy().as_deref())?;
    let verifies = hosting.policy().is_some_and(|policy| policy.has_verifier());
    let reach = Reach::of(
        verifies || asks_for_certificates(address, &options),
        &options.http,
    );
    let tenure = options.tenure()?;
    let mut told = tenure.clone();
    let stopped = async move {
        tokio::select! {
            () = stopped => {}
            () = told.dismissed() => {}
        }
    };
    let bound = match address {
        Address::Tcp {
            host,
            port,
            framing,
        } => {
            let listener = match options.handed() {
                Some(handed) => handed.tcp(address, reach)?,
                None => listen((host.as_str(), *port), reach, false).await?,
            };
            let address = Address::Tcp {
                host: host.clone(),
                port: listener.local_addr()?.port(),
                framing: *framing,
            };
            let reception = Arc::new(Reception::new(hosting, &options.http));
            Bound {
                address,
                metrics: reception.metrics().clone(),
                serves: Box::pin(on_streams(
                    listener,
                    (),
                    stopped,
                    (reception, *framing, NetworkTransport::Tcp),
                    options,
                )),
            }
        }
        #[cfg(unix)]
        Address::Unix { path, framing } => {
            let (listener, file) = match options.handed() {
                Some(handed) => (handed.unix(address)?, None),
                None => super::unix::listen(path).map(|(socket, file)| (socket, Some(file)))?,
            };
            let reception = Arc::new(Reception::new(hosting, &options.http));
            Bound {
                address: address.clone(),
                metrics: reception.metrics().clone(),
                serves: Box::pin(on_streams(
                    listener,
                    file,
                    stopped,
                    (reception, *framing, NetworkTransport::Unix),
                    options,
                )),
            }
        }
        #[cfg(not(unix))]
        Address::Unix { .. } => return Err(unsupported("this system has no Unix sockets")),
        Address::Http(url) | Address::WebSocket(url) => {
            let listener = match options.handed() {
                Some(handed) => handed.tcp(address, reach)?,
                None => listen((url.host.as_str(), url.port), reach, false).await?,
            };
            let url = Url {
                port: listener.local_addr()?.port(),
                ..url.clone()
            };
            let server = on_http(hosting, listener, &url, options)?.during(tenure.clone());
            Bound {
                address: match address {
                    Address::WebSocket(_) => Address::WebSocket(url),
                    _ => Address::Http(url),
                },
                metrics: server.service().metrics().clone(),
                serves: Box::pin(server.run(stopped)),
            }
        }
        Address::Stdio(_) => {
            return Err(unsupported(
                "a server on stdio has no socket; use serve_stdio",
            ));
        }
    };
    tenure.announce();
    event!(info, address = %bound.address, "listening");
    Ok(bound)
}

impl ServeOptions {
    /// How long this process serves, in the tokio runtime of the caller.
    fn tenure(&self) -> io::Result<Tenure> {
        #[cfg(unix)]
        if let Some(worker) = &self.worker {
            return Tenure::of(worker.clone());
        }
        Ok(Tenure::default())
    }

    /// The socket that was handed to the server.
    fn handed(&self) -> Option<&Listener> {
        #[cfg(unix)]
        if let Some(worker) = &self.worker {
            return Some(worker.listener());
        }
        self.listener.as_ref()
    }
}

/// How messages of a peer travel on a byte stream.
fn channel_of(transport: NetworkTransport, source: &RequestSource) -> Channel {
    let channel = Channel::new(transport);
    match source {
        RequestSource::Address(address) => channel.peer(address.to_string(), None),
        _ => channel,
    }
}

/// Serves connections that are byte streams; `kept` is dropped at the end.
async fn on_streams<L, K>(
    listener: L,
    kept: K,
    stopped: impl Future<Output = ()>,
    (reception, framing, transport): (Arc<Reception>, Framing, NetworkTransport),
    options: ServeOptions,
) where
    L: SocketListener,
    L::Stream: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (all, each) = (options.max_connections, options.max_connections_per_peer);
    let places = Places::new(all, each, &options.http.trusted_proxies);
    let begin = |stream, place: Place| {
        let (reception, held) = (reception.clone(), place.clone());
        tokio::spawn(held.task(async move {
            let stream = Counted::new(stream, reception.metrics());
            let accepted = Accepted {
                framing: heard(framing),
                actions: false,
                principal: None,
                channel: channel_of(transport, place.source()),
                source: place.source().clone(),
            };
            // A connection that cannot be traced is not served.
            let _ = reception.serve(stream, accepted, Some(place)).await;
        }));
    };
    let stall = options.http.limits.stall_timeout;
    fill(&places, listener, stall, stopped, begin).await;
    reception.stop();
    places.emptied(options.http.grace + FAREWELL).await;
    drop(kept);
}

fn on_http(
    hosting: Arc<dyn Hosting>,
    listener: TcpListener,
    url: &Url,
    options: ServeOptions,
) -> io::Result<HttpServer> {
    if url.path.contains('?') {
        return Err(unsupported("a server's address has no query"));
    }
    let mut http = options.http;
    http.path.clone_from(&url.path);
    if !is_unspecified(&url.host) {
        http.hosts.push(url.bracketed_host());
    }
    #[cfg(unix)]
    let worker = options.worker.as_ref().map(WorkerProcess::number);
    #[cfg(not(unix))]
    let worker = None;
    let service = HttpService::of_worker(hosting.clone(), http, worker)?;
    // After the key of a store, which further processes may have.
    #[cfg(unix)]
    if let Some(key) = options.worker.as_ref().and_then(WorkerProcess::state_key) {
        hosting.share_states(key);
    }
    let server = HttpServer::on(listener, service)
        .max_connections(options.max_connections, options.max_connections_per_peer);
    match (url.secure, &options.tls) {
        (false, _) => Ok(server),
        (true, None) => Err(unsupported("https and wss need a certificate and its key")),
        (true, Some(tls)) => server.behind_tls(tls),
    }
}

/// Whether TLS admits only clients that show a certificate.
fn asks_for_certificates(address: &Address, options: &ServeOptions) -> bool {
    let asks = options
        .tls
        .as_ref()
        .is_some_and(|tls| tls.clients.is_some());
    match address {
        Address::Http(url) | Address::WebSocket(url) => url.secure && asks,
        _ => false,
    }
}

/// Whether the host stands for every address of this machine.
fn is_unspecified(host: &str) -> bool {
    host.parse() == Ok(Ipv4Addr::UNSPECIFIED) || host.parse() == Ok(Ipv6Addr::UNSPECIFIED)
}

/// Waits until the server is asked to stop; forever when nobody can ask any more.
async fn asked_to(mut stop: watch::Receiver<bool>) {
    if stop.wait_for(|&stop| stop).await.is_err() {
        std::future::pending::<()>().await;
    }
}

impl Serving {
    /// The address of the server, with the port that the system chose if the port was 0.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Stops accepting connections; requests in flight are answered within the grace period.
    pub fn stop(&self) {
        self.stop.stop();
    }

    /// Stops the server from other threads.
    pub fn stopper(&self) -> Stopper {
        self.stop.clone()
    }

    /// Counters of the server. On stdin and stdout, only calls are counted.
    pub fn metrics(&self) -> &Arc<Metrics> {
        &self.metrics
    }

    /// Blocks until the server has ended.
    pub fn wait(&self) {
        let _ = lock(&self.over).recv();
    }
}

/// The framing of an accepted connection: where lines are configured, a client may also send messages
/// behind their lengths, which is detected.
fn heard(framing: Framing) -> Framing {
    match framing {
        Framing::Line => Framing::Detect,
        framing => framing,
    }
}
