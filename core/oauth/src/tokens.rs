//! Tokens as a store keeps them, and refreshing them once among all processes that share the store.
//!
//! Nothing here reads a clock or sends a request: the time is an argument, and the caller asks the
//! authorization server.

use std::fmt;
use std::io;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use crate::store::{CredentialStore, KeyLock};

/// The version of the documents that this release writes.
const VERSION: u32 = 1;

/// How many seconds before its end an access token is replaced, if it lives four times as long or more.
const EARLY: u64 = 10;

/// What a login gave: an access token and what is needed for the next one. Times are seconds since 1970,
/// so that they mean the same to every process. `Debug` omits secrets.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tokens {
    version: u32,
    /// Names the login that these tokens came of; random. Empty in documents of earlier releases.
    #[serde(default)]
    login: String,
    /// Counts the logins and refreshes of this key. The higher of two documents of one login is the newer one.
    generation: u64,
    /// The access token.
    pub access_token: String,
    /// How the access token is sent: `Bearer` or `DPoP`, in any case.
    pub token_type: String,
    /// When the server gave them.
    #[serde(default)]
    issued_at: u64,
    /// When the access token ends, if the server said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<u64>,
    /// The token for the next access token, if the server gives such tokens. It is never sent to anybody
    /// but the authorization server (R-AUC-17).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refresh_token: Option<String>,
    /// The scopes that the access token has, separated by spaces, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<String>,
    /// The key that the tokens are bound to by DPoP (RFC 9449), in the form of whoever made it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dpop_key: Option<String>,
}

/// A successful answer of a token endpoint (RFC 6749, section 5.1). `Debug` omits secrets.
#[derive(Clone, PartialEq, Eq, Deserialize)]
pub struct TokenResponse {
    /// The access token.
    pub access_token: String,
    /// How the access token is sent.
    pub token_type: String,
    /// How long the access token is valid, in seconds. Numbers in quotes and fractions occur, and are read.
    #[serde(default, deserialize_with = "seconds")]
    pub expires_in: Option<u64>,
    /// The token for the next access token.
    #[serde(default)]
    pub refresh_token: Option<String>,
    /// The scopes that were granted; absent if they are those that were asked for.
    #[serde(default)]
    pub scope: Option<String>,
}

impl Tokens {
    /// The tokens of an answer that came at `now`.
    pub fn new(response: TokenResponse, now: u64) -> Self {
        Self {
            version: VERSION,
            login: String::new(),
            generation: 0,
            access_token: response.access_token,
            token_type: response.token_type,
            issued_at: now,
            expires_at: response.expires_in.map(|valid| now.saturating_add(valid)),
            refresh_token: response.refresh_token.filter(|token| !token.is_empty()),
            scope: response.scope,
            dpop_key: None,
        }
    }

    /// Whether the access token is one that proofs of a key belong to.
    fn is_bound(&self) -> bool {
        self.token_type.eq_ignore_ascii_case("dpop")
    }

    /// Whether the access token has ended at `now`. A token whose end is unknown counts as valid.
    pub fn is_expired(&self, now: u64) -> bool {
        self.expires_at.is_some_and(|end| end <= now)
    }

    /// Whether to refresh at `now`: the access token has ended, or ends before a request with it may have
    /// reached the server. A token that no refresh token replaces is used to its end.
    pub fn wants_refresh(&self, now: u64) -> bool {
        let Some(end) = self.expires_at else {
            return false;
        };
        let lifetime = end.saturating_sub(self.issued_at);
        let early = match self.refresh_token {
            Some(_) => EARLY.min(lifetime / 4),
            None => 0,
        };
        end.saturating_sub(early) <= now
    }

    fn parse(document: &str) -> io::Result<Self> {
        // The error's text could quote a token.
        let tokens: io::Result<Self> = serde_json::from_str(document)
            .map_err(|_| invalid("the stored tokens are damaged; log out, then log in again"));
        let tokens = tokens?;
        if tokens.version > VERSION {
            return Err(invalid(
                "the stored tokens are from a newer release of this program; update this one, or log out and log in again",
            ));
        }
        Ok(tokens)
    }
}

/// The tokens kept under `key`.
///
/// # Errors
/// When the store fails, or what it has cannot be read.
pub async fn load(store: &dyn CredentialStore, key: &str) -> io::Result<Option<Tokens>> {
    let document = store.load(key).await?;
    document.as_deref().map(Tokens::parse).transpose()
}

/// The tokens kept under `key`, unless they cannot be understood.
async fn load_readable(store: &dyn CredentialStore, key: &str) -> io::Result<Option<Tokens>> {
    let document = store.load(key).await?;
    Ok(document.and_then(|document| Tokens::parse(&document).ok()))
}

/// Keeps the tokens of a new login under `key`, in place of those of an earlier one, readable or not.
///
/// # Errors
/// When the store fails, or the machine has no random numbers; the tokens are not kept then.
pub async fn keep(store: &dyn CredentialStore, key: &str, tokens: &mut Tokens) -> io::Result<()> {
    let _lock = store.lock(key).await?;
    let before = load_readable(store, key).await?;
    tokens.login = getrandom::u64().map_err(io::Error::other)?.to_string();
    tokens.generation = before.map_or(1, |before| before.generation.saturating_add(1));
    save(store, key, tokens).await
}

