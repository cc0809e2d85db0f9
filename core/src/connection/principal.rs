//! The verified identity of a peer.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

/// The verified sender of a request. It is verified before the request is served: by a
/// [verifier](crate::policy::Policy::verifier), or by a layer of the web server, which adds a principal
/// to the request's extensions:
///
/// ```
/// # #[cfg(feature = "http")] {
/// use mcpbolt::io::http::Principal;
/// # let mut request = hyper::Request::new(());
/// request.extensions_mut().insert(Principal::new("alice@example.com").with_scopes(["files:read"]));
/// # }
/// ```
///
/// A principal has a [kind](PrincipalKind) and a name. Two principals are equal if both are equal;
/// scopes do not count. So `alice` of an API key, `alice` of a token and `alice` of a certificate are
/// three principals, and none of them sees the sessions, tasks, states or references of another
/// (R-SES-07). [`as_str`](Self::as_str) writes both as one text, and different principals never have the
/// same text:
///
/// | kind | text | made by |
/// |---|---|---|
/// | API key | `key:alice` | [`ApiKeys`](crate::policy::ApiKeys), [`Principal::key`] |
/// | signed token | `jwt:https://issuer.example#alice` | `policy::Jwt`, [`Principal::jwt`] |
/// | token of a client | `client:https://issuer.example#robot` | `policy::ResourceServer`, [`Principal::client`] |
/// | certificate | `certificate:alice` | [`Principal::certificate`] |
/// | network address | `address:192.0.2.7` | [`Principal::address`] |
/// | name given by the program | `alice` | [`Principal::new`] |
///
/// `%` and `#` in an issuer are written `%25` and `%23`. A name given by the program that begins with one
/// of the prefixes above, or with `name:`, is written with `name:` before it.
///
/// Handlers read the text from [`Context::principal`](crate::server::Context::principal).
///
/// Cheap to clone.
#[derive(Clone, Debug)]
pub struct Principal {
    kind: PrincipalKind,
    /// The kind and the name as one text.
    text: Arc<str>,
    /// Offset of the name in `text`.
    name_at: usize,
    /// What was granted; `None` if nothing was said.
    grant: Option<Arc<Grant>>,
}

/// What a principal's credentials grant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Grant {
    scopes: Vec<Box<str>>,
    /// When the credentials end, in seconds since 1970.
    expires_at: Option<u64>,
    /// The thumbprint of the key that the credentials are bound to.
    key: Option<Box<str>>,
    /// The digest of the certificate that the credentials are bound to.
    certificate: Option<Box<str>>,
}

/// How a [`Principal`] was verified.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PrincipalKind {
    /// Named by the program.
    Named,
    /// An API key.
    Key,
    /// A signed token.
    Jwt,
    /// The client that a token was issued to, where the token names no user.
    Client,
    /// A certificate, presented below HTTP (mutual TLS).
    Certificate,
    /// Only the network address is known.
    Address,
}

impl PrincipalKind {
    const ALL: [Self; 6] = [
        Self::Named,
        Self::Key,
        Self::Jwt,
        Self::Client,
        Self::Certificate,
        Self::Address,
    ];

    /// The word that precedes the name and a colon: `name`, `key`, `jwt`, `client`, `certificate` or `address`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Named => "name",
            Self::Key => "key",
            Self::Jwt => "jwt",
            Self::Client => "client",
            Self::Certificate => "certificate",
            Self::Address => "address",
        }
    }
}

impl Principal {
    /// A principal named by the program.
    pub fn new(name: impl AsRef<str>) -> Self {
        let name = name.as_ref();
        let is_prefixed = PrincipalKind::ALL.into_iter().any(|kind| {
            let rest = name.strip_prefix(kind.name());
            rest.is_some_and(|rest| rest.starts_with(':'))
        });
        let prefix = if is_prefixed { "name:" } else { "" };
        Self::of(PrincipalKind::Named, prefix, name)
    }

