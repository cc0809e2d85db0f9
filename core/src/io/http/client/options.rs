//! Options of a client on HTTP.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use hyper::Uri;
use hyper_util::client::proxy::matcher::Matcher;
use url::Url;

#[cfg(feature = "oauth")]
use super::authorization::Authorization;
use super::connections::ConnectionSettings;
use crate::error::CarrierError;
use crate::io::faults::invalid;
use crate::io::{Auth, Backoff, ClientCertificate, trust};

/// Longest `Retry-After` that is honoured.
const LONGEST_ASKED: Duration = Duration::from_secs(600);

/// Options of a client on HTTP. The defaults suit servers on this machine and across a network.
#[derive(Clone)]
pub struct HttpClientOptions {
    /// Additional headers of every request, by name. Like the credentials, they are sent only to the
    /// origin of the URL.
    pub headers: Vec<(String, String)>,
    /// The credentials sent with every request.
    pub auth: Auth,
    /// How to log in, where the server wants access tokens; in place of `auth`.
    #[cfg(feature = "oauth")]
    pub authorization: Option<Authorization>,
    /// How long establishing a connection may take, including TLS.
    pub connect_timeout: Duration,
    /// How long a server may be silent in the middle of an answer; `None` means no limit, since a
    /// stream of events may be silent for long. The timeout of a call is independent of this one.
    pub read_timeout: Option<Duration>,
    /// How long an unused connection is kept. Keep it below the idle timeout of servers, which is often
    /// five seconds: a request sent while the server closes the connection is lost.
    pub idle_timeout: Duration,
    /// The proxy that requests are sent through.
    pub proxy: Proxy,
    /// Maximum number of redirects that are followed for one request.
    pub max_redirects: usize,
    /// The origins, such as `https://mcp.example.com`, to which a message may be redirected. A redirect
    /// of a message, or of the DELETE that ends a session, to any other origin than that of the URL is refused as
    /// [`Redirected`](crate::error::CarrierFault::Redirected); streams, which are asked for by GET, are redirected
    /// to any origin. Credentials, `headers` and the certificate are never sent to another origin. None
    /// by default.
    pub redirect_origins: Vec<String>,
    /// Uses HTTP/2 without TLS, for servers that are known to speak it. With TLS, HTTP/2 is negotiated
    /// automatically.
    pub http2_prior_knowledge: bool,
    /// Maximum number of requests in flight, at least 1; further requests wait. By default 128, and 8,192 for the clients of a chain's
    /// [`External::at`](crate::chain::External::at). Notifications and answers, which the server may be waiting for, do not count, and
    /// are limited to the same number of their own.
    pub max_concurrent: Option<usize>,
    /// How soon and how often a broken stream is requested again, where the server does not say so
    /// itself (R-SSE-08), for example with `Retry-After`. Requests that carry a message are never
    /// retried automatically; the caller finds the time to wait in
    /// [`CarrierError::retry_after`](crate::error::CarrierError).
    pub resume: Backoff,
    /// Whether to open the standing stream of servers of the handshake era, which carries messages that
    /// belong to no request (R-HTP-11).
    pub standing_stream: bool,
    /// Certificates that are trusted in addition to those of the system: PEM, one or several per entry.
    pub root_certificates: Vec<Vec<u8>>,
    /// The client certificate, for a server that asks for one (R-AUX-03); never shown to another
    /// origin.
    pub certificate: Option<ClientCertificate>,
}

impl HttpClientOptions {
    /// How connections are made and kept; `certificate` is shown, and `protocols` are offered by TLS.
    ///
    /// # Errors
    /// When a certificate, or the URL of the proxy, is not valid.
    pub(super) fn connections(
        &self,
        certificate: Option<&ClientCertificate>,
        protocols: &[&[u8]],
    ) -> io::Result<ConnectionSettings> {
        let tls = trust::config(&self.root_certificates, certificate, protocols)?;
        Ok(ConnectionSettings {
            tls: Arc::new(tls),
            proxies: Arc::new(self.proxy.matcher()?),
            connect_timeout: self.connect_timeout,
            idle_timeout: self.idle_timeout,
            read_timeout: self.read_timeout,
            http2_prior_knowledge: self.http2_prior_knowledge,
        })
    }

