//! The caches of resource servers on a virtual clock, and the checks of tokens and proofs.
#![cfg(feature = "server")]
#![allow(clippy::unwrap_used, reason = "a test: panicking is the report")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use mcpbolt_oauth::server::{
    Introspection, Jws, KeyCache, KeyLookup, KeySet, MAX_CACHED_TOKENS, Nonces, ReplayCache,
    ResourceMetadata, TokenCache, TokenDigest, TokenRules,
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
    let digest = |number: usize| TokenDigest::of(&number.to_string());
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
