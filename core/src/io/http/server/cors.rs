//! Pages of other origins that may read answers (Fetch, CORS protocol).

use hyper::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_HEADERS,
    ACCESS_CONTROL_REQUEST_METHOD, HeaderValue, VARY,
};
use hyper::http::request::Parts;
use hyper::{Method, Response, StatusCode};

use super::body::HttpBody;
use super::headers::RequestHeaders;
use super::options::HttpOptions;
use super::response::empty;

/// The methods that a page may use.
const METHODS: HeaderValue = HeaderValue::from_static("GET, POST, DELETE");
/// The response headers that a page may read.
const EXPOSED: HeaderValue = HeaderValue::from_static(
    "Mcp-Session-Id, MCP-Protocol-Version, WWW-Authenticate, DPoP-Nonce, Retry-After, MCP-Version, ETag, X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset",
);
/// How long a browser may cache the answer to a preflight, in seconds.
const REMEMBERED: HeaderValue = HeaderValue::from_static("600");

/// The page that sent a request, if its origin may read the answer.
pub struct Page(HeaderValue);

impl Page {
    /// The page behind a request whose `Origin` has passed the gate; `None` if the option `cors` is
    /// off.
    pub fn of(headers: &RequestHeaders<'_>, options: &HttpOptions) -> Option<Self> {
        let origin = headers.origin.first().filter(|_| options.cors)?;
        Some(Self(HeaderValue::clone(origin)))
    }

    /// The answer to a preflight; `None` for any other request.
    pub fn preflight(&self, parts: &Parts) -> Option<Response<HttpBody>> {
        let headers = &parts.headers;
        if parts.method != Method::OPTIONS || !headers.contains_key(ACCESS_CONTROL_REQUEST_METHOD) {
            return None;
        }
        let mut response = empty(StatusCode::NO_CONTENT);
        let answers = response.headers_mut();
        answers.insert(ACCESS_CONTROL_ALLOW_METHODS, METHODS);
        answers.insert(ACCESS_CONTROL_MAX_AGE, REMEMBERED);
        // The gate has accepted the origin, so any header it asks for is allowed.
        if let Some(asked) = headers.get(ACCESS_CONTROL_REQUEST_HEADERS) {
            answers.insert(ACCESS_CONTROL_ALLOW_HEADERS, asked.clone());
        }
        Some(response)
    }

    /// Adds the headers that let the page read an answer.
    pub fn admit(&self, mut response: Response<HttpBody>) -> Response<HttpBody> {
        let headers = response.headers_mut();
        headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, self.0.clone());
        headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED);
        headers.append(VARY, HeaderValue::from_static("Origin"));
        response
    }
}
