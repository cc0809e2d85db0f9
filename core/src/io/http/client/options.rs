//! What a program may say of a client on HTTP.

use std::fmt;
use std::time::Duration;

use crate::error::CarrierError;
use crate::io::{Auth, Backoff, ClientCertificate};

/// Longest `Retry-After` that is heeded.
const LONGEST_ASKED: Duration = Duration::from_secs(600);

/// How a client goes about HTTP. The defaults suit servers of this machine and across a network.
#[derive(Clone)]
pub struct HttpClientOptions {
    /// Further headers of every request, by name. Like the credentials, they are not sent to
    /// another origin than that of the URL.
    pub headers: Vec<(String, String)>,
    /// The credentials of every request.
    pub auth: Auth,
    /// How long a connection may take to be there, TLS included.
    pub connect_timeout: Duration,
    /// How long a server may say nothing at all in the middle of an answer; for ever when `None`,
    /// since a stream of events may well be silent: how long a call may take is its own affair.
    pub read_timeout: Option<Duration>,
    /// How long a connection is kept that nothing uses: less than servers do, five seconds being
    /// usual, since what is sent while the server ends a connection is lost.
    pub idle_timeout: Duration,
    /// Who is asked to pass the requests on.
    pub proxy: Proxy,
    /// How many redirects of one request are followed.
    pub max_redirects: usize,
    /// HTTP/2 without TLS, for servers that are known to speak it. With TLS, the two sides agree
    /// on it by themselves.
    pub http2_prior_knowledge: bool,
    /// How many requests may be under way at a time; more wait their turn. What servers wait for
    /// themselves, answers and notifications, never waits.
    pub max_concurrent: usize,
    /// How soon, and how often, a stream that broke off is asked for again, where the server does
    /// not say so itself (R-SSE-08), with `Retry-After` for example. What answers a message is
    /// never sent again by itself: who waits for it finds the time in
    /// [`CarrierError::retry_after`](crate::error::CarrierError).
    pub resume: Backoff,
    /// Whether servers of the handshake era are asked for a stream of what belongs to no request
    /// (R-HTP-11).
    pub standing_stream: bool,
    /// Certificates that are trusted beside those of the system: PEM, one or several.
    pub root_certificates: Vec<Vec<u8>>,
    /// What is shown to a server that asks for a certificate (R-AUX-03); unlike the credentials,
    /// also to one of another origin to which it redirects.
    pub certificate: Option<ClientCertificate>,
}

impl HttpClientOptions {
    /// How long a server that is asked for a stream again wants to be left alone, as far as that
    /// is heeded.
    pub(super) fn left_alone(&self, error: &CarrierError) -> Duration {
        error.retry_after.unwrap_or_default().min(LONGEST_ASKED)
    }
}

/// Who passes requests on.
#[derive(Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Proxy {
    /// Whom the environment names: `HTTP_PROXY`, `HTTPS_PROXY`, `ALL_PROXY`, `NO_PROXY`.
    #[default]
    Environment,
    /// Nobody.
    None,
    /// Whoever is at this URL.
    At(String),
}

impl Default for HttpClientOptions {
    fn default() -> Self {
        Self {
            headers: Vec::new(),
            auth: Auth::None,
            connect_timeout: Duration::from_secs(10),
            read_timeout: None,
            idle_timeout: Duration::from_secs(4),
            proxy: Proxy::Environment,
            max_redirects: 5,
            http2_prior_knowledge: false,
            max_concurrent: 128,
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

/// Without the values of headers, which may be secrets.
impl fmt::Debug for HttpClientOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.headers.iter().map(|(name, _)| name).collect();
        f.debug_struct("HttpClientOptions")
            .field("headers", &names)
            .field("auth", &self.auth)
            .field("connect_timeout", &self.connect_timeout)
            .field("read_timeout", &self.read_timeout)
            .field("idle_timeout", &self.idle_timeout)
            .field("proxy", &self.proxy)
            .field("max_redirects", &self.max_redirects)
            .field("http2_prior_knowledge", &self.http2_prior_knowledge)
            .field("max_concurrent", &self.max_concurrent)
            .field("resume", &self.resume)
            .field("standing_stream", &self.standing_stream)
            .field("root_certificates", &self.root_certificates.len())
            .field("certificate", &self.certificate)
            .finish()
    }
}

/// Without its URL, which may hold a password.
impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Environment => "Environment",
            Self::None => "None",
            Self::At(_) => "At(…)",
        })
    }
}
