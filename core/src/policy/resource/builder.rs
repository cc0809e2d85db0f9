//! How a resource server is set up.

use std::fmt;
use std::time::Duration;

use mcpbolt_oauth::jwk::SignatureAlgorithm;
use mcpbolt_oauth::server::{
    ClientSecret, Introspection, Nonces, ProofRules, ResourceMetadata, TokenDigester, TokenRules,
    is_safe_url,
};

#[cfg(feature = "consent-proxy")]
use mcpbolt_oauth::server::KeySet;

use super::ResourceServer;
use super::authority::{Authority, KeySource};
use super::fetch::FetchOptions;
use super::tokens::TokenChecks;

/// Whether clients prove that they hold the key of their token (DPoP, RFC 9449).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ProofUse {
    /// Proofs are not accepted; a token that is bound to a key is refused.
    #[default]
    Off,
    /// A token that is bound to a key needs a proof; other tokens are bearer tokens.
    Accepted,
    /// Every token must be bound to a key and needs a proof.
    Required,
}

/// Error in the settings of a [`ResourceServer`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResourceError(String);

impl ResourceError {
    pub(in crate::policy) fn new(why: impl Into<String>) -> Self {
        Self(why.into())
    }
}

impl fmt::Display for ResourceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ResourceError {}

/// Builds a [`ResourceServer`]. `Debug` omits what is secret.
#[derive(Clone)]
pub struct ResourceServerBuilder {
    resource: String,
    issuers: Vec<Issuer>,
    audiences: Vec<String>,
    any_audience: bool,
    scopes: Vec<String>,
    leeway: Duration,
    cached_for: Option<Duration>,
    key_refresh: Duration,
    key_cooldown: Duration,
    proofs: ProofUse,
    proof_age: Duration,
    nonces: Option<([u8; 32], Duration)>,
    name: Option<String>,
    documentation: Option<String>,
    fetching: FetchOptions,
}

impl fmt::Debug for ResourceServerBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResourceServerBuilder")
            .field("resource", &self.resource)
            .field("issuers", &self.issuers)
            .field("scopes", &self.scopes)
            .field("fetching", &self.fetching)
            .finish_non_exhaustive()
    }
}

#[derive(Clone, Debug)]
struct Issuer {
    name: String,
    jwks: Option<String>,
    #[cfg(feature = "consent-proxy")]
    own: Option<KeySet>,
    introspection: Option<Introspection>,
}

impl ResourceServerBuilder {
    pub(super) fn new(resource: String) -> Self {
        Self {
            resource,
            issuers: Vec::new(),
            audiences: Vec::new(),
            any_audience: false,
            scopes: Vec::new(),
            leeway: Duration::from_secs(60),
            cached_for: None,
            key_refresh: Duration::from_secs(10 * 60),
            key_cooldown: Duration::from_secs(30),
            proofs: ProofUse::Off,
            proof_age: Duration::from_secs(300),
            nonces: None,
            name: None,
            documentation: None,
            fetching: FetchOptions::default(),
        }
    }

    /// Accepts tokens of this authorization server. May be called several times. Unless
    /// [`jwks`](Self::jwks) or [`introspection`](Self::introspection) follows, its tokens are verified by
    /// the policy's own verifier or, without one, by the keys that its metadata name (RFC 8414, OpenID
    /// Connect Discovery).
    #[must_use]
    pub fn issuer(mut self, issuer: impl Into<String>) -> Self {
        self.issuers.push(Issuer {
            name: issuer.into(),
            jwks: None,
            #[cfg(feature = "consent-proxy")]
            own: None,
            introspection: None,
        });
        self
    }

    /// Verifies tokens of the issuer before this call by these keys.
    #[cfg(feature = "consent-proxy")]
    pub(in crate::policy) fn keys(mut self, keys: KeySet) -> Self {
        if let Some(issuer) = self.issuers.last_mut() {
            issuer.own = Some(keys);
        }
        self
    }

