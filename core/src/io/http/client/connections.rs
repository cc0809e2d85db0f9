//! Connections to HTTP servers: requests on them, and responses.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body::Body as _;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::header::{ACCEPT, HeaderMap, HeaderValue, PROXY_AUTHORIZATION, USER_AGENT};
use hyper::http::response::Parts;
use hyper::{Method, Request, StatusCode, Uri};
use hyper_util::client::legacy::Client;
use hyper_util::client::proxy::matcher::Matcher;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use rustls::ClientConfig;
use tokio::time::timeout;
use url::Url;

use super::connector::{AGENT, AddressFilter, Connector, KEEPALIVE};
use super::failure::{SendFailure, broken, silent};
use crate::error::{CarrierError, CarrierFault};

const ANYTHING: HeaderValue = HeaderValue::from_static("*/*");

/// The protocols offered in the TLS handshake.
pub const PROTOCOLS: [&[u8]; 2] = [b"h2", b"http/1.1"];

/// How connections are made and kept.
#[derive(Clone)]
pub struct ConnectionSettings {
    pub tls: Arc<ClientConfig>,
    pub proxies: Arc<Matcher>,
    /// How long connecting may take, including TLS.
    pub connect_timeout: Duration,
    /// How long an unused connection is kept.
    pub idle_timeout: Duration,
    /// How long a server may be silent in the middle of an answer.
    pub read_timeout: Option<Duration>,
    /// Whether HTTP/2 is spoken without TLS.
    pub http2_prior_knowledge: bool,
}

/// Connections to HTTP servers. Redirects are not followed.
pub struct HttpConnections {
    pool: Client<Connector, Full<Bytes>>,
    proxies: Arc<Matcher>,
    read_timeout: Option<Duration>,
}

impl HttpConnections {
    /// Connections to addresses that the filter lets pass.
    pub fn new(settings: ConnectionSettings, filter: Option<AddressFilter>) -> Self {
        let ConnectionSettings { tls, proxies, .. } = settings;
        let connector = Connector::new(tls, proxies.clone(), settings.connect_timeout, filter);
        Self {
            pool: Client::builder(TokioExecutor::new())
                .timer(TokioTimer::new())
                .pool_timer(TokioTimer::new())
                .pool_idle_timeout(settings.idle_timeout)
                .http2_only(settings.http2_prior_knowledge)
                // The end of a tunnel is beyond the reach of TCP: one that is gone would take all later requests.
                .http2_keep_alive_interval(KEEPALIVE)
                .http2_keep_alive_timeout(KEEPALIVE)
                .build(connector),
            proxies,
            read_timeout: settings.read_timeout,
        }
    }

    /// Sends a request and waits for the head of its response, whatever its status.
    ///
    /// # Errors
    /// What failed before there was a response, and whether the server has told that it has not looked at the request.
    pub async fn send(
        &self,
        method: Method,
        to: Uri,
        mut headers: HeaderMap,
        body: Bytes,
    ) -> Result<HttpResponse, SendFailure> {
        headers.entry(USER_AGENT).or_insert(AGENT);
        headers.entry(ACCEPT).or_insert(ANYTHING);
        // A tunnel has shown it already.
        if to.scheme_str() == Some("http")
            && let Some(proxy) = self.proxies.intercept(&to)
            && let Some(auth) = proxy.basic_auth()
        {
            headers.insert(PROXY_AUTHORIZATION, auth.clone());
        }
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = method;
        *request.uri_mut() = to;
        *request.headers_mut() = headers;
        let response = within(self.read_timeout, self.pool.request(request)).await?;
        let (head, body) = response?.into_parts();
        Ok(HttpResponse {
            head,
            body,
            read_timeout: self.read_timeout,
            moved: None,
        })
    }
}

/// The URI of a URL, without the name and password that may be in it.
///
/// # Errors
/// When HTTP cannot carry it.
pub fn uri(url: &Url) -> Result<Uri, CarrierError> {
    let uri = match url.username().is_empty() && url.password().is_none() {
        true => Uri::try_from(url.as_str()),
        false => {
            let mut url = url.clone();
            let _ = url.set_username("");
            let _ = url.set_password(None);
            Uri::try_from(url.as_str())
        }
    };
    uri.map_err(|_| {
        let why = "the URL has characters that no request may have";
        CarrierError::new(CarrierFault::Unreachable, why)
    })
}

/// A response, whose body is read piece by piece.
pub struct HttpResponse {
    pub head: Parts,
    body: Incoming,
    read_timeout: Option<Duration>,
    /// The URL that the request was redirected to.
    pub moved: Option<Url>,
}

impl HttpResponse {
    pub fn status(&self) -> StatusCode {
        self.head.status
    }

    pub fn headers(&self) -> &HeaderMap {
        &self.head.headers
    }

    /// The URL that has answered a request to `asked`.
    pub fn url<'a>(&'a self, asked: &'a Url) -> &'a Url {
        self.moved.as_ref().unwrap_or(asked)
    }

    /// The length of the body in bytes, if the server has told it.
    pub fn content_length(&self) -> Option<u64> {
        self.body.size_hint().exact()
    }

    /// The next piece of the body; `None` at its end.
    ///
    /// # Errors
    /// Why the body broke off.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, CarrierError> {
        loop {
            let Some(frame) = within(self.read_timeout, self.body.frame()).await? else {
                return Ok(None);
            };
            if let Ok(data) = frame.map_err(broken)?.into_data() {
                return Ok(Some(data));
            }
        }
    }
}

/// The address that a response came from: that of a proxy, if there is one.
#[cfg(feature = "oauth")]
pub fn remote_address(head: &Parts) -> Option<std::net::SocketAddr> {
    use hyper_util::client::legacy::connect::HttpInfo;
    head.extensions.get().map(HttpInfo::remote_addr)
}

async fn within<T>(
    limit: Option<Duration>,
    work: impl Future<Output = T>,
) -> Result<T, CarrierError> {
    match limit {
        None => Ok(work.await),
        Some(limit) => timeout(limit, work).await.map_err(|_| silent(limit)),
    }
}
