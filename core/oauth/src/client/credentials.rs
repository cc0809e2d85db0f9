//! What a login leaves behind: tokens, and what is known about where they came from.

use std::fmt;
use std::io;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use url::Url;

use super::error::LoginError;
use super::guard::Zone;
use super::jose::DpopKey;
use super::scopes::Scopes;
use super::secret::Secret;
use crate::store::CredentialStore;
use crate::tokens::{self, Tokens};

/// The version of the documents that this release writes.
const VERSION: u32 = 1;

/// Why bound tokens are of no use.
pub(super) const DAMAGED_KEY: &str =
    "the stored key of the tokens is damaged; log out, then log in again";

/// How a client authenticates itself (RFC 6749, section 2.3; RFC 7523).
pub(super) mod method {
    pub const NONE: &str = "none";
    pub const BASIC: &str = "client_secret_basic";
    pub const POST: &str = "client_secret_post";
    pub const PRIVATE_KEY_JWT: &str = "private_key_jwt";
}

/// A client as an authorization server knows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Registration {
    pub version: u32,
    pub client_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_secret: Option<Secret>,
    /// When the secret ends, in seconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub authentication: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub redirect_uris: Vec<String>,
    /// The grant that it was registered for. In documents of earlier releases, that with a browser.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grant: Option<String>,
}

impl Registration {
    pub fn new(client_id: impl Into<String>) -> Self {
        Self {
            version: VERSION,
            client_id: client_id.into(),
            client_secret: None,
            expires_at: None,
            authentication: None,
            redirect_uris: Vec::new(),
            grant: None,
        }
    }

    pub fn key(issuer: &str) -> String {
        format!("registration {issuer}")
    }
}

/// Where the tokens for an MCP server came from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Origin {
    pub version: u32,
    pub issuer: String,
    pub resource: String,
    /// The canonical URL of the MCP server. Documents of earlier releases lack it, and share their tokens with
    /// all URLs of the resource.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    pub client: Registration,
    pub token_endpoint: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revocation_endpoint: Option<String>,
    /// The zone furthest inside that the login could reach. Documents of earlier releases lack it: their tokens
    /// are sent to the public internet alone.
    #[serde(default = "nothing_inside")]
    pub reach: Zone,
}

fn nothing_inside() -> Zone {
    Zone::Public
}

impl Origin {
    pub fn version() -> u32 {
        VERSION
    }

    /// The key of the tokens: they belong to one issuer, one client, one resource, and one URL of it
    /// (R-AUC-09, R-AUC-13).
    pub fn tokens_key(&self) -> String {
        let shared = format!(
            "tokens {} {} {}",
            self.issuer, self.client.client_id, self.resource
        );
        match &self.url {
            Some(url) => format!("{shared} {url}"),
            None => shared,
        }
    }
}

/// Reads a document; one of a newer release counts as absent.
pub(super) async fn document<T: DeserializeOwned>(
    store: &dyn CredentialStore,
    key: &str,
) -> io::Result<Option<T>> {
    #[derive(Deserialize)]
    struct Head {
        version: u32,
    }
    let Some(text) = store.load(key).await? else {
        return Ok(None);
    };
    let head: Option<Head> = serde_json::from_str(&text).ok();
    if head.is_none_or(|head| head.version > VERSION) {
        return Ok(None);
    }
    Ok(serde_json::from_str(&text).ok())
}

/// The key of what is known about an MCP server.
fn server_key(url: &str) -> io::Result<String> {
    let wrong = || io::Error::new(io::ErrorKind::InvalidInput, "the server's URL is no URL");
    let url = Url::parse(url).map_err(|_| wrong())?;
    Ok(format!("server {}", canonical(&url)))
}

/// The key that is locked during a login at an MCP server: there is one at a time.
pub(super) fn login_key(url: &Url) -> String {
    format!("login {}", canonical(url))
}

/// The canonical URL of an MCP server (R-AUC-08).
pub(super) fn canonical(url: &Url) -> String {
    let mut url = url.clone();
    url.set_fragment(None);
    let _ = url.set_username("");
    let _ = url.set_password(None);
    let is_bare = url.path() == "/" && url.query().is_none();
    let text = String::from(url);
    match text.strip_suffix('/') {
        Some(bare) if is_bare => bare.to_owned(),
        _ => text,
    }
}

/// The tokens for one MCP server. `Debug` omits secrets.
#[derive(Clone)]
pub struct ServerCredentials {
    pub(super) tokens: Tokens,
    pub(super) origin: Origin,
    pub(super) key: Option<DpopKey>,
    /// The scopes that were asked for, if this process did so.
    pub(super) asked: Scopes,
    /// Whether they came of a refresh, not of a login.
    pub(super) is_refreshed: bool,
}

impl ServerCredentials {
    pub(super) fn new(tokens: Tokens, origin: Origin) -> Self {
        let key = tokens.dpop_key.as_deref().and_then(DpopKey::read);
        Self {
            tokens,
            origin,
            key,
            asked: Scopes::default(),
            is_refreshed: false,
        }
    }

