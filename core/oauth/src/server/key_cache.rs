//! When the keys of an issuer are fetched.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::jws::Jws;
use super::key_set::KeySet;

/// Shortest time between a fetch that failed and the next one.
const AFTER_FAILURE: Duration = Duration::from_secs(5);

/// How long keys are used while every fetch fails.
const STALE: Duration = Duration::from_secs(24 * 60 * 60);

/// The keys of an issuer, which are fetched when they are needed: once for all that wait, and again when a
/// token names an unknown key or the keys are old. While fetches fail, the keys that are known are kept, for
/// 24 hours.
#[derive(Debug)]
pub struct KeyCache {
    /// Age of keys after which they are fetched again; meanwhile they are used.
    refresh: Duration,
    /// Shortest time between two fetches.
    cooldown: Duration,
    keys: Arc<KeySet>,
    /// When the keys were fetched.
    fetched: Option<Instant>,
    /// When the last fetch ended, and how long there is no other.
    ended: Option<(Instant, Duration)>,
    is_fetching: bool,
}

/// What to do about a token.
#[derive(Debug)]
pub enum KeyLookup {
    /// One of these keys may have signed the token. If none has, look again with them as `failed`.
    Keys(Arc<KeySet>),
    /// Fetch the keys, tell [`KeyCache::fetched`], and look again.
    Fetch,
    /// Somebody else fetches the keys: wait, and look again.
    Wait,
    /// No key is known that fits.
    Unknown,
    /// There are no keys, since the last fetch failed.
    Unavailable,
}

impl KeyCache {
    /// Creates a cache without keys. They are fetched again at an age of `refresh`, and at most every
    /// `cooldown`.
    pub fn new(refresh: Duration, cooldown: Duration) -> Self {
        Self {
            refresh,
            cooldown,
            keys: Arc::default(),
            fetched: None,
            ended: None,
            is_fetching: false,
        }
    }

    /// Looks for the keys that may have signed `token`, other than those of `failed`, which did not. Keys that
    /// were fetched since `begun`, when the verification began, are not fetched again for it. After [`KeyLookup::Fetch`], [`fetched`](Self::fetched) must be called, whatever happens.
    pub fn find(
        &mut self,
        token: &Jws<'_>,
        failed: Option<&Arc<KeySet>>,
        begun: Instant,
        now: Instant,
    ) -> KeyLookup {
        let since = |then: Instant| now.saturating_duration_since(then);
        if self.fetched.is_some_and(|then| since(then) > STALE) {
            (self.keys, self.fetched) = (Arc::default(), None);
        }
        let is_new = failed.is_none_or(|failed| !Arc::ptr_eq(failed, &self.keys));
        if is_new && self.keys.candidates(token).next().is_some() {
            return KeyLookup::Keys(self.keys.clone());
        }
        let is_fresh = self.ended.is_some_and(|(then, _)| then >= begun);
        if self.may_fetch(now) && !is_fresh {
            self.is_fetching = true;
            return KeyLookup::Fetch;
        }
        match (self.is_fetching, self.fetched) {
            (true, _) => KeyLookup::Wait,
            (false, Some(_)) => KeyLookup::Unknown,
            (false, None) => KeyLookup::Unavailable,
        }
    }

    fn may_fetch(&self, now: Instant) -> bool {
        let rests = |(then, cooldown)| now.saturating_duration_since(then) < cooldown;
        !self.is_fetching && !self.ended.is_some_and(rests)
    }

    /// Whether the keys are to be fetched again, since they are old. After `true`,
    /// [`fetched`](Self::fetched) must be called, whatever happens.
    pub fn begin_refresh(&mut self, now: Instant) -> bool {
        let is_old = |then: Instant| now.saturating_duration_since(then) > self.refresh;
        let begins = self.fetched.is_some_and(is_old) && self.may_fetch(now);
        self.is_fetching |= begins;
        begins
    }

    /// Whether these are the keys of the last fetch.
    pub fn is_current(&self, keys: &Arc<KeySet>) -> bool {
        Arc::ptr_eq(keys, &self.keys)
    }

    /// Ends a fetch: with its keys, or `None` if it failed. Returns whether a key is gone, and with it
    /// every token that it has signed.
    pub fn fetched(&mut self, keys: Option<KeySet>, now: Instant) -> bool {
        self.is_fetching = false;
        let cooldown = match keys {
            Some(_) => self.cooldown,
            None => self.cooldown.min(AFTER_FAILURE),
        };
        self.ended = Some((now, cooldown));
        let Some(keys) = keys else { return false };
        let is_gone = !self.keys.is_within(&keys);
        (self.keys, self.fetched) = (Arc::new(keys), Some(now));
        is_gone
    }
}
