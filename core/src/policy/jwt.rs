//! Verification of signed tokens (RFC 7519) with `jsonwebtoken`.

use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{SystemTime, UNIX_EPOCH};

use jsonwebtoken::{Validation, decode, decode_header};
use serde::{Deserialize, Deserializer};

use super::Credentials;
pub use super::jwt_keys::{JwtAlgorithm, JwtError, JwtKeys};
use crate::connection::Principal;

/// Tolerated difference between the clocks of issuer and server, in seconds.
const LEEWAY: f64 = 60.0;

/// Verifies signed tokens, for a [verifier](super::Policy::verifier). `sub` and `iss` become the
/// [principal](Principal::jwt); `scope` lists the scopes granted to it.
///
/// A token is refused if
/// - its signature does not verify with the [key](JwtKeys) that the token names, or its algorithm is
///   not that of the key;
/// - its issuer (`iss`) or its audience (`aud`) is missing or not an accepted one;
///   [`any_issuer`](JwtBuilder::any_issuer) and [`any_audience`](JwtBuilder::any_audience) turn these
///   checks off;
/// - it has no expiry (`exp`), has expired or is not valid yet (`nbf`), with a tolerance of 60 s;
/// - one of `exp`, `nbf` and `iat` is not a number.
///
/// ```
/// use mcpbolt::policy::{Jwt, JwtAlgorithm, JwtKeys, Policy};
/// let secret = b"thirty-two bytes or more, shared";
/// let tokens = Jwt::new(JwtKeys::one(JwtAlgorithm::HS256, secret)?)
///     .issuer("https://login.example")
///     .audience("https://files.example")
///     .build()?;
/// let policy = Policy::new().verifier(move |credentials| tokens.verify(credentials));
/// # Ok::<(), mcpbolt::policy::JwtError>(())
/// ```
///
/// Clones share the keys: [`replace_keys`](Self::replace_keys) on one clone replaces the keys of all.
#[derive(Clone, Debug)]
pub struct Jwt {
    keys: Arc<RwLock<Arc<JwtKeys>>>,
    /// The required issuer and audience.
    claims: Validation,
}

/// Builds a [`Jwt`]. The issuer and the audience must be set or waived.
#[derive(Clone, Debug)]
pub struct JwtBuilder {
    keys: JwtKeys,
    claims: Validation,
    accepts_any_issuer: bool,
}

#[derive(Deserialize)]
struct Claims {
    sub: String,
    #[serde(default)]
    iss: Option<String>,
    #[serde(default)]
    scope: String,
    #[serde(deserialize_with = "number")]
    exp: Option<f64>,
    #[serde(default, deserialize_with = "number")]
    nbf: Option<f64>,
    #[serde(default, deserialize_with = "number", rename = "iat")]
    _iat: Option<f64>,
}

/// Reads a number; refuses `null`.
fn number<'de, D: Deserializer<'de>>(from: D) -> Result<Option<f64>, D::Error> {
    f64::deserialize(from).map(Some)
}

impl JwtBuilder {
    /// Accepts tokens of this issuer. May be called several times, for several issuers.
    #[must_use]
    pub fn issuer(mut self, issuer: &str) -> Self {
        self.accepts_any_issuer = false;
        self.claims
            .iss
            .get_or_insert_default()
            .insert(issuer.to_owned());
        self
    }

    /// Accepts tokens of any issuer or none.
    #[must_use]
    pub fn any_issuer(mut self) -> Self {
        self.accepts_any_issuer = true;
        self.claims.iss = None;
        self
    }

    /// Accepts tokens for this audience: the address under which clients know this server. May be
    /// called several times, for several audiences.
    #[must_use]
    pub fn audience(mut self, audience: &str) -> Self {
        self.claims.validate_aud = true;
        self.claims
            .aud
            .get_or_insert_default()
            .insert(audience.to_owned());
        self
    }

    /// Accepts tokens for any audience or none. This includes tokens issued for another server, which
    /// can then use them here.
    #[must_use]
    pub fn any_audience(mut self) -> Self {
        self.claims.validate_aud = false;
        self.claims.aud = None;
        self
    }

