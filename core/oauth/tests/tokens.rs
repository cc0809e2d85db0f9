//! What is kept of a login, and when it is refreshed by whom.
#![allow(clippy::unwrap_used, reason = "a test: panicking is the report")]

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures::executor::block_on;
use mcpbolt_oauth::store::{CredentialStore, KeyLock, MemoryStore, Stored};
use mcpbolt_oauth::tokens::{self, HeldTokens, Refresh, TokenResponse, Tokens};

const KEY: &str = "tokens";

fn response(number: u32) -> TokenResponse {
    let text = format!(
        r#"{{"access_token":"ACCESS-{number}","token_type":"Bearer","expires_in":100,"refresh_token":"REFRESH-{number}","scope":"a b"}}"#
    );
    serde_json::from_str(&text).unwrap()
}

fn logged_in(store: &dyn CredentialStore) -> Tokens {
    let mut tokens = Tokens::new(response(1), 1000);
    tokens.dpop_key = Some("KEY".into());
    block_on(tokens::keep(store, KEY, &mut tokens)).unwrap();
    tokens
}

fn refresh(store: &Arc<dyn CredentialStore>, known: &Tokens) -> Refresh {
    block_on(tokens::refresh(store, KEY, known, 1100)).unwrap()
}

fn held(store: &Arc<dyn CredentialStore>, known: &Tokens) -> HeldTokens {
    match refresh(store, known) {
        Refresh::Ask(held) => held,
        other => panic!("{other:?}"),
    }
}

fn memory() -> Arc<dyn CredentialStore> {
    Arc::new(MemoryStore::default())
}

#[test]
fn lifetimes_are_read_as_servers_write_them() {
    let cases = [
        ("3600", Some(3600)),
        ("3599.9", Some(3599)),
        ("\"3600\"", Some(3600)),
        ("0", Some(0)),
        ("1e30", Some(u64::MAX)),
        ("null", None),
        ("-1", None),
        ("\"soon\"", None),
        ("{}", None),
    ];
    for (said, expected) in cases {
        let text = format!(r#"{{"access_token":"t","token_type":"Bearer","expires_in":{said}}}"#);
        let response: TokenResponse = serde_json::from_str(&text).unwrap();
        assert_eq!(response.expires_in, expected, "{said}");
        // However long: the end is a time.
        assert_eq!(
            Tokens::new(response, u64::MAX).expires_at.is_some(),
            expected.is_some()
        );
    }
}

#[test]
fn tokens_are_replaced_before_they_end_if_something_replaces_them() {
    let tokens = |lifetime, refreshes: bool| {
        let mut response = response(1);
        response.expires_in = lifetime;
        response.refresh_token = response.refresh_token.filter(|_| refreshes);
        Tokens::new(response, 1000)
    };
    let first = |tokens: &Tokens| (1000..2000).find(|now| tokens.wants_refresh(*now));
    assert_eq!(first(&tokens(Some(100), true)), Some(1090));
    assert_eq!(first(&tokens(Some(100), false)), Some(1100));
    assert_eq!(first(&tokens(Some(4), true)), Some(1003));
    assert_eq!(first(&tokens(Some(0), true)), Some(1000));
    assert_eq!(first(&tokens(None, true)), None);
}

/// R-AUC-17: what an answer leaves out stays as it was.
#[test]
fn an_answer_replaces_what_it_has() {
    let store = memory();
    let known = logged_in(&*store);
    let held = held(&store, &known);
    assert_eq!(held.refresh_token(), "REFRESH-1");
    let answer = TokenResponse {
        token_type: "dpop".into(),
        refresh_token: None,
        scope: None,
        ..response(2)
    };
    let (tokens, saved) = block_on(held.granted(answer, 1100));
    saved.unwrap();
    assert_eq!(
        (&*tokens.access_token, tokens.expires_at),
        ("ACCESS-2", Some(1200))
    );
    assert_eq!(tokens.refresh_token.as_deref(), Some("REFRESH-1"));
    assert_eq!(tokens.scope.as_deref(), Some("a b"));
    assert_eq!(tokens.dpop_key.as_deref(), Some("KEY"));
    let loaded = block_on(tokens::load(&*store, KEY)).unwrap();
    assert_eq!(loaded.as_ref(), Some(&tokens));
    // A token that is bound to no key is sent without one.
    let Refresh::Ask(held) = refresh(&store, &tokens) else {
        panic!();
    };
    let (tokens, _) = block_on(held.granted(response(3), 1200));
    assert_eq!(tokens.dpop_key, None);
}

#[test]
fn what_another_has_got_is_taken_over() {
    let store = memory();
    let known = logged_in(&*store);
    let (newer, _) = block_on(held(&store, &known).granted(response(2), 1100));
    match refresh(&store, &known) {
        Refresh::TakenOver(tokens) => assert_eq!(tokens, newer),
        other => panic!("{other:?}"),
    }
    // It was refused, too.
    assert_eq!(held(&store, &newer).refresh_token(), "REFRESH-2");
    // A login in between counts as well.
    let mut other = Tokens::new(response(3), 1100);
    block_on(tokens::keep(&*store, KEY, &mut other)).unwrap();
    assert!(matches!(refresh(&store, &newer), Refresh::TakenOver(tokens) if tokens == other));
}

#[test]
fn a_later_login_is_not_overwritten_by_an_earlier_one() {
    let store = memory();
    let first = logged_in(&*store);
    let (first, saved) = block_on(held(&store, &first).granted(response(2), 1100));
    saved.unwrap();
    block_on(tokens::forget(&*store, KEY)).unwrap();
    let mut other = Tokens::new(response(7), 1100);
    block_on(tokens::keep(&*store, KEY, &mut other)).unwrap();
    // The first login counted further than the other one, which holds all the same.
    match refresh(&store, &first) {
        Refresh::TakenOver(tokens) => assert_eq!(tokens, other),
        wrong => panic!("{wrong:?}"),
    }
}

#[test]
fn a_refusal_is_final_for_all() {
    let store = memory();
    let known = logged_in(&*store);
    block_on(held(&store, &known).refused()).unwrap();
    assert!(matches!(refresh(&store, &known), Refresh::LoginNeeded));
    let forgotten = block_on(tokens::forget(&*store, KEY)).unwrap();
    assert_eq!(forgotten.map(|tokens| tokens.refresh_token), Some(None));
    assert!(matches!(refresh(&store, &known), Refresh::LoginNeeded));
}

/// A store whose disk may be full.
#[derive(Default)]
struct Full(MemoryStore, AtomicBool);

impl CredentialStore for Full {
    fn load<'a>(&'a self, key: &'a str) -> Stored<'a, Option<String>> {
        self.0.load(key)
    }

    fn save<'a>(&'a self, key: &'a str, document: &'a str) -> Stored<'a, ()> {
        match self.1.load(Ordering::Relaxed) {
            true => Box::pin(std::future::ready(Err(io::ErrorKind::StorageFull.into()))),
            false => self.0.save(key, document),
        }
    }

    fn remove<'a>(&'a self, key: &'a str) -> Stored<'a, ()> {
        self.0.remove(key)
    }

    fn lock<'a>(&'a self, key: &'a str) -> Stored<'a, KeyLock> {
        self.0.lock(key)
    }
}

