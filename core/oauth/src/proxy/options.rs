//! Options of the consent proxy.

use std::error::Error;
use std::fmt;

use url::Url;

use crate::local::is_local;

/// Options of a [`ConsentProxy`](super::ConsentProxy). `Debug` omits the secret of the client.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ConsentProxyOptions {
    /// The URL of this server, its issuer: `https://api.example.com`, or with a path beneath which all
    /// endpoints lie. One of http only on this machine.
    pub issuer: String,
    /// The URL of the MCP server whose tokens it issues.
    pub resource: String,
    /// The name of the MCP server, for the page that asks for consent.
    pub name: String,
    /// The scopes that clients may ask for. A client that asks for none gets all of them.
    pub scopes: Vec<String>,
    /// The identity provider.
    pub upstream: Upstream,
    /// Where clients may have answers sent, besides to this machine: hosts of `https` URLs, `*.example.com`
    /// for those beneath. None is any host: the page shows it, and the user decides.
    pub redirect_hosts: Vec<String>,
    /// The longest time that an access token is good, in seconds; never longer than the provider's token.
    pub token_lifetime: u64,
    /// How long a refresh token may be used, in seconds since it was issued.
    pub refresh_lifetime: u64,
}

impl ConsentProxyOptions {
    /// Options for the MCP server at `resource`, with an hour for access tokens and 30 days for refresh
    /// tokens.
    pub fn new(issuer: impl Into<String>, resource: impl Into<String>, upstream: Upstream) -> Self {
        let resource = resource.into();
        Self {
            issuer: issuer.into(),
            name: resource.clone(),
            resource,
            scopes: Vec::new(),
            upstream,
            redirect_hosts: Vec::new(),
            token_lifetime: 3600,
            refresh_lifetime: 30 * 24 * 3600,
        }
    }

    /// # Errors
    /// If an option is wrong; the text says which.
    pub(super) fn check(&self) -> Result<(), ConsentProxyError> {
        let upstream = &self.upstream;
        let urls = [
            ("issuer", &self.issuer),
            ("resource", &self.resource),
            (
                "upstream.authorization_endpoint",
                &upstream.authorization_endpoint,
            ),
            ("upstream.token_endpoint", &upstream.token_endpoint),
        ];
        let optional = [(
            "upstream.revocation_endpoint",
            &upstream.revocation_endpoint,
        )];
        let optional = optional
            .iter()
            .filter_map(|(name, url)| Some((*name, url.as_ref()?)));
        for (name, url) in urls.into_iter().chain(optional) {
            if !is_safe(url) {
                return Err(ConsentProxyError::new(format!(
                    "{name}: {url:?} is no https URL without a query and a fragment (http only on this machine)"
                )));
            }
        }
        if self.issuer.ends_with('/') {
            return Err(ConsentProxyError::new(
                "issuer: leave out the slash at the end",
            ));
        }
        // Browsers and clients compare the issuer as a text, and browsers send their own spelling of its origin.
        let spelt = Url::parse(&self.issuer).map(String::from);
        let spelt = spelt.as_deref().unwrap_or_default().trim_end_matches('/');
        if self.issuer != spelt {
            return Err(ConsentProxyError::new(format!(
                "issuer: write {spelt:?}, as browsers do"
            )));
        }
        if upstream.client_id.is_empty() {
            return Err(ConsentProxyError::new(
                "upstream.client_id: enter the id that the identity provider gave this application",
            ));
        }
        let is_scope = |scope: &String| {
            !scope.is_empty()
                && scope
                    .bytes()
                    .all(|b| matches!(b, 0x21 | 0x23..=0x5b | 0x5d..=0x7e))
        };
        match self
            .scopes
            .iter()
            .chain(&upstream.scopes)
            .find(|it| !is_scope(it))
        {
            Some(scope) => Err(ConsentProxyError::new(format!(
                "scopes: {scope:?} is no scope"
            ))),
            None => Ok(()),
        }
    }

    /// The path of the issuer, without a slash at its end.
    pub(super) fn path(&self) -> &str {
        let rest = self.issuer.split_once("://").map_or("", |(_, rest)| rest);
        rest.find('/')
            .and_then(|at| rest.get(at..))
            .unwrap_or_default()
    }

    /// Where the identity provider sends its answers.
    pub(super) fn callback(&self) -> String {
        format!("{}/callback", self.issuer)
    }

    /// The origin of the issuer.
    pub(super) fn origin(&self) -> &str {
        let end = self.issuer.len() - self.path().len();
        self.issuer.get(..end).unwrap_or_default()
    }
}

/// Whether a URL is one of https, or of http on this machine.
fn is_safe(url: &str) -> bool {
    let Ok(url) = Url::parse(url) else {
        return false;
    };
    let is_plain = url.query().is_none() && url.fragment().is_none() && url.username().is_empty();
    is_plain && (url.scheme() == "https" || url.scheme() == "http" && is_local(&url))
}

/// The identity provider, and this server as its client.
#[derive(Clone)]
#[non_exhaustive]
pub struct Upstream {
    /// Where users log in.
    pub authorization_endpoint: String,
    /// Where codes become tokens.
    pub token_endpoint: String,
    /// Where tokens are revoked, if the provider has that.
    pub revocation_endpoint: Option<String>,
    /// The provider's issuer, if it sends one with its answers (RFC 9207): others are refused then.
    pub issuer: Option<String>,
    /// The client id that the provider gave this server.
    pub client_id: String,
    /// The secret that the provider gave this server; sent as HTTP Basic.
    pub client_secret: Option<String>,
    /// The scopes asked of the provider. `openid` gives users a name.
    pub scopes: Vec<String>,
    /// Further parameters of the request for authorization: `("access_type", "offline")`.
    pub parameters: Vec<(String, String)>,
}

impl Upstream {
    /// A provider with these endpoints, and the client id that it gave this server.
    pub fn new(
        authorization_endpoint: impl Into<String>,
        token_endpoint: impl Into<String>,
        client_id: impl Into<String>,
    ) -> Self {
        Self {
            authorization_endpoint: authorization_endpoint.into(),
            token_endpoint: token_endpoint.into(),
            revocation_endpoint: None,
            issuer: None,
            client_id: client_id.into(),
            client_secret: None,
            scopes: vec!["openid".into()],
            parameters: Vec::new(),
        }
    }
}

impl fmt::Debug for Upstream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Upstream")
            .field("authorization_endpoint", &self.authorization_endpoint)
            .field("token_endpoint", &self.token_endpoint)
            .field("client_id", &self.client_id)
            .field("scopes", &self.scopes)
            .finish_non_exhaustive()
    }
}

/// Why there is no such server, or no such token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConsentProxyError(Box<str>);

impl ConsentProxyError {
    pub(super) fn new(why: impl Into<Box<str>>) -> Self {
        Self(why.into())
    }
}

impl fmt::Display for ConsentProxyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for ConsentProxyError {}