    /// Builds the verifier of tokens.
    ///
    /// # Errors
    /// If the issuer or the audience is neither set nor waived.
    pub fn build(self) -> Result<Jwt, JwtError> {
        let mut claims = self.claims;
        // Times are checked in `verify`: the crate treats a claim that it cannot read as absent.
        claims.validate_exp = false;
        claims.required_spec_claims.clear();
        for (what, claim, is_set, is_waived) in [
            (
                "issuer",
                "iss",
                claims.iss.is_some(),
                self.accepts_any_issuer,
            ),
            (
                "audience",
                "aud",
                claims.aud.is_some(),
                !claims.validate_aud,
            ),
        ] {
            if is_set {
                claims.required_spec_claims.insert(claim.into());
            } else if !is_waived {
                return Err(JwtError::new(format!(
                    "no {what} is set: name the {what} that tokens must have, or accept any {what}"
                )));
            }
        }
        Ok(Jwt {
            keys: Arc::new(RwLock::new(Arc::new(self.keys))),
            claims,
        })
    }
}

impl Jwt {
    /// Starts a verifier with these keys; set the issuer and the audience next.
    #[expect(clippy::new_ret_no_self, reason = "a builder comes first")]
    pub fn new(keys: JwtKeys) -> JwtBuilder {
        JwtBuilder {
            keys,
            claims: Validation::default(),
            accepts_any_issuer: false,
        }
    }

    /// Replaces the keys of this verifier and its clones, from the next token on. To rotate keys
    /// without refusing anybody, first replace them by the old and the new key, then by the new one
    /// alone once the last token of the old key has expired.
    pub fn replace_keys(&self, keys: JwtKeys) {
        *self.keys.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(keys);
    }

    /// Verifies a bearer token and returns its principal.
    ///
    /// # Errors
    /// Why the token is refused.
    pub fn verify(&self, credentials: &Credentials<'_>) -> Result<Principal, String> {
        let Credentials::Bearer(token) = credentials else {
            return Err("a bearer token is needed".into());
        };
        let refused = |why: &dyn fmt::Display| format!("the token is refused: {why}");
        let keys = self.keys.read().unwrap_or_else(PoisonError::into_inner);
        let keys = keys.clone();
        let header = decode_header(token).map_err(|why| refused(&why))?;
        let key = keys.find(header.kid.as_deref());
        let (algorithm, key) = key.ok_or_else(|| refused(&"no key has its kid"))?;
        let mut rules = self.claims.clone();
        rules.algorithms = vec![algorithm];
        let claims = decode::<Claims>(token, key, &rules);
        let claims = claims.map_err(|why| refused(&why))?.claims;
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now = now.map_err(|why| refused(&why))?.as_secs_f64();
        if !claims.exp.is_some_and(|end| now < end + LEEWAY) {
            return Err(refused(&"it has ended"));
        }
        if claims.nbf.is_some_and(|begin| now < begin - LEEWAY) {
            return Err(refused(&"it is not valid yet"));
        }
        let issuer = claims.iss.as_deref().unwrap_or_default();
        let who = Principal::jwt(issuer, claims.sub);
        Ok(who.with_scopes(claims.scope.split_whitespace()))
    }
}

#[cfg(test)]
mod tests {
    use jsonwebtoken::{EncodingKey, Header, encode};
    use serde_json::{Value, json};

    use super::*;

    const SECRET: &str = "a secret of thirty-two bytes, yes";
    const OTHER: &str = "another secret of as many bytes..";

    fn token(kid: Option<&str>, secret: &str, claims: &Value) -> String {
        let key = EncodingKey::from_secret(secret.as_bytes());
        let header = Header {
            kid: kid.map(Into::into),
            ..Header::default()
        };
        encode(&header, claims, &key).unwrap()
    }

    fn keys() -> JwtKeys {
        JwtKeys::one(JwtAlgorithm::HS256, SECRET.as_bytes()).unwrap()
    }

    fn now() -> u64 {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        now.unwrap().as_secs()
    }

    fn good() -> Value {
        json!({"sub": "alice", "scope": "a b", "iss": "me", "aud": "here", "exp": now() + 3600})
    }

