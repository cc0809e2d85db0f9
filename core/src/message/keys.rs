//! Which member names are noted at which level, as data.

use super::envelope::Field;
use crate::json::JsonStr;

/// The objects whose members are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Level {
    Top,
    Params,
    Meta,
    Result,
    Error,
}

/// One noted name: its spelling with the closing quote, and where its value goes.
#[derive(Clone, Copy)]
pub(super) struct Key {
    pub(super) name: &'static [u8],
    pub(super) field: Field,
    /// The first eight bytes of the spelling, and which of them count.
    word: u64,
    mask: u64,
}

const fn key(name: &'static [u8], field: Field) -> Key {
    let mut word = 0;
    let mut mask = 0;
    let mut i = 0;
    while i < 8 && i < name.len() {
        word |= (name[i] as u64) << (8 * i);
        mask |= 0xff << (8 * i);
        i += 1;
    }
    Key {
        name,
        field,
        word,
        mask,
    }
}

impl Key {
    /// Whether this name stands at `AT`, where the eight bytes are `word`; they decide alone when the name and its quote fit into them.
    #[inline(always)]
    pub(super) fn matches<const AT: usize>(&self, word: u64, window: &[u8; 32]) -> bool {
        word & self.mask == self.word && (self.len() <= 8 || window[AT..].starts_with(self.name))
    }

    /// Length of the name with its closing quote.
    #[inline(always)]
    pub(super) const fn len(&self) -> usize {
        self.name.len()
    }
}

/// The eight bytes at `AT`, little-endian.
#[inline(always)]
pub(super) fn word_at<const AT: usize>(window: &[u8; 32]) -> u64 {
    const { assert!(AT + 8 <= 32) };
    u64::from_le_bytes(std::array::from_fn(|i| window[AT + i]))
}

/// What all of MCP's own `_meta` names begin with.
pub(super) const META_PREFIX: &[u8] = b"io.modelcontextprotocol/";

pub(super) const TOP: [Key; 6] = [
    key(b"jsonrpc\"", Field::Version),
    key(b"id\"", Field::Id),
    key(b"method\"", Field::Method),
    key(b"params\"", Field::Params),
    key(b"result\"", Field::Result),
    key(b"error\"", Field::Error),
];

pub(super) const PARAMS: [Key; 7] = [
    key(b"name\"", Field::Name),
    key(b"arguments\"", Field::Arguments),
    key(b"_meta\"", Field::Meta),
    key(b"uri\"", Field::Uri),
    key(b"progressToken\"", Field::Progress),
    key(b"requestId\"", Field::RequestId),
    key(b"cursor\"", Field::Cursor),
];

pub(super) const META: [Key; 4] = [
    key(b"progressToken\"", Field::ProgressToken),
    key(b"traceparent\"", Field::Traceparent),
    key(b"tracestate\"", Field::Tracestate),
    key(b"baggage\"", Field::Baggage),
];

/// The names behind [`META_PREFIX`].
pub(super) const META_PREFIXED: [Key; 5] = [
    key(b"protocolVersion\"", Field::ProtocolVersion),
    key(b"clientCapabilities\"", Field::ClientCapabilities),
    key(b"clientInfo\"", Field::ClientInfo),
    key(b"logLevel\"", Field::LogLevel),
    key(b"subscriptionId\"", Field::SubscriptionId),
];

pub(super) const RESULT: [Key; 1] = [key(b"resultType\"", Field::ResultType)];

pub(super) const ERROR: [Key; 3] = [
    key(b"code\"", Field::ErrorCode),
    key(b"message\"", Field::ErrorMessage),
    key(b"data\"", Field::ErrorData),
];

impl Level {
    pub(super) const fn from_number(number: u8) -> Self {
        match number {
            0 => Self::Top,
            1 => Self::Params,
            2 => Self::Meta,
            3 => Self::Result,
            _ => Self::Error,
        }
    }

    const fn keys(self) -> &'static [Key] {
        match self {
            Self::Top => &TOP,
            Self::Params => &PARAMS,
            Self::Meta => &META,
            Self::Result => &RESULT,
            Self::Error => &ERROR,
        }
    }

    /// Which of this level's names the escaped spelling `raw` means.
    #[cold]
    pub(super) fn knows(self, raw: JsonStr<'_>) -> Option<Field> {
        let points = |bytes: &'static [u8]| bytes.iter().map(|&byte| u32::from(byte));
        let unquoted = |key: &'static Key| points(key.name).take(key.name.len() - 1);
        let plain = |key: &&'static Key| raw.code_points().eq(unquoted(key));
        let prefixed = |key: &&'static Key| {
            self == Self::Meta
                && raw
                    .code_points()
                    .eq(points(META_PREFIX).chain(unquoted(key)))
        };
        let found = self.keys().iter().find(plain);
        found
            .or_else(|| META_PREFIXED.iter().find(prefixed))
            .map(|key| key.field)
    }
}
