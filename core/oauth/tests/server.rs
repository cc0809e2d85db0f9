//! The caches of resource servers on a virtual clock, and the checks of tokens and proofs.
#![cfg(feature = "server")]
#![allow(clippy::unwrap_used, reason = "a test: panicking is the report")]

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use mcpbolt_oauth::server::{
    Introspection, Jws, KeyCache, KeyLookup, KeySet, MAX_CACHED_TOKENS, MAX_TOKEN_BYTES, Nonces,
    RefusalKind, ReplayCache, ResourceMetadata, TokenCache, TokenDigester, TokenRules,
};
use serde_json::json;

const MINUTE: Duration = Duration::from_secs(60);

fn keys(ids: &[&str]) -> KeySet {
    let x = "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo";
    let entries = ids
        .iter()
        .map(|id| json!({"kty": "OKP", "crv": "Ed25519", "x": x, "kid": id}));
    let document = json!({"keys": entries.collect::<Vec<_>>()}).to_string();
    KeySet::parse(document.as_bytes()).unwrap()
}

fn token(id: &str) -> String {
    let header = json!({"alg": "EdDSA", "kid": id}).to_string();
    let part = |text: &str| URL_SAFE_NO_PAD.encode(text);
    format!("{}.{}.{}", part(&header), part("{}"), part("signature"))
}

/// What happens, in one letter: keys, fetch, wait, unknown, unavailable.
fn look(cache: &mut KeyCache, id: &str, now: Instant) -> char {
    let token = token(id);
    match cache.find(&Jws::parse(&token).unwrap(), None, now, now) {
        KeyLookup::Keys(_) => 'k',
        KeyLookup::Fetch => 'f',
        KeyLookup::Wait => 'w',
        KeyLookup::Unknown => 'u',
        KeyLookup::Unavailable => '-',
    }
}

/// R-AUS-07: keys are fetched once for all that wait, again for unknown ids but rarely, and kept while fetches fail.
#[test]
fn keys_are_fetched_when_they_are_needed() {
    let begin = Instant::now();
    let at = |minutes: u32| begin + MINUTE * minutes;
    let mut cache = KeyCache::new(10 * MINUTE, 2 * MINUTE);
    assert_eq!(look(&mut cache, "a", at(0)), 'f');
    assert_eq!(look(&mut cache, "a", at(0)), 'w');
    assert!(!cache.fetched(None, at(0)));
    assert_eq!(look(&mut cache, "a", at(0)), '-');
    // A fetch that failed is repeated soon.
    assert_eq!(look(&mut cache, "a", at(1)), 'f');
    assert!(!cache.fetched(Some(keys(&["a"])), at(1)));
    assert_eq!(look(&mut cache, "a", at(1)), 'k');
    assert_eq!(look(&mut cache, "b", at(2)), 'u');
    assert_eq!(look(&mut cache, "b", at(3)), 'f');
    // While it is fetched, known keys serve.
    assert_eq!(look(&mut cache, "a", at(3)), 'k');
    assert_eq!(look(&mut cache, "b", at(3)), 'w');
    assert!(!cache.fetched(Some(keys(&["a", "b"])), at(3)));
    assert_eq!(look(&mut cache, "b", at(3)), 'k');
    assert!(!cache.begin_refresh(at(13)));
    assert!(cache.begin_refresh(at(14)) && !cache.begin_refresh(at(14)));
    assert!(cache.fetched(Some(keys(&["b"])), at(14)), "a is gone");
    assert_eq!(look(&mut cache, "a", at(15)), 'u');
    // An outage of less than a day.
    assert_eq!(look(&mut cache, "a", at(20)), 'f');
    cache.fetched(None, at(20));
    assert_eq!(look(&mut cache, "b", at(14 + 24 * 60)), 'k');
    assert_eq!(look(&mut cache, "b", at(15 + 24 * 60)), 'f');
    cache.fetched(None, at(15 + 24 * 60));
    assert_eq!(look(&mut cache, "b", at(15 + 24 * 60)), '-');
}