    /// The owner of an API key.
    pub fn key(name: impl AsRef<str>) -> Self {
        Self::of(PrincipalKind::Key, "key:", name.as_ref())
    }

    /// The subject of a token of `issuer`; the issuer is empty if the token names none.
    pub fn jwt(issuer: &str, subject: impl AsRef<str>) -> Self {
        Self::issued(PrincipalKind::Jwt, issuer, subject.as_ref())
    }

    /// The client with this id at `issuer`, which acts for itself by a token that names no user.
    pub fn client(issuer: &str, id: impl AsRef<str>) -> Self {
        Self::issued(PrincipalKind::Client, issuer, id.as_ref())
    }

    fn issued(kind: PrincipalKind, issuer: &str, name: &str) -> Self {
        let issuer = issuer.replace('%', "%25").replace('#', "%23");
        Self::of(kind, &format!("{}:{issuer}#", kind.name()), name)
    }

    /// The subject of a certificate, under a name that the program reads from it.
    pub fn certificate(name: impl AsRef<str>) -> Self {
        Self::of(PrincipalKind::Certificate, "certificate:", name.as_ref())
    }

    /// The sender at a network address.
    pub fn address(address: IpAddr) -> Self {
        Self::of(PrincipalKind::Address, "address:", &address.to_string())
    }

    fn of(kind: PrincipalKind, prefix: &str, name: &str) -> Self {
        Self {
            kind,
            text: format!("{prefix}{name}").into(),
            name_at: prefix.len(),
            grant: None,
        }
    }

    /// The same principal with granted scopes.
    #[must_use]
    pub fn with_scopes<S: Into<Box<str>>>(self, scopes: impl IntoIterator<Item = S>) -> Self {
        let scopes = scopes.into_iter().map(Into::into).collect();
        self.granting(|grant| grant.scopes = scopes)
    }

    /// The same principal, whose credentials end at a time, in seconds since 1970. From then on its requests
    /// are refused, also on connections and sessions that are open.
    #[must_use]
    pub fn with_expiry(self, at: u64) -> Self {
        self.granting(|grant| grant.expires_at = Some(at))
    }

    /// The same principal, whose token is bound to the key with this thumbprint (`cnf.jkt`, RFC 9449). A
    /// resource server then requires a proof of that key with each request; other servers ignore this.
    #[must_use]
    pub fn bound_to_key(self, thumbprint: impl Into<Box<str>>) -> Self {
        self.granting(|grant| grant.key = Some(thumbprint.into()))
    }

    /// The same principal, whose token is bound to the certificate with this SHA-256 digest in base64url
    /// (`cnf.x5t#S256`, RFC 8705). A resource server then requires a connection with that certificate;
    /// other servers ignore this.
    #[must_use]
    pub fn bound_to_certificate(self, digest: impl Into<Box<str>>) -> Self {
        self.granting(|grant| grant.certificate = Some(digest.into()))
    }

    fn granting(mut self, change: impl FnOnce(&mut Grant)) -> Self {
        change(Arc::make_mut(self.grant.get_or_insert_default()));
        self
    }

    /// The kind and the name as one text, as the [type](Self) says: unique among principals.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The text, for a caller that keeps it.
    pub(super) fn shared_text(&self) -> Arc<str> {
        self.text.clone()
    }

    /// How the principal was verified.
    pub fn kind(&self) -> PrincipalKind {
        self.kind
    }

    /// The name without the kind. Principals of different kinds or issuers may have the same name.
    pub fn name(&self) -> &str {
        self.text.get(self.name_at..).unwrap_or_default()
    }

    /// Whether a scope was granted.
    pub fn has_scope(&self, scope: &str) -> bool {
        self.scopes().any(|own| own == scope)
    }

    /// The granted scopes.
    pub fn scopes(&self) -> impl Iterator<Item = &str> {
        let grant = self.grant.iter();
        grant.flat_map(|grant| grant.scopes.iter().map(|scope| &**scope))
    }

