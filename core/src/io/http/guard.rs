//! What is refused before a body is read.

use hyper::header::{ACCEPT, CONTENT_TYPE, HOST, HeaderMap, HeaderName, ORIGIN};
use hyper::http::request::Parts;
use hyper::{Method, StatusCode, Uri};

use super::options::HttpOptions;

/// An HTTP request that never becomes a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    pub status: StatusCode,
    pub why: &'static str,
}

impl Refusal {
    pub const fn new(status: StatusCode, why: &'static str) -> Self {
        Self { status, why }
    }
}

/// Who may ask at all, and where: `Host`, `Origin` and the path (R-HTP-06).
///
/// # Errors
/// Why it is refused.
pub fn check_source(uri: &Uri, headers: &HeaderMap, options: &HttpOptions) -> Result<(), Refusal> {
    check_host(uri, headers, options)?;
    if options.path != "*" && uri.path() != options.path {
        return Err(Refusal::new(
            StatusCode::NOT_FOUND,
            "there is no endpoint at this path",
        ));
    }
    Ok(())
}

/// Who may ask at all.
///
/// # Errors
/// Why it is refused.
pub fn check_host(uri: &Uri, headers: &HeaderMap, options: &HttpOptions) -> Result<(), Refusal> {
    let host = uri.authority().map(|authority| authority.as_str());
    let host = host.or_else(|| text(headers, HOST));
    if !host.is_some_and(|host| options.is_own(name_of(host))) {
        return Err(Refusal::new(
            StatusCode::FORBIDDEN,
            "the Host is not one of this server's",
        ));
    }
    let origin = headers
        .get(ORIGIN)
        .map(|origin| origin.to_str().unwrap_or("?"));
    if origin.is_some_and(|origin| !options.is_welcome(origin)) {
        return Err(Refusal::new(
            StatusCode::FORBIDDEN,
            "the Origin is not welcome here",
        ));
    }
    Ok(())
}

/// R-HTP-01, R-HTP-03, R-HTP-06. Only with sessions is there anything to get or to delete.
///
/// # Errors
/// Why it is refused.
pub fn check(parts: &Parts, options: &HttpOptions, sessions: bool) -> Result<(), Refusal> {
    check_source(&parts.uri, &parts.headers, options)?;
    match parts.method {
        Method::POST => {}
        Method::GET if sessions => {
            return match accepts(&parts.headers, EVENTS) {
                true => Ok(()),
                false => Err(Refusal::new(
                    StatusCode::NOT_ACCEPTABLE,
                    "there is nothing to get but a text/event-stream: accept it",
                )),
            };
        }
        Method::DELETE if sessions => return Ok(()),
        _ => {
            return Err(Refusal::new(
                StatusCode::METHOD_NOT_ALLOWED,
                "messages come by POST",
            ));
        }
    }
    let kind = text(&parts.headers, CONTENT_TYPE);
    if !kind.is_some_and(|kind| kind == JSON || essence(kind).eq_ignore_ascii_case(JSON)) {
        let why = "the Content-Type of a message is application/json";
        return Err(Refusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, why));
    }
    Ok(())
}

/// R-HTP-01: who posts a message of JSON-RPC takes its answer in either form.
///
/// # Errors
/// Not so.
pub fn check_accept(headers: &HeaderMap) -> Result<(), Refusal> {
    let is_usual = || headers.get(ACCEPT).is_some_and(|said| said == BOTH);
    match is_usual() || accepts(headers, JSON) && accepts(headers, EVENTS) {
        true => Ok(()),
        false => Err(Refusal::new(
            StatusCode::NOT_ACCEPTABLE,
            "an answer may be application/json or text/event-stream: accept both",
        )),
    }
}

pub const JSON: &str = "application/json";
pub const EVENTS: &str = "text/event-stream";
/// What most clients say.
const BOTH: &str = "application/json, text/event-stream";

impl HttpOptions {
    fn is_own(&self, name: &str) -> bool {
        self.hosts
            .iter()
            .any(|own| own == "*" || own.eq_ignore_ascii_case(name))
    }

    fn is_welcome(&self, origin: &str) -> bool {
        let host = origin.split_once("://").map(|(_, host)| name_of(host));
        host.is_some_and(|host| self.is_own(host)) || self.origins.iter().any(|own| own == origin)
    }
}

/// A host without its port.
fn name_of(host: &str) -> &str {
    let port = host.rfind(':').filter(|at| !host[*at..].contains(']'));
    port.map_or(host, |at| &host[..at])
}

fn text(headers: &HeaderMap, name: HeaderName) -> Option<&str> {
    headers.get(name)?.to_str().ok()
}

/// A media type without its parameters.
fn essence(kind: &str) -> &str {
    kind.split(';').next().unwrap_or_default().trim()
}

/// Whether an answer of that type is welcome; any is when nothing is said (RFC 9110, 12.5.1).
fn accepts(headers: &HeaderMap, kind: &str) -> bool {
    let family = kind.split('/').next().unwrap_or_default();
    let mut all = headers.get_all(ACCEPT).iter().peekable();
    let nothing_said = all.peek().is_none();
    let ranges = all
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','));
    nothing_said
        || ranges.map(essence).any(|range| {
            range.eq_ignore_ascii_case(kind)
                || range == "*/*"
                || range
                    .strip_suffix("/*")
                    .is_some_and(|own| own.eq_ignore_ascii_case(family))
        })
}

#[cfg(test)]
mod tests {
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
        check(&parts, &HttpOptions::default(), false)
            .and_then(|()| check_accept(&parts.headers))
            .map_or_else(|refusal| refusal.status.as_u16(), |()| 200)
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
