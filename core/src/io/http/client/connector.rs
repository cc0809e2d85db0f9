//! Opens connections to HTTP servers: names, proxies, TLS.

use std::error::Error;
use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use hyper::Uri;
use hyper::header::{HeaderMap, HeaderValue, USER_AGENT};
use hyper::http::uri::Scheme;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_rustls::{HttpsConnector, MaybeHttpsStream};
use hyper_util::client::legacy::connect::dns::Name;
use hyper_util::client::legacy::connect::proxy::Tunnel;
use hyper_util::client::legacy::connect::{Connected, Connection, HttpConnector};
use hyper_util::client::proxy::matcher::Matcher;
use hyper_util::rt::TokioIo;
use rustls::client::ResolvesClientCert;
use rustls::sign::CertifiedKey;
use rustls::{ClientConfig, SignatureScheme};
use tokio::net::{TcpStream, lookup_host};
use tokio::time::timeout;
use tower_service::Service;

/// How long a connection is silent before it is asked whether the peer is there, and how often TCP asks.
pub const KEEPALIVE: Duration = Duration::from_secs(15);
const KEEPALIVE_RETRIES: u32 = 3;
/// How long what was sent may stay unconfirmed before TCP gives the peer up.
#[cfg(any(target_os = "android", target_os = "fuchsia", target_os = "linux"))]
const CONFIRMATION_TIMEOUT: Duration = Duration::from_secs(30);

/// The name of this client.
pub const AGENT: HeaderValue =
    HeaderValue::from_static(concat!("mcpbolt/", env!("CARGO_PKG_VERSION")));

type BoxError = Box<dyn Error + Send + Sync>;
type Connecting<T> = Pin<Box<dyn Future<Output = Result<T, BoxError>> + Send>>;
type Tcp = HttpConnector<Resolver>;

/// Says whether an address of a server may be connected to.
pub type AddressFilter = Arc<dyn Fn(IpAddr) -> bool + Send + Sync>;

/// Connects to the server of a URI, through a proxy where one is set, and with TLS for `https`.
#[derive(Clone)]
pub struct Connector {
    https: HttpsConnector<Hops>,
    /// How long all of it may take.
    timeout: Duration,
}

impl Connector {
    pub fn new(
        tls: Arc<ClientConfig>,
        proxies: Arc<Matcher>,
        timeout: Duration,
        filter: Option<AddressFilter>,
    ) -> Self {
        let hops = Hops {
            tcp: tcp(Resolver(filter), timeout),
            tcp_to_proxy: tcp(Resolver(None), timeout),
            tls: tls.clone(),
            proxies,
        };
        Self {
            https: HttpsConnector::from((hops, tls)),
            timeout,
        }
    }
}

/// Connects to the addresses of a name, one after the other until one accepts.
fn tcp<R>(resolver: R, timeout: Duration) -> HttpConnector<R> {
    let mut tcp = HttpConnector::new_with_resolver(resolver);
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    tcp.set_keepalive(Some(KEEPALIVE));
    tcp.set_keepalive_interval(Some(KEEPALIVE));
    tcp.set_keepalive_retries(Some(KEEPALIVE_RETRIES));
    // Divided among the addresses: one that does not answer leaves time for the next.
    tcp.set_connect_timeout(Some(timeout));
    #[cfg(any(target_os = "android", target_os = "fuchsia", target_os = "linux"))]
    tcp.set_tcp_user_timeout(Some(CONFIRMATION_TIMEOUT));
    tcp
}

impl Service<Uri> for Connector {
    type Response = MaybeHttpsStream<Hop>;
    type Error = BoxError;
    type Future = Connecting<Self::Response>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.https.poll_ready(cx)
    }

    fn call(&mut self, server: Uri) -> Self::Future {
        let connected = timeout(self.timeout, self.https.call(server));
        let limit = self.timeout;
        Box::pin(async move {
            connected.await.unwrap_or_else(|_| {
                let why = format!("no connection within {limit:?}");
                Err(io::Error::new(io::ErrorKind::TimedOut, why).into())
            })
        })
    }
}

/// Connects to a server, or to the proxy that stands in front of it.
#[derive(Clone)]
struct Hops {
    tcp: Tcp,
    /// To proxies, which the user chose: at any address.
    tcp_to_proxy: Tcp,
    tls: Arc<ClientConfig>,
    proxies: Arc<Matcher>,
}

