//! A resource server of OAuth: which tokens are accepted, what they are bound to, and how clients learn where
//! to get one.

mod authority;
mod builder;
mod fetch;
mod policy;
mod settings;
mod tokens;

use std::future::Future;
use std::io;
use std::sync::Arc;

use mcpbolt_oauth::challenge::Challenge;
use mcpbolt_oauth::jwk::sha256_base64url;
use mcpbolt_oauth::server::{
    PresentedToken, ProofRequest, ProofRules, RefusalKind, ResourceMetadata, TokenDigest,
    TokenRefusal, TokenScheme, UsedProof,
};

use self::fetch::FetchOptions;
use self::tokens::{TokenChecks, TokenVerdict};
use crate::connection::{Principal, unix_seconds};

pub use self::builder::{ProofUse, ResourceError, ResourceServerBuilder};
pub(crate) use self::fetch::{IssuerFetch, IssuerFetched};
pub(super) use self::settings::ResourceSettings;

/// A resource server of OAuth 2.1, for [`Policy::resource`](super::Policy::resource). Over HTTP, every
/// request needs an access token of one of its issuers, for this resource:
///
/// - Tokens are verified by the keys of the issuer, which are fetched once and again when they change; by
///   [introspection](ResourceServerBuilder::introspection); or by the verifier of the policy. RS256 to RS512,
///   PS256 to PS512, ES256, ES384 and EdDSA are accepted.
/// - A token must be for this resource (`aud`), of an accepted issuer, and must not have ended.
/// - A token that is bound to a key needs a [proof](ProofUse) (RFC 9449), one that is bound to a certificate a
///   connection with that certificate (RFC 8705).
/// - The metadata (RFC 9728) is served at `/.well-known/oauth-protected-resource`, with and without the path
///   of the resource, to pages of every origin.
/// - Refusals say in `WWW-Authenticate` where the metadata is, which scopes are needed, and what is wrong.
///
/// ```
/// use mcpbolt::policy::{Policy, ResourceServer};
/// let resource = ResourceServer::new("https://api.example/mcp")
///     .issuer("https://login.example")
///     .scopes(["notes:read"])
///     .build()?;
/// let policy = Policy::new().resource(resource).scope("note.write", "notes:write");
/// # Ok::<(), mcpbolt::policy::ResourceError>(())
/// ```
#[derive(Clone, Debug)]
pub struct ResourceServer(Arc<Resource>);

#[derive(Debug)]
struct Resource {
    metadata: ResourceMetadata,
    metadata_url: String,
    /// What every request requires.
    scopes: Vec<String>,
    proofs: Option<ProofRules>,
    tokens: Arc<TokenChecks>,
}

impl ResourceServer {
    /// Describes the resource server that clients reach at this URL; name its issuers next. The URL is the
    /// audience that tokens must have.
    #[expect(clippy::new_ret_no_self, reason = "a builder comes first")]
    pub fn new(resource: impl Into<String>) -> ResourceServerBuilder {
        ResourceServerBuilder::new(resource.into())
    }

    fn of(
        metadata: ResourceMetadata,
        scopes: Vec<String>,
        proofs: Option<ProofRules>,
        tokens: TokenChecks,
    ) -> Self {
        Self(Arc::new(Resource {
            metadata_url: metadata.url(),
            metadata,
            scopes,
            proofs,
            tokens: Arc::new(tokens),
        }))
    }

    /// Sets how issuers are reached, unless that is set.
    ///
    /// # Errors
    /// Those of `make`.
    pub(crate) fn connect(
        &self,
        make: impl FnOnce(&FetchOptions) -> io::Result<Arc<dyn IssuerFetch>>,
    ) -> io::Result<()> {
        self.0.tokens.connect(make)
    }

    /// Whether the policy's verifier, if there is one, verifies tokens.
    pub(super) fn leaves_tokens(&self) -> bool {
        self.0.tokens.are_discovered()
    }

    /// Whether the metadata is served at this path.
    pub(crate) fn has_metadata_at(&self, path: &str) -> bool {
        self.0.metadata.is_at(path)
    }

