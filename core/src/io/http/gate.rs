//! The gate: every request passes these checks before anything else interprets it, whatever it asks for
//! and whichever transport carries it. Only the gate creates an [`Admitted`], and nothing is served
//! without one.
//!
//! | check, in this order | status of the refusal |
//! |---|---|
//! | `Host`, then `Origin`, `Sec-Fetch-Site` and `Sec-Fetch-Mode`: see `source` | 403 |
//! | path | 404 |
//! | method | 405 |
//! | `Accept` of a stream, `Content-Type` of a message | 406, 415 |
//! | credentials, where the server has a verifier | 401, 429 |
//!
//! A CORS preflight is answered after the first check, since it carries no credentials.

use std::sync::Arc;

use hyper::header::HeaderMap;
use hyper::http::request::Parts;
use hyper::{Method, Request, Response, StatusCode};

use super::actions;
use super::answers::{self, Refusal};
use super::body::HttpBody;
use super::cors::Page;
use super::endpoint::Peer;
use super::forwarded::Network;
use super::identify::{self, identify};
use super::media::{EVENTS, accepts, is_json};
use super::options::HttpOptions;
use super::source;
use super::upgrade;
use crate::connection::{Principal, Source};
use crate::policy::Policy;

/// What a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wish {
    /// Posts a message.
    Message,
    /// Opens a stream of events of a session.
    Stream,
    /// Ends a session.
    End,
    /// Opens or resumes the stream of an action, which the query names.
    Action,
    /// Upgrades to WebSocket.
    WebSocket,
}

/// A request that has passed the gate, without its body. Only the gate creates one.
pub struct Admitted {
    parts: Box<Parts>,
    wish: Wish,
    in_actions: bool,
    peer: Option<Peer>,
    principal: Option<Principal>,
}

impl Admitted {
    /// What the request asks for.
    pub fn wish(&self) -> Wish {
        self.wish
    }

    /// Whether the answer is written in the action dialect, even if the request is refused (F-63).
    pub fn in_actions(&self) -> bool {
        self.in_actions
    }

    pub fn parts(&self) -> &Parts {
        &self.parts
    }

    pub fn headers(&self) -> &HeaderMap {
        &self.parts.headers
    }

    /// Where the request comes from, if that is known.
    pub fn peer(&self) -> Option<Peer> {
        self.peer
    }

    /// The principal that sent the request: the verifier's, or the one that the host put into the extensions.
    pub fn principal(&self) -> Option<&Principal> {
        self.principal.as_ref()
    }

    /// The source that the limits count the request for: its principal, or else its address.
    pub fn source(&self, trusted: &[Network]) -> Source {
        identify::source(trusted, self.headers(), self.peer).or_principal(self.principal())
    }

    pub fn into_parts(self) -> Parts {
        *self.parts
    }
}

/// The gate's result for one request.
pub struct Passed {
    /// The page that sent the request, if it may read the answer.
    pub page: Option<Page>,
    /// The request, or the response to one that is refused or already answered.
    pub request: Result<Admitted, Box<Response<HttpBody>>>,
}

/// The gate of one endpoint.
pub struct Gate {
    options: Arc<HttpOptions>,
    /// Whether the server has sessions: only then can a client GET or DELETE.
    sessions: bool,
    /// Whether the action dialect is spoken.
    actions: bool,
    /// Verifies credentials; `None` if it has no verifier.
    policy: Option<Arc<Policy>>,
}

impl Gate {
    /// Creates the gate of an endpoint with these options.
    pub fn new(
        options: &Arc<HttpOptions>,
        (sessions, actions): (bool, bool),
        policy: Option<Arc<Policy>>,
    ) -> Self {
        Self {
            options: options.clone(),
            sessions,
            actions,
            policy: policy.filter(|policy| policy.has_verifier()),
        }
    }

    /// Whether credentials are checked.
    pub fn has_verifier(&self) -> bool {
        self.policy.is_some()
    }