/// A verification whose token no key has signed has keys fetched once, whatever the times.
#[test]
fn one_verification_fetches_once() {
    let now = Instant::now();
    let mut cache = KeyCache::new(MINUTE, Duration::ZERO);
    let token = token("a");
    let token = Jws::parse(&token).unwrap();
    assert!(matches!(
        cache.find(&token, None, now, now),
        KeyLookup::Fetch
    ));
    cache.fetched(Some(keys(&["a"])), now + MINUTE);
    let later = now + 2 * MINUTE;
    let KeyLookup::Keys(failed) = cache.find(&token, None, now, later) else {
        panic!("the key is known");
    };
    let again = cache.find(&token, Some(&failed), now, later);
    assert!(matches!(again, KeyLookup::Unknown));
    let another = cache.find(&token, Some(&failed), later, later);
    assert!(matches!(another, KeyLookup::Fetch));
    assert!(cache.is_current(&failed) && !cache.is_current(&Arc::new(keys(&["a"]))));
}

/// Caches end with their times, and with their room: the longest unused go first.
#[test]
fn tokens_are_known_for_a_time_and_in_a_number() {
    let mut cache = TokenCache::default();
    let digester = TokenDigester::new().unwrap();
    let digest = |number: usize| digester.digest(&number.to_string()).unwrap();
    cache.insert(digest(0), "a", 10);
    assert_eq!(
        (cache.find(&digest(0), 9), cache.find(&digest(0), 10)),
        (Some("a"), None)
    );
    for number in 0..5 * MAX_CACHED_TOKENS {
        cache.insert(digest(number), "b", 100);
        assert_eq!(cache.find(&digest(0), 1), Some("b"), "{number}");
    }
    let known =
        (0..5 * MAX_CACHED_TOKENS).filter(|number| cache.find(&digest(*number), 1).is_some());
    assert!(known.count() <= MAX_CACHED_TOKENS);
    cache.clear();
    assert_eq!(cache.find(&digest(0), 1), None);
}

/// Digests differ wherever two tokens do, and from process to process; they are not made of what no token is.
#[test]
fn digests_are_of_one_token_and_one_process() {
    let (one, other) = (TokenDigester::new().unwrap(), TokenDigester::new().unwrap());
    let mut seen = HashSet::new();
    for length in 0..300 {
        let mut token = vec![b'a'; length];
        assert!(seen.insert(one.digest(str::from_utf8(&token).unwrap()).unwrap()));
        if let Some(last) = token.last_mut() {
            *last = b'b';
            assert!(seen.insert(one.digest(str::from_utf8(&token).unwrap()).unwrap()));
            token[length / 2] = b'c';
            assert!(seen.insert(one.digest(str::from_utf8(&token).unwrap()).unwrap()));
        }
    }
    assert_eq!(one.digest("a"), one.digest("a"));
    assert_ne!(one.digest("a"), other.digest("a"));
    let longest = "a".repeat(MAX_TOKEN_BYTES);
    assert!(one.digest(&longest).is_ok() && one.digest(&format!("{longest}a")).is_err());
}

/// A proof is accepted once in its life, wherever the periods begin.
#[test]
fn a_replay_is_noticed_for_as_long_as_it_could_be_accepted() {
    for first in 0..20 {
        let mut cache = ReplayCache::default();
        assert_eq!(cache.mark("key", "id", first, 10), Some(true));
        assert_eq!(cache.mark("other key", "id", first, 10), Some(true));
        for now in first..first + 10 {
            assert_eq!(
                cache.mark("key", "id", now, 10),
                Some(false),
                "{first} {now}"
            );
        }
        // Much later nothing is kept.
        assert_eq!(cache.mark("key", "id", first + 1000, 10), Some(true));
    }
}

