//! Signed tokens in compact form (RFC 7515), taken apart before anything in them is trusted.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::refusal::TokenRefusal;
use crate::jwk::{PublicKey, SignatureAlgorithm};

/// Longest token or proof that is read, in bytes. Stops clients from having large headers decoded.
pub const MAX_TOKEN_BYTES: usize = 16 << 10;

pub(super) const TOO_LONG: TokenRefusal = TokenRefusal::token("the token is too long");

/// A token whose signature is not verified yet.
#[derive(Debug)]
pub struct Jws<'a> {
    header: Header,
    algorithm: SignatureAlgorithm,
    signed: &'a str,
    claims: Vec<u8>,
    signature: Vec<u8>,
}

/// The members of the header that count. `jku`, `x5u` and `x5c` are never followed.
#[derive(Debug, Deserialize)]
struct Header {
    alg: String,
    typ: Option<String>,
    kid: Option<String>,
    jwk: Option<Map<String, Value>>,
    crit: Option<Value>,
    zip: Option<Value>,
    cty: Option<String>,
}

impl<'a> Jws<'a> {
    /// Takes a token apart.
    ///
    /// # Errors
    /// Why the token is refused whatever its key. The refusal is one of a token; a caller that reads a
    /// proof changes its kind.
    pub fn parse(token: &'a str) -> Result<Self, TokenRefusal> {
        if token.len() > MAX_TOKEN_BYTES {
            return Err(TOO_LONG);
        }
        let mut parts = token.split('.');
        let (Some(header), Some(claims), Some(signature)) =
            (parts.next(), parts.next(), parts.next())
        else {
            return Err(TokenRefusal::token("the token is not a signed token"));
        };
        match parts.count() {
            0 => {}
            2 => return Err(TokenRefusal::token("the token is encrypted")),
            _ => return Err(TokenRefusal::token("the token is not a signed token")),
        }
        let signed = &token[..header.len() + 1 + claims.len()];
        let decoded = |part: &str| {
            let bytes = URL_SAFE_NO_PAD.decode(part);
            bytes.map_err(|_| TokenRefusal::token("a part of the token is not base64url"))
        };
        let header: Header = serde_json::from_slice(&decoded(header)?)
            .map_err(|_| TokenRefusal::token("the header of the token is malformed"))?;
        let algorithm = SignatureAlgorithm::parse(&header.alg);
        let algorithm = algorithm.ok_or(TokenRefusal::token(
            "the algorithm of the token is not accepted",
        ))?;
        if header.crit.is_some() || header.zip.is_some() {
            return Err(TokenRefusal::token("the token needs an unknown extension"));
        }
        if header.cty.is_some() {
            return Err(TokenRefusal::token("the token contains another token"));
        }
        Ok(Self {
            header,
            algorithm,
            signed,
            claims: decoded(claims)?,
            signature: decoded(signature)?,
        })
    }

    /// The algorithm that the token names. Only a key that [fits](PublicKey::fits) it can verify the token.
    pub fn algorithm(&self) -> SignatureAlgorithm {
        self.algorithm
    }

    /// The id of the key, if the token names one.
    pub fn key_id(&self) -> Option<&str> {
        self.header.kid.as_deref()
    }

    /// Whether the type of the token is `expected`, with or without `application/` and in any case (RFC
    /// 7515, section 4.1.9).
    pub fn has_type(&self, expected: &str) -> bool {
        let typ = self.header.typ.as_deref().unwrap_or_default();
        let short = typ
            .get(..12)
            .filter(|it| it.eq_ignore_ascii_case("application/"));
        let typ = short.map_or(typ, |prefix| &typ[prefix.len()..]);
        typ.eq_ignore_ascii_case(expected)
    }

    /// Whether the token names a type.
    pub fn names_type(&self) -> bool {
        self.header.typ.is_some()
    }

    /// The key in the header.
    pub fn key(&self) -> Option<&Map<String, Value>> {
        self.header.jwk.as_ref()
    }

    /// Whether `key` made the signature.
    pub fn is_signed_by(&self, key: &PublicKey) -> bool {
        key.verifies(self.algorithm, self.signed.as_bytes(), &self.signature)
    }

    /// Reads the claims. Call this once the signature is verified.
    ///
    /// # Errors
    /// If they are not an object of JSON, or one has the wrong type.
    pub fn claims<T: DeserializeOwned>(&self) -> Result<T, TokenRefusal> {
        let claims = serde_json::from_slice(&self.claims);
        claims.map_err(|_| TokenRefusal::token("the claims of the token are malformed"))
    }
}
