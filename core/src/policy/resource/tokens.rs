//! The verification of access tokens: what is known of a token is looked up, else its issuer's keys decide,
//! or the issuer is asked.

use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use mcpbolt_oauth::server::{
    Introspection, Jws, KeyLookup, KeySet, RefusalKind, TokenCache, TokenDigest, TokenDigester,
    TokenInfo, TokenRefusal, TokenRules,
};
use serde::Deserialize;
use tokio::sync::watch;

use super::authority::Authority;
use super::fetch::{FetchOptions, IssuerFetch};
use crate::connection::{Principal, unix_seconds};
use crate::limits::MAX_VERIFICATIONS;
use crate::sync::lock;

/// What is known of a token.
pub type TokenVerdict = Result<Principal, TokenRefusal>;

/// How long an answer about a token is used again, in seconds, if nothing else is set.
const ANSWER_SECONDS: u64 = 5;

/// How often the age of keys is looked at while every token is known, in seconds.
const REFRESH_CHECK: u64 = 15;

const NO_ANSWER: TokenRefusal =
    TokenRefusal::unavailable("the authorization server could not be asked about the token");
const NO_KEYS: TokenRefusal =
    TokenRefusal::unavailable("the keys of the authorization server could not be fetched");
const OTHER_ISSUER: TokenRefusal = TokenRefusal::token("the issuer of the token is not accepted");
const WRONG_SIGNATURE: TokenRefusal =
    TokenRefusal::token("no key of the issuer has signed the token");

#[derive(Debug)]
pub struct TokenChecks {
    rules: TokenRules,
    authorities: Vec<Arc<Authority>>,
    cached_for: Option<Duration>,
    fetching: FetchOptions,
    digester: TokenDigester,
    /// Set when the server is served.
    fetcher: OnceLock<Arc<dyn IssuerFetch>>,
    known: Mutex<TokenCache<TokenVerdict>>,
    /// Tokens that must not crowd out those above: the ones that were refused.
    refused: Mutex<TokenCache<TokenVerdict>>,
    /// The tokens about which an issuer is being asked.
    asked: Mutex<HashMap<TokenDigest, watch::Receiver<Option<TokenVerdict>>>>,
    /// When the age of keys is looked at again, in seconds since 1970.
    refresh_at: AtomicU64,
}

/// The one claim that is read before the signature is verified, to find the issuer's keys.
#[derive(Deserialize)]
struct ClaimedIssuer {
    iss: String,
}

impl TokenChecks {
    pub fn new(
        rules: TokenRules,
        authorities: Vec<Authority>,
        cached_for: Option<Duration>,
        fetching: FetchOptions,
        digester: TokenDigester,
    ) -> Self {
        Self {
            rules,
            authorities: authorities.into_iter().map(Arc::new).collect(),
            cached_for,
            fetching,
            digester,
            fetcher: OnceLock::new(),
            known: Mutex::default(),
            refused: Mutex::default(),
            asked: Mutex::default(),
            refresh_at: AtomicU64::new(0),
        }
    }

    /// Sets how issuers are reached, unless that is set.
    ///
    /// # Errors
    /// Those of `make`.
    pub fn connect(
        &self,
        make: impl FnOnce(&FetchOptions) -> io::Result<Arc<dyn IssuerFetch>>,
    ) -> io::Result<()> {
        if self.fetcher.get().is_none() {
            let _ = self.fetcher.set(make(&self.fetching)?);
        }
        Ok(())
    }

    /// Whether the verifier of the policy, if there is one, verifies tokens.
    pub fn are_discovered(&self) -> bool {
        self.authorities.iter().all(|it| it.is_discovered())
    }

    /// The digest of a token.
    ///
    /// # Errors
    /// If the token is too long.
    pub fn digest(&self, token: &str) -> Result<TokenDigest, TokenRefusal> {
        self.digester.digest(token)
    }

