//! Credentials of clients, and their verification.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac_sha256::Hash;

use crate::connection::{Principal, Rejection};
use crate::json::reader;
use crate::panics::contain;

/// The credentials of a client. `Debug` does not show secrets.
#[derive(Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Credentials<'a> {
    /// No credentials.
    None,
    /// A bearer token: `Authorization: Bearer …`.
    Bearer(&'a str),
    /// An API key: `X-API-Key: …`.
    ApiKey(&'a str),
    /// A name and a password: `Authorization: Basic …` (RFC 7617).
    Basic {
        /// The name.
        user: &'a str,
        /// The password.
        password: &'a str,
    },
    /// The client's certificate, proven by mutual TLS below HTTP: DER.
    Certificate(&'a [u8]),
}

impl Credentials<'_> {
    /// Passes the credentials in an `auth` member, raw JSON, to `read`. `auth` is an object with `type`
    /// (`bearer`, `basic` or `api_key`) and `credentials` (or `token`, or `key`); those of `basic` are written
    /// as in the header. Anything else is `Credentials::None`.
    pub(crate) fn with_said<R>(auth: Option<&str>, read: impl FnOnce(&Credentials<'_>) -> R) -> R {
        let text = |name| {
            let value = reader::find(auth?, name)?;
            reader::as_str(value)
        };
        let secret = ["credentials", "token", "key"].into_iter().find_map(text);
        let secret: Cow<'_, str> = secret.unwrap_or_default();
        let mut pair = String::new();
        read(&match text("type").as_deref() {
            Some("basic") => Credentials::of_basic(&secret, &mut pair),
            Some("bearer") if !secret.is_empty() => Credentials::Bearer(&secret),
            Some("api_key" | "api-key") if !secret.is_empty() => Credentials::ApiKey(&secret),
            _ => Credentials::None,
        })
    }
}

impl<'a> Credentials<'a> {
    /// Reads a name and a password in base64, with a colon between them (RFC 7617, section 2). `pair` keeps
    /// both. Anything else is `Credentials::None`.
    pub(crate) fn of_basic(base64: &str, pair: &'a mut String) -> Self {
        let decoded = STANDARD.decode(base64.trim()).ok();
        let Some(text) = decoded.and_then(|bytes| String::from_utf8(bytes).ok()) else {
            return Self::None;
        };
        *pair = text;
        let parts = pair.split_once(':');
        parts.map_or(Self::None, |(user, password)| Self::Basic {
            user,
            password,
        })
    }
}

impl fmt::Debug for Credentials<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "None",
            Self::Bearer(_) => "Bearer(…)",
            Self::ApiKey(_) => "ApiKey(…)",
            Self::Basic { .. } => "Basic(…)",
            Self::Certificate(_) => "Certificate(…)",
        })
    }
}

/// The verdict of a verifier that panics.
pub(super) const FAILED: Rejection =
    Rejection::Unavailable(Cow::Borrowed("the verification of the credentials failed"));

type Verify = dyn Fn(&Credentials<'_>) -> Result<Principal, Rejection> + Send + Sync;

/// The callback that verifies credentials.
#[derive(Clone)]
pub(super) struct Verifier(Arc<Verify>);

impl Verifier {
    pub fn new<E: Into<Rejection>>(
        verify: impl Fn(&Credentials<'_>) -> Result<Principal, E> + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(move |credentials| {
            verify(credentials).map_err(Into::into)
        }))
    }

    /// # Errors
    /// Why the credentials are not accepted. A callback that panics accepts none.
    pub fn verify(&self, credentials: &Credentials<'_>) -> Result<Principal, Rejection> {
        contain("a verifier", || (self.0)(credentials)).unwrap_or(Err(FAILED))
    }
}

impl fmt::Debug for Verifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Verifier(..)")
    }
}

/// API keys and their owners, for a [verifier](super::Policy::verifier). Only digests of the keys are
/// kept, so neither a memory dump nor the time of a lookup reveals anything about the keys.
///
/// ```
/// use mcpbolt::policy::{ApiKeys, Policy};
/// let keys = ApiKeys::new().key("k-1f9a", "alice");
/// let policy = Policy::new().verifier(move |credentials| keys.verify(credentials));
/// ```
#[derive(Clone, Debug, Default)]
pub struct ApiKeys(HashMap<[u8; 32], Principal>);

impl ApiKeys {
    /// Creates an empty set: every key is refused.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a key and its owner. An owner given by name, or by a principal [named](Principal::new) by
    /// the program, becomes a [`Principal::key`].
    #[must_use]
    pub fn key(mut self, key: &str, whose: impl Into<Principal>) -> Self {
        self.0
            .insert(Hash::hash(key.as_bytes()), whose.into().keyed());
        self
    }

    /// Returns the owner of the key.
    ///
    /// # Errors
    /// If the credentials are not a known API key.
    pub fn verify(&self, credentials: &Credentials<'_>) -> Result<Principal, String> {
        let Credentials::ApiKey(key) = credentials else {
            return Err("an API key is needed".into());
        };
        let digest = Hash::hash(key.as_bytes());
        let found = self.0.get(&digest).cloned();
        found.ok_or_else(|| "the API key is not known".into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// R-AUX-01, R-AUX-03
    #[test]
    fn credentials_are_read_and_not_shown() {
        let read = |auth: &str| Credentials::with_said(Some(auth), |it| format!("{it:?}"));
        for (auth, kind) in [
            (r#"{"type":"bearer","token":"t0p"}"#, "Bearer(…)"),
            (r#"{"type":"bearer","credentials":"t0p"}"#, "Bearer(…)"),
            (r#"{"type":"api_key","key":"t0p"}"#, "ApiKey(…)"),
            (r#"{"type":"api-key","credentials":"t0p"}"#, "ApiKey(…)"),
            (r#"{"type":"basic","credentials":"YTpiOmM="}"#, "Basic(…)"),
            (r#"{"type":"basic","credentials":"a:b"}"#, "None"),
            (r#"{"type":"basic","credentials":"YWI="}"#, "None"),
            (r#"{"type":"api_key"}"#, "None"),
            (r#"{"type":"magic","key":"t0p"}"#, "None"),
            (r#""t0p""#, "None"),
        ] {
            assert_eq!(read(auth), kind, "{auth}");
        }
        let mut pair = String::new();
        let (user, password) = ("a", "b:c");
        let read = Credentials::of_basic("YTpiOmM=", &mut pair);
        assert!(read == Credentials::Basic { user, password });
        assert!(Credentials::with_said(None, |it| *it == Credentials::None));
    }

    /// R-AUX-03
    #[test]
    fn keys_are_known_and_nothing_else_is() {
        let keys = ApiKeys::new().key("one", "alice").key("two", "bob");
        let who = |credentials| keys.verify(&credentials).map(|it| it.as_str().to_owned());
        assert_eq!(who(Credentials::ApiKey("one")).as_deref(), Ok("key:alice"));
        assert_eq!(who(Credentials::ApiKey("two")).as_deref(), Ok("key:bob"));
        for wrong in [
            Credentials::ApiKey("three"),
            Credentials::ApiKey(""),
            Credentials::Bearer("one"),
            Credentials::None,
        ] {
            assert!(who(wrong).is_err(), "{wrong:?}");
        }
        assert!(!format!("{keys:?}").contains("\"one\""));
        let broken = Verifier::new(|_| -> Result<_, String> { panic!("no") });
        assert_eq!(broken.verify(&Credentials::None), Err(FAILED));
    }
}
