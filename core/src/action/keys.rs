//! Which member names are noted at which level, as data.

use super::record::Field;
use crate::json::JsonStr;
use crate::json::noted::Key;

/// The objects whose members are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Level {
    Top,
    Metadata,
    Error,
}

const TOP: [Key<Field>; 9] = [
    Key::new(b"action\"", Field::Action),
    Key::new(b"params\"", Field::Params),
    Key::new(b"metadata\"", Field::Metadata),
    Key::new(b"status\"", Field::Status),
    Key::new(b"data\"", Field::Data),
    Key::new(b"tool\"", Field::Tool),
    Key::new(b"context\"", Field::Context),
    Key::new(b"error\"", Field::Error),
    Key::new(b"type\"", Field::Type),
];

const METADATA: [Key<Field>; 5] = [
    Key::new(b"request_id\"", Field::RequestId),
    Key::new(b"client_id\"", Field::ClientId),
    Key::new(b"protocol_version\"", Field::ProtocolVersion),
    Key::new(b"version\"", Field::Version),
    Key::new(b"auth\"", Field::Auth),
];

const ERROR: [Key<Field>; 4] = [
    Key::new(b"type\"", Field::ErrorType),
    Key::new(b"message\"", Field::ErrorMessage),
    Key::new(b"details\"", Field::ErrorDetails),
    Key::new(b"code\"", Field::ErrorCode),
];

impl Level {
    #[inline(always)]
    pub(super) const fn keys(self) -> &'static [Key<Field>] {
        match self {
            Self::Top => &TOP,
            Self::Metadata => &METADATA,
            Self::Error => &ERROR,
        }
    }

    /// The level of the object that stands under a member of this one.
    #[inline(always)]
    pub(super) const fn beneath(field: Field) -> Option<Self> {
        match field {
            Field::Metadata => Some(Self::Metadata),
            Field::Error => Some(Self::Error),
            _ => None,
        }
    }

    /// Whether the escaped spelling `raw` means one of this level's names.
    #[cold]
    pub(super) fn knows(self, raw: JsonStr<'_>) -> bool {
        self.keys().iter().any(|key| key.is_spelled(b"", raw))
    }
}
