//! The keys that keep contents of a store, and facts of sessions, from everybody else.
//!
//! A sealed text, format 1:
//!
//! ```text
//!   1 │ key id, 4 bytes │ salt, 12 │ nonce, 12 │ AES-256-GCM of the text │ tag, 16
//! ```
//!
//! The key of each text is the HMAC-SHA256 of the salt under the sealing key, so 192 random bits tell two texts apart: no
//! number of texts uses up a key, and processes that share it need not know of one another. The tag covers the
//! first five bytes and the context of the text, which says what it is for.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac_sha256::HMAC;
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};

/// The format that is written.
const FORMAT: u8 = 1;
const ID_LEN: usize = 4;
const SALT_LEN: usize = 12;
const TAG_LEN: usize = 16;
/// The bytes before the sealed text.
const HEAD_LEN: usize = 1 + ID_LEN + SALT_LEN + NONCE_LEN;

/// The keys of a store: one names, one seals, and others may still be opened with.
///
/// All processes of a server have the same. To replace the sealing key without a moment at which a process cannot
/// read what another one writes:
///
/// 1. Every process [also opens](Self::also_opens) with the new key.
/// 2. Every process seals with the new key and also opens with the old one.
/// 3. When everything that the old key has sealed is over, it goes.
///
/// The key of names stays: under another one, no name is found. `Debug` shows no key.
#[derive(Clone)]
pub struct StoreKeys {
    names: [u8; 32],
    /// The first one seals.
    opening: Vec<SealingKey>,
}

#[derive(Clone)]
struct SealingKey {
    id: [u8; ID_LEN],
    key: [u8; 32],
}

/// Why a sealed text does not open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SealFailure {
    /// A later version of this program has sealed it.
    Format(u8),
    /// None of the keys is the one it was sealed with.
    UnknownKey,
    /// It is damaged, forged, or was sealed for another context.
    Damaged,
    /// The system provides no randomness.
    NoRandomness,
}

impl fmt::Display for SealFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Format(format) => write!(
                f,
                "sealed in format {format}, which this version does not know"
            ),
            Self::UnknownKey => f.write_str("sealed with a key that this process does not have"),
            Self::Damaged => f.write_str("damaged, or sealed for something else"),
            Self::NoRandomness => f.write_str("the system provides no randomness"),
        }
    }
}

impl std::error::Error for SealFailure {}

impl SealingKey {
    fn new(key: [u8; 32]) -> Self {
        let mut id = [0; ID_LEN];
        id.copy_from_slice(&HMAC::mac(b"mcpbolt store: id of a key", key)[..ID_LEN]);
        Self { id, key }
    }
}

/// What seals or opens one text.
struct TextKey {
    key: LessSafeKey,
    nonce: Nonce,
    aad: Aad<Vec<u8>>,
}

impl TextKey {
    fn of(key: &SealingKey, head: &[u8; HEAD_LEN], context: &[u8]) -> Option<Self> {
        let (before, random) = head.split_at(1 + ID_LEN);
        let (salt, nonce) = random.split_at(SALT_LEN);
        let mut mac = HMAC::new(key.key);
        mac.update(b"mcpbolt store: key of a text");
        mac.update(salt);
        let key = UnboundKey::new(&AES_256_GCM, &mac.finalize()).ok()?;
        Some(Self {
            key: LessSafeKey::new(key),
            nonce: Nonce::try_assume_unique_for_key(nonce).ok()?,
            aad: Aad::from([before, context].concat()),
        })
    }
}

impl fmt::Debug for StoreKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ids = self.opening.iter().map(|key| u32::from_be_bytes(key.id));
        f.debug_struct("StoreKeys")
            .field("ids", &ids.collect::<Vec<_>>())
            .finish_non_exhaustive()
    }
}

impl StoreKeys {
    /// A text is this many bytes longer when it is sealed.
    pub const OVERHEAD: usize = HEAD_LEN + TAG_LEN;

    /// Keys of 32 random bytes each: one that names, and one that seals.
    pub fn new(names: [u8; 32], sealing: [u8; 32]) -> Self {
        Self {
            names,
            opening: vec![SealingKey::new(sealing)],
        }
    }

    /// Random keys, for a server in one process; `None` when the system provides no randomness.
    pub fn random() -> Option<Self> {
        let (mut names, mut sealing) = ([0; 32], [0; 32]);
        getrandom::fill(&mut names).ok()?;
        getrandom::fill(&mut sealing).ok()?;
        Some(Self::new(names, sealing))
    }

    /// Also opens what this key has sealed.
    #[must_use]
    pub fn also_opens(mut self, sealing: [u8; 32]) -> Self {
        self.opening.push(SealingKey::new(sealing));
        self
    }

    /// Seals a text for a context. The text opens for the same context only.
    ///
    /// # Errors
    /// When the system provides no randomness.
    pub fn seal(&self, context: &[u8], text: &[u8]) -> Result<Vec<u8>, SealFailure> {
        let key = self.opening.first().ok_or(SealFailure::UnknownKey)?;
        let mut head = [0; HEAD_LEN];
        head[0] = FORMAT;
        head[1..=ID_LEN].copy_from_slice(&key.id);
        getrandom::fill(&mut head[1 + ID_LEN..]).map_err(|_| SealFailure::NoRandomness)?;
        let one = TextKey::of(key, &head, context).ok_or(SealFailure::Damaged)?;
        let mut sealed = Vec::with_capacity(text.len() + Self::OVERHEAD);
        sealed.extend_from_slice(&head);
        sealed.extend_from_slice(text);
        let TextKey { key, nonce, aad } = one;
        let tag = key.seal_in_place_separate_tag(nonce, aad, &mut sealed[HEAD_LEN..]);
        sealed.extend_from_slice(tag.map_err(|_| SealFailure::Damaged)?.as_ref());
        Ok(sealed)
    }