/// Removes the tokens kept under `key`, and returns them for revocation, if they can be read.
///
/// # Errors
/// When the store fails.
pub async fn forget(store: &dyn CredentialStore, key: &str) -> io::Result<Option<Tokens>> {
    let _lock = store.lock(key).await?;
    let tokens = load_readable(store, key).await?;
    store.remove(key).await?;
    Ok(tokens)
}

async fn save(store: &dyn CredentialStore, key: &str, tokens: &Tokens) -> io::Result<()> {
    store.save(key, &serde_json::to_string(tokens)?).await
}

/// What to do about an access token that has ended.
#[derive(Debug)]
pub enum Refresh {
    /// Use these: another process, or another task of this one, has refreshed them.
    TakenOver(Tokens),
    /// Ask the authorization server.
    Ask(HeldTokens),
    /// There is no refresh token: the user has to log in. The tokens are gone if somebody logged out.
    LoginNeeded,
}

/// Finds out how to replace `known`, whose access token has ended or was refused. Waits while another
/// process refreshes tokens of `key`.
///
/// # Errors
/// When the store fails, or what it has cannot be read.
pub async fn refresh(
    store: &Arc<dyn CredentialStore>,
    key: &str,
    known: &Tokens,
    now: u64,
) -> io::Result<Refresh> {
    let lock = store.lock(key).await?;
    let Some(stored) = load(&**store, key).await? else {
        return Ok(Refresh::LoginNeeded);
    };
    // Another login has replaced ours, perhaps with another user's. An older document of the same login
    // means that ours could not be saved: the refresh token in the store is used up.
    let is_newer = stored.login != known.login || stored.generation >= known.generation;
    let newest = match is_newer {
        true => stored,
        false => known.clone(),
    };
    if newest.access_token != known.access_token && !newest.is_expired(now) {
        return Ok(Refresh::TakenOver(newest));
    }
    let Some(refresh_token) = newest.refresh_token.clone() else {
        return Ok(Refresh::LoginNeeded);
    };
    Ok(Refresh::Ask(HeldTokens {
        store: Arc::clone(store),
        key: key.to_owned(),
        tokens: newest,
        refresh_token,
        _lock: lock,
    }))
}

/// The lock on tokens that are being refreshed. Everybody else waits until it is dropped.
///
/// Once the request is on its way, wait for the answer even if the caller gives up: with rotating refresh
/// tokens an answer that nobody reads is a login lost. Dropping this without an answer leaves the stored
/// tokens as they are.
pub struct HeldTokens {
    store: Arc<dyn CredentialStore>,
    key: String,
    tokens: Tokens,
    refresh_token: String,
    _lock: KeyLock,
}

impl HeldTokens {
    /// The refresh token to use, once.
    pub fn refresh_token(&self) -> &str {
        &self.refresh_token
    }

    /// The tokens that are replaced.
    pub fn tokens(&self) -> &Tokens {
        &self.tokens
    }

    /// Keeps what the server answered at `now`. What the answer leaves out stays as it was: the refresh
    /// token (RFC 6749, section 6), the scopes, and the DPoP key if the access token is bound to it.
    ///
    /// The new tokens are valid even if they could not be kept; the second value says whether they were.
    pub async fn granted(self, response: TokenResponse, now: u64) -> (Tokens, io::Result<()>) {
        let before = self.tokens;
        let mut tokens = Tokens::new(response, now);
        tokens.login = before.login;
        tokens.generation = before.generation.saturating_add(1);
        tokens.refresh_token = tokens.refresh_token.or(before.refresh_token);
        tokens.scope = tokens.scope.or(before.scope);
        tokens.dpop_key = before.dpop_key.filter(|_| tokens.is_bound());
        let saved = save(&*self.store, &self.key, &tokens).await;
        (tokens, saved)
    }

    /// Forgets the refresh token, after the server answered `invalid_grant`. Nobody tries it again.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn refused(self) -> io::Result<()> {
        let mut tokens = self.tokens;
        tokens.generation = tokens.generation.saturating_add(1);
        tokens.refresh_token = None;
        save(&*self.store, &self.key, &tokens).await
    }
}

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tokens")
            .field("token_type", &self.token_type)
            .field("expires_at", &self.expires_at)
            .field("scope", &self.scope)
            .field("refreshes", &self.refresh_token.is_some())
            .field("bound", &self.dpop_key.is_some())
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for TokenResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokenResponse")
            .field("token_type", &self.token_type)
            .field("expires_in", &self.expires_in)
            .field("scope", &self.scope)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for HeldTokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Held")
            .field("tokens", &self.tokens)
            .finish_non_exhaustive()
    }
}

/// A duration as servers write it. What is no duration counts as absent.
pub(crate) fn seconds<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
    let value = Value::deserialize(from)?;
    let number = match &value {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => text.trim().parse::<f64>().ok(),
        _ => None,
    };
    // As a cast clips: a huge number is a long time.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "checked and clipped"
    )]
    Ok(number
        .filter(|number| *number >= 0.0)
        .map(|number| number as u64))
}

fn invalid(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}
