//! Sealed texts: what the server must know again later, kept by whoever it is given to.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::hkdf::{HKDF_SHA256, KeyType, Salt};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::options::ConsentProxyError;
use crate::jwk::sha256_base64url;

/// The purpose of a sealed text. A text sealed for one purpose does not open for another.
#[derive(Clone, Copy, Debug)]
pub enum Purpose {
    Client,
    /// An authorization request that waits for consent.
    Request,
    /// The clients that a browser has approved.
    Approvals,
    /// `state` of a login at the identity provider.
    State,
    Code,
    Refresh,
    /// The identity provider's token within an access token.
    Upstream,
}

impl Purpose {
    fn name(self) -> &'static [u8] {
        match self {
            Self::Client => b"client",
            Self::Request => b"request",
            Self::Approvals => b"approvals",
            Self::State => b"state",
            Self::Code => b"code",
            Self::Refresh => b"refresh",
            Self::Upstream => b"upstream",
        }
    }
}

/// Seals values by AES-256-GCM under a key derived from the secret. Nonces are random: good for 2^32 texts.
pub struct Seal(LessSafeKey);

impl std::fmt::Debug for Seal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Seal(..)")
    }
}

/// Bytes of key material derived from the secret for one use.
pub fn derived<const N: usize>(secret: &[u8], usage: &str) -> Result<[u8; N], ConsentProxyError> {
    struct Length(usize);
    impl KeyType for Length {
        fn len(&self) -> usize {
            self.0
        }
    }
    let mut key = [0; N];
    let usage = [b"mcpbolt consent proxy ".as_slice(), usage.as_bytes()];
    Salt::new(HKDF_SHA256, b"mcpbolt")
        .extract(secret)
        .expand(&usage, Length(N))
        .and_then(|okm| okm.fill(&mut key))
        .map_err(|_| ConsentProxyError::new("no key can be derived from the secret"))?;
    Ok(key)
}

impl Seal {
    pub fn new(secret: &[u8]) -> Result<Self, ConsentProxyError> {
        let key: [u8; 32] = derived(secret, "seal")?;
        let key = UnboundKey::new(&AES_256_GCM, &key);
        let key = key.map_err(|_| ConsentProxyError::new("no key can be made of the secret"))?;
        Ok(Self(LessSafeKey::new(key)))
    }

    /// The value as a text of the characters that a URL may hold; `None` if the system has no randomness.
    pub fn seal(&self, purpose: Purpose, value: &impl Serialize) -> Option<String> {
        let mut nonce = [0; NONCE_LEN];
        getrandom::fill(&mut nonce).ok()?;
        let mut text = serde_json::to_vec(value).ok()?;
        let aad = Aad::from(purpose.name());
        self.0
            .seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), aad, &mut text)
            .ok()?;
        let mut sealed = nonce.to_vec();
        sealed.append(&mut text);
        Some(URL_SAFE_NO_PAD.encode(sealed))
    }

    /// The value of a text that this server sealed for this purpose.
    pub fn open<T: DeserializeOwned>(&self, purpose: Purpose, sealed: &str) -> Option<T> {
        let mut sealed = URL_SAFE_NO_PAD.decode(sealed).ok()?;
        let (nonce, text) = sealed.split_at_mut_checked(NONCE_LEN)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
        let aad = Aad::from(purpose.name());
        let text = self.0.open_in_place(nonce, aad, text).ok()?;
        serde_json::from_slice(text).ok()
    }
}

/// The SHA-256 digest of a text, as PKCE writes it (RFC 7636, section 4.2).
pub fn digest(text: &str) -> String {
    sha256_base64url(text.as_bytes())
}

/// Whether two texts are equal, in a time that does not depend on where they differ.
pub fn equal(one: &str, other: &str) -> bool {
    // Digests tell nothing about the texts by the place where they differ.
    hmac_sha256::Hash::hash(one.as_bytes()) == hmac_sha256::Hash::hash(other.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_opens_for_its_purpose_under_its_secret_and_unchanged() {
        let seal = Seal::new(&[7; 32]).unwrap();
        let sealed = seal.seal(Purpose::Code, &("a", 1)).unwrap();
        let open = |seal: &Seal, purpose, text: &str| seal.open::<(String, u8)>(purpose, text);
        assert_eq!(open(&seal, Purpose::Code, &sealed), Some(("a".into(), 1)));
        assert_eq!(open(&seal, Purpose::State, &sealed), None);
        assert_eq!(
            open(&Seal::new(&[8; 32]).unwrap(), Purpose::Code, &sealed),
            None
        );
        for at in 0..sealed.len() {
            let mut changed = sealed.clone().into_bytes();
            changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
            let changed = String::from_utf8(changed).unwrap();
            assert_eq!(open(&seal, Purpose::Code, &changed), None, "{at}");
        }
        for bad in ["", "A", "AAAAAAAAAAAAAAAA", "\u{fffd}", "===="] {
            assert_eq!(open(&seal, Purpose::Code, bad), None);
        }
    }

    /// RFC 7636, appendix B.
    #[test]
    fn a_digest_is_that_of_pkce() {
        assert_eq!(
            digest("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"),
            "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"
        );
    }
}
