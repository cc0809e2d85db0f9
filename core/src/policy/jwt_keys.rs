//! The keys that verify signed tokens.

use std::collections::HashMap;
use std::fmt;

use jsonwebtoken::{Algorithm, DecodingKey};
use serde::Deserialize;

/// Signature algorithm of a token (RFC 7518, 3.1). A key serves one algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[non_exhaustive]
pub enum JwtAlgorithm {
    /// HMAC with SHA-256: a secret of 32 bytes or more.
    HS256,
    /// HMAC with SHA-384: a secret of 48 bytes or more.
    HS384,
    /// HMAC with SHA-512: a secret of 64 bytes or more.
    HS512,
    /// RSA with SHA-256: the public key in PEM.
    RS256,
    /// RSA with SHA-384: the public key in PEM.
    RS384,
    /// RSA with SHA-512: the public key in PEM.
    RS512,
    /// ECDSA over P-256 with SHA-256: the public key in PEM.
    ES256,
    /// ECDSA over P-384 with SHA-384: the public key in PEM.
    ES384,
    /// Ed25519: the public key in PEM.
    EdDSA,
}

/// Error in the settings of a [`Jwt`](super::Jwt).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JwtError(Box<str>);

impl JwtError {
    pub(super) fn new(why: String) -> Self {
        Self(why.into())
    }
}

impl fmt::Display for JwtError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for JwtError {}

/// The keys of a [`Jwt`](super::Jwt), by id. A token is verified with the key whose id is the token's
/// `kid`, else with the key without an id. If there is neither, the token is refused.
///
/// ```
/// use mcpbolt::policy::{JwtAlgorithm::HS256, JwtKeys};
/// let keys = JwtKeys::new()
///     .key("2026-06", HS256, b"an old secret of 32 bytes or more")?
///     .key("2026-07", HS256, b"a new secret, of 32 bytes or more")?;
/// # Ok::<(), mcpbolt::policy::JwtError>(())
/// ```
#[derive(Clone, Default)]
pub struct JwtKeys {
    by_id: HashMap<String, (Algorithm, DecodingKey)>,
    /// The key without an id, for tokens that name no key in `by_id`.
    other: Option<(Algorithm, DecodingKey)>,
}

impl JwtKeys {
    /// Creates an empty set: every token is refused.
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates a set with a single key, for every token.
    ///
    /// # Errors
    /// If the key does not fit the algorithm, or a secret is shorter than the algorithm needs.
    pub fn one(algorithm: JwtAlgorithm, key: &[u8]) -> Result<Self, JwtError> {
        let other = Some(read(algorithm, key)?);
        Ok(Self {
            other,
            ..Self::default()
        })
    }

    /// Adds a key under an id (`kid`); replaces an earlier key with that id.
    ///
    /// # Errors
    /// If the key does not fit the algorithm, or a secret is shorter than the algorithm needs.
    pub fn key(mut self, id: &str, algorithm: JwtAlgorithm, key: &[u8]) -> Result<Self, JwtError> {
        let read = read(algorithm, key)
            .map_err(|why| JwtError::new(format!("the key of the kid {id:?}: {why}")))?;
        self.by_id.insert(id.to_owned(), read);
        Ok(self)
    }

    /// The key for a token with this `kid`.
    pub(super) fn find(&self, id: Option<&str>) -> Option<(Algorithm, &DecodingKey)> {
        let named = id.and_then(|id| self.by_id.get(id));
        let (algorithm, key) = named.or(self.other.as_ref())?;
        Some((*algorithm, key))
    }
}

fn read(algorithm: JwtAlgorithm, key: &[u8]) -> Result<(Algorithm, DecodingKey), JwtError> {
    let least = match algorithm {
        JwtAlgorithm::HS256 => 32,
        JwtAlgorithm::HS384 => 48,
        JwtAlgorithm::HS512 => 64,
        _ => 0,
    };
    if key.len() < least {
        return Err(JwtError::new(format!(
            "a secret of {} bytes is too short for {algorithm:?}: use {least} random bytes or more",
            key.len()
        )));
    }
    let secret = |secret: &[u8]| Ok(DecodingKey::from_secret(secret));
    let (own, read): (_, fn(&[u8]) -> _) = match algorithm {
        JwtAlgorithm::HS256 => (Algorithm::HS256, secret),
        JwtAlgorithm::HS384 => (Algorithm::HS384, secret),
        JwtAlgorithm::HS512 => (Algorithm::HS512, secret),
        JwtAlgorithm::RS256 => (Algorithm::RS256, DecodingKey::from_rsa_pem),
        JwtAlgorithm::RS384 => (Algorithm::RS384, DecodingKey::from_rsa_pem),
        JwtAlgorithm::RS512 => (Algorithm::RS512, DecodingKey::from_rsa_pem),
        JwtAlgorithm::ES256 => (Algorithm::ES256, DecodingKey::from_ec_pem),
        JwtAlgorithm::ES384 => (Algorithm::ES384, DecodingKey::from_ec_pem),
        JwtAlgorithm::EdDSA => (Algorithm::EdDSA, DecodingKey::from_ed_pem),
    };
    let key = read(key).map_err(|why: jsonwebtoken::errors::Error| {
        JwtError::new(format!("no public key in PEM for {algorithm:?}: {why}"))
    })?;
    Ok((own, key))
}

/// Shows the ids, not the keys.
impl fmt::Debug for JwtKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JwtKeys")
            .field("ids", &self.by_id.keys())
            .field("has_key_without_id", &self.other.is_some())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 7518, 3.2: a secret must not be shorter than the hash.
    #[test]
    fn short_secrets_and_what_is_no_key_are_refused() {
        let long = [7; 64];
        for (algorithm, least) in [
            (JwtAlgorithm::HS256, 32),
            (JwtAlgorithm::HS384, 48),
            (JwtAlgorithm::HS512, 64),
        ] {
            assert!(JwtKeys::one(algorithm, &long[..least]).is_ok());
            for short in [0, 1, 31, least - 1] {
                let why = JwtKeys::one(algorithm, &long[..short]).unwrap_err();
                let said = format!("a secret of {short} bytes is too short for {algorithm:?}");
                assert!(why.to_string().starts_with(&said), "{why}");
            }
        }
        for algorithm in [
            JwtAlgorithm::RS256,
            JwtAlgorithm::RS384,
            JwtAlgorithm::RS512,
            JwtAlgorithm::ES256,
            JwtAlgorithm::ES384,
            JwtAlgorithm::EdDSA,
        ] {
            let why = JwtKeys::new().key("k", algorithm, b"no PEM").unwrap_err();
            assert!(
                why.to_string().contains("the key of the kid \"k\""),
                "{why}"
            );
        }
        let shown = JwtKeys::new().key("k", JwtAlgorithm::HS256, &long).unwrap();
        assert!(!format!("{shown:?}").contains('7'));
    }
}