    /// The metadata, with the scopes that the policy requires.
    pub(super) fn document<'a>(&'a self, scopes: impl Iterator<Item = &'a str>) -> String {
        let mut metadata = self.0.metadata.clone();
        let own = self.0.scopes.iter().map(|it| &**it);
        metadata.scopes = own.chain(scopes).map(Into::into).collect();
        metadata.document()
    }

    /// The digest of a token.
    ///
    /// # Errors
    /// If the token is too long.
    pub(crate) fn digest(&self, token: &str) -> Result<TokenDigest, TokenRefusal> {
        self.0.tokens.digest(token)
    }

    /// What is known of a token.
    pub(crate) fn known(&self, token: &TokenDigest) -> Option<TokenVerdict> {
        self.0.tokens.known(token)
    }

    /// Verifies a token by its issuer.
    pub(crate) fn verify(
        &self,
        token: &str,
        digest: TokenDigest,
    ) -> impl Future<Output = TokenVerdict> + Send + use<> {
        self.0.tokens.clone().verify(token.to_owned(), digest)
    }

    /// Remembers a verdict of the policy's verifier.
    pub(crate) fn remember(&self, token: TokenDigest, verdict: &TokenVerdict) {
        self.0.tokens.remember(token, verdict);
    }

    /// Checks that who presents credentials is who they were given to. `presented` is `None` for credentials other than
    /// tokens. Returns the proof, if there is one, which other processes may have accepted.
    ///
    /// # Errors
    /// Why the token is refused.
    pub(crate) fn check_possession(
        &self,
        presented: Option<&PresentedToken<'_>>,
        principal: &Principal,
        request: &TokenRequest<'_>,
    ) -> Result<Option<UsedProof>, TokenRefusal> {
        let refuse = |why| Err(TokenRefusal::unfit(why));
        if let Some(bound) = principal.bound_certificate() {
            let own = request.certificate.map(sha256_base64url);
            if own.as_deref() != Some(bound) {
                return refuse(
                    "the credentials are bound to another certificate than that of the connection",
                );
            }
        }
        let Some(presented) = presented else {
            return match principal.bound_key() {
                Some(_) => refuse("the credentials are bound to a key, which only a token proves"),
                None => Ok(None),
            };
        };
        match (presented.scheme, &self.0.proofs, principal.bound_key()) {
            (TokenScheme::Bearer, _, Some(_)) => {
                refuse("the token is bound to a key: send it as DPoP, with a proof")
            }
            (TokenScheme::Bearer, _, None) if self.0.metadata.requires_proofs => {
                refuse("the token must be bound to a key and sent as DPoP, with a proof")
            }
            (TokenScheme::Bearer, _, None) => Ok(None),
            (TokenScheme::Dpop, None, _) => refuse("proofs are not accepted here"),
            (TokenScheme::Dpop, Some(_), None) => {
                refuse("the token is bound to no key: send it as Bearer")
            }
            (TokenScheme::Dpop, Some(rules), Some(key)) => {
                let url = self.0.metadata.target(request.path, request.is_endpoint);
                let about = ProofRequest {
                    method: request.method,
                    url: &url,
                    token: presented.token,
                    key,
                    now: unix_seconds(),
                };
                let used = rules.check(request.proofs.iter().copied(), &about)?;
                Ok(Some(used))
            }
        }
    }

    /// What every request requires.
    pub(super) fn scopes(&self) -> &[String] {
        &self.0.scopes
    }

    /// The challenges of a refusal, as values of `WWW-Authenticate`. `scope` is what the request needs beyond
    /// what every request requires.
    pub(crate) fn challenges(&self, refusal: &TokenRefusal, scope: Option<&str>) -> Vec<String> {
        let own = self.0.scopes.iter().map(|it| &**it);
        let more = scope
            .unwrap_or_default()
            .split(' ')
            .filter(|it| !it.is_empty());
        let scope = ResourceMetadata::published(own.chain(more)).join(" ");
        let has_proofs = self.0.proofs.is_some();
        let is_about_proof = matches!(
            refusal.kind,
            RefusalKind::InvalidProof | RefusalKind::NonceNeeded
        );
        let challenge = |scheme: &str, has_error: bool| {
            let mut challenge =
                Challenge::new(scheme).with("resource_metadata", &*self.0.metadata_url);
            if !scope.is_empty() {
                challenge = challenge.with("scope", &*scope);
            }
            if let Some(code) = refusal.kind.code().filter(|_| has_error) {
                challenge = challenge
                    .with("error", code)
                    .with("error_description", refusal.why);
            }
            if scheme == "DPoP" {
                challenge = challenge.with("algs", self.0.metadata.proof_algorithms.join(" "));
            }
            challenge.to_string()
        };
        let bearer =
            (!self.0.metadata.requires_proofs).then(|| challenge("Bearer", !is_about_proof));
        let dpop = has_proofs.then(|| challenge("DPoP", is_about_proof || bearer.is_none()));
        match is_about_proof {
            true => dpop.into_iter().chain(bearer).collect(),
            false => bearer.into_iter().chain(dpop).collect(),
        }
    }

    /// The nonce for the next proof, if proofs need one.
    pub(crate) fn nonce(&self) -> Option<String> {
        let nonces = self.0.proofs.as_ref()?.nonces.as_ref()?;
        Some(nonces.current(unix_seconds()))
    }
}

/// The parts of a request that a token may be bound to.
pub(crate) struct TokenRequest<'a> {
    pub method: &'a str,
    pub path: &'a str,
    /// Whether the path is that of the server's endpoint.
    pub is_endpoint: bool,
    /// The `DPoP` headers.
    pub proofs: &'a [&'a [u8]],
    /// The client's certificate, in DER.
    pub certificate: Option<&'a [u8]>,
}