    /// The credentials kept for the MCP server at `url`.
    ///
    /// # Errors
    /// When the URL is none, the store fails, or the tokens in it cannot be read.
    pub async fn load(store: &dyn CredentialStore, url: &str) -> io::Result<Option<Self>> {
        let Some(origin) = document::<Origin>(store, &server_key(url)?).await? else {
            return Ok(None);
        };
        let tokens = tokens::load(store, &origin.tokens_key()).await?;
        let loaded = tokens.map(|tokens| Self::new(tokens, origin));
        match loaded {
            Some(loaded) if loaded.lacks_key() => {
                Err(io::Error::new(io::ErrorKind::InvalidData, DAMAGED_KEY))
            }
            loaded => Ok(loaded),
        }
    }

    /// Keeps new credentials for the MCP server at `url`. Those of an earlier login there that came of
    /// another authorization server, or of another client, are removed, unless other URLs may share them.
    pub(super) async fn keep(&mut self, store: &dyn CredentialStore, url: &str) -> io::Result<()> {
        let key = server_key(url)?;
        let before: Option<Origin> = document(store, &key).await?;
        let own = self.origin.tokens_key();
        tokens::keep(store, &own, &mut self.tokens).await?;
        let origin = serde_json::to_string(&self.origin)?;
        store.save(&key, &origin).await?;
        let before = before.filter(|before| before.url.is_some());
        let before = before.map(|before| before.tokens_key());
        match before.filter(|before| *before != own) {
            Some(before) => tokens::forget(store, &before).await.map(drop),
            None => Ok(()),
        }
    }

    /// Whether the tokens are bound to a key that cannot be read: nobody would accept them.
    pub(super) fn lacks_key(&self) -> bool {
        self.tokens.dpop_key.is_some() && self.key.is_none()
    }

    /// Removes the credentials kept for the MCP server at `url`, and returns them for revocation, if they
    /// can be read. The registration of the client stays.
    ///
    /// # Errors
    /// When the URL is none, or the store fails. The tokens are still in the store then, for a second try.
    pub async fn forget(store: &dyn CredentialStore, url: &str) -> io::Result<Option<Self>> {
        let key = server_key(url)?;
        let origin: Option<Origin> = document(store, &key).await?;
        let Some(origin) = origin else {
            return Ok(None);
        };
        // The tokens last: whoever has taken them out revokes them.
        store.remove(&key).await?;
        match tokens::forget(store, &origin.tokens_key()).await {
            Ok(tokens) => Ok(tokens.map(|tokens| Self::new(tokens, origin))),
            Err(error) => {
                // Without the document, nothing would find the tokens.
                let _ = store.save(&key, &serde_json::to_string(&origin)?).await;
                Err(error)
            }
        }
    }

    /// The tokens.
    pub fn tokens(&self) -> &Tokens {
        &self.tokens
    }

    /// Whether they came of a refresh, not of a login.
    pub fn is_refreshed(&self) -> bool {
        self.is_refreshed
    }

    /// The issuer of the tokens.
    pub fn issuer(&self) -> &str {
        &self.origin.issuer
    }

    /// The client id that the tokens were given to.
    pub fn client_id(&self) -> &str {
        &self.origin.client.client_id
    }

    /// The zone furthest inside that the login could reach. Requests about its tokens go as far.
    pub fn reach(&self) -> Zone {
        self.origin.reach
    }

    /// The server that the tokens are for.
    pub fn resource(&self) -> &str {
        &self.origin.resource
    }

    /// Whether the client authenticates itself with a signing key, which no store has.
    pub fn needs_signing_key(&self) -> bool {
        self.origin.client.authentication.as_deref() == Some(method::PRIVATE_KEY_JWT)
    }

    /// Where tokens are revoked (RFC 7009), if anywhere.
    pub fn revocation_endpoint(&self) -> Option<&str> {
        self.origin.revocation_endpoint.as_deref()
    }

    /// The headers of a request at `now` with these tokens (R-AUC-01): names and values. `nonce` is the
    /// last DPoP nonce of the MCP server, if there is one.
    ///
    /// # Errors
    /// When the machine has no random numbers.
    pub fn headers(
        &self,
        method: &str,
        url: &str,
        nonce: Option<&str>,
        now: u64,
    ) -> Result<Vec<(&'static str, String)>, LoginError> {
        let token = &self.tokens.access_token;
        let Some(key) = &self.key else {
            return Ok(vec![("authorization", format!("Bearer {token}"))]);
        };
        let proof = key.proof(method, url, Some(token), nonce, now)?;
        Ok(vec![
            ("authorization", format!("DPoP {token}")),
            ("dpop", proof),
        ])
    }
}

impl fmt::Debug for ServerCredentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials")
            .field("issuer", &self.origin.issuer)
            .field("client_id", &self.origin.client.client_id)
            .field("resource", &self.origin.resource)
            .field("tokens", &self.tokens)
            .finish_non_exhaustive()
    }
}
