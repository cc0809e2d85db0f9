//! Public keys as JSON Web Keys (RFC 7517): their thumbprints (RFC 7638), and the signatures that they verify.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::digest::{SHA256, digest};
use ring::signature::{self, RsaPublicKeyComponents, UnparsedPublicKey, VerificationAlgorithm};
use serde_json::{Map, Value};

/// An asymmetric signature algorithm (RFC 7518, section 3.1; RFC 8037). There is none for shared secrets
/// and none for unsigned tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SignatureAlgorithm {
    /// RSASSA-PKCS1-v1_5 with SHA-256.
    RS256,
    /// RSASSA-PKCS1-v1_5 with SHA-384.
    RS384,
    /// RSASSA-PKCS1-v1_5 with SHA-512.
    RS512,
    /// RSASSA-PSS with SHA-256.
    PS256,
    /// RSASSA-PSS with SHA-384.
    PS384,
    /// RSASSA-PSS with SHA-512.
    PS512,
    /// ECDSA over P-256 with SHA-256.
    ES256,
    /// ECDSA over P-384 with SHA-384.
    ES384,
    /// Ed25519.
    EdDSA,
}

impl SignatureAlgorithm {
    /// All of them, as [`name`](Self::name) has them.
    pub const ALL: [Self; 9] = [
        Self::RS256,
        Self::RS384,
        Self::RS512,
        Self::PS256,
        Self::PS384,
        Self::PS512,
        Self::ES256,
        Self::ES384,
        Self::EdDSA,
    ];

    /// The algorithm with this name, such as `ES256`; names are case-sensitive. `Ed25519` (RFC 9864) is
    /// another name of `EdDSA`.
    pub fn parse(name: &str) -> Option<Self> {
        match name {
            "Ed25519" => Some(Self::EdDSA),
            name => Self::ALL.into_iter().find(|own| own.name() == name),
        }
    }

    /// The name, as the header of a token has it.
    pub fn name(self) -> &'static str {
        match self {
            Self::RS256 => "RS256",
            Self::RS384 => "RS384",
            Self::RS512 => "RS512",
            Self::PS256 => "PS256",
            Self::PS384 => "PS384",
            Self::PS512 => "PS512",
            Self::ES256 => "ES256",
            Self::ES384 => "ES384",
            Self::EdDSA => "EdDSA",
        }
    }
}

/// Why a JSON Web Key is not used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyError(&'static str);

impl fmt::Display for KeyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for KeyError {}

/// A public key.
#[derive(Clone, PartialEq, Eq)]
pub struct PublicKey {
    material: Material,
    thumbprint: String,
}

#[derive(Clone, PartialEq, Eq)]
enum Material {
    Rsa { n: Vec<u8>, e: Vec<u8> },
    P256(Vec<u8>),
    P384(Vec<u8>),
    Ed25519(Vec<u8>),
}