impl Service<Uri> for Hops {
    type Response = Hop;
    type Error = BoxError;
    type Future = Connecting<Hop>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.tcp.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, server: Uri) -> Self::Future {
        let Some(proxy) = self.proxies.intercept(&server) else {
            let connecting = self.tcp.call(server);
            return Box::pin(async move {
                let stream = MaybeHttpsStream::Http(connecting.await?);
                Ok(Hop {
                    stream,
                    is_proxy: false,
                })
            });
        };
        let to = proxy.uri().clone();
        if !matches!(to.scheme_str(), Some("http" | "https")) {
            let why = "the proxy is one of SOCKS: give one of http or https";
            return Box::pin(async move { Err(io::Error::other(why).into()) });
        }
        // With a proxy, HTTP/1.1 is spoken, and the certificate of this client is for servers.
        let mut tls = ClientConfig::clone(&self.tls);
        tls.alpn_protocols.clear();
        tls.client_auth_cert_resolver = Arc::new(NoCertificate);
        let mut connector = HttpsConnector::from((self.tcp_to_proxy.clone(), tls));
        if server.scheme() != Some(&Scheme::HTTPS) {
            let connecting = connector.call(to);
            return Box::pin(async move {
                Ok(Hop {
                    stream: connecting.await?,
                    is_proxy: true,
                })
            });
        }
        let agent = HeaderMap::from_iter([(USER_AGENT, AGENT)]);
        let mut tunnel = Tunnel::new(to, connector).with_headers(agent);
        if let Some(auth) = proxy.basic_auth() {
            tunnel = tunnel.with_auth(auth.clone());
        }
        let connecting = tunnel.call(server);
        Box::pin(async move {
            Ok(Hop {
                stream: connecting.await?,
                is_proxy: false,
            })
        })
    }
}

/// Shows no certificate of the client.
#[derive(Debug)]
struct NoCertificate;

impl ResolvesClientCert for NoCertificate {
    fn resolve(&self, _: &[&[u8]], _: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        None
    }

    fn has_certs(&self) -> bool {
        false
    }
}

/// A connection to a server, through a tunnel perhaps, or to a proxy.
pub struct Hop {
    stream: MaybeHttpsStream<TokioIo<TcpStream>>,
    /// Whether requests go to a proxy, which reads whole URLs.
    is_proxy: bool,
}

impl Connection for Hop {
    fn connected(&self) -> Connected {
        self.stream.connected().proxy(self.is_proxy)
    }
}

impl Read for Hop {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl Write for Hop {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, pieces)
    }
}

/// Resolves names, without the addresses that the filter refuses. It sees the addresses that are connected to, so a name that
/// changes its address does not evade it.
#[derive(Clone)]
struct Resolver(Option<AddressFilter>);

impl Service<Name> for Resolver {
    type Response = std::vec::IntoIter<SocketAddr>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Self::Response>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, name: Name) -> Self::Future {
        let filter = self.0.clone();
        Box::pin(async move {
            let all = lookup_host((name.as_str(), 0)).await?;
            let fits = |address: &SocketAddr| filter.as_ref().is_none_or(|fits| fits(address.ip()));
            let allowed: Vec<_> = all.filter(fits).collect();
            if allowed.is_empty() && filter.is_some() {
                let why = "the name leads to an inner network, which this server may not choose; if it may, allow private addresses (--allow-private, allowsPrivateAddresses, allows_private_addresses)";
                return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
            }
            Ok(allowed.into_iter())
        })
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::future::ready;

    use tokio::net::{TcpListener, TcpSocket};

    use super::*;

    /// At 127.0.0.1 and 127.0.0.2, on a port that is free at both.
    async fn listeners() -> io::Result<(TcpListener, TcpSocket)> {
        for _ in 0..100 {
            let server = TcpListener::bind("127.0.0.1:0").await?;
            let port = server.local_addr()?.port();
            let other = TcpSocket::new_v4()?;
            match other.bind(SocketAddr::from(([127, 0, 0, 2], port))) {
                Err(error) if error.kind() == io::ErrorKind::AddrInUse => {}
                bound => return bound.map(|()| (server, other)),
            }
        }
        Err(io::ErrorKind::AddrInUse.into())
    }

    /// R-HTP-20: a name may have addresses of which one refuses, or says nothing.
    #[tokio::test]
    async fn a_name_is_reached_at_whichever_of_its_addresses_accepts() {
        let (server, silent) = listeners().await.unwrap();
        let port = server.local_addr().unwrap().port();
        // Its queue is full, so further connections are neither accepted nor refused.
        let silent = silent.listen(0).unwrap();
        let _first = TcpStream::connect(silent.local_addr().unwrap())
            .await
            .unwrap();
        // Nobody listens at the third one.
        for before in [3, 2] {
            let addresses = [before, 1].map(|last| SocketAddr::from(([127, 0, 0, last], 0)));
            let resolver =
                tower::service_fn(move |_: Name| ready(Ok::<_, io::Error>(addresses.into_iter())));
            let mut tcp = tcp(resolver, Duration::from_secs(4));
            let uri = format!("http://several.invalid:{port}/").parse().unwrap();
            let connected = tcp.call(uri).await.unwrap();
            let peer = connected.inner().peer_addr().unwrap();
            assert_eq!(peer, server.local_addr().unwrap(), "{before}");
        }
    }
}
