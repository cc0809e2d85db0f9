//! Signs access tokens (RFC 9068), and publishes the key that verifies them.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::signature::{ED25519, Ed25519KeyPair, KeyPair as _, UnparsedPublicKey};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::options::ConsentProxyError;
use super::seal::{derived, digest};

/// An Ed25519 key derived from the secret (RFC 8037).
#[derive(Debug)]
pub struct Signer {
    key: Ed25519KeyPair,
    /// The thumbprint of the public key (RFC 7638).
    id: String,
    /// The coordinate of the public key, as JWK writes it.
    x: String,
}

impl Signer {
    pub fn new(secret: &[u8]) -> Result<Self, ConsentProxyError> {
        let seed: [u8; 32] = derived(secret, "sign")?;
        let key = Ed25519KeyPair::from_seed_unchecked(&seed)
            .map_err(|_| ConsentProxyError::new("no key can be made of the secret"))?;
        let x = URL_SAFE_NO_PAD.encode(key.public_key());
        let id = digest(&format!(r#"{{"crv":"Ed25519","kty":"OKP","x":"{x}"}}"#));
        Ok(Self { key, id, x })
    }

    /// The public key as a key set (RFC 7517).
    pub fn keys(&self) -> Value {
        let Self { id, x, .. } = self;
        json!({"keys": [{"kty": "OKP", "crv": "Ed25519", "use": "sig", "alg": "EdDSA", "kid": id, "x": x}]})
    }

    pub fn sign(&self, claims: &impl Serialize) -> Option<String> {
        let header = json!({"alg": "EdDSA", "typ": "at+jwt", "kid": self.id});
        let part = |value| Some(URL_SAFE_NO_PAD.encode(serde_json::to_vec(&value).ok()?));
        let claims = part(serde_json::to_value(claims).ok()?)?;
        let signed = format!("{}.{claims}", part(header)?);
        let signature = self.key.sign(signed.as_bytes());
        Some(format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature)))
    }

    /// The claims of a token that this key signed.
    pub fn verified<T: DeserializeOwned>(&self, token: &str) -> Option<T> {
        let (signed, signature) = token.rsplit_once('.')?;
        let signature = URL_SAFE_NO_PAD.decode(signature).ok()?;
        let key = UnparsedPublicKey::new(&ED25519, self.key.public_key());
        key.verify(signed.as_bytes(), &signature).ok()?;
        let (_, claims) = signed.split_once('.')?;
        serde_json::from_slice(&URL_SAFE_NO_PAD.decode(claims).ok()?).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_signed_is_verified_and_nothing_else() {
        let signer = Signer::new(&[7; 32]).unwrap();
        let token = signer.sign(&json!({"sub": "alice"})).unwrap();
        assert_eq!(
            signer.verified::<Value>(&token),
            Some(json!({"sub": "alice"}))
        );
        let other = Signer::new(&[8; 32]).unwrap();
        assert_eq!(other.verified::<Value>(&token), None);
        assert_eq!(
            signer.verified::<Value>(&token.replacen('.', ".e", 1)),
            None
        );
        assert_eq!(signer.verified::<Value>(""), None);
        assert_eq!(signer.keys()["keys"][0]["kid"], signer.id);
    }
}
