//! Listening sockets that a server is handed instead of binding its address itself.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
#[cfg(unix)]
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
#[cfg(unix)]
use std::os::unix::net::UnixListener;
use std::sync::Arc;

use super::listen::{Reach, listen};
use super::threads::aside;
#[cfg(unix)]
use super::unix::{self, SocketFile};
use crate::io::address::{Address, Url};
use crate::io::faults::unsupported;

/// A socket that listens already, for a server that does not bind its address itself: a socket that a parent
/// process or the system's service manager has bound, or that several servers share. Set
/// [`ServeOptions::listener`](crate::io::ServeOptions::listener) to serve on it.
///
/// Clones are the same socket. It listens as long as a clone of it, in any process, exists.
///
/// ```
/// use mcpbolt::io::{Listener, ServeOptions};
/// use mcpbolt::server::Server;
///
/// let server = Server::builder("hello", "1.0.0").build()?;
/// let listener = Listener::from(std::net::TcpListener::bind("127.0.0.1:0")?);
/// let options = ServeOptions { listener: Some(listener), ..ServeOptions::default() };
/// let serving = server.serve("http://127.0.0.1/mcp").options(options).start()?;
/// println!("{}", serving.address());
/// serving.stop();
/// serving.wait();
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Listener(Arc<Socket>);

#[derive(Debug)]
enum Socket {
    Tcp {
        listener: std::net::TcpListener,
        /// Whether this process has bound the socket by [`Listener::bind`].
        is_own: bool,
    },
    #[cfg(unix)]
    Unix {
        listener: UnixListener,
        /// The file, where this process has bound the socket.
        file: Option<SocketFile>,
    },
}

impl From<std::net::TcpListener> for Listener {
    fn from(listener: std::net::TcpListener) -> Self {
        let is_own = false;
        Self(Arc::new(Socket::Tcp { listener, is_own }))
    }
}

/// The file of the socket is left in place when the listener is dropped.
#[cfg(unix)]
impl From<UnixListener> for Listener {
    fn from(listener: UnixListener) -> Self {
        let file = None;
        Self(Arc::new(Socket::Unix { listener, file }))
    }
}

/// Takes an inherited descriptor. Fails with [`InvalidInput`](io::ErrorKind::InvalidInput) if it is not a listening
/// TCP or Unix socket.
#[cfg(unix)]
impl TryFrom<OwnedFd> for Listener {
    type Error = io::Error;

    fn try_from(fd: OwnedFd) -> io::Result<Self> {
        use rustix::net::{SocketType, sockopt};
        let is_stream = sockopt::socket_type(&fd)? == SocketType::STREAM;
        #[cfg(not(target_vendor = "apple"))]
        let is_stream = is_stream && sockopt::socket_acceptconn(&fd)?;
        match is_stream {
            true => Self::handed(fd),
            false => Err(wrong("the descriptor is not a listening stream socket")),
        }
    }
}

#[cfg(unix)]
fn wrong(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, why)
}

#[cfg(unix)]
impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match &*self.0 {
            Socket::Tcp { listener, .. } => listener.as_fd(),
            Socket::Unix { listener, .. } => listener.as_fd(),
        }
    }
}

impl Listener {
    /// Takes a socket that listens, or has been [shut down](Self::refuse) since it was handed over.
    #[cfg(unix)]
    pub(in crate::io) fn handed(fd: OwnedFd) -> io::Result<Self> {
        use rustix::net::AddressFamily;
        match rustix::net::getsockname(&fd)?.address_family() {
            AddressFamily::INET | AddressFamily::INET6 => {
                Ok(std::net::TcpListener::from(fd).into())
            }
            AddressFamily::UNIX => Ok(UnixListener::from(fd).into()),
            _ => Err(wrong("the socket is neither TCP nor Unix")),
        }
    }

    /// Has clients refused from now on, for all processes that have been handed the socket. A socket that this process has not bound, as one of
    /// a service manager, listens on. TCP on other systems than Linux refuses clients when no process has the socket any more.
    #[cfg(unix)]
    pub(in crate::io) fn refuse(&self) {
        match &*self.0 {
            Socket::Tcp { listener, is_own } if *is_own => {
                let _ = rustix::net::shutdown(listener, rustix::net::Shutdown::Read);
            }
            Socket::Unix { file, .. } => file.iter().for_each(SocketFile::remove),
            Socket::Tcp { .. } => {}
        }
    }

    /// Listens at an address, as a server at that address would. The file of a Unix socket is removed when the last
    /// clone of this process is dropped. From where clients may reach the address is checked by the server.
    ///
    /// # Errors
    /// When the address cannot be listened on; [`Unsupported`](io::ErrorKind::Unsupported) for `stdio:`.
    pub fn bind(address: &Address) -> io::Result<Self> {
        in_a_runtime(bound(address, false))
    }

    /// Binds `count` sockets to one TCP address (`SO_REUSEPORT`): the system distributes new connections among them by
    /// a hash. Each connection belongs to one of the sockets from its beginning, also while no process accepts on that
    /// one.
    ///
    /// # Errors
    /// As [`bind`](Self::bind); [`Unsupported`](io::ErrorKind::Unsupported) for a Unix socket, and on systems other
    /// than Unix.
    pub fn bind_each(address: &Address, count: usize) -> io::Result<Vec<Self>> {
        if !cfg!(unix) || port(address).is_none() {
            return Err(unsupported(
                "only a TCP address of a Unix system can be shared by SO_REUSEPORT",
            ));
        }
        let mut address = address.clone();
        let mut all = Vec::new();
        for _ in 0..count {
            let one = in_a_runtime(bound(&address, true))?;
            // The first one chooses the port.
            address = one.address(&address)?;
            all.push(one);
        }
        Ok(all)
    }

