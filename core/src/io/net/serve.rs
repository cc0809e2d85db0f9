//! A server wherever it is to be reached, on threads of its own.

use std::future::Future;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::panic::resume_unwind;
use std::path::PathBuf;
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Instant;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::sync::watch;

use super::drive::FAREWELL;
use super::listen::{Listener, Places, listen};
use super::metrics::{Counted, Metrics};
use super::reception::Reception;
use super::threads::{self, Threads};
use crate::connection::{Connection, Framing};
use crate::handler::Spawner;
use crate::io::address::{Address, Url};
use crate::io::http::{HttpOptions, HttpServer, HttpService};
use crate::io::stdio::{Stdio, StdioOptions};
use crate::io::trace::traced;
use crate::io::workers::{Workers, WorkersConfig};
use crate::server::{Hosting, Server};

/// How a server is reached.
#[derive(Clone, Debug)]
pub struct ServeOptions {
    /// Of HTTP and WebSocket; limits, grace and header timeout are also those of TCP and Unix
    /// sockets. The path is that of the address.
    pub http: HttpOptions,
    /// Of stdin and stdout.
    pub stdio: StdioOptions,
    /// Certificate and key, for `https` and `wss`.
    pub tls: Option<TlsOptions>,
    /// Threads that drive sockets, beside those that run handlers. When `None`, one at a time does,
    /// and that one of those that run handlers: best until one processor is not enough for the
    /// traffic.
    pub threads: Option<usize>,
    /// Connections at a time; further ones wait to be taken.
    pub max_connections: usize,
}

impl Default for ServeOptions {
    fn default() -> Self {
        Self {
            http: HttpOptions::default(),
            stdio: StdioOptions::default(),
            tls: None,
            threads: None,
            max_connections: 65_536,
        }
    }
}

/// Who a server is behind TLS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsOptions {
    /// A file with its certificate and those that vouch for it, in PEM.
    pub certificate: PathBuf,
    /// A file with its key, in PEM.
    pub key: PathBuf,
    /// A file with the certificates, in PEM, of which one has to vouch for that of each client
    /// (mutual TLS). A [verifier](crate::policy::Policy::verifier) is shown the client's. `None`:
    /// clients are not asked for any.
    pub clients: Option<PathBuf>,
}

/// A server at work. Dropping it does not end it.
#[derive(Debug)]
pub struct Serving {
    address: Address,
    stop: Stopper,
    metrics: Arc<Metrics>,
    over: Mutex<Receiver<()>>,
}

/// Ends a server, from any thread.
#[derive(Clone, Debug)]
pub struct Stopper(Stop);

impl Stopper {
    /// As [`Serving::stop`].
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

/// Serves what is hosted, by whatever language, on an address and on threads of its own, until it
/// is stopped; on `stdio:` until the client is done, too. [`Server::serve`] is for Rust's.
///
/// # Errors
/// When the address cannot be listened on, a file of the options cannot be read, a trace that the
/// environment asks for cannot be written, or a thread cannot be started. What is a client's
/// address alone, or needs a feature that is not built in, is
/// [`Unsupported`](io::ErrorKind::Unsupported).
pub fn serve(
    hosting: Arc<dyn Hosting>,
    address: &Address,
    options: ServeOptions,
) -> io::Result<Serving> {
    serve_with(|_| hosting, address, options)
}

/// The same, where `host` is given what runs jobs on the threads that the server has: on a socket,
/// unless `threads` says otherwise, a job runs right behind the turn of the network that it was
/// spawned in, on the same thread.
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

impl Server {
    /// Serves on an address until it is stopped, on threads of its own, which run the handlers,
    /// too; on `stdio:` until the client is done, too.
    ///
    /// ```no_run
    /// use mcpbolt::io::ServeOptions;
    /// use mcpbolt::server::Server;
    ///
    /// let server = Server::builder("hello", "1.0.0").build()?;
    /// let address = "http://127.0.0.1:8000/mcp".parse()?;
    /// let serving = server.serve(&address, ServeOptions::default())?;
    /// eprintln!("{}", serving.address());
    /// serving.wait();
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`serve`].
    pub fn serve(&self, address: &Address, options: ServeOptions) -> io::Result<Serving> {
        serve_with(|spawner| self.hosting(spawner), address, options)
    }
}

fn is_stdio(address: &Address) -> io::Result<bool> {
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
    let mut host = hosting.host(connection.handle(), None);
    let over = threads::begin("mcpbolt-stdio", move || {
        // How it ends is nobody's to act upon.
        let _ = stdio.drive(&mut connection, &mut host);
    })?;
    Ok(Serving {
        address: Address::Stdio(Vec::new()),
        stop,
        metrics,
        over: Mutex::new(over),
    })
}

