//! Requests of HTTP to one server: its URL, the credentials, redirects, and what failed.

use std::error::Error;
use std::io;
use std::time::Duration;

use bytes::Bytes;
use reqwest::header::{
    HeaderMap, HeaderName, HeaderValue, LOCATION, RETRY_AFTER, WWW_AUTHENTICATE,
};
use reqwest::redirect::Policy;
use reqwest::{Client, Method, Request, Response, Url};

use super::options::{HttpClientOptions, Proxy};
use super::outgoing::Outgoing;
use crate::error::{CarrierError, CarrierFault};
use crate::io::{Auth, trust};

/// Names the session of the handshake era (R-SES-03).
pub const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");

/// The protocols that the two sides may agree on behind TLS.
const PROTOCOLS: [&[u8]; 2] = [b"h2", b"http/1.1"];

/// What is said when no body says why, at most so many characters of a body that does.
const WHY_CHARS: usize = 200;

/// Requests to one server.
pub struct Link {
    http: Client,
    url: Url,
    /// Headers for no other origin: credentials, and what the program adds.
    own: HeaderMap,
    max_redirects: usize,
    /// No other origin is sent anything.
    stays: bool,
}

impl Link {
    /// # Errors
    /// When the URL is none of HTTP, or an option cannot be.
    pub fn new(url: &str, options: &HttpClientOptions) -> io::Result<Self> {
        // The parser's own words may hold the URL, and that a password.
        let mut url = Url::parse(url).map_err(|_| invalid("this is no URL"))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(invalid("the URL is one of http or https"));
        }
        let auth = match &options.auth {
            Auth::None if !url.username().is_empty() => Auth::Basic {
                user: decoded(url.username())?,
                password: decoded(url.password().unwrap_or_default())?,
            },
            auth => auth.clone(),
        };
        let _ = url.set_username("");
        let _ = url.set_password(None);
        url.set_fragment(None);
        let mut own = HeaderMap::new();
        for (name, value) in options.headers.iter().cloned().chain(auth.header()?) {
            let name = HeaderName::try_from(name).map_err(|_| invalid("no name of a header"))?;
            let value = HeaderValue::try_from(value);
            let mut value = value.map_err(|_| invalid("a value that no header may have"))?;
            value.set_sensitive(true);
            own.append(name, value);
        }
        let shown = options.certificate.as_ref();
        let tls = trust::config(&options.root_certificates, shown, &PROTOCOLS)?;
        let http = Client::builder()
            .tls_backend_preconfigured(tls)
            .redirect(Policy::none())
            .connect_timeout(options.connect_timeout)
            .pool_idle_timeout(options.idle_timeout)
            .user_agent(concat!("mcpbolt/", env!("CARGO_PKG_VERSION")));
        let http = match options.read_timeout {
            Some(timeout) => http.read_timeout(timeout),
            None => http,
        };
        let http = match &options.proxy {
            Proxy::Environment => http,
            Proxy::None => http.no_proxy(),
            Proxy::At(url) => {
                let proxy = reqwest::Proxy::all(url.as_str());
                http.proxy(proxy.map_err(|_| invalid("no URL of a proxy"))?)
            }
        };
        let http = match options.http2_prior_knowledge {
            true => http.http2_prior_knowledge(),
            false => http,
        };
        Ok(Self {
            http: http
                .build()
                .map_err(|error| io::Error::other(error.without_url()))?,
            url,
            own,
            max_redirects: options.max_redirects,
            stays: false,
        })
    }

    /// The same, with no redirect followed to another origin: for headers that may be secrets.
    pub fn staying(self) -> Self {
        Self {
            stays: true,
            ..self
        }
    }

    /// Where the server is.
    pub fn url(&self) -> &Url {
        &self.url
    }

    /// Whether that is where the credentials belong.
    pub fn is_own(&self, url: &Url) -> bool {
        url.origin() == self.url.origin()
    }

    /// Posts a message; once more where the connection broke off under one that may come twice, since
    /// a server that ends a connection may not have seen what was just sent on it.
    ///
    /// # Errors
    /// What failed before there was an answer.
    pub async fn post(
        &self,
        url: &Url,
        headers: HeaderMap,
        message: &Outgoing,
    ) -> Result<Response, CarrierError> {
        let post = || {
            self.send(
                Method::POST,
                url,
                headers.clone(),
                Some(message.body.clone()),
            )
        };
        match post().await {
            Err(error) if error.fault == CarrierFault::Broken && message.is_repeatable() => {
                post().await
            }
            outcome => outcome,
        }
    }

    /// Sends one request and waits for the head of its answer, whatever its status. Redirects are
    /// followed with the same method and body; to another origin without credentials.
    ///
    /// # Errors
    /// What failed before there was an answer.
    pub async fn send(
        &self,
        method: Method,
        url: &Url,
        headers: HeaderMap,
        body: Option<Bytes>,
    ) -> Result<Response, CarrierError> {
        let mut url = url.clone();
        let mut redirects = 0;
        loop {
            let mut request = Request::new(method.clone(), url.clone());
            *request.headers_mut() = headers.clone();
            if self.is_own(&url) {
                request
                    .headers_mut()
                    .extend(self.own.iter().map(|(n, v)| (n.clone(), v.clone())));
            } else {
                request.headers_mut().remove(SESSION);
            }
            *request.body_mut() = body.clone().map(Into::into);
            let response = self.http.execute(request).await.map_err(failure)?;
            let status = response.status().as_u16();
            let redirected = matches!(status, 301 | 302 | 307 | 308);
            let Some(to) = redirected
                .then(|| response.headers().get(LOCATION))
                .flatten()
            else {
                return Ok(response);
            };
            let to = to.to_str().ok().and_then(|to| url.join(to).ok());
            let to = to.filter(|to| matches!(to.scheme(), "http" | "https"));
            let refused = |why: &str| CarrierError {
                status: Some(status),
                ..CarrierError::new(CarrierFault::Redirected, why)
            };
            let to = to.ok_or_else(|| refused("the server redirects to no URL"))?;
            if url.scheme() == "https" && to.scheme() != "https" {
                return Err(refused("the server redirects out of TLS"));
            }
            if self.stays && !self.is_own(&to) {
                return Err(refused("the server redirects to another origin"));
            }
            if redirects == self.max_redirects {
                return Err(refused("the server redirects on and on"));
            }
            redirects += 1;
            url = to;
        }
    }
}