    /// The address with the port of this socket in place of its own.
    ///
    /// # Errors
    /// [`InvalidInput`](io::ErrorKind::InvalidInput) if a server at the address needs another kind of socket.
    pub fn address(&self, of: &Address) -> io::Result<Address> {
        let port = match &*self.0 {
            Socket::Tcp { listener, .. } => Some(listener.local_addr()?.port()),
            #[cfg(unix)]
            Socket::Unix { .. } => None,
        };
        Ok(match (of.clone(), port) {
            (Address::Tcp { host, framing, .. }, Some(port)) => Address::Tcp {
                host,
                port,
                framing,
            },
            (Address::Http(url), Some(port)) => Address::Http(Url { port, ..url }),
            (Address::WebSocket(url), Some(port)) => Address::WebSocket(Url { port, ..url }),
            (unix @ Address::Unix { .. }, None) => unix,
            (address, port) => return Err(another_kind(&address, port)),
        })
    }

    /// The socket for the tokio runtime of the caller, if it is TCP and clients reach it from no further than `reach`.
    pub(super) fn tcp(&self, of: &Address, reach: Reach) -> io::Result<tokio::net::TcpListener> {
        match &*self.0 {
            Socket::Tcp { listener, .. } => {
                reach.check(listener.local_addr()?)?;
                let own = listener.try_clone()?;
                // Processes that share the socket only ever wait for it by readiness.
                own.set_nonblocking(true)?;
                tokio::net::TcpListener::from_std(own)
            }
            #[cfg(unix)]
            Socket::Unix { .. } => Err(another_kind(of, None)),
        }
    }

    /// The socket for the tokio runtime of the caller, if it is a Unix socket.
    #[cfg(unix)]
    pub(super) fn unix(&self, of: &Address) -> io::Result<tokio::net::UnixListener> {
        match &*self.0 {
            Socket::Unix { listener, .. } => {
                let own = listener.try_clone()?;
                own.set_nonblocking(true)?;
                tokio::net::UnixListener::from_std(own)
            }
            Socket::Tcp { listener, .. } => {
                let port = listener.local_addr().as_ref().map_or(0, SocketAddr::port);
                Err(another_kind(of, Some(port)))
            }
        }
    }
}

fn another_kind(address: &Address, port: Option<u16>) -> io::Error {
    let given = port.map_or("a Unix socket".to_owned(), |port| {
        format!("a TCP socket (port {port})")
    });
    let why = format!("{address} cannot be served on the socket that was handed over: {given}");
    io::Error::new(io::ErrorKind::InvalidInput, why)
}

/// The port of a TCP address.
fn port(address: &Address) -> Option<u16> {
    match address {
        Address::Tcp { port, .. } => Some(*port),
        Address::Http(url) | Address::WebSocket(url) => Some(url.port),
        _ => None,
    }
}

/// Runs a future that needs a reactor, whether or not the caller is in a runtime.
fn in_a_runtime<T: Send>(future: impl Future<Output = io::Result<T>> + Send) -> io::Result<T> {
    aside(|| {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .build()?;
        runtime.block_on(future)
    })
}

async fn bound(address: &Address, shares_port: bool) -> io::Result<Listener> {
    // The server that is handed the socket checks from where it can be reached.
    let reach = Reach::Anywhere;
    let place = match address {
        Address::Tcp { host, port, .. } => (host.as_str(), *port),
        Address::Http(url) | Address::WebSocket(url) => (url.host.as_str(), url.port),
        #[cfg(unix)]
        Address::Unix { path, .. } => {
            let (listener, file) = unix::listen(path)?;
            let listener = listener.into_std()?;
            let file = Some(file);
            return Ok(Listener(Arc::new(Socket::Unix { listener, file })));
        }
        _ => return Err(unsupported("only sockets can be handed to a server")),
    };
    let listener = listen(place, reach, shares_port).await?.into_std()?;
    let is_own = true;
    Ok(Listener(Arc::new(Socket::Tcp { listener, is_own })))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Address {
        text.parse().unwrap()
    }

    #[test]
    fn sockets_of_one_port_are_told_from_others() {
        let address = parsed("http://127.0.0.1:0/mcp");
        let one = Listener::bind(&address).unwrap();
        let at = one.address(&address).unwrap();
        assert!(!at.to_string().contains(":0/"), "{at}");
        assert!(Listener::bind(&at).is_err(), "in use");
        assert!(one.address(&parsed("unix:/tmp/a")).is_err());
        assert!(Listener::bind(&parsed("stdio:")).is_err());
    }

    #[cfg(unix)]
    #[test]
    fn several_sockets_share_a_port_on_request() {
        let address = parsed("tcp:127.0.0.1:0");
        let all = Listener::bind_each(&address, 3).unwrap();
        let of = |one: &Listener| one.address(&address).unwrap().to_string();
        assert!(all.iter().all(|one| of(one) == of(&all[0])));
        assert!(Listener::bind_each(&parsed("unix:/tmp/a"), 2).is_err());
    }

    #[cfg(unix)]
    #[test]
    fn an_inherited_descriptor_is_a_listening_socket_or_an_error() {
        let tcp = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = tcp.local_addr().unwrap();
        let taken = Listener::try_from(OwnedFd::from(tcp)).unwrap();
        let at = taken.address(&parsed("tcp:127.0.0.1:0")).unwrap();
        assert_eq!(at.to_string(), format!("tcp:{address}"));
        let connected = std::net::TcpStream::connect(address).unwrap();
        assert!(Listener::try_from(OwnedFd::from(connected)).is_err());
        let file = std::fs::File::open("/dev/null").unwrap();
        assert!(Listener::try_from(OwnedFd::from(file)).is_err());
    }
}