/// Does something that makes a runtime, waits for it and may drop it: all three are refused on the
/// threads of another runtime, which a program may well call from.
fn aside<T: Send>(run: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
    thread::scope(|scope| {
        let aside = thread::Builder::new().spawn_scoped(scope, run)?;
        aside.join().unwrap_or_else(|panic| resume_unwind(panic))
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
    let mut metrics = Arc::default();
    let (address, over) = match address {
        Address::Tcp {
            host,
            port,
            framing,
        } => {
            let listener = threads.block_on(listen((host.as_str(), *port)))?;
            let address = Address::Tcp {
                host: host.clone(),
                port: listener.local_addr()?.port(),
                framing: *framing,
            };
            let reception = reception(hosting, &options, &mut metrics);
            let served = on_streams(listener, (), stopped, (reception, *framing), options);
            (address, threads.run(served)?)
        }
        #[cfg(unix)]
        Address::Unix { path, framing } => {
            let (listener, file) = threads.block_on(async { super::unix::listen(path) })?;
            let reception = reception(hosting, &options, &mut metrics);
            let served = on_streams(listener, file, stopped, (reception, *framing), options);
            (address.clone(), threads.run(served)?)
        }
        #[cfg(not(unix))]
        Address::Unix { .. } => return Err(unsupported("this system has no Unix sockets")),
        Address::Http(url) | Address::WebSocket(url) => {
            let listener = threads.block_on(listen((url.host.as_str(), url.port)))?;
            let url = Url {
                port: listener.local_addr()?.port(),
                ..url.clone()
            };
            let server = on_http(hosting, listener, &url, options)?;
            metrics = server.service().metrics().clone();
            let address = match address {
                Address::WebSocket(_) => Address::WebSocket(url),
                _ => Address::Http(url),
            };
            (address, threads.run(server.run(stopped))?)
        }
        Address::Stdio(_) => return Err(unsupported("that is no socket")),
    };
    event!(info, %address, "listening");
    Ok(Serving {
        address,
        stop: Stopper(Stop::Sockets(stop)),
        metrics,
        over: Mutex::new(over),
    })
}

fn reception(
    hosting: Arc<dyn Hosting>,
    options: &ServeOptions,
    metrics: &mut Arc<Metrics>,
) -> Arc<Reception> {
    let reception = Reception::new(hosting, &options.http);
    metrics.clone_from(reception.metrics());
    Arc::new(reception)
}

/// Serves on connections that are streams of bytes; `kept` is let go of at the end.
async fn on_streams<L, K>(
    listener: L,
    kept: K,
    stopped: impl Future<Output = ()>,
    (reception, framing): (Arc<Reception>, Framing),
    options: ServeOptions,
) where
    L: Listener,
    L::Stream: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let places = Places::new(options.max_connections);
    let begin = |stream, place| {
        let reception = reception.clone();
        tokio::spawn(async move {
            // One that cannot be traced is not served.
            let stream = Counted::new(stream, reception.metrics());
            let _ = reception.serve(stream, (heard(framing), false), None).await;
            drop(place);
        });
    };
    let stall = options.http.limits.stall_timeout;
    places.fill(listener, stall, stopped, begin).await;
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
    let server = HttpServer::on(listener, HttpService::hosting(hosting, http)?)
        .max_connections(options.max_connections);
    match (url.secure, &options.tls) {
        (false, _) => Ok(server),
        (true, None) => Err(unsupported("https and wss need a certificate and its key")),
        (true, Some(tls)) => server.behind_tls(tls),
    }
}

/// Whether it stands for every address of this machine.
fn is_unspecified(host: &str) -> bool {
    host.parse() == Ok(Ipv4Addr::UNSPECIFIED) || host.parse() == Ok(Ipv6Addr::UNSPECIFIED)
}

/// Waits until it is to stop: not when nobody can say so any more.
async fn asked_to(mut stop: watch::Receiver<bool>) {
    if stop.wait_for(|&stop| stop).await.is_err() {
        std::future::pending::<()>().await;
    }
}

impl Serving {
    /// Where it is reached, with the port that the system chose if it was to choose one.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Takes no new connection; what is in flight is answered within the grace period.
    pub fn stop(&self) {
        self.stop.stop();
    }

    /// What ends it, for other threads.
    pub fn stopper(&self) -> Stopper {
        self.stop.clone()
    }

    /// What was done so far; on stdin and stdout calls alone are counted.
    pub fn metrics(&self) -> &Arc<Metrics> {
        &self.metrics
    }

    /// Waits until it has ended.
    pub fn wait(&self) {
        let over = self.over.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = over.recv();
    }
}

fn unsupported(why: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::Unsupported, why)
}

/// Who does not speak first takes lengths for what they are, unless it is to take nothing else.
fn heard(framing: Framing) -> Framing {
    match framing {
        Framing::Line => Framing::Detect,
        framing => framing,
    }
}
