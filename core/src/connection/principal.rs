//! Who is on the other side, as somebody has verified.

use std::sync::Arc;

/// Who asks, as a token, a certificate or a session of the web has proven to somebody before: a
/// [verifier](crate::policy::Policy::verifier), or a layer of the web server, which puts it into the
/// request's extensions:
///
/// ```
/// # #[cfg(feature = "http")] {
/// use mcpbolt::io::http::Principal;
/// # let mut request = hyper::Request::new(());
/// request.extensions_mut().insert(Principal::new("alice@example.com").with_scopes(["files:read"]));
/// # }
/// ```
///
/// Handlers find it as [`Context::principal`](crate::server::Context::principal). A session that one
/// has begun does not exist for another (R-SES-07).
///
/// Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Principal {
    name: Arc<str>,
    scopes: Arc<[Box<str>]>,
}

impl Principal {
    /// By a name that nobody else has.
    pub fn new(name: impl Into<Arc<str>>) -> Self {
        Self {
            name: name.into(),
            scopes: Arc::default(),
        }
    }

    /// The same, with what was granted to it.
    #[must_use]
    pub fn with_scopes<S: Into<Box<str>>>(self, scopes: impl IntoIterator<Item = S>) -> Self {
        let scopes = scopes.into_iter().map(Into::into).collect();
        Self { scopes, ..self }
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.name
    }

    /// Whether that was granted.
    pub fn has_scope(&self, scope: &str) -> bool {
        self.scopes.iter().any(|own| **own == *scope)
    }
}

impl From<&str> for Principal {
    fn from(name: &str) -> Self {
        Self::new(name)
    }
}
