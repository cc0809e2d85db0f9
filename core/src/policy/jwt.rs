//! Tokens that say who bears them, signed (RFC 7519), by `jsonwebtoken`.

use std::fmt;

use jsonwebtoken::errors::{Error, ErrorKind};
use jsonwebtoken::{Algorithm, DecodingKey, Validation, decode};
use serde::Deserialize;

use super::Credentials;
use crate::connection::Principal;

/// Reads signed tokens, for a [verifier](super::Policy::verifier): `sub` is who bears one, `scope`
/// what was granted. One without an end (`exp`), for somebody else (`aud`), or that is not good yet
/// (`nbf`), is none. Clocks may differ by 60 s.
///
/// ```
/// use mcpbolt::policy::{Jwt, Policy};
/// let tokens = Jwt::secret(b"shared with who issues them")?.audience("https://files.example");
/// let policy = Policy::new().verifier(move |credentials| tokens.verify(credentials));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Jwt {
    key: DecodingKey,
    rules: Validation,
}

#[derive(Deserialize)]
struct Claims {
    sub: String,
    #[serde(default)]
    scope: String,
    /// Read here so that one which is no number makes the token none: it would be passed over.
    #[serde(default, rename = "nbf")]
    _nbf: Option<f64>,
}

impl Jwt {
    /// Signed by HMAC with SHA-256.
    ///
    /// # Errors
    /// When the secret is empty: everybody knows that one.
    pub fn secret(secret: &[u8]) -> Result<Self, Error> {
        if secret.is_empty() {
            return Err(ErrorKind::InvalidKeyFormat.into());
        }
        let key = DecodingKey::from_secret(secret);
        Ok(Self::of(key, Algorithm::HS256))
    }

    /// Signed by RSA with SHA-256, the public key in PEM.
    ///
    /// # Errors
    /// When it is no such key.
    pub fn rsa(pem: &[u8]) -> Result<Self, Error> {
        let key = DecodingKey::from_rsa_pem(pem)?;
        Ok(Self::of(key, Algorithm::RS256))
    }

    /// Signed by ECDSA over P-256 with SHA-256, the public key in PEM.
    ///
    /// # Errors
    /// When it is no such key.
    pub fn ecdsa(pem: &[u8]) -> Result<Self, Error> {
        let key = DecodingKey::from_ec_pem(pem)?;
        Ok(Self::of(key, Algorithm::ES256))
    }

    fn of(key: DecodingKey, algorithm: Algorithm) -> Self {
        let mut rules = Validation::new(algorithm);
        rules.validate_nbf = true;
        Self { key, rules }
    }

    /// Only those that this one issued.
    #[must_use]
    pub fn issuer(mut self, issuer: &str) -> Self {
        self.rules.set_issuer(&[issuer]);
        self.rules.required_spec_claims.insert("iss".into());
        self
    }

    /// Only those for this server, by the address that it is known by. Without it, only those that
    /// are for nobody in particular.
    #[must_use]
    pub fn audience(mut self, audience: &str) -> Self {
        self.rules.set_audience(&[audience]);
        self.rules.required_spec_claims.insert("aud".into());
        self
    }

    /// Who bears a token.
    ///
    /// # Errors
    /// Why it is not good.
    pub fn verify(&self, credentials: &Credentials<'_>) -> Result<Principal, String> {
        let Credentials::Bearer(token) = credentials else {
            return Err("a bearer token is needed".into());
        };
        let claims = decode::<Claims>(token, &self.key, &self.rules);
        let claims = claims
            .map_err(|why| format!("the token is not good: {why}"))?
            .claims;
        Ok(Principal::new(claims.sub).with_scopes(claims.scope.split_whitespace()))
    }
}

impl fmt::Debug for Jwt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Jwt")
            .field("rules", &self.rules)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::time::{SystemTime, UNIX_EPOCH};

    use jsonwebtoken::{EncodingKey, Header, encode};
    use serde_json::{Value, json};

    use super::*;

    fn token(secret: &str, claims: &Value) -> String {
        let key = EncodingKey::from_secret(secret.as_bytes());
        encode(&Header::default(), claims, &key).unwrap()
    }

    /// R-AUX-03: an hour before its end a token is good, an hour after not; nor is one that begins
    /// later, that another issued, or for another, or that has no end.
    #[test]
    fn tokens_are_good_or_not() {
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap()
            .as_secs();
        let tokens = Jwt::secret(b"s").unwrap().issuer("me").audience("here");
        let good =
            json!({"sub": "alice", "scope": "a b", "iss": "me", "aud": "here", "exp": now + 3600});
        let said = |claims: &Value| tokens.verify(&Credentials::Bearer(&token("s", claims)));
        let alice = said(&good).unwrap();
        assert_eq!(alice.as_str(), "alice");
        assert!(alice.has_scope("a") && alice.has_scope("b") && !alice.has_scope("a b"));
        for (member, value) in [
            ("exp", json!(now - 3600)),
            ("exp", json!("later")),
            ("exp", Value::Null),
            ("nbf", json!(now + 3600)),
            ("nbf", json!("later")),
            ("iss", json!("you")),
            ("iss", Value::Null),
            ("aud", json!("there")),
            ("aud", Value::Null),
            ("sub", Value::Null),
        ] {
            let mut bad = good.clone();
            match value {
                Value::Null => drop(bad.as_object_mut().unwrap().remove(member)),
                value => bad[member] = value,
            }
            assert!(said(&bad).is_err(), "{bad}");
        }
        assert!(Jwt::secret(b"").is_err());
        let forged = token("t", &good);
        for wrong in [
            Credentials::Bearer(&forged),
            Credentials::Bearer("a.b.c"),
            Credentials::ApiKey(&token("s", &good)),
            Credentials::None,
        ] {
            assert!(tokens.verify(&wrong).is_err(), "{wrong:?}");
        }
    }
}