    /// Verifies tokens of the issuer before this call by the keys at this URL.
    #[must_use]
    pub fn jwks(mut self, url: impl Into<String>) -> Self {
        if let Some(issuer) = self.issuers.last_mut() {
            issuer.jwks = Some(url.into());
        }
        self
    }

    /// Asks the issuer before this call about its tokens, at this introspection endpoint (RFC 7662), as the
    /// client with this id and secret. With [`jwks`](Self::jwks) beside it, only about tokens that are not
    /// signed.
    #[must_use]
    pub fn introspection(
        mut self,
        endpoint: impl Into<String>,
        id: impl Into<String>,
        secret: impl Into<String>,
    ) -> Self {
        if let Some(issuer) = self.issuers.last_mut() {
            issuer.introspection = Some(Introspection {
                endpoint: endpoint.into(),
                client: Some(ClientSecret {
                    id: id.into(),
                    secret: secret.into(),
                }),
            });
        }
        self
    }

    /// Accepts tokens for this audience, too. Tokens for the resource itself are always accepted.
    #[must_use]
    pub fn audience(mut self, audience: impl Into<String>) -> Self {
        self.audiences.push(audience.into());
        self
    }

    /// Accepts tokens for any audience or none. This includes tokens issued for another server, which can
    /// then use them here (R-AUS-07).
    #[must_use]
    pub fn any_audience(mut self) -> Self {
        self.any_audience = true;
        self
    }

    /// Requires these scopes of every request. They are what a client without a token is asked to get.
    #[must_use]
    pub fn scopes<S: Into<String>>(mut self, scopes: impl IntoIterator<Item = S>) -> Self {
        self.scopes.extend(scopes.into_iter().map(Into::into));
        self
    }

    /// Sets the tolerated difference between the clocks of issuer and server, in whole seconds; 60 s by
    /// default.
    #[must_use]
    pub fn leeway(mut self, leeway: Duration) -> Self {
        self.leeway = leeway;
        self
    }

    /// Sets how long an answer about a token is used again, at most until the token ends. 5 s by default for
    /// introspection. Verdicts of the policy's own verifier are used again only if this is set. Tokens that
    /// are verified by keys are known until they end or their key is gone.
    #[must_use]
    pub fn cached_for(mut self, time: Duration) -> Self {
        self.cached_for = Some(time);
        self
    }

    /// Sets when keys are fetched: at this age, 10 minutes by default, and at most once per `cooldown`, 30
    /// seconds by default, for tokens that name unknown keys.
    #[must_use]
    pub fn key_times(mut self, refresh: Duration, cooldown: Duration) -> Self {
        (self.key_refresh, self.key_cooldown) = (refresh, cooldown);
        self
    }

    /// Sets whether clients prove that they hold the key of their token.
    #[must_use]
    pub fn proofs(mut self, proofs: ProofUse) -> Self {
        self.proofs = proofs;
        self
    }

    /// Sets how far the time of a proof may be from now, before and after; 300 s by default. Proofs are
    /// remembered for twice as long.
    #[must_use]
    pub fn proof_age(mut self, age: Duration) -> Self {
        self.proof_age = age;
        self
    }

    /// Requires a nonce in each proof, which changes every `period`. Processes that share `secret` accept each
    /// other's nonces.
    #[must_use]
    pub fn proof_nonces(mut self, secret: [u8; 32], period: Duration) -> Self {
        self.nonces = Some((secret, period));
        self
    }

    /// Sets the name for people in the metadata.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Sets the page for developers in the metadata.
    #[must_use]
    pub fn documentation(mut self, url: impl Into<String>) -> Self {
        self.documentation = Some(url.into());
        self
    }

    /// Trusts these certificates (PEM) for issuers, in addition to those of the system.
    #[must_use]
    pub fn root_certificate(mut self, pem: impl Into<Vec<u8>>) -> Self {
        self.fetching.root_certificates.push(pem.into());
        self
    }

