//! Listening sockets, and accepting connections from them.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::net::{TcpListener, TcpSocket, TcpStream, ToSocketAddrs, lookup_host};

use super::places::{Place, Places};
use super::socket;
use crate::io::http::HttpOptions;

/// Pause before the next connection is accepted when the process has run out of descriptors.
const OUT_OF_DESCRIPTORS: Duration = Duration::from_millis(100);

/// Maximum number of connections waiting to be accepted. In a larger burst, the system delays
/// connections by a second each. Some systems allow fewer.
const BACKLOG: u32 = 4096;

/// From where a server can be reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// From this machine: loopback addresses.
    Machine,
    /// From any machine.
    Anywhere,
}

impl Reach {
    /// `Anywhere` if clients must authenticate, or if `options` allow anonymous clients.
    pub fn of(proven: bool, options: &HttpOptions) -> Self {
        match proven || options.anonymous {
            true => Self::Anywhere,
            false => Self::Machine,
        }
    }

    /// # Errors
    /// When the address can be reached from further.
    pub fn check(self, address: SocketAddr) -> io::Result<()> {
        let ip = address.ip();
        if self == Self::Anywhere || ip.to_canonical().is_loopback() {
            return Ok(());
        }
        let why = format!(
            "{ip} is reached from other machines, and this server has no verifier: anybody there \
             could call its tools. Give its policy a verifier, listen on 127.0.0.1, or set \
             `anonymous`"
        );
        Err(io::Error::new(io::ErrorKind::PermissionDenied, why))
    }
}

/// Listens on the first resolved address on which that is possible. Requires a tokio runtime with I/O
/// enabled. `shares_port`: other sockets that ask for it, too, may listen on the same port.
///
/// # Errors
/// Why no address can be listened on.
pub async fn listen(
    address: impl ToSocketAddrs,
    reach: Reach,
    shares_port: bool,
) -> io::Result<TcpListener> {
    let mut outcome = Err(io::ErrorKind::AddrNotAvailable.into());
    for address in lookup_host(address).await? {
        let listened = reach.check(address);
        outcome = listened.and_then(|()| listen_on(address, shares_port));
        if outcome.is_ok() {
            break;
        }
    }
    outcome
}

fn listen_on(address: SocketAddr, shares_port: bool) -> io::Result<TcpListener> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4()?,
        SocketAddr::V6(_) => TcpSocket::new_v6()?,
    };
    // On other systems this option would let other programs take over the address.
    #[cfg(unix)]
    socket.set_reuseaddr(true)?;
    #[cfg(unix)]
    socket.set_reuseport(shares_port)?;
    #[cfg(not(unix))]
    let _ = shares_port;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// A listening socket.
pub trait SocketListener {
    /// The type of its connections.
    type Stream;
    /// Accepts the next connection, with its peer's address if it has one. The system waits at least `stall` for a
    /// peer that takes no data.
    ///
    /// # Errors
    /// The errors of `accept`.
    fn next(
        &self,
        stall: Duration,
    ) -> impl Future<Output = io::Result<(Self::Stream, Option<SocketAddr>)>> + Send;
}

impl SocketListener for TcpListener {
    type Stream = TcpStream;

    async fn next(&self, stall: Duration) -> io::Result<(TcpStream, Option<SocketAddr>)> {
        let (stream, peer) = self.accept().await?;
        socket::prepare(&stream, stall);
        Ok((stream, Some(peer)))
    }
}

#[cfg(unix)]
impl SocketListener for tokio::net::UnixListener {
    type Stream = tokio::net::UnixStream;

    async fn next(&self, _: Duration) -> io::Result<(Self::Stream, Option<SocketAddr>)> {
        self.accept().await.map(|(stream, _)| (stream, None))
    }
}

/// Accepts connections as they come, and passes those that get a place to `begin`, until `stop`
/// completes. The system waits at least `stall` for a peer that takes no data.
pub async fn fill<L: SocketListener>(
    places: &Places,
    listener: L,
    stall: Duration,
    stop: impl Future<Output = ()>,
    mut begin: impl FnMut(L::Stream, Place),
) {
    let mut stop = std::pin::pin!(stop);
    let mut tidies = std::pin::pin!(places.give_memory_back());
    loop {
        let accepted = tokio::select! {
            accepted = listener.next(stall) => accepted,
            () = &mut stop => return,
            never = &mut tidies => match never {},
        };
        match accepted {
            Ok((stream, peer)) => {
                if let Some(place) = places.take(peer) {
                    begin(stream, place);
                }
            }
            // An error of a single connection does not affect the others.
            Err(error) if is_of_one_connection(&error) => {}
            // The socket listens no more: whoever shares it has ended that, and this server soon hears why.
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
                event!(info, "the listening socket has been shut down");
                return stop.await;
            }
            Err(error) => {
                event!(warn, %error, "no further connection can be taken");
                drop(error);
                places.make_room();
                tokio::time::sleep(OUT_OF_DESCRIPTORS).await;
            }
        }
    }
}

fn is_of_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(
        error.kind(),
        ConnectionAborted | ConnectionRefused | ConnectionReset
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// R-HTP-07.
    #[test]
    fn a_server_that_asks_for_no_credentials_is_reached_from_its_machine() {
        let is_local = |address: &str| {
            let address: SocketAddr = address.parse().unwrap();
            assert!(Reach::Anywhere.check(address).is_ok());
            Reach::Machine.check(address).is_ok()
        };
        for address in [
            "127.0.0.1:0",
            "127.8.8.8:1",
            "[::1]:0",
            "[::ffff:127.0.0.1]:0",
        ] {
            assert!(is_local(address), "{address}");
        }
        for address in [
            "0.0.0.0:0",
            "[::]:0",
            "[::ffff:0.0.0.0]:0",
            "192.168.0.1:80",
            "[fe80::1]:0",
        ] {
            assert!(!is_local(address), "{address}");
        }
        let anonymous = HttpOptions {
            anonymous: true,
            ..HttpOptions::default()
        };
        assert_eq!(Reach::of(false, &HttpOptions::default()), Reach::Machine);
        assert_eq!(Reach::of(true, &HttpOptions::default()), Reach::Anywhere);
        assert_eq!(Reach::of(false, &anonymous), Reach::Anywhere);
    }
}
