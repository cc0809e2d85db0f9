//! HTTP requests to one server: its URL, the credentials, redirects and failures.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, Weak};

use bytes::Bytes;
use hyper::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, LOCATION};
use hyper::{Method, Uri};
use url::Url;

#[cfg(feature = "oauth")]
use super::authorization::{ServerAccess, Tries};
use super::connections::{HttpConnections, HttpResponse, PROTOCOLS, uri};
use super::options::HttpClientOptions;
use super::outgoing::OutgoingMessage;
use crate::error::{CarrierError, CarrierFault};
use crate::io::Auth;
use crate::io::faults::invalid;
use crate::sync::lock;

/// The header that names the session of the handshake era (R-SES-03).
pub const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");

const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");
pub const JSON: HeaderValue = HeaderValue::from_static("application/json");
pub const EVENTS: HeaderValue = HeaderValue::from_static("text/event-stream");
pub const JSON_OR_EVENTS: HeaderValue =
    HeaderValue::from_static("application/json, text/event-stream");

/// How often a request is sent again that the server has not looked at.
const MAX_REPEATS: u32 = 2;

/// Adds credentials to the headers of a request to the server's own origin.
type Authorize<'a> = &'a mut (dyn FnMut(&Url, &mut HeaderMap) -> Result<(), CarrierError> + Send);

/// The transport to one server, with its connections and what TLS has learnt of it. Clones share it among clients with the same URL and
/// options that one runtime drives.
///
/// Its connections speak HTTP/1.1: requests of many clients on one connection of HTTP/2 would wait for the streams of each other.
#[derive(Clone, Default)]
pub struct SharedTransport(Arc<Mutex<HashMap<Option<tokio::runtime::Id>, Weak<HttpTransport>>>>);

struct Connections {
    own: HttpConnections,
    /// Without the certificate, for other origins; `None` if no certificate is set.
    bare: Option<HttpConnections>,
}

impl Connections {
    fn new(options: &HttpClientOptions, protocols: &[&[u8]]) -> io::Result<Self> {
        let certificate = options.certificate.as_ref();
        let connections = |certificate| {
            let settings = options.connections(certificate, protocols)?;
            Ok::<_, io::Error>(HttpConnections::new(settings, None))
        };
        Ok(Self {
            own: connections(certificate)?,
            bare: certificate.map(|_| connections(None)).transpose()?,
        })
    }
}

impl SharedTransport {
    /// The transport to that server. A client that is to speak HTTP/2 has one of its own.
    ///
    /// # Errors
    /// As [`HttpTransport::new`].
    pub fn to(&self, url: &str, options: HttpClientOptions) -> io::Result<Arc<HttpTransport>> {
        if options.http2_prior_knowledge {
            return HttpTransport::new(url, options).map(Arc::new);
        }
        let runtime = tokio::runtime::Handle::try_current().map(|it| it.id()).ok();
        let mut all = lock(&self.0);
        if let Some(made) = all.get(&runtime).and_then(Weak::upgrade) {
            return Ok(made);
        }
        let made = Arc::new(HttpTransport::over(&PROTOCOLS[1..], url, options)?);
        all.retain(|_, known| known.strong_count() > 0);
        all.insert(runtime, Arc::downgrade(&made));
        Ok(made)
    }
}

/// Sends requests to one server.
pub struct HttpTransport {
    connections: Connections,
    url: Url,
    /// The same, as requests have it.
    uri: Uri,
    /// Headers sent only to the server's own origin: credentials, and those that the program adds.
    own: HeaderMap,
    /// The credentials of a login.
    #[cfg(feature = "oauth")]
    access: Option<std::sync::Arc<ServerAccess>>,
    pub options: HttpClientOptions,
    /// The origins to which a request with a body may be redirected.
    trusted: Vec<Url>,
    /// Whether redirects to any other origin are refused.
    stays_on_origin: bool,
}

