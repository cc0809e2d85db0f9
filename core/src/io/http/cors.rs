//! Pages of other origins that may read what is answered (Fetch, CORS protocol).

use hyper::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_HEADERS,
    ACCESS_CONTROL_REQUEST_METHOD, HeaderValue, ORIGIN, VARY,
};
use hyper::{Method, Request, Response, StatusCode};

use super::answers::with;
use super::body::HttpBody;
use super::guard;
use super::options::HttpOptions;

/// What a page may ask by.
const METHODS: HeaderValue = HeaderValue::from_static("GET, POST, DELETE");
/// What a page may read of an answer's head.
const EXPOSED: HeaderValue = HeaderValue::from_static(
    "Mcp-Session-Id, MCP-Protocol-Version, WWW-Authenticate, Retry-After, MCP-Version, ETag, X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset",
);
/// How long a browser may remember what it was told, in seconds.
const REMEMBERED: HeaderValue = HeaderValue::from_static("600");

/// The page that asks, if it is of an origin that may read the answer.
pub struct Page(HeaderValue);

impl Page {
    /// Who asks; nobody who is not welcome, or where pages of others may not read anything.
    pub fn of<B>(request: &Request<B>, options: &HttpOptions) -> Option<Self> {
        let origin = request.headers().get(ORIGIN).filter(|_| options.cors)?;
        let (uri, headers) = (request.uri(), request.headers());
        // Wherever it asks: actions have streams beside the endpoint.
        guard::check_host(uri, headers, options).ok()?;
        Some(Self(origin.clone()))
    }

    /// The answer to a browser that asks beforehand whether the page may ask.
    pub fn preflight<B>(&self, request: &Request<B>) -> Option<Response<HttpBody>> {
        let headers = request.headers();
        if request.method() != Method::OPTIONS
            || !headers.contains_key(ACCESS_CONTROL_REQUEST_METHOD)
        {
            return None;
        }
        let mut response = with(StatusCode::NO_CONTENT, HttpBody::empty());
        let answers = response.headers_mut();
        answers.insert(ACCESS_CONTROL_ALLOW_METHODS, METHODS);
        answers.insert(ACCESS_CONTROL_MAX_AGE, REMEMBERED);
        // Its origin is welcome: so are its headers.
        if let Some(asked) = headers.get(ACCESS_CONTROL_REQUEST_HEADERS) {
            answers.insert(ACCESS_CONTROL_ALLOW_HEADERS, asked.clone());
        }
        Some(self.admit(response))
    }

    /// Lets the page read an answer.
    pub fn admit(&self, mut response: Response<HttpBody>) -> Response<HttpBody> {
        let headers = response.headers_mut();
        headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, self.0.clone());
        headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED);
        headers.append(VARY, HeaderValue::from_static("Origin"));
        response
    }
}
