//! Tokens and proofs, and the keys that sign them.

use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, anyhow};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use ring::digest::{SHA256, digest};
use ring::hmac;
use ring::rand::SystemRandom;
use ring::rsa::PublicKeyComponents;
use ring::signature::{
    self, ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING, EcdsaKeyPair,
    Ed25519KeyPair, KeyPair as _, RsaKeyPair,
};
use serde_json::{Map, Value, json};

use crate::repo;

/// The URL of every resource of the corpus.
pub const RESOURCE: &str = "https://api.example/mcp";

enum Pair {
    P256(EcdsaKeyPair),
    P384(EcdsaKeyPair),
    Ed(Ed25519KeyPair),
    Rsa(RsaKeyPair),
}

/// Keys by name; the name is the key id.
pub struct Keys {
    pairs: BTreeMap<&'static str, Pair>,
    random: SystemRandom,
}

fn base64url(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

impl Keys {
    pub fn new() -> Result<Self> {
        let random = SystemRandom::new();
        let failed = |_| anyhow!("no key was made");
        let rejected = |why| anyhow!("a key is rejected: {why}");
        let mut pairs = BTreeMap::new();
        for name in ["es", "es2", "p1", "p2", "stranger"] {
            let of = &ECDSA_P256_SHA256_FIXED_SIGNING;
            let made = EcdsaKeyPair::generate_pkcs8(of, &random).map_err(failed)?;
            let pair = EcdsaKeyPair::from_pkcs8(of, made.as_ref(), &random).map_err(rejected)?;
            pairs.insert(name, Pair::P256(pair));
        }
        let of = &ECDSA_P384_SHA384_FIXED_SIGNING;
        let made = EcdsaKeyPair::generate_pkcs8(of, &random).map_err(failed)?;
        let pair = EcdsaKeyPair::from_pkcs8(of, made.as_ref(), &random).map_err(rejected)?;
        pairs.insert("es384", Pair::P384(pair));
        for name in ["ed", "ped"] {
            let made = Ed25519KeyPair::generate_pkcs8(&random).map_err(failed)?;
            let pair = Ed25519KeyPair::from_pkcs8(made.as_ref()).map_err(rejected)?;
            pairs.insert(name, Pair::Ed(pair));
        }
        // ring makes no RSA keys.
        let pem = std::fs::read_to_string(repo::root().join("corpus/tokens_rsa.pem"))?;
        let lines: String = pem.lines().filter(|line| !line.starts_with('-')).collect();
        let der = STANDARD.decode(lines)?;
        for name in ["rs", "pinned"] {
            pairs.insert(
                name,
                Pair::Rsa(RsaKeyPair::from_pkcs8(&der).map_err(rejected)?),
            );
        }
        Ok(Self { pairs, random })
    }

    /// The names of the keys that are published at first.
    pub fn published(&self) -> Vec<String> {
        let names = [
            "es",
            "es384",
            "ed",
            "rs",
            "pinned",
            "secret",
            "encryption",
            "private",
        ];
        names.map(Into::into).into()
    }

    /// The published keys, among them some that no server may use.
    pub fn jwks(&self, names: &[String]) -> Vec<Value> {
        let entry = |name: &String| {
            let of = match &**name {
                "secret" => return json!({"kty": "oct", "kid": "secret", "k": base64url([7; 32])}),
                "encryption" | "private" => "es2",
                name => name,
            };
            let mut jwk = self.jwk(of).unwrap_or_default();
            jwk.insert("kid".into(), json!(name));
            match &**name {
                "encryption" => drop(jwk.insert("use".into(), json!("enc"))),
                "private" => drop(jwk.insert("d".into(), json!(base64url([1; 32])))),
                "pinned" => drop(jwk.insert("alg".into(), json!("RS256"))),
                _ => {}
            }
            Value::Object(jwk)
        };
        names.iter().map(entry).collect()
    }

    fn jwk(&self, name: &str) -> Result<Map<String, Value>> {
        let ec = |curve: &str, point: &[u8]| {
            let (x, y) = point[1..].split_at(point.len() / 2);
            json!({"kty": "EC", "crv": curve, "x": base64url(x), "y": base64url(y)})
        };
        let jwk = match self
            .pairs
            .get(name)
            .with_context(|| format!("no key {name}"))?
        {
            Pair::P256(pair) => ec("P-256", pair.public_key().as_ref()),
            Pair::P384(pair) => ec("P-384", pair.public_key().as_ref()),
            Pair::Ed(pair) => {
                json!({"kty": "OKP", "crv": "Ed25519", "x": base64url(pair.public_key())})
            }
            Pair::Rsa(pair) => {
                let public = PublicKeyComponents::<Vec<u8>>::from(pair.public());
                json!({"kty": "RSA", "n": base64url(public.n), "e": base64url(public.e)})
            }
        };
        Ok(jwk.as_object().cloned().unwrap_or_default())
    }

    /// The thumbprint of a key (RFC 7638). Its members are in the order of their names already.
    pub fn thumbprint(&self, name: &str) -> Result<String> {
        let jwk = Value::Object(self.jwk(name)?).to_string();
        Ok(base64url(digest(&SHA256, jwk.as_bytes())))
    }

    fn sign(&self, name: &str, algorithm: &str, message: &[u8]) -> Result<Vec<u8>> {
        let failed = |_| anyhow!("nothing was signed");
        if algorithm == "none" {
            return Ok(Vec::new());
        }
        if let Some(of) = match algorithm {
            "HS256" => Some(hmac::HMAC_SHA256),
            "HS384" => Some(hmac::HMAC_SHA384),
            "HS512" => Some(hmac::HMAC_SHA512),
            _ => None,
        } {
            // With what an attacker knows: the public key, or the published secret.
            let secret = match name {
                "secret" => vec![7; 32],
                name => Value::Object(self.jwk(name)?).to_string().into_bytes(),
            };
            let key = hmac::Key::new(of, &secret);
            return Ok(hmac::sign(&key, message).as_ref().to_vec());
        }
        match self
            .pairs
            .get(name)
            .with_context(|| format!("no key {name}"))?
        {
            Pair::P256(pair) | Pair::P384(pair) => {
                let signature = pair.sign(&self.random, message).map_err(failed)?;
                Ok(signature.as_ref().to_vec())
            }
            Pair::Ed(pair) => Ok(pair.sign(message).as_ref().to_vec()),
            Pair::Rsa(pair) => {
                let of: &dyn signature::RsaEncoding = match algorithm {
                    "RS384" => &signature::RSA_PKCS1_SHA384,
                    "RS512" => &signature::RSA_PKCS1_SHA512,
                    "PS256" => &signature::RSA_PSS_SHA256,
                    "PS384" => &signature::RSA_PSS_SHA384,
                    "PS512" => &signature::RSA_PSS_SHA512,
                    _ => &signature::RSA_PKCS1_SHA256,
                };
                let mut signature = vec![0; pair.public().modulus_len()];
                pair.sign(of, &self.random, message, &mut signature)
                    .map_err(failed)?;
                Ok(signature)
            }
        }
    }

    fn algorithm(&self, name: &str) -> &'static str {
        match self.pairs.get(name) {
            Some(Pair::P384(_)) => "ES384",
            Some(Pair::Ed(_)) => "EdDSA",
            Some(Pair::Rsa(_)) => "RS256",
            _ => "ES256",
        }
    }

    /// A token: a text as it is, or a good one with what `told` changes. Members: `key` (its name), `header`
    /// and `claims` (members that differ; null for those that are missing), `raw` (claims as a text), `sign`
    /// (the algorithm of the signature, if it is not the one in the header), `cut` (bytes that the end
    /// lacks), `swap` (whether the claims are those of another token), `pad` (bytes of a further claim),
    /// `deep` (depth of a further claim).
    pub fn token(&self, told: &Value, issuer: &str) -> Result<String> {
        if let Some(text) = told.as_str() {
            return Ok(text.to_owned());
        }
        let key = told["key"].as_str().unwrap_or("es");
        let header = json!({"alg": self.algorithm(key), "typ": "at+jwt", "kid": key});
        let claims = json!({
            "iss": "$issuer", "aud": RESOURCE, "sub": "alice", "iat": "now-10", "exp": "now+3600",
            "client_id": "c1", "jti": "t1", "scope": "notes",
        });
        self.jws(told, key, header, claims, issuer)
    }

    /// A proof for a token: a text as it is, or a good one with what `told` changes, as for
    /// [`token`](Self::token). `bare` leaves the key out of the header, and `same` gives the id.
    pub fn proof(
        &self,
        told: &Value,
        token: &str,
        method: &str,
        nonce: Option<&str>,
        issuer: &str,
    ) -> Result<String> {
        if let Some(text) = told.as_str() {
            return Ok(text.to_owned());
        }
        let key = told["key"].as_str().unwrap_or("p1");
        let mut header =
            json!({"alg": self.algorithm(key), "typ": "dpop+jwt", "jwk": self.jwk(key)?});
        if told["shown"].is_string() {
            header["jwk"] = json!(self.jwk(told["shown"].as_str().unwrap_or_default())?);
        }
        let id: u64 = rand(&self.random)?;
        let mut claims = json!({
            "jti": format!("{id:x}"), "htm": method, "htu": RESOURCE, "iat": "now+0",
            "ath": base64url(digest(&SHA256, token.as_bytes())),
        });
        if let (Some(nonce), true) = (nonce, told["nonce"].as_bool().unwrap_or_default()) {
            claims["nonce"] = json!(nonce);
        }
        self.jws(told, key, header, claims, issuer)
    }

    fn jws(
        &self,
        told: &Value,
        key: &str,
        mut header: Value,
        mut claims: Value,
        issuer: &str,
    ) -> Result<String> {
        merge(&mut header, &told["header"]);
        merge(&mut claims, &told["claims"]);
        if let Some(len) = told["pad"].as_u64() {
            claims["pad"] = json!("x".repeat(usize::try_from(len)?));
        }
        let mut text = filled(&claims, issuer, Some(self)).to_string();
        if let Some(depth) = told["deep"].as_u64() {
            let depth = usize::try_from(depth)?;
            let deep = format!(",\"deep\":{}{}}}", "[".repeat(depth), "]".repeat(depth));
            text.truncate(text.len() - 1);
            text.push_str(&deep);
        }
        if let Some(raw) = told["raw"].as_str() {
            text = raw.replace("$issuer", issuer);
        }
        let algorithm = told["sign"]
            .as_str()
            .or(header["alg"].as_str())
            .unwrap_or("ES256");
        let head = told["head"]
            .as_str()
            .map_or_else(|| header.to_string(), Into::into);
        let signed = format!("{}.{}", base64url(head), base64url(&text));
        let signature = self.sign(key, algorithm, signed.as_bytes())?;
        let mut token = format!("{signed}.{}", base64url(signature));
        if told["swap"] == true {
            let other = filled(
                &json!({"iss": "$issuer", "aud": RESOURCE, "sub": "root", "exp": "now+3600"}),
                issuer,
                None,
            );
            let (head, rest) = token.split_once('.').unwrap_or_default();
            let (_, signature) = rest.split_once('.').unwrap_or_default();
            token = format!("{head}.{}.{signature}", base64url(other.to_string()));
        }
        if let Some(cut) = told["cut"].as_u64() {
            token.truncate(token.len() - usize::try_from(cut)?);
        }
        token.push_str(told["more"].as_str().unwrap_or_default());
        Ok(token)
    }
}