    /// What is known of a token.
    pub fn known(self: &Arc<Self>, token: &TokenDigest) -> Option<TokenVerdict> {
        let now = unix_seconds();
        if now >= self.refresh_at.load(Ordering::Relaxed) {
            self.refresh_at
                .store(now + REFRESH_CHECK, Ordering::Relaxed);
            for authority in &self.authorities {
                if authority.begin_refresh() {
                    self.fetch(authority);
                }
            }
        }
        let known = lock(&self.known).find(token, now);
        known.or_else(|| lock(&self.refused).find(token, now))
    }

    /// Remembers a verdict of the policy's own verifier, if verdicts are to be used again.
    pub fn remember(&self, token: TokenDigest, verdict: &TokenVerdict) {
        if let Some(time) = self.cached_for {
            self.insert(token, verdict, time.as_secs());
        }
    }

    fn insert(&self, token: TokenDigest, verdict: &TokenVerdict, seconds: u64) {
        let until = unix_seconds().saturating_add(seconds);
        match verdict {
            Ok(principal) => {
                let until = principal.expires_at().map_or(until, |end| end.min(until));
                lock(&self.known).insert(token, verdict.clone(), until);
            }
            Err(TokenRefusal {
                kind: RefusalKind::InvalidToken | RefusalKind::UnfitToken,
                ..
            }) => {
                lock(&self.refused).insert(token, verdict.clone(), until);
            }
            Err(_) => {}
        }
    }

    /// Verifies a token.
    pub async fn verify(self: Arc<Self>, token: String, digest: TokenDigest) -> TokenVerdict {
        match Jws::parse(&token) {
            Ok(signed) => {
                let issuer = signed.claims::<ClaimedIssuer>();
                let issuer = issuer
                    .map_err(|_| TokenRefusal::token("the token names no issuer"))?
                    .iss;
                let own = self.authorities.iter().find(|it| it.issuer == issuer);
                let own = own.ok_or(OTHER_ISSUER)?;
                match own.has_keys() {
                    true => self.verify_signature(own, &signed, digest).await,
                    false => self.ask(vec![own.clone()], &token, digest).await,
                }
            }
            Err(_) if self.authorities.iter().any(|it| it.introspection.is_some()) => {
                self.ask(self.authorities.clone(), &token, digest).await
            }
            Err(refusal) => Err(refusal),
        }
    }

    async fn verify_signature(
        self: &Arc<Self>,
        authority: &Arc<Authority>,
        token: &Jws<'_>,
        digest: TokenDigest,
    ) -> TokenVerdict {
        let (begun, mut failed) = (Instant::now(), None::<Arc<KeySet>>);
        let keys = loop {
            let mut fetched = authority.next_fetch();
            match authority.find(token, failed.as_ref(), begun) {
                KeyLookup::Keys(keys) => {
                    let mut candidates = keys.candidates(token);
                    if candidates.any(|key| token.is_signed_by(key)) {
                        drop(candidates);
                        break keys;
                    }
                    drop(candidates);
                    failed = Some(keys);
                    continue;
                }
                KeyLookup::Fetch => self.fetch(authority),
                KeyLookup::Wait => {}
                KeyLookup::Unknown => return Err(WRONG_SIGNATURE),
                KeyLookup::Unavailable => return Err(NO_KEYS),
            }
            let _ = fetched.changed().await;
        };
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now = now.map_or(0.0, |since| since.as_secs_f64());
        let principal = self.rules.check(token, now).map(principal)?;
        // A fetch replaces the keys first and then forgets all tokens, so no token of a key that is gone stays.
        let mut known = lock(&self.known);
        if authority.is_current(&keys) {
            let until = principal.expires_at().unwrap_or_default();
            known.insert(digest, Ok(principal.clone()), until);
        }
        Ok(principal)
    }

    /// Fetches the keys of an issuer, apart from the request that needs them, which may end before.
    fn fetch(self: &Arc<Self>, authority: &Arc<Authority>) {
        let (tokens, authority) = (self.clone(), authority.clone());
        let Some(fetcher) = self.fetcher.get().cloned() else {
            authority.give_up();
            return;
        };
        let spawner = fetcher.clone();
        let of = authority.clone();
        let fetch = async move {
            if authority.fetch(&*fetcher).await {
                lock(&tokens.known).clear();
            }
            authority.end_fetch();
        };
        if spawner.spawn(Box::pin(fetch)).is_err() {
            of.give_up();
        }
    }

