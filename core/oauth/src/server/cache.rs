//! Tokens that were verified, by their digests.

use std::collections::HashMap;
use std::mem;

use ring::digest::{SHA256, digest};

/// Most tokens that a cache knows; beyond that, those not used for longest are forgotten.
pub const MAX_CACHED_TOKENS: usize = 20_000;

/// The SHA-256 digest of a token, so that caches contain no tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TokenDigest([u8; 32]);

impl TokenDigest {
    /// The digest of a token.
    pub fn of(token: &str) -> Self {
        let mut own = [0; 32];
        own.copy_from_slice(digest(&SHA256, token.as_bytes()).as_ref());
        Self(own)
    }
}

/// What is known of tokens, each until a time. Times are seconds since 1970.
#[derive(Debug)]
pub struct TokenCache<T> {
    /// The tokens that were used since the last change of generations.
    young: HashMap<TokenDigest, (u64, T)>,
    old: HashMap<TokenDigest, (u64, T)>,
}

impl<T> Default for TokenCache<T> {
    fn default() -> Self {
        Self {
            young: HashMap::new(),
            old: HashMap::new(),
        }
    }
}

impl<T: Clone> TokenCache<T> {
    /// What is known of a token at `now`.
    pub fn find(&mut self, token: &TokenDigest, now: u64) -> Option<T> {
        if let Some((until, known)) = self.young.get(token) {
            return (now < *until).then(|| known.clone());
        }
        let (until, known) = self.old.remove(token)?;
        if now >= until {
            return None;
        }
        self.insert(*token, known.clone(), until);
        Some(known)
    }

    /// Remembers what is known of a token until a time.
    pub fn insert(&mut self, token: TokenDigest, known: T, until: u64) {
        if self.young.len() >= MAX_CACHED_TOKENS / 2 && !self.young.contains_key(&token) {
            self.old = mem::take(&mut self.young);
        }
        self.young.insert(token, (until, known));
    }

    /// Forgets every token.
    pub fn clear(&mut self) {
        (self.young, self.old) = (HashMap::new(), HashMap::new());
    }
}
