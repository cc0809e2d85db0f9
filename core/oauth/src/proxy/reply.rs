//! Requests to the consent proxy, and its replies.

use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};

use super::browser::Cookie;

/// A request, as a web server received it.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct ProxyRequest<'a> {
    /// The method: `GET`.
    pub method: &'a str,
    /// The path: `/authorize`.
    pub path: &'a str,
    /// What follows the `?`, percent-encoded.
    pub query: &'a str,
    /// The header `Cookie`, several joined by `; `.
    pub cookies: &'a str,
    /// The header `Origin`.
    pub origin: Option<&'a str>,
    /// The header `Sec-Fetch-Site`.
    pub fetch_site: Option<&'a str>,
    /// The header `Content-Type`.
    pub content_type: &'a str,
    /// The body; a server limits it to [`MAX_BODY_BYTES`](Self::MAX_BODY_BYTES).
    pub body: &'a [u8],
    /// Set when the client has left: a code or a refresh token that it sent is redeemed all the same, and the reply kept for
    /// its next request.
    pub left: Option<&'a AtomicBool>,
}

impl<'a> ProxyRequest<'a> {
    /// The longest body of a request, in bytes.
    pub const MAX_BODY_BYTES: usize = 32 << 10;

    /// A request without headers and body.
    pub fn new(method: &'a str, path: &'a str, query: &'a str) -> Self {
        Self {
            method,
            path,
            query,
            ..Self::default()
        }
    }

    /// Whether the client has left.
    pub(super) fn has_left(&self) -> bool {
        self.left.is_some_and(|left| left.load(Ordering::Acquire))
    }
}

/// The answer to a request.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProxyReply {
    /// The status.
    pub status: u16,
    /// The headers: names and values.
    pub headers: Vec<(&'static str, String)>,
    /// The body.
    pub body: String,
}

/// Omits what may be secret.
impl std::fmt::Debug for ProxyReply {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ProxyReply {{ status: {}, .. }}", self.status)
    }
}

impl ProxyReply {
    fn new(status: u16, body: impl Into<String>) -> Self {
        Self {
            status,
            headers: vec![
                ("cache-control", "no-store".into()),
                ("x-content-type-options", "nosniff".into()),
                // With `no-referrer`, a form would have no origin.
                ("referrer-policy", "same-origin".into()),
            ],
            body: body.into(),
        }
    }

    pub(super) fn json(status: u16, body: &Value) -> Self {
        Self::new(status, body.to_string()).with("content-type", "application/json")
    }

    /// An error as RFC 6749, section 5.2, and RFC 7591, section 3.2.2, write it.
    pub(super) fn error(status: u16, error: &str, why: &str) -> Self {
        let body = json!({"error": error, "error_description": why});
        Self::json(status, &body)
    }

    /// A page that no other page may show in a frame and that runs nothing. Its form may lead anywhere:
    /// browsers check that on the way to the identity provider, too.
    pub(super) fn page(status: u16, html: String) -> Self {
        let policy = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'";
        Self::new(status, html)
            .with("content-type", "text/html; charset=utf-8")
            .with("content-security-policy", policy)
            .with("x-frame-options", "DENY")
    }

    pub(super) fn redirect(to: String) -> Self {
        Self::new(302, "").with("location", to)
    }

    pub(super) fn not_found() -> Self {
        Self::error(404, "invalid_request", "there is no such endpoint")
    }

    /// The system gave no randomness.
    pub(super) fn failed() -> Self {
        Self::error(500, "server_error", "the server has no random numbers")
    }

    #[must_use]
    pub(super) fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    #[must_use]
    pub(super) fn setting(self, cookie: &Cookie<'_>) -> Self {
        self.with("set-cookie", cookie.header())
    }

    /// Lets pages of any origin read the answer: clients that run in a browser.
    #[must_use]
    pub(super) fn readable_anywhere(self) -> Self {
        self.with("access-control-allow-origin", "*")
    }
}