    /// Asks issuers about a token, once for all requests that have it.
    async fn ask(
        self: &Arc<Self>,
        authorities: Vec<Arc<Authority>>,
        token: &str,
        digest: TokenDigest,
    ) -> TokenVerdict {
        let fetcher = self.fetcher.get().ok_or(NO_ANSWER)?;
        let mut verdict = {
            let mut asked = lock(&self.asked);
            match asked.get(&digest) {
                Some(verdict) => verdict.clone(),
                None if asked.len() >= MAX_VERIFICATIONS => return Err(NO_ANSWER),
                None => {
                    let (sender, verdict) = watch::channel(None);
                    asked.insert(digest, verdict.clone());
                    let (tokens, token) = (self.clone(), token.to_owned());
                    let ask = async move {
                        let verdict = tokens.answer(&authorities, &token).await;
                        let seconds = tokens.cached_for.map_or(ANSWER_SECONDS, |it| it.as_secs());
                        tokens.insert(digest, &verdict, seconds);
                        lock(&tokens.asked).remove(&digest);
                        sender.send_replace(Some(verdict));
                    };
                    if fetcher.spawn(Box::pin(ask)).is_err() {
                        asked.remove(&digest);
                        return Err(NO_ANSWER);
                    }
                    verdict
                }
            }
        };
        let verdict = verdict.wait_for(Option::is_some).await;
        verdict.map_or(Err(NO_ANSWER), |verdict| {
            verdict.clone().unwrap_or(Err(NO_ANSWER))
        })
    }

    /// The first answer that accepts a token. Without one, an issuer that cannot be asked outweighs those that
    /// refuse: the token may be its own.
    async fn answer(&self, authorities: &[Arc<Authority>], token: &str) -> TokenVerdict {
        let mut refused = None;
        for authority in authorities {
            let Some(endpoint) = &authority.introspection else {
                continue;
            };
            let refusal = match self.answer_of(endpoint, token).await {
                Ok(mut info) => {
                    if info.issuer.is_empty() {
                        info.issuer.clone_from(&authority.issuer);
                    }
                    match info.issuer == authority.issuer {
                        true => return Ok(principal(info)),
                        false => OTHER_ISSUER,
                    }
                }
                Err(refusal) => refusal,
            };
            refused = Some(match refused {
                Some(TokenRefusal {
                    kind: RefusalKind::Unavailable,
                    ..
                }) => NO_ANSWER,
                _ => refusal,
            });
        }
        Err(refused.unwrap_or(NO_ANSWER))
    }

    async fn answer_of(
        &self,
        endpoint: &Introspection,
        token: &str,
    ) -> Result<TokenInfo, TokenRefusal> {
        let form = Introspection::body(token);
        let fetcher = self.fetcher.get().ok_or(NO_ANSWER)?;
        let answer = fetcher.post(&endpoint.endpoint, endpoint.authorization(), form);
        let answer = answer.await.map_err(|_| NO_ANSWER)?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now = now.map_or(0.0, |since| since.as_secs_f64());
        Introspection::answer(&answer, &self.rules, now)
    }
}

fn principal(info: TokenInfo) -> Principal {
    let principal = match info.is_client {
        true => Principal::client(&info.issuer, &info.subject),
        false => Principal::jwt(&info.issuer, &info.subject),
    };
    let mut principal = principal.with_scopes(info.scopes);
    if let Some(end) = info.expires_at {
        principal = principal.with_expiry(end);
    }
    if let Some(key) = info.binding.key {
        principal = principal.bound_to_key(key);
    }
    if let Some(certificate) = info.binding.certificate {
        principal = principal.bound_to_certificate(certificate);
    }
    principal
}
