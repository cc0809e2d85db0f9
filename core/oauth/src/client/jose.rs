//! Signatures of a client: assertions about itself, and proofs that it has a key (DPoP, RFC 9449).

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::{Algorithm, EncodingKey, Header};
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};
use serde_json::{Value, json};

use super::error::{LoginError, LoginStage};
use super::options::SigningKey;
use crate::encoding;
use crate::jwk::{PublicKey, sha256_base64url};

/// How long an assertion is valid, in seconds.
const ASSERTION_SECONDS: u64 = 120;

/// A text of 256 random bits.
pub(super) fn random() -> Result<String, LoginError> {
    encoding::random().ok_or_else(|| failed("this machine has no random numbers"))
}

fn failed(why: &str) -> LoginError {
    LoginError::new(LoginStage::Token, why)
}

/// An assertion that this is the client of that id, for one authorization server (RFC 7523, section 3).
pub(super) fn assertion(
    key: &SigningKey,
    client_id: &str,
    issuer: &str,
    now: u64,
) -> Result<String, LoginError> {
    let mut header = Header::new(key.algorithm);
    header.kid = key.key_id.clone();
    let claims = json!({
        "iss": client_id, "sub": client_id, "aud": issuer, "jti": random()?,
        "iat": now, "exp": now + ASSERTION_SECONDS,
    });
    jsonwebtoken::encode(&header, &claims, &key.key)
        .map_err(|_| failed("the assertion cannot be signed with this key"))
}

/// The key that tokens are bound to (ES256). `Debug` omits it.
#[derive(Clone)]
pub struct DpopKey {
    key: EncodingKey,
    jwk: Value,
    public: PublicKey,
    document: String,
}

impl DpopKey {
    /// A new key.
    ///
    /// # Errors
    /// When the machine has no random numbers.
    pub fn generate() -> Result<Self, LoginError> {
        let pkcs8 =
            EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &SystemRandom::new());
        let pkcs8 = pkcs8.map_err(|_| failed("this machine has no random numbers"))?;
        Self::read(&URL_SAFE_NO_PAD.encode(pkcs8.as_ref()))
            .ok_or_else(|| failed("a new key is not valid"))
    }

    /// The key in a document of [`document`](Self::document); `None` if it is damaged.
    pub fn read(document: &str) -> Option<Self> {
        let pkcs8 = URL_SAFE_NO_PAD.decode(document).ok()?;
        let pair = EcdsaKeyPair::from_pkcs8(
            &ECDSA_P256_SHA256_FIXED_SIGNING,
            &pkcs8,
            &SystemRandom::new(),
        );
        let pair = pair.ok()?;
        let point = pair.public_key().as_ref();
        // Uncompressed: one byte, then both coordinates.
        let (x, y) = point.get(1..)?.split_at_checked(32)?;
        let jwk = json!({
            "crv": "P-256", "kty": "EC",
            "x": URL_SAFE_NO_PAD.encode(x), "y": URL_SAFE_NO_PAD.encode(y),
        });
        Some(Self {
            key: EncodingKey::from_ec_der(&pkcs8),
            public: PublicKey::from_jwk(jwk.as_object()?).ok()?,
            jwk,
            document: document.to_owned(),
        })
    }

    /// The key as a store keeps it, with its private part.
    pub fn document(&self) -> &str {
        &self.document
    }

    /// The thumbprint of the public key (RFC 7638).
    pub fn thumbprint(&self) -> &str {
        self.public.thumbprint()
    }

    /// A proof for one request. `token` is the access token sent with it, `nonce` the last one of the
    /// server.
    ///
    /// # Errors
    /// When the machine has no random numbers.
    pub fn proof(
        &self,
        method: &str,
        url: &str,
        token: Option<&str>,
        nonce: Option<&str>,
        now: u64,
    ) -> Result<String, LoginError> {
        let url = url.split(['?', '#']).next().unwrap_or_default();
        let mut claims = json!({"jti": random()?, "htm": method, "htu": url, "iat": now});
        if let Some(token) = token {
            claims["ath"] = sha256_base64url(token.as_bytes()).into();
        }
        if let Some(nonce) = nonce {
            claims["nonce"] = nonce.into();
        }
        let mut header = Header::new(Algorithm::ES256);
        header.typ = Some("dpop+jwt".into());
        header.jwk = serde_json::from_value(self.jwk.clone()).ok();
        jsonwebtoken::encode(&header, &claims, &self.key)
            .map_err(|_| failed("the proof cannot be signed"))
    }
}

impl fmt::Debug for DpopKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DpopKey({})", self.thumbprint())
    }
}