    /// R-AUX-03, R-AUS-07: a token is refused an hour after its end, an hour before its beginning, from another
    /// issuer, for another audience, without an end, or with times that are not numbers.
    #[test]
    fn tokens_are_good_or_not() {
        let tokens = Jwt::new(keys()).issuer("me").audience("here");
        let tokens = tokens.build().unwrap();
        let verify = |claims: &Value| {
            let token = token(None, SECRET, claims);
            tokens.verify(&Credentials::Bearer(&token))
        };
        let alice = verify(&good()).unwrap();
        assert_eq!(alice.as_str(), "jwt:me#alice");
        assert!(alice.has_scope("a") && alice.has_scope("b") && !alice.has_scope("a b"));
        for (member, value) in [
            ("exp", Some(json!(now() - 3600))),
            ("exp", Some(json!("later"))),
            ("exp", Some(Value::Null)),
            ("exp", Some(json!(-1))),
            ("exp", None),
            ("nbf", Some(json!(now() + 3600))),
            ("nbf", Some(json!("later"))),
            ("nbf", Some(json!((now() - 3600).to_string()))),
            ("nbf", Some(Value::Null)),
            ("nbf", Some(json!(1e300))),
            ("nbf", Some(json!([0]))),
            ("iat", Some(json!("now"))),
            ("iss", Some(json!("you"))),
            ("iss", None),
            ("aud", Some(json!("there"))),
            ("aud", Some(json!(["there"]))),
            ("aud", None),
            ("sub", None),
        ] {
            let mut bad = good();
            match value {
                None => drop(bad.as_object_mut().unwrap().remove(member)),
                Some(value) => bad[member] = value,
            }
            assert!(verify(&bad).is_err(), "{bad}");
        }
        let forged = token(None, OTHER, &good());
        for wrong in [
            Credentials::Bearer(&forged),
            Credentials::Bearer("a.b.c"),
            Credentials::ApiKey(&token(None, SECRET, &good())),
            Credentials::None,
        ] {
            assert!(tokens.verify(&wrong).is_err(), "{wrong:?}");
        }
    }

    /// The issuer and the audience are required unless each is waived by its own method; one of several
    /// accepted values suffices.
    #[test]
    fn the_issuer_and_the_audience_are_waived_by_name_only() {
        let why = |builder: JwtBuilder| builder.build().unwrap_err().to_string();
        assert!(why(Jwt::new(keys())).contains("no issuer is set"));
        assert!(why(Jwt::new(keys()).issuer("me")).contains("no audience is set"));
        assert!(why(Jwt::new(keys()).any_audience()).contains("no issuer is set"));
        let with = |builder: JwtBuilder, member: &str, value: Value| {
            let mut claims = good();
            match value {
                Value::Null => drop(claims.as_object_mut().unwrap().remove(member)),
                value => claims[member] = value,
            }
            let token = token(None, SECRET, &claims);
            let who = builder
                .build()
                .unwrap()
                .verify(&Credentials::Bearer(&token));
            who.map(|who| who.as_str().to_owned())
        };
        let any_issuer = || Jwt::new(keys()).any_issuer().audience("here");
        let any_audience = || Jwt::new(keys()).issuer("me").any_audience();
        assert_eq!(
            with(any_issuer(), "iss", json!("you")).unwrap(),
            "jwt:you#alice"
        );
        assert_eq!(
            with(any_issuer(), "iss", Value::Null).unwrap(),
            "jwt:#alice"
        );
        assert!(with(any_issuer(), "aud", json!("there")).is_err());
        assert!(with(any_issuer(), "aud", Value::Null).is_err());
        assert!(with(any_audience(), "aud", json!("there")).is_ok());
        assert!(with(any_audience(), "aud", Value::Null).is_ok());
        assert!(with(any_audience(), "iss", Value::Null).is_err());
        let two = || Jwt::new(keys()).issuer("me").issuer("you").audience("here");
        assert!(with(two(), "iss", json!("you")).is_ok());
        assert!(with(two(), "iss", json!("them")).is_err());
    }

    /// The token's `kid` selects the key; replaced keys apply from the next token on, to clones, too.
    #[test]
    fn keys_are_found_by_their_id_and_replaced() {
        let hs = JwtAlgorithm::HS256;
        let first = JwtKeys::new().key("one", hs, SECRET.as_bytes()).unwrap();
        let both = first.clone().key("two", hs, OTHER.as_bytes()).unwrap();
        let second = JwtKeys::new().key("two", hs, OTHER.as_bytes()).unwrap();
        let tokens = Jwt::new(first).issuer("me").audience("here").build();
        let tokens = tokens.unwrap();
        let verifies = |kid: Option<&str>, secret: &str| {
            let token = token(kid, secret, &good());
            tokens.verify(&Credentials::Bearer(&token)).is_ok()
        };
        let of_all = || {
            (
                verifies(Some("one"), SECRET),
                verifies(Some("two"), OTHER),
                verifies(None, SECRET) || verifies(Some("three"), SECRET),
                verifies(Some("two"), SECRET) || verifies(Some("one"), OTHER),
            )
        };
        assert_eq!(of_all(), (true, false, false, false));
        tokens.clone().replace_keys(both);
        assert_eq!(of_all(), (true, true, false, false));
        tokens.replace_keys(second);
        assert_eq!(of_all(), (false, true, false, false));
        // A key without an id serves every token that does not name another key.
        tokens.replace_keys(keys());
        assert!(verifies(None, SECRET) && verifies(Some("one"), SECRET));
        assert!(!verifies(None, OTHER));
    }
}
