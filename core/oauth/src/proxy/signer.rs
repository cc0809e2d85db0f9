//! Signs access tokens (RFC 9068), and publishes the key that verifies them.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::signature::{Ed25519KeyPair, KeyPair as _};
use serde::Serialize;
use serde_json::{Value, json};

use super::options::ConsentProxyError;
use super::seal::{derived, digest};
use crate::server::{Jws, KeySet};

/// An Ed25519 key derived from the secret (RFC 8037).
#[derive(Debug)]
pub struct Signer {
    key: Ed25519KeyPair,
    /// The thumbprint of the public key (RFC 7638).
    id: String,
    /// The public key as a key set, for others and for this process.
    document: Value,
    set: KeySet,
}

impl Signer {
    pub fn new(secret: &[u8]) -> Result<Self, ConsentProxyError> {
        let seed: [u8; 32] = derived(secret, "sign")?;
        let key = Ed25519KeyPair::from_seed_unchecked(&seed)
            .map_err(|_| ConsentProxyError::new("no key can be made of the secret"))?;
        let x = URL_SAFE_NO_PAD.encode(key.public_key());
        let id = digest(&format!(r#"{{"crv":"Ed25519","kty":"OKP","x":"{x}"}}"#));
        let document = json!({"keys": [{"kty": "OKP", "crv": "Ed25519", "use": "sig", "alg": "EdDSA", "kid": id, "x": x}]});
        let set = KeySet::parse(document.to_string().as_bytes()).map_err(ConsentProxyError::new)?;
        Ok(Self {
            key,
            id,
            document,
            set,
        })
    }

    /// The public key as a key set (RFC 7517).
    pub fn keys(&self) -> &Value {
        &self.document
    }

    pub fn sign(&self, claims: &impl Serialize) -> Option<String> {
        let header = json!({"alg": "EdDSA", "typ": "at+jwt", "kid": self.id});
        let part = |value| Some(URL_SAFE_NO_PAD.encode(serde_json::to_vec(&value).ok()?));
        let claims = part(serde_json::to_value(claims).ok()?)?;
        let signed = format!("{}.{claims}", part(header)?);
        let signature = self.key.sign(signed.as_bytes());
        Some(format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature)))
    }

    /// A token, if this key signed it.
    pub fn signed<'a>(&self, token: &'a str) -> Option<Jws<'a>> {
        let token = Jws::parse(token).ok()?;
        let is_signed = self.set.candidates(&token).any(|it| token.is_signed_by(it));
        is_signed.then_some(token)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_signed_is_verified_and_nothing_else() {
        let signer = Signer::new(&[7; 32]).unwrap();
        let token = signer.sign(&json!({"sub": "alice"})).unwrap();
        let claims = |signer: &Signer, token: &str| {
            let token = signer.signed(token)?;
            token.claims::<Value>().ok()
        };
        assert_eq!(claims(&signer, &token), Some(json!({"sub": "alice"})));
        let other = Signer::new(&[8; 32]).unwrap();
        assert_eq!(claims(&other, &token), None);
        assert_eq!(claims(&signer, &token.replacen('.', ".e", 1)), None);
        assert_eq!(claims(&signer, ""), None);
        assert_eq!(signer.keys()["keys"][0]["kid"], signer.id);
    }
}