/// The old refresh token in the store is used up, so the process goes on with its own.
#[test]
fn tokens_that_could_not_be_kept_are_not_lost() {
    let full = Arc::new(Full::default());
    let store: Arc<dyn CredentialStore> = full.clone();
    let known = logged_in(&*store);
    full.1.store(true, Ordering::Relaxed);
    let (newer, saved) = block_on(held(&store, &known).granted(response(2), 1100));
    assert_eq!(saved.unwrap_err().kind(), io::ErrorKind::StorageFull);
    full.1.store(false, Ordering::Relaxed);
    let again = held(&store, &newer);
    assert_eq!(again.refresh_token(), "REFRESH-2");
    let (newest, saved) = block_on(again.granted(response(3), 1200));
    saved.unwrap();
    assert_eq!(block_on(tokens::load(&*store, KEY)).unwrap(), Some(newest));
}

#[test]
fn what_cannot_be_read_is_reported_until_somebody_logs_in_or_out() {
    let store = memory();
    let whole = |store: &dyn CredentialStore| block_on(store.load(KEY)).unwrap().unwrap();
    logged_in(&*store);
    let newer = whole(&*store).replace("\"version\":1", "\"version\":2");
    for (text, said) in [
        ("{\"access_token\":\"SECRET\"", "damaged"),
        (&newer, "newer release"),
    ] {
        block_on(store.save(KEY, text)).unwrap();
        let mut tokens = Tokens::new(response(1), 1000);
        let failures = [
            block_on(tokens::load(&*store, KEY)).map(drop),
            block_on(tokens::refresh(&store, KEY, &tokens, 0)).map(drop),
        ];
        for failure in failures {
            let error = failure.unwrap_err().to_string();
            assert!(error.contains(said) && !error.contains("SECRET"), "{error}");
        }
        assert_eq!(whole(&*store), text);
        assert_eq!(block_on(tokens::forget(&*store, KEY)).unwrap(), None);
        assert_eq!(block_on(store.load(KEY)).unwrap(), None);
        block_on(store.save(KEY, text)).unwrap();
        block_on(tokens::keep(&*store, KEY, &mut tokens)).unwrap();
        assert_eq!(block_on(tokens::load(&*store, KEY)).unwrap(), Some(tokens));
    }
}

#[test]
fn secrets_are_not_shown() {
    let store = memory();
    let known = logged_in(&*store);
    let shown = format!("{known:?} {:?} {:?}", response(1), refresh(&store, &known));
    for secret in ["ACCESS", "REFRESH", "KEY"] {
        assert!(!shown.contains(secret), "{shown}");
    }
}