    /// Checks a request from `peer`.
    pub fn pass(&self, parts: Box<Parts>, peer: Option<Peer>) -> Passed {
        let in_actions = self.actions && actions::says_so(&parts.headers);
        let refused = |refusal| Err(Box::new(refused(refusal, in_actions)));
        if let Err(refusal) = source::check(&parts.uri, &parts.headers, &self.options) {
            let request = refused(refusal);
            return Passed {
                page: None,
                request,
            };
        }
        let page = Page::of(&parts, &self.options);
        let preflight = page.as_ref().and_then(|page| page.preflight(&parts));
        let request = match (preflight, self.wish(&parts)) {
            (Some(answer), _) => Err(Box::new(answer)),
            (None, Err(refusal)) => refused(refusal),
            (None, Ok(wish)) => self.identified(parts, peer, in_actions, wish),
        };
        Passed { page, request }
    }

    /// What the method, path and headers ask for (R-HTP-01, R-HTP-02, R-HTP-11, R-SES-06).
    fn wish(&self, parts: &Parts) -> Result<Wish, Refusal> {
        let (path, own) = (parts.uri.path(), &*self.options.path);
        let upgrades = self.options.websocket && upgrade::is_asked(parts);
        if !upgrades && self.actions && actions::is_stream(parts, own) {
            return Ok(Wish::Action);
        }
        if own != "*" && path != own {
            return Err(NOTHING_HERE);
        }
        match parts.method {
            _ if upgrades => Ok(Wish::WebSocket),
            Method::POST if is_json(&parts.headers) => Ok(Wish::Message),
            Method::POST => Err(NOT_JSON),
            Method::GET if !self.sessions => Err(NOT_POSTED),
            Method::GET if accepts(&parts.headers, EVENTS) => Ok(Wish::Stream),
            Method::GET => Err(NO_EVENTS),
            Method::DELETE if self.sessions => Ok(Wish::End),
            _ => Err(NOT_POSTED),
        }
    }

    fn identified(
        &self,
        mut parts: Box<Parts>,
        peer: Option<Peer>,
        in_actions: bool,
        wish: Wish,
    ) -> Result<Admitted, Box<Response<HttpBody>>> {
        let known = parts.extensions.remove::<Principal>();
        let principal = match &self.policy {
            Some(policy) if known.is_none() => {
                let trusted = &self.options.trusted_proxies;
                Some(identify(policy, trusted, &parts, peer, in_actions)?)
            }
            _ => known,
        };
        Ok(Admitted {
            parts,
            wish,
            in_actions,
            peer,
            principal,
        })
    }
}

impl HttpOptions {
    /// Runs the gate's checks that apply wherever a request is served: `Host`, `Origin`, the Fetch
    /// Metadata headers of browsers, and the `Content-Type` of a POST. For programs that handle
    /// requests themselves; [`HttpService`](super::HttpService) runs these checks automatically.
    ///
    /// # Errors
    /// The status that the request is refused with, and the reason.
    pub fn screen<B>(&self, request: &Request<B>) -> Result<(), (StatusCode, &'static str)> {
        let headers = request.headers();
        let screened = source::check(request.uri(), headers, self);
        let refusal = match screened {
            Ok(()) if *request.method() != Method::POST || is_json(headers) => return Ok(()),
            Ok(()) => NOT_JSON,
            Err(refusal) => refusal,
        };
        Err((refusal.status, refusal.why))
    }
}

/// The response to a refused request, in the dialect that the client speaks.
pub fn refused(refusal: Refusal, in_actions: bool) -> Response<HttpBody> {
    match in_actions {
        // F-63
        true => actions::refused(refusal),
        false => answers::refused(refusal),
    }
}

const NOTHING_HERE: Refusal =
    Refusal::new(StatusCode::NOT_FOUND, "there is no endpoint at this path");
const NOT_JSON: Refusal = Refusal::new(
    StatusCode::UNSUPPORTED_MEDIA_TYPE,
    "the Content-Type of a message is application/json",
);
const NOT_POSTED: Refusal = Refusal::new(StatusCode::METHOD_NOT_ALLOWED, "messages come by POST");
const NO_EVENTS: Refusal = Refusal::new(
    StatusCode::NOT_ACCEPTABLE,
    "there is nothing to get but a text/event-stream: accept it",
);

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
        match gate.pass(Box::new(parts), None).request {
            Err(response) => response.status().as_u16(),
            Ok(admitted) => media::check_accept(admitted.headers())
                .map_or_else(|refusal| refusal.status.as_u16(), |()| 200),
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
