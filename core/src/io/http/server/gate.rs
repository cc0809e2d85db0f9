//! The gate: every request passes these checks before anything else interprets it, over every transport.
//! Only the gate creates an [`Admitted`], and nothing is served without one.
//!
//! | check, in this order | status of the refusal |
//! |---|---|
//! | `Host`, then `Origin`, `Sec-Fetch-Site` and `Sec-Fetch-Mode`: see `origin` | 403 |
//! | path | 404 |
//! | method | 405 |
//! | `Accept` of a stream, `Content-Type` of a message | 406, 415 |
//! | credentials, where the server has a verifier | 401, 429, 503 |
//!
//! A CORS preflight is answered after the first check, since it carries no credentials.

use std::borrow::Cow;
use std::sync::Arc;

use hyper::http::request::Parts;
use hyper::{Method, Request, Response, StatusCode, Version};

use super::body::HttpBody;
use super::cors::Page;
use super::credentials::{self, Heard, Sender, TimedVerification, Unidentified, identify};
use super::forwarded::Network;
use super::headers::{RequestHeaders, is_action_stream, is_websocket};
use super::media::{EVENTS, accepts, is_json};
use super::options::HttpOptions;
use super::origin;
use super::peer::PeerAddress;
use super::refusal::{
    HttpRefusal, NO_ENDPOINT, NOT_ACCEPTED_EVENTS, NOT_JSON, UNVERIFIED, WRONG_METHOD,
};
#[cfg(feature = "resource-server")]
use super::resource;
use super::response::refused;
use crate::connection::{Channel, Principal, RequestSource};
use crate::handler::{Extensions, Head};
use crate::mcp::{TraceContext, trace_context};
use crate::policy::Policy;
use crate::server::Hosting;

/// The kind of a request, according to its method, path and headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestKind {
    /// Posts a message.
    Message,
    /// Opens a stream of events of a session.
    EventStream,
    /// Ends a session.
    EndOfSession,
    /// Opens or resumes the stream of an action, which the query names.
    ActionStream,
    /// Upgrades to WebSocket.
    WebSocket,
}

/// A request that has passed the gate, without its body. Only the gate creates one.
pub struct Admitted<'a> {
    parts: &'a Parts,
    headers: RequestHeaders<'a>,
    kind: RequestKind,
    in_actions: bool,
    peer: Option<PeerAddress>,
    principal: Option<Principal>,
}

impl<'a> Admitted<'a> {
    pub fn kind(&self) -> RequestKind {
        self.kind
    }

    /// Whether the answer is written in the action dialect, even if the request is refused (F-63).
    pub fn in_actions(&self) -> bool {
        self.in_actions
    }

    pub fn parts(&self) -> &'a Parts {
        self.parts
    }

    pub fn headers(&self) -> &RequestHeaders<'a> {
        &self.headers
    }

    /// The principal that sent the request: the verifier's, or the one that the host put into the extensions.
    pub fn principal(&self) -> Option<&Principal> {
        self.principal.as_ref()
    }

    /// The source that the limits count the request for: its principal, or else its address.
    pub fn source(&self, trusted: &[Network]) -> RequestSource {
        credentials::source(trusted, self.headers.all, self.peer).or_principal(self.principal())
    }

    /// How the messages of the request travel, for observers. `session` is the id of the request's session.
    pub fn channel(&self, session: Option<&str>) -> Channel {
        let version = match self.parts.version {
            Version::HTTP_10 => Some("1.0"),
            Version::HTTP_11 => Some("1.1"),
            Version::HTTP_2 => Some("2"),
            _ => None,
        };
        let mut channel = self.with_peer(Channel::http(version));
        channel.session = session.map(Into::into);
        channel.trace = self.trace_context();
        channel
    }

    /// How the messages of a WebSocket travel that the request opens.
    pub fn websocket_channel(&self) -> Channel {
        self.with_peer(Channel::websocket())
    }

    fn with_peer(&self, channel: Channel) -> Channel {
        match self.peer {
            Some(PeerAddress(at)) => channel.peer(at.ip().to_string(), Some(at.port())),
            None => channel,
        }
    }

    /// The trace context in the head, if its `traceparent` is valid.
    fn trace_context(&self) -> Option<TraceContext> {
        let said = |key| {
            let value = self.headers.all.get(key)?.to_str().ok()?;
            trace_context::is_valid(key, value).then(|| value.to_owned())
        };
        Some(TraceContext {
            parent: said("traceparent")?,
            state: said("tracestate"),
            baggage: said("baggage"),
        })
    }

    /// A copy of the head, for executors that want one. `session` is the id of the request's session.
    pub fn head(&self, session: Option<&str>) -> Arc<Head> {
        let target = self.parts.uri.path_and_query();
        let headers = self.headers.all.iter();
        Arc::new(Head {
            method: self.parts.method.as_str().into(),
            target: target.map_or("/", |target| target.as_str()).into(),
            headers: headers
                .map(|(name, value)| (name.as_str().into(), value.as_bytes().into()))
                .collect(),
            session: session.map(Into::into),
            peer: self.peer.map(|peer| peer.0),
            extensions: Extensions::carried(&self.parts.extensions),
        })
    }
}