    /// Reaches issuers through the proxy at this URL, or through none if it is empty. By default the environment names
    /// the proxy.
    #[must_use]
    pub fn proxy(mut self, url: impl Into<String>) -> Self {
        self.fetching.proxy = Some(url.into());
        self
    }

    /// Builds the resource server. Nothing is fetched yet.
    ///
    /// # Errors
    /// If a URL is malformed or not safe, or no issuer is named. Certificates and the proxy are checked when the server
    /// starts to listen.
    pub fn build(self) -> Result<ResourceServer, ResourceError> {
        let mut metadata = ResourceMetadata::new(&self.resource).map_err(ResourceError::new)?;
        if self.issuers.is_empty() {
            return Err(ResourceError::new(
                "name an issuer: the URL of an authorization server whose tokens are accepted",
            ));
        }
        if let Some(twice) = (1..self.issuers.len()).find(|at| {
            self.issuers[..*at]
                .iter()
                .any(|it| it.name == self.issuers[*at].name)
        }) {
            let name = &self.issuers[twice].name;
            return Err(ResourceError::new(format!(
                "the issuer {name:?} is named twice"
            )));
        }
        let issuers: Vec<_> = self.issuers.iter().map(|it| it.name.clone()).collect();
        for issuer in &self.issuers {
            let urls = [
                Some(&issuer.name),
                issuer.jwks.as_ref(),
                issuer.introspection.as_ref().map(|it| &it.endpoint),
            ];
            for url in urls.into_iter().flatten() {
                if !is_safe_url(url) {
                    return Err(ResourceError::new(format!(
                        "{url:?}: the URL must be one of https, or of this machine"
                    )));
                }
            }
        }
        let mut audiences = metadata.audiences();
        audiences.extend(self.audiences);
        metadata.authorization_servers.clone_from(&issuers);
        metadata.name = self.name;
        metadata.documentation = self.documentation;
        metadata.requires_proofs = self.proofs == ProofUse::Required;
        if self.proofs != ProofUse::Off {
            metadata.proof_algorithms =
                SignatureAlgorithm::ALL.map(SignatureAlgorithm::name).into();
        }
        let rules = TokenRules {
            issuers,
            audiences,
            any_audience: self.any_audience,
            leeway: self.leeway.as_secs(),
        };
        let times = (self.key_refresh, self.key_cooldown);
        let authorities = self.issuers.into_iter().map(|it| {
            let keys = match (it.jwks, &it.introspection) {
                (Some(url), _) => Some(KeySource::At(url)),
                (None, None) => Some(KeySource::Discovered),
                (None, Some(_)) => None,
            };
            #[cfg(feature = "consent-proxy")]
            let keys = it.own.map(KeySource::Own).or(keys);
            Authority::new(it.name, keys, it.introspection, times)
        });
        let nonces = self
            .nonces
            .map(|(secret, period)| Nonces::new(secret, period.as_secs()));
        let digester = TokenDigester::new();
        let digester = digester
            .ok_or_else(|| ResourceError::new("the system has no random numbers to begin with"))?;
        Ok(ResourceServer::of(
            metadata,
            self.scopes,
            (self.proofs != ProofUse::Off)
                .then(|| ProofRules::new(self.proof_age.as_secs(), nonces)),
            TokenChecks::new(
                rules,
                authorities.collect(),
                self.cached_for,
                self.fetching,
                digester,
            ),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_shows_no_secret() {
        let builder = ResourceServerBuilder::new("https://api.example/mcp".into())
            .issuer("https://login.example")
            .introspection("https://login.example/ask", "me", "s3cret")
            .proof_nonces([201; 32], Duration::from_secs(60))
            .proxy("http://user:s3cret@proxy.example");
        let shown = format!("{builder:?} {:?}", builder.clone().build().unwrap());
        assert!(shown.contains("login.example"), "{shown}");
        assert!(
            !shown.contains("s3cret") && !shown.contains("201"),
            "{shown}"
        );
    }
}
