//! Tokens that were verified, by their digests.

use std::collections::HashMap;
use std::fmt;
use std::mem;

use ring::aead::{AES_128_GCM, Aad, LessSafeKey, Nonce, UnboundKey};

use super::jws::{MAX_TOKEN_BYTES, TOO_LONG};
use super::refusal::TokenRefusal;

/// Most tokens that a cache knows; beyond that, those not used for longest are forgotten.
pub const MAX_CACHED_TOKENS: usize = 20_000;

/// The digest of a token, so that caches contain no tokens. Only digests of one [`TokenDigester`] are comparable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TokenDigest([u8; 16]);

/// Makes digests with a random key. Every request with a token needs one, so they are the tags of AES-GCM, which takes a
/// third of the time of SHA-256.
///
/// The nonce is always the same, which would be fatal if a ciphertext or a tag left the process; none does. What
/// counts is that nobody finds two tokens with one digest. With a fixed nonce the tag is a polynomial in a secret
/// point of 128 bits, masked by a constant (GHASH, NIST SP 800-38D): two given texts of n blocks have one tag for at
/// most n + 1 of the 2^128 points. For tokens of up to 16 KiB that is one in 2^117 per pair, whatever an attacker
/// computes, since no response depends on the tag.
pub struct TokenDigester(LessSafeKey);

impl fmt::Debug for TokenDigester {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TokenDigester(..)")
    }
}

impl TokenDigester {
    /// Draws a key; `None` if the system has no random numbers.
    pub fn new() -> Option<Self> {
        let mut key = [0; 16];
        getrandom::fill(&mut key).ok()?;
        let key = UnboundKey::new(&AES_128_GCM, &key).ok()?;
        Some(Self(LessSafeKey::new(key)))
    }

    /// The digest of a token.
    ///
    /// # Errors
    /// If the token is longer than [`MAX_TOKEN_BYTES`].
    pub fn digest(&self, token: &str) -> Result<TokenDigest, TokenRefusal> {
        if token.len() > MAX_TOKEN_BYTES {
            return Err(TOO_LONG);
        }
        let nonce = Nonce::assume_unique_for_key([0; 12]);
        // The copy is encrypted and dropped. Tags over additional data take three times as long.
        let mut copy = token.as_bytes().to_vec();
        let sealed = self
            .0
            .seal_in_place_separate_tag(nonce, Aad::empty(), &mut copy);
        let tag = sealed.map_err(|_| TOO_LONG)?;
        let tag = tag.as_ref().first_chunk().ok_or(TOO_LONG)?;
        Ok(TokenDigest(*tag))
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
