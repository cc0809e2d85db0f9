//! Sockets that are listened on, and taking connections from them.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpSocket, TcpStream, ToSocketAddrs, lookup_host};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::socket;

/// How long to wait before the next connection is taken when the process has run out of
/// descriptors.
const OUT_OF_DESCRIPTORS: Duration = Duration::from_millis(100);

/// Connections that may wait to be taken: a burst of more is slowed down by the system, by a second
/// each. Some systems allow fewer.
const BACKLOG: u32 = 4096;

/// Listens on the first of an address's meanings that can be listened on. Within a tokio runtime
/// with I/O.
///
/// # Errors
/// Why none can be.
pub async fn listen(address: impl ToSocketAddrs) -> io::Result<TcpListener> {
    let mut outcome = Err(io::ErrorKind::AddrNotAvailable.into());
    for address in lookup_host(address).await? {
        outcome = listen_on(address);
        if outcome.is_ok() {
            break;
        }
    }
    outcome
}

fn listen_on(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4()?,
        SocketAddr::V6(_) => TcpSocket::new_v6()?,
    };
    // Elsewhere it means that others may take the address away.
    #[cfg(unix)]
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// One of the connections that there may be at a time, for as long as it lives.
pub type Place = Arc<OwnedSemaphorePermit>;

/// A socket that is listened on.
pub trait Listener {
    /// A connection.
    type Stream;
    /// The next one, which may take nothing for `stall`.
    ///
    /// # Errors
    /// That of `accept`.
    fn next(&self, stall: Duration) -> impl Future<Output = io::Result<Self::Stream>> + Send;
}

impl Listener for TcpListener {
    type Stream = TcpStream;

    async fn next(&self, stall: Duration) -> io::Result<TcpStream> {
        let (stream, _) = self.accept().await?;
        socket::prepare(&stream, stall);
        Ok(stream)
    }
}

#[cfg(unix)]
impl Listener for tokio::net::UnixListener {
    type Stream = tokio::net::UnixStream;

    async fn next(&self, _: Duration) -> io::Result<Self::Stream> {
        self.accept().await.map(|(stream, _)| stream)
    }
}

/// The connections that there may be at a time: further ones wait to be taken.
#[derive(Clone, Debug)]
pub struct Places {
    free: Arc<Semaphore>,
    all: u32,
}

impl Places {
    /// So many.
    pub fn new(all: usize) -> Self {
        let all = all.clamp(1, u32::MAX as usize).min(Semaphore::MAX_PERMITS);
        Self {
            free: Arc::new(Semaphore::new(all)),
            all: all as u32,
        }
    }

    /// Takes connections and hands each to `begin`, until `stop` ends. Their peers may take nothing
    /// for `stall`.
    pub async fn fill<L: Listener>(
        &self,
        listener: L,
        stall: Duration,
        stop: impl Future<Output = ()>,
        mut begin: impl FnMut(L::Stream, Place),
    ) {
        let mut stop = std::pin::pin!(stop);
        loop {
            let accept = async {
                // It is never closed.
                let place = self.free.clone().acquire_owned().await.ok()?;
                Some((listener.next(stall).await, place))
            };
            let accepted = tokio::select! {
                accepted = accept => accepted,
                () = &mut stop => return,
            };
            match accepted {
                Some((Ok(stream), place)) => begin(stream, Arc::new(place)),
                // One connection's misfortune, or none left to be had: others go on.
                Some((Err(error), _)) if is_of_one_connection(&error) => {}
                Some((Err(error), _)) => {
                    event!(warn, %error, "no further connection can be taken");
                    drop(error);
                    tokio::time::sleep(OUT_OF_DESCRIPTORS).await;
                }
                None => return,
            }
        }
    }

    /// Waits until all connections have ended, at most for so long.
    pub async fn emptied(&self, within: Duration) {
        let _ = tokio::time::timeout(within, self.free.acquire_many(self.all)).await;
    }
}

fn is_of_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(
        error.kind(),
        ConnectionAborted | ConnectionRefused | ConnectionReset
    )
}