/// Why a request has no answer, or an answer no end.
pub fn failure(error: reqwest::Error) -> CarrierError {
    let connecting = error.is_connect();
    let timed_out = error.is_timeout();
    let error = error.without_url();
    // The innermost reason says most.
    let mut source: &dyn Error = &error;
    let mut tls = false;
    while let Some(inner) = cause(source) {
        source = inner;
        tls |= source.is::<rustls::Error>();
    }
    let (fault, what) = match (connecting, timed_out, tls) {
        (_, _, true) => (CarrierFault::Tls, "no secure connection"),
        (true, true, _) => (
            CarrierFault::TimedOut,
            "the server took too long to connect",
        ),
        (true, false, _) => (CarrierFault::Unreachable, "the server cannot be reached"),
        (false, true, _) => (
            CarrierFault::TimedOut,
            "the server said nothing for too long",
        ),
        (false, false, _) => (CarrierFault::Broken, "the connection broke off"),
    };
    CarrierError::new(fault, format!("{what}: {source}"))
}

/// What is behind an error; the source of one of I/O is that of the error within.
fn cause<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a (dyn Error + 'static)> {
    let io = error
        .downcast_ref::<io::Error>()
        .and_then(io::Error::get_ref);
    match io {
        Some(inner) => Some(inner),
        None => error.source(),
    }
}

/// What an answer's status says, and its body in words if it has any.
pub fn refused(response: &Response, body: &str) -> CarrierError {
    let status = response.status();
    let authenticate = response.headers().get(WWW_AUTHENTICATE);
    let authenticate = authenticate.and_then(|value| value.to_str().ok());
    let said: String = body
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .take(WHY_CHARS)
        .collect();
    let why = match said.trim() {
        "" => format!("the server answered with status {status}"),
        said => format!("the server answered with status {status}: {said}"),
    };
    let retry_after = response.headers().get(RETRY_AFTER);
    let retry_after = retry_after.and_then(|value| value.to_str().ok()?.trim().parse().ok());
    CarrierError {
        fault: CarrierFault::Refused,
        status: Some(status.as_u16()),
        retry_after: retry_after.map(Duration::from_secs),
        authenticate: authenticate.map(Box::from),
        why: why.into(),
    }
}

/// A part of a URL as it was before it was percent-encoded.
fn decoded(part: &str) -> io::Result<String> {
    let wrong = || invalid("the name or password in the URL is not well formed");
    let mut bytes = Vec::with_capacity(part.len());
    let mut rest = part.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let mut digit = || char::from(rest.next()?).to_digit(16);
        let (high, low) = (digit().ok_or_else(wrong)?, digit().ok_or_else(wrong)?);
        bytes.push((high * 16 + low) as u8);
    }
    String::from_utf8(bytes).map_err(|_| wrong())
}

fn invalid(why: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, why)
}