impl HttpTransport {
    /// # Errors
    /// When the URL is not an HTTP URL, or an option is not valid.
    pub fn new(url: &str, options: HttpClientOptions) -> io::Result<Self> {
        Self::over(&PROTOCOLS, url, options)
    }

    fn over(protocols: &[&[u8]], url: &str, options: HttpClientOptions) -> io::Result<Self> {
        // The parser's error might contain the URL, and with it a password.
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
        let connections = Connections::new(&options, protocols)?;
        #[cfg(feature = "oauth")]
        let access = match &options.authorization {
            Some(authorization) => {
                // The certificate is for the MCP server alone.
                let http = options.connections(None, &PROTOCOLS)?;
                Some(authorization.server(&url, http))
            }
            None => None,
        };
        Ok(Self {
            connections,
            uri: uri(&url).map_err(io::Error::other)?,
            url,
            own,
            #[cfg(feature = "oauth")]
            access,
            trusted: origins(&options.redirect_origins)?,
            options,
            stays_on_origin: false,
        })
    }

    /// Refuses redirects to other origins, for headers that may be secrets.
    pub fn staying_on_origin(self) -> Self {
        Self {
            stays_on_origin: true,
            ..self
        }
    }

    /// The URL of the server.
    pub fn url(&self) -> &Url {
        &self.url
    }

    /// Whether a URL has the server's own origin, where credentials may be sent.
    pub fn is_own(&self, url: &Url) -> bool {
        same_origin(url, &self.url)
    }

    fn trusts(&self, url: &Url) -> bool {
        self.trusted.iter().any(|own| same_origin(own, url))
    }

    /// Posts a message. If the connection breaks off and the message may be repeated, it is posted once
    /// more: a server that closes a connection may not have seen the request that was just sent on it.
    ///
    /// # Errors
    /// Returns what failed before there was a response.
    pub async fn post(
        &self,
        url: &Url,
        mut headers: HeaderMap,
        message: &OutgoingMessage,
    ) -> Result<HttpResponse, CarrierError> {
        headers.entry(CONTENT_TYPE).or_insert(JSON);
        headers.entry(ACCEPT).or_insert(JSON_OR_EVENTS);
        let post = || self.send(Method::POST, url, &headers, Some(message.body.clone()));
        match post().await {
            Err(error) if error.fault == CarrierFault::Broken && message.is_repeatable() => {
                post().await
            }
            outcome => outcome,
        }
    }

    /// Requests a stream of events, from `position` on if there is one (R-SSE-04, R-HTP-11).
    ///
    /// # Errors
    /// Returns what failed before there was a response.
    pub async fn get(
        &self,
        url: &Url,
        mut headers: HeaderMap,
        position: Option<&HeaderValue>,
    ) -> Result<HttpResponse, CarrierError> {
        headers.entry(ACCEPT).or_insert(EVENTS);
        if let Some(position) = position {
            headers.insert(LAST_EVENT, position.clone());
        }
        self.send(Method::GET, url, &headers, None).await
    }

    /// Sends one request and waits for the head of its response, whatever its status. Redirects are
    /// followed with the same method and body: with a body, only to the server's own origin and those
    /// in `redirect_origins`; without one, to any origin, but without credentials. What a login can
    /// change is sent again after it.
    ///
    /// # Errors
    /// Returns what failed before there was a response, or why there is no login.
    pub async fn send(
        &self,
        method: Method,
        url: &Url,
        headers: &HeaderMap,
        body: Option<Bytes>,
    ) -> Result<HttpResponse, CarrierError> {
        #[cfg(feature = "oauth")]
        if let Some(access) = &self.access {
            let mut tries = Tries::default();
            loop {
                let held = access.current().await?;
                let mut nonce = None;
                let mut authorize = |url: &Url, headers: &mut HeaderMap| {
                    if let Some(held) = &held {
                        nonce = access.authorize(held, &method, url, headers)?;
                    }
                    Ok(())
                };
                let response = self
                    .redirected(&method, url, headers, &body, &mut authorize)
                    .await?;
                let sends_again = self.is_own(response.url(url))
                    && access
                        .sends_again(&response.head, held.as_ref(), nonce.as_deref(), &mut tries)
                        .await?;
                if !sends_again {
                    return Ok(response);
                }
            }
        }
        self.redirected(&method, url, headers, &body, &mut |_, _| Ok(()))
            .await
    }