#[test]
fn nonces_change_and_are_shared() {
    let nonces = Nonces::new([7; 32], 60);
    assert_eq!(nonces.current(120), nonces.current(179));
    assert_ne!(nonces.current(120), nonces.current(180));
    assert_eq!(nonces.current(120), Nonces::new([7; 32], 60).current(121));
    assert_ne!(nonces.current(120), Nonces::new([8; 32], 60).current(120));
    assert!(!format!("{nonces:?}").contains('7'));
}

/// R-AUS-09: what is published does not ask for offline access.
#[test]
fn offline_access_is_not_published() {
    let mut metadata = ResourceMetadata::new("https://a.example/mcp").unwrap();
    metadata.scopes = ["a", "offline_access", "a", "b"].map(Into::into).into();
    let document = metadata.document();
    assert!(
        document.contains(r#""scopes_supported":["a","b"]"#),
        "{document}"
    );
}

/// A client id is no name of a user: a signed token must have a subject (RFC 9068, section 2.2), and an answer about a
/// token without one is about a client.
#[test]
fn a_client_is_not_taken_for_a_user_of_its_name() {
    let rules = TokenRules {
        issuers: vec!["me".into()],
        any_audience: true,
        ..TokenRules::default()
    };
    let token = |claims: serde_json::Value| {
        let part = |text: String| URL_SAFE_NO_PAD.encode(text);
        let header = json!({"alg": "EdDSA"}).to_string();
        format!("{}.{}.", part(header), part(claims.to_string()))
    };
    let check = |claims| {
        let token = token(claims);
        rules.check(&Jws::parse(&token).unwrap(), 0.0)
    };
    let named = check(json!({"iss": "me", "exp": 1, "sub": "a", "client_id": "b"})).unwrap();
    assert_eq!((&*named.subject, named.is_client), ("a", false));
    for claims in [
        json!({"iss": "me", "exp": 1, "client_id": "a"}),
        json!({"iss": "me", "exp": 1, "sub": "", "client_id": "a"}),
    ] {
        let refusal = check(claims.clone()).unwrap_err();
        assert_eq!(refusal.why, "the token names no subject", "{claims}");
    }
    let answered = |answer: &str| Introspection::answer(answer.as_bytes(), &rules, 0.0).unwrap();
    let client = answered(r#"{"active":true,"client_id":"a"}"#);
    let user = answered(r#"{"active":true,"client_id":"b","sub":"a"}"#);
    assert_eq!((&*client.subject, client.is_client), ("a", true));
    assert_eq!((&*user.subject, user.is_client), ("a", false));
}

/// A token that was issued is no guess, even if it has ended or is for another server.
#[test]
fn a_token_that_was_issued_is_no_guess() {
    let rules = TokenRules {
        issuers: vec!["me".into()],
        audiences: vec!["here".into()],
        ..TokenRules::default()
    };
    let kind = |answer: &str| {
        let refusal = Introspection::answer(answer.as_bytes(), &rules, 9.0).unwrap_err();
        assert_eq!(refusal.kind.code(), Some("invalid_token"), "{answer}");
        refusal.kind
    };
    let unfit = RefusalKind::UnfitToken;
    assert_eq!(
        kind(r#"{"active":true,"sub":"a","aud":"here","exp":9}"#),
        unfit
    );
    assert_eq!(kind(r#"{"active":true,"sub":"a","aud":"there"}"#), unfit);
    assert_eq!(kind(r#"{"active":false}"#), RefusalKind::InvalidToken);
}

#[test]
fn what_is_no_answer_about_a_token_is_told_apart() {
    let rules = TokenRules::default();
    for (answer, status) in [
        (r#"{"active":false}"#, 401),
        (r#"{"active":true,"sub":"a"}"#, 401),
        (r#"{"active":1}"#, 503),
        ("[]", 503),
        ("", 503),
    ] {
        let refusal = Introspection::answer(answer.as_bytes(), &rules, 0.0).unwrap_err();
        assert_eq!(refusal.kind.status(), status, "{answer}");
    }
    assert_eq!(
        Introspection::body("a+b/="),
        "token=a%2Bb%2F%3D&token_type_hint=access_token"
    );
}