impl PublicKey {
    /// Reads a key. Members that say nothing about the key itself are ignored.
    ///
    /// # Errors
    /// If the key is a secret or contains a private part, its type or curve is not supported, or a member
    /// is missing or malformed.
    pub fn from_jwk(jwk: &Map<String, Value>) -> Result<Self, KeyError> {
        const PRIVATE: [&str; 8] = ["d", "p", "q", "dp", "dq", "qi", "oth", "k"];
        if PRIVATE.iter().any(|name| jwk.contains_key(*name)) {
            return Err(KeyError("the key contains a private part"));
        }
        let text = |name: &str| jwk.get(name).and_then(Value::as_str);
        let bytes = |name: &str| {
            let text = text(name).ok_or(KeyError("the key lacks a member of its type"))?;
            let bytes = URL_SAFE_NO_PAD.decode(text);
            bytes.map_err(|_| KeyError("a member of the key is not base64url"))
        };
        let point = |len: usize| {
            let (x, y) = (bytes("x")?, bytes("y")?);
            if x.len() != len || y.len() != len {
                return Err(KeyError("a coordinate of the key has the wrong length"));
            }
            Ok([&[4], &*x, &*y].concat())
        };
        let material = match (text("kty"), text("crv")) {
            (Some("RSA"), _) => {
                let unsigned = |name| {
                    let bytes = bytes(name)?;
                    let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
                    Ok(bytes[zeros..].to_vec())
                };
                let (n, e) = (unsigned("n")?, unsigned("e")?);
                if !(256..=1024).contains(&n.len()) {
                    return Err(KeyError(
                        "the key has fewer than 2048 or more than 8192 bits",
                    ));
                }
                Material::Rsa { n, e }
            }
            (Some("EC"), Some("P-256")) => Material::P256(point(32)?),
            (Some("EC"), Some("P-384")) => Material::P384(point(48)?),
            (Some("OKP"), Some("Ed25519")) => {
                let x = bytes("x")?;
                if x.len() != 32 {
                    return Err(KeyError("the key has the wrong length"));
                }
                Material::Ed25519(x)
            }
            _ => return Err(KeyError("the type or curve of the key is not supported")),
        };
        let names: &[&str] = match material {
            Material::Rsa { .. } => &["e", "kty", "n"],
            Material::P256(_) | Material::P384(_) => &["crv", "kty", "x", "y"],
            Material::Ed25519(_) => &["crv", "kty", "x"],
        };
        let members = names.iter().filter_map(|name| {
            // Base64url and the names of types and curves need no escapes.
            text(name).map(|value| format!("\"{name}\":\"{value}\""))
        });
        let members: Vec<_> = members.collect();
        let thumbprint = sha256_base64url(format!("{{{}}}", members.join(",")).as_bytes());
        Ok(Self {
            material,
            thumbprint,
        })
    }

    /// The SHA-256 thumbprint in base64url (RFC 7638), as `cnf.jkt` has it.
    pub fn thumbprint(&self) -> &str {
        &self.thumbprint
    }

    /// Whether keys of this type make signatures of `algorithm`.
    pub fn fits(&self, algorithm: SignatureAlgorithm) -> bool {
        self.verification(algorithm).is_some()
    }

    /// Whether `signature` is one of `message` by this key. False, too, for an algorithm that the key does
    /// not [fit](Self::fits).
    pub fn verifies(
        &self,
        algorithm: SignatureAlgorithm,
        message: &[u8],
        signature: &[u8],
    ) -> bool {
        let verified = match (&self.material, self.verification(algorithm)) {
            (Material::Rsa { n, e }, Some(Verification::Rsa(with))) => {
                RsaPublicKeyComponents { n, e }.verify(with, message, signature)
            }
            (
                Material::P256(key) | Material::P384(key) | Material::Ed25519(key),
                Some(Verification::Other(with)),
            ) => UnparsedPublicKey::new(with, key).verify(message, signature),
            _ => return false,
        };
        verified.is_ok()
    }

    fn verification(&self, algorithm: SignatureAlgorithm) -> Option<Verification> {
        use SignatureAlgorithm as A;
        Some(match (&self.material, algorithm) {
            (Material::Rsa { .. }, A::RS256) => {
                Verification::Rsa(&signature::RSA_PKCS1_2048_8192_SHA256)
            }
            (Material::Rsa { .. }, A::RS384) => {
                Verification::Rsa(&signature::RSA_PKCS1_2048_8192_SHA384)
            }
            (Material::Rsa { .. }, A::RS512) => {
                Verification::Rsa(&signature::RSA_PKCS1_2048_8192_SHA512)
            }
            (Material::Rsa { .. }, A::PS256) => {
                Verification::Rsa(&signature::RSA_PSS_2048_8192_SHA256)
            }
            (Material::Rsa { .. }, A::PS384) => {
                Verification::Rsa(&signature::RSA_PSS_2048_8192_SHA384)
            }
            (Material::Rsa { .. }, A::PS512) => {
                Verification::Rsa(&signature::RSA_PSS_2048_8192_SHA512)
            }
            (Material::P256(_), A::ES256) => {
                Verification::Other(&signature::ECDSA_P256_SHA256_FIXED)
            }
            (Material::P384(_), A::ES384) => {
                Verification::Other(&signature::ECDSA_P384_SHA384_FIXED)
            }
            (Material::Ed25519(_), A::EdDSA) => Verification::Other(&signature::ED25519),
            _ => return None,
        })
    }
}