/// The gate's result for one request.
pub struct Passed<'a> {
    /// The page that sent the request, if it may read the answer.
    pub page: Option<Page>,
    /// The request, or the response to one that is refused or already answered.
    pub request: Result<Admitted<'a>, Box<Response<HttpBody>>>,
}

/// The gate of one endpoint.
pub struct Gate {
    options: Arc<HttpOptions>,
    /// Whether the server has sessions: only then can a client GET or DELETE.
    sessions: bool,
    /// Whether the action dialect is spoken.
    actions: bool,
    /// Has the policy that verifies credentials, which may be another one later; `None` if it has no verifier.
    verifying: Option<Arc<dyn Hosting>>,
}

impl Gate {
    /// Creates the gate of an endpoint with these options.
    pub fn new(
        options: &Arc<HttpOptions>,
        (sessions, actions): (bool, bool),
        hosting: Option<Arc<dyn Hosting>>,
    ) -> Self {
        let verifies = |policy: Arc<Policy>| policy.has_verifier();
        Self {
            options: options.clone(),
            sessions,
            actions,
            verifying: hosting.filter(|hosting| hosting.policy().is_some_and(verifies)),
        }
    }

    /// Whether credentials are checked.
    pub fn has_verifier(&self) -> bool {
        self.verifying.is_some()
    }

    /// Checks a request from `peer`. `heard` is the result of a verification that an earlier call returned.
    ///
    /// # Errors
    /// A verification that takes time. Await it, then call this again with its result.
    pub fn pass<'a>(
        &self,
        parts: &'a Parts,
        peer: Option<PeerAddress>,
        heard: Option<Heard>,
    ) -> Result<Passed<'a>, TimedVerification> {
        let headers = RequestHeaders::of(&parts.headers);
        let in_actions = self.actions && headers.names_action_version;
        let refused = |refusal| Err(Box::new(refused(refusal, in_actions)));
        if let Err(refusal) = origin::check(&parts.uri, &headers, &self.options) {
            let (page, request) = (None, refused(refusal));
            return Ok(Passed { page, request });
        }
        let page = Page::of(&headers, &self.options);
        if let Some(answer) = page.as_ref().and_then(|page| page.preflight(parts)) {
            let request = Err(Box::new(answer));
            return Ok(Passed { page, request });
        }
        let request = match self.identified(parts, &headers, peer, heard, in_actions) {
            Ok((kind, principal)) => Ok(Admitted {
                parts,
                headers,
                kind,
                in_actions,
                peer,
                principal,
            }),
            Err(Unidentified::Refused(refusal)) => refused(refusal),
            Err(Unidentified::Unverified(verification)) => return Err(verification),
        };
        Ok(Passed { page, request })
    }

    /// The kind of a request (R-HTP-01, R-HTP-02, R-HTP-11, R-SES-06).
    fn kind(
        &self,
        parts: &Parts,
        headers: &RequestHeaders<'_>,
    ) -> Result<RequestKind, HttpRefusal> {
        let (path, own) = (parts.uri.path(), &*self.options.path);
        let upgrades = self.options.websocket && is_websocket(parts);
        if !upgrades && self.actions && is_action_stream(parts, own) {
            return Ok(RequestKind::ActionStream);
        }
        if own != "*" && path != own {
            return Err(NO_ENDPOINT);
        }
        match parts.method {
            _ if upgrades => Ok(RequestKind::WebSocket),
            Method::POST if is_json(&headers.content_type) => Ok(RequestKind::Message),
            Method::POST => Err(NOT_JSON),
            Method::GET if !self.sessions => Err(WRONG_METHOD),
            Method::GET if accepts(&headers.accept, EVENTS) => Ok(RequestKind::EventStream),
            Method::GET => Err(NOT_ACCEPTED_EVENTS),
            Method::DELETE if self.sessions => Ok(RequestKind::EndOfSession),
            _ => Err(WRONG_METHOD),
        }
    }

    /// The kind of a request and, if it is known, who sent it.
    fn identified(
        &self,
        parts: &Parts,
        headers: &RequestHeaders<'_>,
        peer: Option<PeerAddress>,
        heard: Option<Heard>,
        in_actions: bool,
    ) -> Result<(RequestKind, Option<Principal>), Unidentified> {
        let kind = self.kind(parts, headers)?;
        let known = parts.extensions.get::<Principal>().cloned();
        let principal = match &self.verifying {
            Some(hosting) if known.is_none() => {
                let policy = hosting.policy().ok_or(UNVERIFIED)?;
                let trusted = &self.options.trusted_proxies;
                let sender = Sender {
                    policy: &policy,
                    request: parts,
                    peer,
                    trusted,
                    in_actions,
                };
                #[cfg(feature = "resource-server")]
                if let Some(resource) = policy.resource_server() {
                    let is_endpoint = parts.uri.path() == self.options.path;
                    let who = resource::identify(resource, heard, &sender, is_endpoint)?;
                    return Ok((kind, Some(who)));
                }
                Some(identify(&sender, heard)?)
            }
            _ => known,
        };
        Ok((kind, principal))
    }
}