    /// How long to wait before requesting a stream again, as the server asked in `Retry-After`; capped
    /// at [`LONGEST_ASKED`].
    pub(super) fn left_alone(&self, error: &CarrierError) -> Duration {
        error.retry_after.unwrap_or_default().min(LONGEST_ASKED)
    }
}

/// The proxy that requests are sent through.
#[derive(Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Proxy {
    /// The proxy that the environment names: `HTTP_PROXY`, `HTTPS_PROXY`, `ALL_PROXY`, `NO_PROXY`.
    #[default]
    Environment,
    /// No proxy.
    None,
    /// The proxy at this URL.
    At(String),
}

impl Proxy {
    /// Finds the proxy of each URL.
    fn matcher(&self) -> io::Result<Matcher> {
        match self {
            Self::Environment => Ok(Matcher::from_system()),
            Self::None => Ok(Matcher::builder().build()),
            Self::At(url) => {
                // Host names in capitals or with letters beyond ASCII, and what passwords may hold.
                let whole = Url::parse(url).ok().filter(Url::has_host);
                let whole = whole.or_else(|| Url::parse(&format!("http://{url}")).ok());
                let whole = whole.map_or_else(|| url.clone(), String::from);
                let proxies = Matcher::builder().all(whole).build();
                let is_any = proxies.intercept(&Uri::from_static("http://localhost"));
                is_any
                    .map(|_| proxies)
                    .ok_or_else(|| invalid("no URL of a proxy"))
            }
        }
    }
}

impl Default for HttpClientOptions {
    fn default() -> Self {
        Self {
            headers: Vec::new(),
            auth: Auth::None,
            #[cfg(feature = "oauth")]
            authorization: None,
            connect_timeout: Duration::from_secs(10),
            read_timeout: None,
            idle_timeout: Duration::from_secs(4),
            proxy: Proxy::Environment,
            max_redirects: 5,
            redirect_origins: Vec::new(),
            http2_prior_knowledge: false,
            max_concurrent: None,
            resume: Backoff {
                first: Duration::from_millis(500),
                longest: Duration::from_secs(30),
                attempts: 10,
            },
            standing_stream: true,
            root_certificates: Vec::new(),
            certificate: None,
        }
    }
}

impl HttpClientOptions {
    /// The requests that may be in flight.
    pub(super) fn most_concurrent(&self) -> usize {
        self.max_concurrent.unwrap_or(128).max(1)
    }
}

/// Omits the values of headers, which may be secrets.
impl fmt::Debug for HttpClientOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.headers.iter().map(|(name, _)| name).collect();
        let mut shown = f.debug_struct("HttpClientOptions");
        #[cfg(feature = "oauth")]
        shown.field("authorization", &self.authorization);
        shown
            .field("headers", &names)
            .field("auth", &self.auth)
            .field("connect_timeout", &self.connect_timeout)
            .field("read_timeout", &self.read_timeout)
            .field("idle_timeout", &self.idle_timeout)
            .field("proxy", &self.proxy)
            .field("max_redirects", &self.max_redirects)
            .field("redirect_origins", &self.redirect_origins)
            .field("http2_prior_knowledge", &self.http2_prior_knowledge)
            .field("max_concurrent", &self.max_concurrent)
            .field("resume", &self.resume)
            .field("standing_stream", &self.standing_stream)
            .field("root_certificates", &self.root_certificates.len())
            .field("certificate", &self.certificate)
            .finish()
    }
}

/// Omits the URL, which may contain a password.
impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Environment => "Environment",
            Self::None => "None",
            Self::At(_) => "At(…)",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::CarrierFault;

    #[test]
    fn a_server_does_not_put_a_stream_off_for_longer_than_may_be() {
        let options = HttpClientOptions::default();
        let wait = |asked| {
            let mut error = CarrierError::new(CarrierFault::Refused, "busy");
            error.retry_after = asked;
            options.left_alone(&error)
        };
        assert_eq!(wait(None), Duration::ZERO);
        assert_eq!(wait(Some(LONGEST_ASKED)), LONGEST_ASKED);
        assert_eq!(wait(Some(LONGEST_ASKED * 10)), LONGEST_ASKED);
        assert_eq!(wait(Some(Duration::MAX)), LONGEST_ASKED);
    }
}