    /// When the credentials end, in seconds since 1970, if that is known.
    pub fn expires_at(&self) -> Option<u64> {
        self.grant.as_ref()?.expires_at
    }

    /// The thumbprint of the key that the token is bound to.
    pub fn bound_key(&self) -> Option<&str> {
        self.grant.as_ref()?.key.as_deref()
    }

    /// The digest of the certificate that the token is bound to.
    pub fn bound_certificate(&self) -> Option<&str> {
        self.grant.as_ref()?.certificate.as_deref()
    }

    /// A principal named by the program becomes the owner of an API key; any other stays as it is.
    pub(crate) fn keyed(self) -> Self {
        match self.kind {
            PrincipalKind::Named => Self {
                grant: self.grant.clone(),
                ..Self::key(self.name())
            },
            _ => self,
        }
    }

    /// Whether both are the same principal with the same scopes and the same expiry.
    pub(crate) fn has_same_grant(&self, other: &Self) -> bool {
        self == other && self.grant == other.grant
    }

    /// Whether the credentials have ended.
    pub(crate) fn has_expired(&self) -> bool {
        self.expires_at().is_some_and(|end| end <= unix_seconds())
    }
}

/// The time, in seconds since 1970.
pub(crate) fn unix_seconds() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0, |since| since.as_secs())
}

impl PartialEq for Principal {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Principal {}

impl Hash for Principal {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.text.hash(state);
    }
}

/// Writes [`Principal::as_str`].
impl fmt::Display for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl From<&str> for Principal {
    fn from(name: &str) -> Self {
        Self::new(name)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    /// R-SES-07: the same name of different kinds, and names that look like texts of other kinds,
    /// are different principals; scopes make no difference.
    #[test]
    fn principals_of_different_kinds_never_coincide() {
        let address = "192.0.2.7".parse().unwrap();
        let all = [
            (Principal::new("alice"), "alice", "alice"),
            (Principal::key("alice"), "key:alice", "alice"),
            (Principal::jwt("me", "alice"), "jwt:me#alice", "alice"),
            (Principal::jwt("you", "alice"), "jwt:you#alice", "alice"),
            (Principal::jwt("", "alice"), "jwt:#alice", "alice"),
            (Principal::client("me", "alice"), "client:me#alice", "alice"),
            (Principal::jwt("", "me#alice"), "jwt:#me#alice", "me#alice"),
            (Principal::jwt("a#b", "c"), "jwt:a%23b#c", "c"),
            (Principal::jwt("a%23b", "c"), "jwt:a%2523b#c", "c"),
            (Principal::jwt("a", "b#c"), "jwt:a#b#c", "b#c"),
            (
                Principal::certificate("alice"),
                "certificate:alice",
                "alice",
            ),
            (
                Principal::address(address),
                "address:192.0.2.7",
                "192.0.2.7",
            ),
            (Principal::new("key:alice"), "name:key:alice", "key:alice"),
            (
                Principal::new("jwt:me#alice"),
                "name:jwt:me#alice",
                "jwt:me#alice",
            ),
            (
                Principal::new("name:alice"),
                "name:name:alice",
                "name:alice",
            ),
            (Principal::new("keys:alice"), "keys:alice", "keys:alice"),
        ];
        let apart: HashSet<_> = all.iter().map(|(who, ..)| who.clone()).collect();
        assert_eq!(apart.len(), all.len());
        for (who, text, name) in all {
            assert_eq!((who.as_str(), who.name()), (text, name));
            assert_eq!(who.to_string(), text);
            assert_eq!(who.clone().with_scopes(["all"]), who);
        }
    }

    #[cfg(feature = "server")]
    #[test]
    fn a_named_principal_becomes_the_owner_of_its_key() {
        assert_eq!(Principal::new("alice").keyed(), Principal::key("alice"));
        let token = Principal::jwt("me", "alice");
        assert_eq!(token.clone().keyed(), token);
    }
}
