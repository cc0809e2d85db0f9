//! The table of member names that the decoder records, by level.

use super::record::Field;
use crate::json::JsonStr;
use crate::json::key_table::Key;

/// The objects whose members are recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Level {
    Top,
    Metadata,
    Error,
}

pub(super) const TOP: [Key<Field>; 10] = [
    Key::new(b"action\"", Field::Action),
    Key::new(b"params\"", Field::Params),
    Key::new(b"metadata\"", Field::Metadata),
    Key::new(b"status\"", Field::Status),
    Key::new(b"data\"", Field::Data),
    Key::new(b"tool\"", Field::Tool),
    Key::new(b"context\"", Field::Context),
    Key::new(b"error\"", Field::Error),
    Key::new(b"type\"", Field::Type),
    Key::new(b"jsonrpc\"", Field::JsonRpc),
];

pub(super) const METADATA: [Key<Field>; 9] = [
    Key::new(b"request_id\"", Field::RequestId),
    Key::new(b"protocol_version\"", Field::ProtocolVersion),
    Key::new(b"server_id\"", Field::ServerId),
    Key::new(b"execution_time_ms\"", Field::ExecutionTime),
    Key::new(b"client_id\"", Field::ClientId),
    Key::new(b"version\"", Field::Version),
    Key::new(b"min_protocol_version\"", Field::OldestVersion),
    Key::new(b"auth\"", Field::Auth),
    Key::new(b"stream\"", Field::Stream),
];

pub(super) const ERROR: [Key<Field>; 4] = [
    Key::new(b"type\"", Field::ErrorType),
    Key::new(b"message\"", Field::ErrorMessage),
    Key::new(b"details\"", Field::ErrorDetails),
    Key::new(b"code\"", Field::ErrorCode),
];

impl Level {
    pub(super) const fn from_number(number: u8) -> Self {
        match number {
            0 => Self::Top,
            1 => Self::Metadata,
            _ => Self::Error,
        }
    }

    const fn keys(self) -> &'static [Key<Field>] {
        match self {
            Self::Top => &TOP,
            Self::Metadata => &METADATA,
            Self::Error => &ERROR,
        }
    }

    /// Whether `raw` spells one of this level's names with escapes.
    #[cold]
    pub(super) fn knows(self, raw: JsonStr<'_>) -> bool {
        self.keys().iter().any(|key| key.is_spelled(b"", raw))
    }
}