    /// Sends one request, and follows redirects.
    async fn redirected(
        &self,
        method: &Method,
        url: &Url,
        headers: &HeaderMap,
        body: &Option<Bytes>,
        authorize: Authorize<'_>,
    ) -> Result<HttpResponse, CarrierError> {
        let mut moved: Option<Url> = None;
        let (mut redirects, mut repeats) = (0, 0);
        loop {
            let url = moved.as_ref().unwrap_or(url);
            let mut headers = headers.clone();
            let is_own = self.is_own(url);
            if is_own {
                headers.extend(self.own.iter().map(|(n, v)| (n.clone(), v.clone())));
                authorize(url, &mut headers)?;
            } else {
                headers.remove(SESSION);
            }
            let http = match &self.connections.bare {
                Some(bare) if !is_own => bare,
                _ => &self.connections.own,
            };
            let to = match *url == self.url {
                true => self.uri.clone(),
                false => uri(url)?,
            };
            let body_bytes = body.clone().unwrap_or_default();
            let sent = http.send(method.clone(), to, headers, body_bytes).await;
            let mut response = match sent {
                Err(unsent) if unsent.is_unseen && repeats < MAX_REPEATS => {
                    repeats += 1;
                    continue;
                }
                sent => sent?,
            };
            let status = response.status().as_u16();
            let redirected = matches!(status, 301 | 302 | 307 | 308);
            let Some(to) = redirected
                .then(|| response.headers().get(LOCATION))
                .flatten()
            else {
                response.moved = moved;
                return Ok(response);
            };
            let to = to.to_str().ok().and_then(|to| url.join(to).ok());
            let to = to.filter(|to| matches!(to.scheme(), "http" | "https"));
            let refused = |why: &str| CarrierError {
                status: Some(status),
                ..CarrierError::new(CarrierFault::Redirected, why)
            };
            let mut to = to.ok_or_else(|| refused("the server redirects to no URL"))?;
            // The server has no say in the credentials.
            let _ = to.set_username("");
            let _ = to.set_password(None);
            if url.scheme() == "https" && to.scheme() != "https" {
                return Err(refused("the server redirects out of TLS"));
            }
            // A GET changes nothing, so it may go to any origin.
            let acts = *method != Method::GET;
            if !self.is_own(&to) && (self.stays_on_origin || acts && !self.trusts(&to)) {
                let origin = to.origin().ascii_serialization();
                return Err(refused(&match self.stays_on_origin {
                    true => "the server redirects to another origin".to_owned(),
                    false => format!(
                        "the server redirects a message to another origin, {origin}: name it in redirect_origins to allow that"
                    ),
                }));
            }
            if redirects == self.options.max_redirects {
                return Err(refused("the server redirects on and on"));
            }
            redirects += 1;
            moved = Some(to);
        }
    }
}

/// Whether two URLs have one scheme, host and port.
fn same_origin(one: &Url, other: &Url) -> bool {
    one.scheme() == other.scheme()
        && one.host_str() == other.host_str()
        && one.port_or_known_default() == other.port_or_known_default()
}

fn origins(named: &[String]) -> io::Result<Vec<Url>> {
    let origin = |text: &String| {
        let url = Url::parse(text).ok()?;
        matches!(url.scheme(), "http" | "https").then_some(url)
    };
    let all: Option<Vec<_>> = named.iter().map(origin).collect();
    all.ok_or_else(|| {
        invalid("redirect_origins: an origin is a URL such as https://mcp.example.com")
    })
}

/// Percent-decodes a part of a URL.
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
