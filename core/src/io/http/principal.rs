//! Who sends a request.

/// Who sends a request, as somebody before the endpoint has verified: a token, a certificate, a
/// session of the web. A layer puts it into the request's extensions:
///
/// ```
/// use mcpbolt::io::http::Principal;
/// # let mut request = hyper::Request::new(());
/// request.extensions_mut().insert(Principal::new("alice@example.com"));
/// ```
///
/// Handlers find it as [`Context::principal`](crate::server::Context::principal). A session that one
/// has begun does not exist for another (R-SES-07).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Principal(Box<str>);

impl Principal {
    /// By a name that nobody else has.
    pub fn new(name: impl Into<Box<str>>) -> Self {
        Self(name.into())
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}