fn rand(random: &SystemRandom) -> Result<u64> {
    use ring::rand::SecureRandom as _;
    let mut bytes = [0; 8];
    random
        .fill(&mut bytes)
        .map_err(|_| anyhow!("no random bytes"))?;
    Ok(u64::from_le_bytes(bytes))
}

fn merge(into: &mut Value, change: &Value) {
    let (Some(into), Some(change)) = (into.as_object_mut(), change.as_object()) else {
        return;
    };
    for (name, value) in change {
        match value {
            Value::Null => drop(into.remove(name)),
            value => drop(into.insert(name.clone(), value.clone())),
        }
    }
}

/// Fills in what a text of the corpus stands for: `$issuer`, `$jkt:NAME`, `now+SECONDS`, `now-SECONDS`, and
/// `$null`.
pub fn filled(value: &Value, issuer: &str, keys: Option<&Keys>) -> Value {
    match value {
        Value::String(text) if text == "$null" => Value::Null,
        Value::String(text) => {
            let seconds = text
                .strip_prefix("now")
                .and_then(|it| it.parse::<i64>().ok());
            if let Some(seconds) = seconds {
                return json!(now() + seconds);
            }
            let thumbprint = text.strip_prefix("$jkt:").zip(keys);
            let thumbprint = thumbprint.and_then(|(name, keys)| keys.thumbprint(name).ok());
            json!(thumbprint.unwrap_or_else(|| text.replace("$issuer", issuer)))
        }
        Value::Array(all) => all.iter().map(|it| filled(it, issuer, keys)).collect(),
        Value::Object(members) => {
            let members = members.iter();
            members
                .map(|(name, value)| (name.clone(), filled(value, issuer, keys)))
                .collect()
        }
        other => other.clone(),
    }
}

fn now() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0, |it| it.as_secs().cast_signed())
}
