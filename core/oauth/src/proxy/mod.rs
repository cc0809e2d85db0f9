//! An authorization server in front of an identity provider that knows no client registration.
//!
//! MCP clients register themselves, or name a document about themselves; most identity providers know
//! only applications that somebody entered by hand. A [`ConsentProxy`] stands between them: to clients it
//! is an authorization server of its own (RFC 8414 metadata, dynamic registration, PKCE), to the provider
//! it is one application with one client id.
//!
//! ```text
//!   client ── /register ─▶ proxy                              a client id that holds what was registered
//!   browser ─ /authorize ▶ proxy ── page: "may this client…?" consent, for each client (R-CHN-20)
//!   browser ─ /consent ──▶ proxy ── 302 ─▶ provider           its own login, with the proxy's client id
//!   browser ◀─ 302 ─ /callback ◀─ 302 ─── provider            an answer with a code of the proxy
//!   client ── /token ────▶ proxy ── code ─▶ provider          a token of the proxy for the MCP server
//! ```
//!
//! Without consent for each client, the provider's own consent for the one client id, given once, would
//! let any client that registers take over the user's login (the "confused deputy").
//!
//! What the proxy must know again is sealed in the client id, the state, the code and the tokens, so every
//! process that has the same secret serves every request. Between requests a process keeps the marks of codes
//! and refresh tokens that it has redeemed and, for ten minutes, replies of the token endpoint whose client had
//! left: that client gets the reply when it asks this process again, once. A reply that is lost on its way costs
//! the login, since a refresh token that comes twice may be stolen. Its tokens are signed for the MCP server alone, and carry the provider's token,
//! sealed, for the program to use ([`ConsentProxy::upstream_token`]); a client never sees that one.

mod authorize;
mod browser;
mod callback;
mod clients;
mod consent;
mod form;
mod metadata;
mod options;
mod page;
mod redemptions;
mod reply;
mod seal;
mod server;
mod signer;
mod token;
mod upstream;
mod used;

pub use self::options::{ConsentProxyError, ConsentProxyOptions, Upstream};
pub use self::reply::{ProxyReply, ProxyRequest};
pub use self::server::ConsentProxy;
pub use self::token::ProxyToken;
pub use self::upstream::{Fetch, FetchRequest, FetchResponse, Fetched};

use self::metadata::ProxyEndpoint;
use self::seal::Seal;
use self::signer::Signer;
use self::used::Used;
use crate::server::{ResourceMetadata, TokenRules};

impl ConsentProxy {
    /// Creates the server. `secret` is what everything is sealed and signed with: 32 random bytes or more,
    /// the same in every process and after a restart, or else all logins are over.
    ///
    /// # Errors
    /// If the secret is too short or an option is wrong.
    pub fn new(options: ConsentProxyOptions, secret: &[u8]) -> Result<Self, ConsentProxyError> {
        options.check()?;
        let resource = ResourceMetadata::new(&options.resource).map_err(ConsentProxyError::new)?;
        if secret.len() < 32 {
            return Err(ConsentProxyError::new(
                "the secret has fewer than 32 bytes: take, for example, the output of `openssl rand -hex 32`",
            ));
        }
        Ok(Self {
            seal: Seal::new(secret)?,
            signer: Signer::new(secret)?,
            used: Used::default(),
            rules: TokenRules {
                issuers: vec![options.issuer.clone()],
                audiences: resource.audiences(),
                any_audience: false,
                // Tokens are not bound to a beginning, so leeway could only prolong them.
                leeway: 0,
            },
            options,
        })
    }

    /// The URL of this server, as its tokens name it.
    pub fn issuer(&self) -> &str {
        &self.options.issuer
    }

    /// The URL of the MCP server that tokens are for.
    pub fn resource(&self) -> &str {
        &self.options.resource
    }

    /// The keys that verify its tokens, as JSON (RFC 7517).
    pub fn keys(&self) -> String {
        self.signer.keys().to_string()
    }

    /// What a token of its must be, its signature aside.
    pub fn rules(&self) -> &TokenRules {
        &self.rules
    }

    /// Whether the server answers requests for this path.
    pub fn serves(&self, path: &str) -> bool {
        ProxyEndpoint::of(&self.options, path).is_some()
    }

    /// Answers a request. `now` is in seconds since the epoch; `http` asks the identity provider.
    pub async fn handle(
        &self,
        request: &ProxyRequest<'_>,
        now: u64,
        http: &dyn Fetch,
    ) -> ProxyReply {
        let Some(endpoint) = ProxyEndpoint::of(&self.options, request.path) else {
            return ProxyReply::not_found();
        };
        if let Some(reply) = endpoint.preflight(request.method) {
            return reply;
        }
        match endpoint {
            ProxyEndpoint::Metadata => metadata::of_server(&self.options),
            ProxyEndpoint::Keys => ProxyReply::json(200, self.signer.keys()).readable_anywhere(),
            ProxyEndpoint::Register => clients::register(self, request, now),
            ProxyEndpoint::Authorize => authorize::handle(self, request, now),
            ProxyEndpoint::Consent => consent::handle(self, request, now),
            ProxyEndpoint::Callback => callback::handle(self, request, now),
            ProxyEndpoint::Token => token::handle(self, request, now, http).await,
            ProxyEndpoint::Revoke => token::revoke(self, request, now, http).await,
        }
    }

    /// Whom a token of this server was issued to, if it is good at `now` for the MCP server: what a verifier in
    /// the same process needs, without asking for keys.
    ///
    /// # Errors
    /// Why the token is refused.
    pub fn verify(&self, access_token: &str, now: u64) -> Result<ProxyToken, ConsentProxyError> {
        token::verify(self, access_token, now)
    }

    /// The identity provider's token behind a token of this server that has been verified, for calls that
    /// the program makes for its user.
    ///
    /// # Errors
    /// If the token is none of this server's.
    pub fn upstream_token(&self, access_token: &str) -> Result<String, ConsentProxyError> {
        token::upstream_of(self, access_token).ok_or_else(|| ConsentProxyError::new(token::FOREIGN))
    }
}
