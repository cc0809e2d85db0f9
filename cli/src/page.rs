//! Small pages over HTTP, beside the server: its status, its health and its counts.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::future::ready;
use std::net::{IpAddr, SocketAddr, TcpListener, ToSocketAddrs};
use std::thread;
use std::time::Duration;

use anyhow::Result;
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{self, HeaderValue};
use hyper::http::uri::Authority;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use mcpbolt::io::Address;
use tokio::task::AbortHandle;
use tokio::time::timeout;

/// The most connections at a time. A further one takes the place of the oldest, so that idle ones keep nobody out.
const MAX_CONNECTIONS: usize = 16;

/// How long a connection may last.
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(30);

/// Longest head of a request.
const MAX_HEAD_BYTES: usize = 32 << 10;

/// Where to listen for an address, unless pages cannot be shown there.
pub fn place(address: &Address) -> Result<SocketAddr, String> {
    let Address::Http(url) = address else {
        return Err("is no address of HTTP; write one such as http://127.0.0.1:9090".to_owned());
    };
    if url.secure {
        return Err("is served without TLS; write http://".to_owned());
    }
    if url.path != "/" {
        return Err("has a path, but its paths are fixed; write http://HOST:PORT".to_owned());
    }
    let places = (url.host.as_str(), url.port).to_socket_addrs();
    let mut places = places.map_err(|error| format!("finding its host: {error}"))?;
    places.next().ok_or("its host has no address".to_owned())
}

/// A socket for pages.
pub struct PageListener(TcpListener);

impl From<TcpListener> for PageListener {
    fn from(listener: TcpListener) -> Self {
        Self(listener)
    }
}

impl PageListener {
    pub fn bind(place: SocketAddr) -> std::io::Result<Self> {
        TcpListener::bind(place).map(Self)
    }

    pub fn local_addr(&self) -> std::io::Result<SocketAddr> {
        self.0.local_addr()
    }

    /// Answers requests that get a page, on a thread of its own, as long as the process runs.
    ///
    /// # Errors
    /// When the thread cannot be started.
    pub fn serve(
        self,
        name: &str,
        respond: impl Fn(&Request<Incoming>) -> Response<Full<Bytes>> + Clone + Send + 'static,
    ) -> Result<()> {
        self.0.set_nonblocking(true)?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || runtime.block_on(accept(self.0, respond)))?;
        Ok(())
    }
}

async fn accept(
    listener: TcpListener,
    respond: impl Fn(&Request<Incoming>) -> Response<Full<Bytes>> + Clone + Send + 'static,
) {
    let Ok(listener) = tokio::net::TcpListener::from_std(listener) else {
        return;
    };
    let mut connections = VecDeque::new();
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            // The process has run out of descriptors.
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        let respond = respond.clone();
        let connection = tokio::spawn(async move {
            let respond = service_fn(move |request: Request<Incoming>| {
                let response = match *request.method() {
                    Method::GET | Method::HEAD => respond(&request),
                    _ => plain(StatusCode::METHOD_NOT_ALLOWED, "GET alone\n"),
                };
                ready(Ok::<_, Infallible>(response))
            });
            let connection = hyper::server::conn::http1::Builder::new()
                .keep_alive(false)
                .max_buf_size(MAX_HEAD_BYTES)
                .timer(TokioTimer::new())
                .serve_connection(TokioIo::new(stream), respond);
            // A peer that breaks off or takes too long is gone.
            drop(timeout(CONNECTION_TIMEOUT, connection).await);
        });
        connections.retain(|one: &AbortHandle| !one.is_finished());
        if connections.len() == MAX_CONNECTIONS {
            connections.pop_front().inspect(AbortHandle::abort);
        }
        connections.push_back(connection.abort_handle());
    }
}

/// Whether a request is for this place by its `Host`: pages elsewhere whose name leads here must not read it. The
/// name of such a page is neither a number nor the one in the address.
pub fn is_meant<B>(request: &Request<B>, own: &str) -> bool {
    let host = request.headers().get(header::HOST);
    let host = host.and_then(|host| host.to_str().ok()).unwrap_or_default();
    let Ok(host) = host.parse::<Authority>() else {
        return false;
    };
    let name = host.host().trim_matches(['[', ']']);
    let is_number = name.parse::<IpAddr>().is_ok();
    let is_named = |own: &str| name.eq_ignore_ascii_case(own);
    is_number || is_named("localhost") || is_named(own)
}

pub fn plain(status: StatusCode, text: &str) -> Response<Full<Bytes>> {
    page(status, "text/plain; charset=utf-8", text.to_owned())
}

pub fn page(status: StatusCode, kind: &'static str, body: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    for (name, value) in [
        (header::CONTENT_TYPE, kind),
        (header::CACHE_CONTROL, "no-store"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (
            header::CONTENT_SECURITY_POLICY,
            "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'",
        ),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}
