//! Signed tokens as data, for configuration files and other languages.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::Error as _;
use serde_json::Error;

use super::Policy;
use super::jwt::{Jwt, JwtAlgorithm, JwtError, JwtKeys};
use super::texts::Texts;

/// The member `jwt` of a policy.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct TokenChecks {
    algorithm: Option<JwtAlgorithm>,
    key: Option<String>,
    #[serde(default)]
    keys: BTreeMap<String, Key>,
    issuer: Option<Texts>,
    audience: Option<Texts>,
    #[serde(default)]
    any_issuer: bool,
    #[serde(default)]
    any_audience: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Key {
    algorithm: JwtAlgorithm,
    key: String,
}

impl TokenChecks {
    /// # Errors
    /// If a key does not fit its algorithm, there is no key, or the issuer or the audience is neither
    /// set nor waived.
    pub fn read(self) -> Result<Jwt, Error> {
        let wrong = |why: JwtError| Error::custom(format!("`jwt`: {why}"));
        let first = match (self.algorithm, &self.key) {
            (Some(algorithm), Some(key)) => JwtKeys::one(algorithm, key.as_bytes()),
            (None, None) if !self.keys.is_empty() => Ok(JwtKeys::new()),
            _ => Err(JwtError::new(
                "set `algorithm` and `key`, or `keys` by their `kid`".into(),
            )),
        };
        let keys = add(first.map_err(wrong)?, self.keys).map_err(wrong)?;
        let mut tokens = Jwt::new(keys);
        for issuer in self.issuer.iter().flat_map(Texts::as_slice) {
            tokens = tokens.issuer(issuer);
        }
        for audience in self.audience.iter().flat_map(Texts::as_slice) {
            tokens = tokens.audience(audience);
        }
        if self.any_issuer {
            tokens = tokens.any_issuer();
        }
        if self.any_audience {
            tokens = tokens.any_audience();
        }
        tokens.build().map_err(wrong)
    }
}

fn add(to: JwtKeys, keys: BTreeMap<String, Key>) -> Result<JwtKeys, JwtError> {
    let mut keys = keys.into_iter();
    keys.try_fold(to, |all, (id, Key { algorithm, key })| {
        all.key(&id, algorithm, key.as_bytes())
    })
}

impl Policy {
    /// Replaces the keys of signed tokens, from the next token on, in a policy that was read [from
    /// JSON](Self::from_json) with `jwt`. `keys` is a JSON object: an `algorithm` and a `key` per
    /// `kid`. See [`Jwt::replace_keys`].
    ///
    /// ```
    /// use mcpbolt::policy::Policy;
    /// let policy = Policy::from_json(r#"{"jwt": {
    ///     "keys": {"june": {"algorithm": "HS256", "key": "an old secret of 32 bytes or more"}},
    ///     "issuer": "https://login.example",
    ///     "audience": "https://files.example"
    /// }}"#)?;
    /// policy.replace_jwt_keys(r#"{
    ///     "june": {"algorithm": "HS256", "key": "an old secret of 32 bytes or more"},
    ///     "july": {"algorithm": "HS256", "key": "a new secret, of 32 bytes or more"}
    /// }"#)?;
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the policy does not verify tokens, a key does not fit its algorithm, or `keys` is empty. The
    /// old keys stay then.
    pub fn replace_jwt_keys(&self, keys: &str) -> Result<(), Error> {
        let Some(tokens) = &self.tokens else {
            return Err(Error::custom(
                "this policy has no `jwt` whose keys could be replaced",
            ));
        };
        let keys: BTreeMap<String, Key> = serde_json::from_str(keys)?;
        if keys.is_empty() {
            return Err(Error::custom(
                "no key is given: every token would be refused",
            ));
        }
        let keys = add(JwtKeys::new(), keys).map_err(|why| Error::custom(why.to_string()))?;
        tokens.replace_keys(keys);
        Ok(())
    }
}
