//! The table of member names that the decoder records, by level.

use super::envelope::Field;
use crate::json::JsonStr;
use crate::json::key_table::Key as Noted;

/// A recorded member name.
type Key = Noted<Field>;

const fn key(name: &'static [u8], field: Field) -> Key {
    Key::new(name, field)
}

/// The objects whose members are recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Level {
    Top,
    Params,
    Meta,
    Result,
    Error,
}

/// The prefix of MCP's own `_meta` names.
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

/// The names that follow [`META_PREFIX`].
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

    /// The name of this level that `raw` spells with escapes.
    #[cold]
    pub(super) fn knows(self, raw: JsonStr<'_>) -> Option<Field> {
        let plain = |key: &&Key| key.is_spelled(b"", raw);
        let prefixed = |key: &&Key| self == Self::Meta && key.is_spelled(META_PREFIX, raw);
        let found = self.keys().iter().find(plain);
        found
            .or_else(|| META_PREFIXED.iter().find(prefixed))
            .map(|key| key.field)
    }
}
