//! Recognizes the member names that a decoder records, eight bytes at a time.

use super::JsonStr;

/// A recorded name with its closing quote, and the field for its value.
#[derive(Clone, Copy)]
pub(crate) struct Key<F> {
    name: &'static [u8],
    pub(crate) field: F,
    /// The first eight bytes of the name, and the mask of the bytes that count.
    word: u64,
    mask: u64,
}

impl<F: Copy> Key<F> {
    /// A key; `name` includes the closing quote.
    pub(crate) const fn new(name: &'static [u8], field: F) -> Self {
        let mut word = 0;
        let mut mask = 0;
        let mut i = 0;
        while i < 8 && i < name.len() {
            word |= (name[i] as u64) << (8 * i);
            mask |= 0xff << (8 * i);
            i += 1;
        }
        Self {
            name,
            field,
            word,
            mask,
        }
    }

    /// Whether this name begins at `AT` of the window; `word` holds the eight bytes there.
    #[inline(always)]
    pub(crate) fn matches<const AT: usize>(&self, word: u64, window: &[u8; 32]) -> bool {
        self.begins(word) && (self.is_short() || self.stands_at(&window[AT..]))
    }

    /// Whether the first eight bytes of the name match `word`.
    #[inline(always)]
    pub(crate) fn begins(&self, word: u64) -> bool {
        word & self.mask == self.word
    }

    /// Whether [`begins`](Self::begins) decides alone, because the name and its quote fit into a
    /// word.
    #[inline(always)]
    pub(crate) const fn is_short(&self) -> bool {
        self.spelled_len() <= 8
    }

    /// Whether `bytes` begin with the whole name.
    #[inline(always)]
    pub(crate) fn stands_at(&self, bytes: &[u8]) -> bool {
        bytes.starts_with(self.name)
    }

    /// Length of the name with its closing quote.
    #[inline(always)]
    pub(crate) const fn spelled_len(&self) -> usize {
        self.name.len()
    }

    /// Whether `raw`, a string with escapes, spells `prefix` followed by this name.
    #[cold]
    pub(crate) fn is_spelled(&self, prefix: &'static [u8], raw: JsonStr<'_>) -> bool {
        let points = |bytes: &'static [u8]| bytes.iter().map(|&byte| u32::from(byte));
        let name = points(self.name).take(self.spelled_len() - 1);
        raw.code_points().eq(points(prefix).chain(name))
    }
}

/// The eight bytes at `AT`, little-endian.
#[inline(always)]
pub(crate) fn word_at<const AT: usize>(window: &[u8; 32]) -> u64 {
    const { assert!(AT + 8 <= 32) };
    u64::from_le_bytes(std::array::from_fn(|i| window[AT + i]))
}

/// Compares the window with each name in turn; on a match, walks the member's value and breaks out
/// of the block `$found` with its end. Expanded for each name, so that names, masks and fields are
/// constants in the code. The caller has a module `keys` with the names, and a method `member` that
/// walks the value.
macro_rules! first_of {
    ($found:lifetime, $pass:ident, $place:expr, $window:ident at $at:literal,
     $keys:ident[$($index:literal),+]) => {{
        let (level, key, depth) = $place;
        let word = $crate::json::key_table::word_at::<$at>($window);
        $({
            const KEY: $crate::json::key_table::Key<Field> = keys::$keys[$index];
            if KEY.matches::<$at>(word, $window) {
                let behind = $crate::json::key_table::word_at::<{ $at + KEY.spelled_len() }>($window);
                break $found $pass.member(level, KEY.field, key + KEY.spelled_len(), behind, depth)?;
            }
        })+
    }};
}
pub(crate) use first_of;