    /// Opens a text that was sealed for this context.
    ///
    /// # Errors
    /// When it was not, or not with one of the keys.
    pub fn open(&self, context: &[u8], sealed: &[u8]) -> Result<Vec<u8>, SealFailure> {
        match sealed.first() {
            Some(&FORMAT) => {}
            Some(&other) => return Err(SealFailure::Format(other)),
            None => return Err(SealFailure::Damaged),
        }
        let (head, text) = sealed.split_first_chunk().ok_or(SealFailure::Damaged)?;
        let mut outcome = Err(SealFailure::UnknownKey);
        let is_named = |key: &&SealingKey| key.id == head[1..=ID_LEN];
        // Two keys may have the same id, though hardly.
        for key in self.opening.iter().filter(is_named) {
            let one = TextKey::of(key, head, context).ok_or(SealFailure::Damaged)?;
            let mut text = text.to_vec();
            let opened = one.key.open_in_place(one.nonce, one.aad, &mut text);
            if let Ok(len) = opened.map(|opened| opened.len()) {
                text.truncate(len);
                return Ok(text);
            }
            outcome = Err(SealFailure::Damaged);
        }
        outcome
    }

    /// The name under which the store knows `name`: 22 characters that tell nothing about it.
    pub fn name(&self, name: &str) -> String {
        URL_SAFE_NO_PAD.encode(&HMAC::mac(name.as_bytes(), self.names)[..16])
    }

    /// A key for something else than names and contents. It stays, as that of names does.
    #[cfg(feature = "http")]
    pub(crate) fn secret(&self, what: &str) -> [u8; 32] {
        HMAC::mac(format!("mcpbolt store: key of {what}"), self.names)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys() -> StoreKeys {
        StoreKeys::new([1; 32], [2; 32])
    }

    #[test]
    fn a_text_opens_for_its_context_and_unchanged() {
        let sealed = keys().seal(b"a", b"the text").unwrap();
        assert_eq!(sealed.len(), 8 + StoreKeys::OVERHEAD);
        assert_eq!(keys().open(b"a", &sealed).unwrap(), b"the text");
        assert_eq!(keys().open(b"b", &sealed), Err(SealFailure::Damaged));
        for at in 0..sealed.len() {
            for bit in 0..8 {
                let mut changed = sealed.clone();
                changed[at] ^= 1 << bit;
                assert!(keys().open(b"a", &changed).is_err(), "{at}.{bit}");
            }
            assert!(keys().open(b"a", &sealed[..at]).is_err(), "{at}");
        }
        let empty = keys().seal(b"", b"").unwrap();
        assert_eq!(keys().open(b"", &empty).unwrap(), b"");
        let later = [&[FORMAT + 1], &sealed[1..]].concat();
        assert_eq!(keys().open(b"a", &later), Err(SealFailure::Format(2)));
    }

    /// What is written today is read by every later version.
    #[test]
    fn format_1_stays_readable() {
        let sealed = "AUvnAajATW3K-a2Xhl9UdIgpCP30jhdq-QwdtxRO2ZAMSU2XmGvThS4TWwx1aSaS0Q";
        let sealed = URL_SAFE_NO_PAD.decode(sealed).unwrap();
        assert_eq!(keys().open(b"context", &sealed).unwrap(), b"text");
    }

    #[test]
    fn equal_texts_are_sealed_differently() {
        let sealed = || keys().seal(b"a", b"the text").unwrap();
        let all: std::collections::HashSet<_> = (0..1000).map(|_| sealed()).collect();
        assert_eq!(all.len(), 1000);
    }

    #[test]
    fn a_key_is_replaced_without_a_moment_at_which_nothing_opens() {
        let old = || StoreKeys::new([1; 32], [2; 32]);
        let new = || StoreKeys::new([1; 32], [3; 32]);
        let steps = [
            old(),
            old().also_opens([3; 32]),
            new().also_opens([2; 32]),
            new(),
        ];
        for pair in steps.windows(2) {
            for (writes, reads) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
                let sealed = pair[writes].seal(b"a", b"text").unwrap();
                assert_eq!(pair[reads].open(b"a", &sealed).unwrap(), b"text");
            }
        }
        let sealed = old().seal(b"a", b"text").unwrap();
        assert_eq!(new().open(b"a", &sealed), Err(SealFailure::UnknownKey));
        assert_eq!(old().name("x"), new().name("x"));
    }

    #[test]
    fn names_and_debug_tell_nothing() {
        let name = keys().name("session of alice");
        assert_eq!(name.len(), 22);
        assert_ne!(
            name,
            StoreKeys::new([9; 32], [2; 32]).name("session of alice")
        );
        assert!(!name.contains(['{', '}']) && !name.contains("alice"));
        let told = format!("{:?}", StoreKeys::new([77; 32], [99; 32]));
        assert!(
            !told.contains("77, 77") && !told.contains("99, 99"),
            "{told}"
        );
    }
}
