//! The clients that a policy read from JSON knows: by API keys, by signed tokens, or by either.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::Error as _;
use serde_json::Error;

use super::verifier::{ApiKeys, Credentials, Verifier};
use crate::connection::Principal;

/// The owner of an API key.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct KeyOwner {
    client: String,
    #[serde(default)]
    scopes: Vec<String>,
}

/// Returns the verifier of API keys, of tokens or of both; `None` if neither is set.
///
/// # Errors
/// If a key is empty.
pub(super) fn verifier(
    keys: Option<BTreeMap<String, KeyOwner>>,
    tokens: Option<Verifier>,
) -> Result<Option<Verifier>, Error> {
    let keys = keys.map(by_key).transpose()?;
    Ok(match (keys, tokens) {
        (Some(keys), Some(tokens)) => Some(Verifier::new(move |credentials| match credentials {
            Credentials::ApiKey(_) => keys.verify(credentials),
            Credentials::Bearer(_) => tokens.verify(credentials),
            _ => Err("an API key or a bearer token is needed".into()),
        })),
        (keys, tokens) => keys.or(tokens),
    })
}

fn by_key(clients: BTreeMap<String, KeyOwner>) -> Result<Verifier, Error> {
    if clients.contains_key("") {
        return Err(Error::custom("a key of `keys` is empty"));
    }
    let clients = clients.into_iter();
    let keys = clients.fold(
        ApiKeys::new(),
        |keys, (key, KeyOwner { client, scopes })| {
            keys.key(&key, Principal::key(client).with_scopes(scopes))
        },
    );
    Ok(Verifier::new(move |credentials| keys.verify(credentials)))
}

#[cfg(test)]
mod tests {
    use crate::mcp::Method;
    use crate::policy::{Credentials, Policy};

    const KEYS: &str =
        r#""keys":{"k-alice":{"client":"alice","scopes":["write"]},"k-bob":{"client":"bob"}}"#;

    fn who(policy: &Policy, credentials: &Credentials<'_>) -> Result<String, String> {
        let who = policy.verify(credentials).map_err(|it| it.to_string())?;
        let write = policy.lacks(Method::CallTool, "note.write", Some(&who));
        let granted = write.map_or_else(String::new, |scopes| format!(" lacks {scopes}"));
        Ok(format!("{}{granted}", who.as_str()))
    }

    /// R-AUX-03, R-PER-05
    #[test]
    fn keys_are_read_with_what_is_granted() {
        let json = format!(r#"{{{KEYS},"scopes":{{"note.write":["write"]}}}}"#);
        let policy = Policy::from_json(&json).unwrap();
        let said = |credentials: Credentials<'_>| who(&policy, &credentials);
        assert_eq!(said(Credentials::ApiKey("k-alice")).unwrap(), "key:alice");
        assert_eq!(
            said(Credentials::ApiKey("k-bob")).unwrap(),
            "key:bob lacks write"
        );
        for wrong in [
            Credentials::ApiKey("k-eve"),
            Credentials::Bearer("k-alice"),
            Credentials::None,
        ] {
            assert!(said(wrong).is_err(), "{wrong:?}");
        }
        let nobody = Policy::from_json(r#"{"keys":{}}"#).unwrap();
        assert!(nobody.has_verifier() && who(&nobody, &Credentials::None).is_err());
        assert!(!Policy::from_json("{}").unwrap().has_verifier());
    }

    /// R-AUX-03: with or without keys, tokens must have the right issuer and audience, and the subject
    /// of a token is never the owner of a key.
    #[cfg(feature = "jwt")]
    #[test]
    fn tokens_are_read_beside_keys() {
        const SECRET: &str = "a secret of thirty-two bytes, yes";
        use jsonwebtoken::{EncodingKey, Header, encode};
        let claims = serde_json::json!({"sub": "alice", "scope": "read write", "exp": 4_000_000_000_u64, "iss": "me", "aud": "here"});
        let key = EncodingKey::from_secret(SECRET.as_bytes());
        let token = encode(&Header::default(), &claims, &key).unwrap();
        let jwt = |more: &str| format!(r#""jwt":{{"algorithm":"HS256","key":"{SECRET}",{more}}}"#);
        let good = jwt(r#""issuer":"me","audience":"here""#);
        let bearer = Credentials::Bearer(&token);
        for json in [format!("{{{good}}}"), format!("{{{KEYS},{good}}}")] {
            let policy = Policy::from_json(&json).unwrap();
            assert_eq!(who(&policy, &bearer).unwrap(), "jwt:me#alice", "{json}");
            let alice = who(&policy, &Credentials::ApiKey("k-alice"));
            assert_eq!(alice.is_ok(), json.contains("k-alice"));
            assert!(who(&policy, &Credentials::Bearer("a.b.c")).is_err());
            assert!(who(&policy, &Credentials::None).is_err());
        }
        for other in [
            r#""issuer":"you","audience":"here""#,
            r#""issuer":"me","audience":"there""#,
            r#""issuer":"me","audience":["there","elsewhere"]"#,
            r#""anyIssuer":true,"audience":"there""#,
            r#""issuer":"you","anyAudience":true"#,
        ] {
            let policy = Policy::from_json(&format!("{{{}}}", jwt(other))).unwrap();
            assert!(who(&policy, &bearer).is_err(), "{other}");
        }
    }

    #[cfg(not(feature = "jwt"))]
    #[test]
    fn tokens_need_their_feature() {
        let json = r#"{"jwt":{"algorithm":"HS256","key":"s"}}"#;
        let error = Policy::from_json(json).unwrap_err();
        assert!(error.to_string().contains("feature"), "{error}");
    }
}