impl HttpOptions {
    /// Runs the gate's checks that apply wherever a request is served: `Host`, `Origin`, the Fetch
    /// Metadata headers of browsers, and the `Content-Type` of a POST. For programs that handle
    /// requests themselves; [`HttpService`](crate::io::http::HttpService) runs these checks automatically.
    ///
    /// # Errors
    /// The status that the request is refused with, and the reason.
    pub fn screen<B>(&self, request: &Request<B>) -> Result<(), (StatusCode, Cow<'static, str>)> {
        let headers = RequestHeaders::of(request.headers());
        let is_message = *request.method() == Method::POST;
        let refusal = match origin::check(request.uri(), &headers, self) {
            Ok(()) if !is_message || is_json(&headers.content_type) => return Ok(()),
            Ok(()) => NOT_JSON,
            Err(refusal) => refusal,
        };
        Err((refusal.status_code(), refusal.why))
    }
}

#[cfg(test)]
mod tests {
    use super::super::media;
    use super::*;
    use hyper::Request;

    fn verdict(
        change: impl FnOnce(hyper::http::request::Builder) -> hyper::http::request::Builder,
    ) -> u16 {
        let request = Request::post("/mcp")
            .header("host", "localhost:8000")
            .header("content-type", "application/json; charset=utf-8")
            .header("accept", "application/json, text/event-stream;q=0.9");
        let (parts, ()) = change(request).body(()).unwrap().into_parts();
        let gate = Gate::new(&Arc::default(), (false, false), None);
        let Ok(passed) = gate.pass(&parts, None, None) else {
            panic!("there is no verifier");
        };
        match passed.request {
            Err(response) => response.status().as_u16(),
            Ok(admitted) => media::check_accept(&admitted.headers().accept)
                .map_or_else(|refusal| refusal.status_code().as_u16(), |()| 200),
        }
    }

    fn replaced(name: &'static str, value: &'static str) -> u16 {
        verdict(|mut request| {
            if let Some(headers) = request.headers_mut() {
                headers.insert(name, value.parse().unwrap());
            }
            request
        })
    }

    /// R-HTP-01, R-HTP-03, R-HTP-06.
    #[test]
    fn requests_are_refused_before_their_body_is_read() {
        assert_eq!(verdict(|request| request), 200);
        for (name, value, status) in [
            ("host", "evil.example.com", 403),
            ("host", "evil.example.com:8000", 403),
            ("host", "LOCALHOST", 200),
            ("host", "[::1]:80", 200),
            ("host", "[::2]", 403),
            ("origin", "http://evil.example.com", 403),
            ("origin", "null", 403),
            ("origin", "http://localhost:3000", 200),
            ("content-type", "text/plain", 415),
            ("content-type", "APPLICATION/JSON", 200),
            ("accept", "application/json", 406),
            ("accept", "text/event-stream", 406),
            ("accept", "*/*", 200),
            ("accept", "application/*, text/*", 200),
            ("accept", "text/html", 406),
        ] {
            assert_eq!(replaced(name, value), status, "{name}: {value}");
        }
        assert_eq!(verdict(|request| request.uri("/other")), 404);
        assert_eq!(verdict(|request| request.method("GET")), 405);
        assert_eq!(
            verdict(|request| request.uri("http://evil.example.com/mcp")),
            403
        );
    }
}
