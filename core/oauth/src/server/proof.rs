//! Proofs of possession (RFC 9449, section 4.3).

use std::fmt;
use std::sync::{Mutex, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac_sha256::HMAC;
use serde::Deserialize;
use url::Url;

use super::jws::Jws;
use super::refusal::{RefusalKind, TokenRefusal};
use super::replays::{ReplayCache, mark_of};
use crate::jwk::{PublicKey, sha256_base64url};

/// Longest id of a proof, in bytes.
const MAX_ID_BYTES: usize = 512;

/// How proofs are checked.
#[derive(Debug)]
pub struct ProofRules {
    /// How far the time of a proof may be from now, before and after, in seconds.
    pub max_age: u64,
    /// The nonces that proofs must have; `None` if they need none.
    pub nonces: Option<Nonces>,
    replays: Mutex<ReplayCache>,
}

/// A request with a token that is bound to a key.
#[derive(Clone, Copy, Debug)]
pub struct ProofRequest<'a> {
    /// The method.
    pub method: &'a str,
    /// The URL at which the client sent the request.
    pub url: &'a str,
    /// The access token.
    pub token: &'a str,
    /// The thumbprint of the key that the token is bound to.
    pub key: &'a str,
    /// The time, in seconds since 1970.
    pub now: u64,
}

#[derive(Deserialize)]
struct Claims {
    jti: String,
    htm: String,
    htu: String,
    iat: f64,
    ath: Option<String>,
    nonce: Option<String>,
}

/// A proof that was accepted, and is not to be accepted again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UsedProof {
    /// Tells this proof from all others: a digest of its key and its id.
    pub mark: u128,
    /// How long the proof is valid from now on, at most, in seconds.
    pub lifetime: u64,
}

impl UsedProof {
    /// Why a proof is refused that was used before.
    pub const BEFORE: TokenRefusal = TokenRefusal::proof("the proof was used before");
}

impl ProofRules {
    /// Accepts proofs that were made at most `max_age` seconds before or after now.
    pub fn new(max_age: u64, nonces: Option<Nonces>) -> Self {
        Self {
            max_age,
            nonces,
            replays: Mutex::default(),
        }
    }

    /// Checks the `DPoP` headers of a request, in the order of RFC 9449, section 4.3. A proof is accepted
    /// once by these rules; for other processes, the caller marks it where they look.
    ///
    /// # Errors
    /// Why the proof is refused.
    pub fn check<'a>(
        &self,
        proofs: impl IntoIterator<Item = &'a [u8]>,
        request: &ProofRequest<'_>,
    ) -> Result<UsedProof, TokenRefusal> {
        let mut proofs = proofs.into_iter();
        let proof = match (proofs.next(), proofs.next()) {
            (Some(proof), None) => proof,
            (None, _) => return Err(TokenRefusal::proof("the request has no proof")),
            _ => return Err(TokenRefusal::proof("the request has more than one proof")),
        };
        let as_proof = |refusal: TokenRefusal| {
            TokenRefusal::proof(match refusal.why {
                "the algorithm of the token is not accepted" => {
                    "the algorithm of the proof is not accepted"
                }
                "the token is too long" => "the proof is too long",
                _ => "the proof is malformed",
            })
        };
        let proof =
            str::from_utf8(proof).map_err(|_| TokenRefusal::proof("the proof is malformed"))?;
        let proof = Jws::parse(proof.trim()).map_err(as_proof)?;
        if !proof.has_type("dpop+jwt") {
            return Err(TokenRefusal::proof("the type of the proof is not dpop+jwt"));
        }
        let key = proof.key().and_then(|jwk| PublicKey::from_jwk(jwk).ok());
        let key = key.ok_or(TokenRefusal::proof(
            "the proof contains no public key that is accepted",
        ))?;
        if !proof.is_signed_by(&key) {
            return Err(TokenRefusal::proof("the signature of the proof is wrong"));
        }
        let claims: Claims = proof.claims().map_err(as_proof)?;
        if claims.jti.is_empty() || claims.jti.len() > MAX_ID_BYTES {
            return Err(TokenRefusal::proof(
                "the id of the proof is empty or too long",
            ));
        }
        if claims.htm != request.method {
            return Err(TokenRefusal::proof("the proof is for another method"));
        }
        if !is_same_target(&claims.htu, request.url) {
            return Err(TokenRefusal::proof("the proof is for another URL"));
        }
        if let Some(nonces) = &self.nonces
            && !claims
                .nonce
                .as_deref()
                .is_some_and(|it| nonces.accepts(it, request.now))
        {
            let kind = RefusalKind::NonceNeeded;
            let why = "the proof must contain the nonce of this server";
            return Err(TokenRefusal { kind, why });
        }
        #[expect(clippy::cast_precision_loss, reason = "seconds")]
        let (now, max_age) = (request.now as f64, self.max_age as f64);
        if (claims.iat - now).abs() > max_age {
            return Err(TokenRefusal::proof(
                "the proof is too old, or from the future",
            ));
        }
        if claims.ath.as_deref() != Some(&*sha256_base64url(request.token.as_bytes())) {
            return Err(TokenRefusal::proof("the proof is for another token"));
        }
        if key.thumbprint() != request.key {
            return Err(TokenRefusal::proof("the token is bound to another key"));
        }
        let mut replays = self.replays.lock().unwrap_or_else(PoisonError::into_inner);
        // From `max_age` before now until `max_age` after now, and one second since times are cut off.
        let lifetime = 2 * self.max_age + 1;
        match replays.mark(key.thumbprint(), &claims.jti, request.now, lifetime) {
            Some(true) => Ok(UsedProof {
                mark: mark_of(key.thumbprint(), &claims.jti),
                lifetime,
            }),
            Some(false) => Err(UsedProof::BEFORE),
            None => Err(TokenRefusal::unavailable(
                "too many proofs are in use: try again later",
            )),
        }
    }
}

/// Whether a proof's URL is the one of the request, apart from query and fragment, after normalisation by
/// scheme (RFC 3986, section 6.2).
fn is_same_target(said: &str, own: &str) -> bool {
    let bare = |url: &str| {
        let mut url = Url::parse(url).ok()?;
        url.set_query(None);
        url.set_fragment(None);
        Some(url)
    };
    bare(said).is_some_and(|said| bare(own) == Some(said))
}

/// Makes and accepts nonces (RFC 9449, section 9). A nonce is accepted for one to two periods; none is
/// kept, so every process with the same secret accepts it. `Debug` omits the secret.
pub struct Nonces {
    secret: [u8; 32],
    period: u64,
}

impl fmt::Debug for Nonces {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Nonces").finish_non_exhaustive()
    }
}

impl Nonces {
    /// Nonces that change every `period` seconds.
    pub fn new(secret: [u8; 32], period: u64) -> Self {
        let period = period.max(1);
        Self { secret, period }
    }

    /// The nonce at a time, in seconds since 1970.
    pub fn current(&self, now: u64) -> String {
        self.of_period(now / self.period)
    }

    fn of_period(&self, period: u64) -> String {
        let mac = HMAC::mac(period.to_be_bytes(), self.secret);
        URL_SAFE_NO_PAD.encode(&mac[..18])
    }

    fn accepts(&self, nonce: &str, now: u64) -> bool {
        let period = now / self.period;
        [period, period.saturating_sub(1)]
            .into_iter()
            .any(|it| self.of_period(it) == nonce)
    }
}
