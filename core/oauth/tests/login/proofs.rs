//! Proofs of a key (DPoP), and assertions about a client.

use std::collections::HashSet;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use mcpbolt_oauth::client::{DpopKey, Grant, LoginStage, SigningKey};
use mcpbolt_oauth::jwk::{PublicKey, SignatureAlgorithm, sha256_base64url};
use serde_json::{Value, json};

use crate::world::{AS, ISSUER, PRM, SERVER, World, error, get, tokens};

/// The header and the claims of a token, whose signature is verified with the key in its header or `key`.
fn opened(token: &str, key: Option<&PublicKey>) -> (Value, Value) {
    let (signed, signature) = token.rsplit_once('.').unwrap();
    let (header, claims) = signed.split_once('.').unwrap();
    let json = |part: &str| -> Value {
        serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).unwrap()).unwrap()
    };
    let header = json(header);
    let own = header["jwk"]
        .as_object()
        .map(|jwk| PublicKey::from_jwk(jwk).unwrap());
    let key = key.or(own.as_ref()).unwrap();
    let signature = URL_SAFE_NO_PAD.decode(signature).unwrap();
    assert!(key.verifies(SignatureAlgorithm::ES256, signed.as_bytes(), &signature));
    (header, json(claims))
}

fn proof(headers: &[(&'static str, String)]) -> Option<(Value, Value)> {
    let found = headers.iter().find(|(name, _)| *name == "dpop");
    found.map(|(_, proof)| opened(proof, None))
}

#[test]
fn tokens_are_bound_to_a_key_where_the_server_asks_for_it() {
    let mut world = World::new();
    world.document(AS)["dpop_signing_alg_values_supported"] = json!(["ES256"]);
    let bound = |nonce: Option<&str>| {
        let (_, _, mut body) = tokens();
        body["token_type"] = "DPoP".into();
        (
            200,
            nonce
                .map(|it| ("dpop-nonce", it.to_owned()))
                .into_iter()
                .collect(),
            body,
        )
    };
    // The authorization server wants a nonce first (RFC 9449, section 8).
    let (status, _, body) = error("use_dpop_nonce");
    world
        .tokens
        .push_back((status, vec![("dpop-nonce", "n1".into())], body));
    world.tokens.push_back(bound(None));
    let credentials = world
        .challenged(&format!(r#"DPoP resource_metadata="{PRM}""#))
        .unwrap();
    let posts = world
        .requests
        .iter()
        .filter(|it| it.url.ends_with("/token"));
    let proofs: Vec<_> = posts.map(|it| proof(&it.headers).unwrap()).collect();
    let [(header, first), (_, second)] = &*proofs else {
        panic!("{proofs:?}")
    };
    assert_eq!(header["typ"], "dpop+jwt");
    assert_eq!(
        (&first["htm"], &first["htu"]),
        (&json!("POST"), &json!(format!("{ISSUER}/token")))
    );
    assert_eq!(
        (&first["nonce"], &second["nonce"]),
        (&Value::Null, &json!("n1"))
    );
    assert_eq!(first["iat"], world.now);
    assert_ne!(first["jti"], second["jti"]);
    let key = PublicKey::from_jwk(header["jwk"].as_object().unwrap()).unwrap();
    assert_eq!(world.page("dpop_jkt").as_deref(), Some(key.thumbprint()));

    let mut seen = HashSet::new();
    for nonce in [None, Some("n2")] {
        let url = "https://mcp.example/mcp?x=1#y";
        let headers = credentials.headers("POST", url, nonce, 7).unwrap();
        assert_eq!(headers[0].1, "DPoP secret-access");
        let (header, claims) = proof(&headers).unwrap();
        assert_eq!(header["jwk"], proofs[0].0["jwk"]);
        assert_eq!(claims["htu"], SERVER);
        assert_eq!(claims["ath"], sha256_base64url(b"secret-access"));
        assert_eq!(claims["nonce"].as_str(), nonce);
        assert!(seen.insert(claims["jti"].to_string()));
    }
    // A server that gives one nonce after another does not keep the client busy.
    for nonce in 0..9 {
        let (status, _, body) = error("use_dpop_nonce");
        world
            .tokens
            .push_back((status, vec![("dpop-nonce", format!("{nonce}"))], body));
    }
    let before = world.forms().len();
    assert!(world.challenged("DPoP").is_err());
    assert_eq!(world.forms().len(), before + 3);
}

#[test]
fn what_decides_whether_tokens_are_bound() {
    let table: [(&str, bool, bool, Option<bool>, bool); 8] = [
        ("Bearer", false, true, None, false),
        ("DPoP", false, true, None, true),
        ("DPoP", false, false, None, true),
        ("Bearer, DPoP", false, false, None, false),
        ("Bearer, DPoP", false, true, None, true),
        ("Bearer", true, false, None, true),
        ("Bearer", false, false, Some(true), true),
        ("DPoP", true, true, Some(false), false),
    ];
    for (challenge, required, offered, wanted, expected) in table {
        let mut world = World::new();
        world.document(PRM)["dpop_bound_access_tokens_required"] = required.into();
        if offered {
            world.document(AS)["dpop_signing_alg_values_supported"] = json!(["ES256"]);
        }
        world.options.dpop = wanted;
        let (_, _, mut body) = tokens();
        body["token_type"] = if expected { "dpop" } else { "bearer" }.into();
        world.tokens.push_back((200, Vec::new(), body));
        world.challenged(challenge).unwrap();
        let sent = proof(&world.requests.last().unwrap().headers);
        assert_eq!(
            sent.is_some(),
            expected,
            "{challenge} {required} {offered} {wanted:?}"
        );
    }
    // Demanded, and not given.
    let mut world = World::new();
    world.options.dpop = Some(true);
    assert_eq!(world.log_in().unwrap_err().stage, LoginStage::Token);
}

#[test]
fn a_stored_key_makes_the_same_proofs() {
    let key = DpopKey::generate().unwrap();
    let again = DpopKey::read(key.document()).unwrap();
    assert_eq!(key.thumbprint(), again.thumbprint());
    for damaged in ["", "x", "AAAA", &key.document()[1..]] {
        assert!(DpopKey::read(damaged).is_none());
    }
    assert!(!format!("{key:?}").contains(key.document()));
}

/// R-AUE-01
#[test]
fn a_program_signs_assertions_for_one_authorization_server() {
    let pair = ring::signature::EcdsaKeyPair::generate_pkcs8(
        &ring::signature::ECDSA_P256_SHA256_FIXED_SIGNING,
        &ring::rand::SystemRandom::new(),
    );
    let pkcs8 = pair.unwrap();
    let document = URL_SAFE_NO_PAD.encode(pkcs8.as_ref());
    let public = DpopKey::read(&document).unwrap();
    let shown = public.proof("GET", SERVER, None, None, 0).unwrap();
    let (header, _) = opened(&shown, None);
    let public = PublicKey::from_jwk(header["jwk"].as_object().unwrap()).unwrap();
    let pem = base64::engine::general_purpose::STANDARD.encode(pkcs8.as_ref());
    let pem = format!("-----BEGIN PRIVATE KEY-----\n{pem}\n-----END PRIVATE KEY-----\n");
    let key = SigningKey::from_pem(pem.as_bytes(), "ES256")
        .unwrap()
        .with_key_id("k1");
    let mut world = World::new();
    world.options.grant = Grant::ClientCredentials;
    world.options.client_id = Some("own".into());
    world.options.signing_key = Some(key);
    world.log_in().unwrap();
    let form = world.forms().pop().unwrap();
    let kind = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";
    assert_eq!(get(&form, "client_assertion_type").as_deref(), Some(kind));
    let (header, claims) = opened(&get(&form, "client_assertion").unwrap(), Some(&public));
    assert_eq!(header["kid"], "k1");
    assert_eq!(
        (&claims["iss"], &claims["sub"]),
        (&json!("own"), &json!("own"))
    );
    assert_eq!(claims["aud"], ISSUER);
    assert!(claims["exp"].as_u64().unwrap() > world.now);
    for (pem, algorithm) in [
        (&*pem, "HS256"),
        (&pem, "none"),
        ("x", "ES256"),
        (&pem, "RS256"),
    ] {
        let error = SigningKey::from_pem(pem.as_bytes(), algorithm).unwrap_err();
        assert_eq!(error.stage, LoginStage::Options, "{algorithm}");
    }
}