enum Verification {
    Rsa(&'static signature::RsaParameters),
    Other(&'static dyn VerificationAlgorithm),
}

/// Shows the thumbprint.
impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PublicKey({})", self.thumbprint)
    }
}

/// The SHA-256 digest of `bytes` in base64url, as `ath`, `jkt` and `x5t#S256` have it.
pub fn sha256_base64url(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(digest(&SHA256, bytes))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(jwk: Value) -> Result<PublicKey, KeyError> {
        PublicKey::from_jwk(jwk.as_object().unwrap())
    }

    /// RFC 7638, section 3.1; RFC 8037, appendix A.3 and A.4.
    #[test]
    fn keys_of_the_specifications_have_the_thumbprints_given_there() {
        let rsa = read(json!({
            "kty": "RSA", "alg": "RS256", "kid": "2011-04-29", "e": "AQAB",
            "n": "0vx7agoebGcQSuuPiLJXZptN9nndrQmbXEps2aiAFbWhM78LhWx4cbbfAAtVT86zwu1RK7aPFFxuhDR1L6tSoc_BJECPebWKRXjBZCiFV4n3oknjhMstn64tZ_2W-5JsGY4Hc5n9yBXArwl93lqt7_RN5w6Cf0h4QyQ5v-65YGjQR0_FDW2QvzqY368QQMicAtaSqzs8KJZgnYb9c7d0zgdAZHzu6qMQvRL5hajrn1n91CbOpbISD08qNLyrdkt-bFTWhAI4vMQFh6WeZu0fM4lFd2NcRwr3XPksINHaQ-G_xBniIqbw0Ls1jF44-csFCur-kEgU8awapJzKnqDKgw",
        }));
        let rsa = rsa.unwrap();
        assert_eq!(
            rsa.thumbprint(),
            "NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs"
        );
        let ed = json!({"kty": "OKP", "crv": "Ed25519", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"});
        let ed = read(ed).unwrap();
        assert_eq!(
            ed.thumbprint(),
            "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k"
        );
        let signed = "eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc";
        let signature = "hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg";
        let signature = URL_SAFE_NO_PAD.decode(signature).unwrap();
        for algorithm in SignatureAlgorithm::ALL {
            let verified = ed.verifies(algorithm, signed.as_bytes(), &signature);
            assert_eq!(verified, algorithm == SignatureAlgorithm::EdDSA);
            assert!(!rsa.verifies(algorithm, signed.as_bytes(), &signature));
            assert_eq!(SignatureAlgorithm::parse(algorithm.name()), Some(algorithm));
        }
    }

    #[test]
    fn what_is_no_public_key_is_refused() {
        let x = "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo";
        for wrong in [
            json!({}),
            json!({"kty": "oct", "k": x}),
            json!({"kty": "OKP", "crv": "Ed25519", "x": x, "d": x}),
            json!({"kty": "OKP", "crv": "Ed25519"}),
            json!({"kty": "OKP", "crv": "Ed25519", "x": "AQAB"}),
            json!({"kty": "OKP", "crv": "Ed25519", "x": format!("{x}=")}),
            json!({"kty": "OKP", "crv": "X25519", "x": x}),
            json!({"kty": "EC", "crv": "P-256", "x": x}),
            json!({"kty": "EC", "crv": "P-384", "x": x, "y": x}),
            json!({"kty": "EC", "crv": "P-521", "x": x, "y": x}),
            json!({"kty": "RSA", "n": x, "e": "AQAB"}),
            json!({"kty": ["OKP"], "crv": "Ed25519", "x": x}),
        ] {
            assert!(read(wrong.clone()).is_err(), "{wrong}");
        }
        for name in ["none", "HS256", "es256", "ES256K", "RSA-OAEP", ""] {
            assert_eq!(SignatureAlgorithm::parse(name), None, "{name}");
        }
    }
}
