//! The keys of an issuer (RFC 7517, section 5).

use serde_json::{Map, Value};

use super::jws::Jws;
use crate::jwk::{PublicKey, SignatureAlgorithm};

/// Most keys of a set that are kept.
const MAX_KEYS: usize = 100;

/// Most keys that are tried for a token that names none.
const MAX_TRIED: usize = 8;

/// Public keys for signatures. Secrets, keys with private parts, keys for encryption and keys of unknown
/// types are left out, so a token is never verified with one of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeySet(Vec<Entry>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Entry {
    id: Option<String>,
    /// The one algorithm that the key is for; `None` if every algorithm of its type is.
    algorithm: Option<SignatureAlgorithm>,
    key: PublicKey,
}

impl KeySet {
    /// Reads a JWKS document: at most its first 100 keys.
    ///
    /// # Errors
    /// If the document is not a set of keys.
    pub fn parse(document: &[u8]) -> Result<Self, &'static str> {
        const NO_SET: &str = "the document is not a set of keys: it has no list `keys`";
        let document: Value = serde_json::from_slice(document).map_err(|_| NO_SET)?;
        let keys = document.get("keys").and_then(Value::as_array);
        let keys = keys.ok_or(NO_SET)?.iter().filter_map(Value::as_object);
        Ok(Self(keys.filter_map(entry).take(MAX_KEYS).collect()))
    }

    /// Whether there is no key for signatures.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether each key is among those of `other`, too.
    pub fn is_within(&self, other: &Self) -> bool {
        self.0.iter().all(|entry| other.0.contains(entry))
    }

    /// The keys that may have signed a token: those with its key id, or any if it names none, whose type
    /// and algorithm fit.
    pub fn candidates(&self, token: &Jws<'_>) -> impl Iterator<Item = &PublicKey> {
        let (id, algorithm) = (token.key_id(), token.algorithm());
        let fits = move |entry: &&Entry| {
            (id.is_none() || entry.id.as_deref() == id)
                && entry.algorithm.is_none_or(|own| own == algorithm)
                && entry.key.fits(algorithm)
        };
        self.0.iter().filter(fits).map(|it| &it.key).take(MAX_TRIED)
    }
}

fn entry(jwk: &Map<String, Value>) -> Option<Entry> {
    let text = |name: &str| jwk.get(name).map(|it| it.as_str().unwrap_or_default());
    if text("use").is_some_and(|it| it != "sig") {
        return None;
    }
    let operations = jwk.get("key_ops").map(Value::as_array);
    if operations.is_some_and(|all| !all.is_some_and(|all| all.iter().any(|it| it == "verify"))) {
        return None;
    }
    let algorithm = match text("alg") {
        None => None,
        Some(name) => Some(SignatureAlgorithm::parse(name)?),
    };
    let key = PublicKey::from_jwk(jwk).ok()?;
    Some(Entry {
        id: text("kid").map(Into::into),
        algorithm,
        key,
    })
}
