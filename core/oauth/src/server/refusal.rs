//! Why a request is refused, in the words of RFC 6750 and RFC 9449.

use std::fmt;

/// The kind of a [`TokenRefusal`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RefusalKind {
    /// There is no token: 401 without an error code (RFC 6750, section 3.1).
    Missing,
    /// The request is malformed: 400 `invalid_request`.
    Malformed,
    /// The token is not accepted: 401 `invalid_token`.
    InvalidToken,
    /// An authorization server issued the token, but not for now, for here or for this client: 401 `invalid_token`.
    /// Its sender does not guess.
    UnfitToken,
    /// The proof of possession is not accepted: 401 `invalid_dpop_proof`.
    InvalidProof,
    /// The proof lacks a nonce of this server: 401 `use_dpop_nonce`.
    NonceNeeded,
    /// The token lacks scopes: 403 `insufficient_scope`.
    InsufficientScope,
    /// The token cannot be checked now: 503, without an error code.
    Unavailable,
}

impl RefusalKind {
    /// The HTTP status.
    pub fn status(self) -> u16 {
        match self {
            Self::Malformed => 400,
            Self::InsufficientScope => 403,
            Self::Unavailable => 503,
            _ => 401,
        }
    }

    /// The `error` of the challenge.
    pub fn code(self) -> Option<&'static str> {
        match self {
            Self::Missing | Self::Unavailable => None,
            Self::Malformed => Some("invalid_request"),
            Self::InvalidToken | Self::UnfitToken => Some("invalid_token"),
            Self::InvalidProof => Some("invalid_dpop_proof"),
            Self::NonceNeeded => Some("use_dpop_nonce"),
            Self::InsufficientScope => Some("insufficient_scope"),
        }
    }
}

/// Why a request is refused. The reason is a text of this crate: it contains nothing of the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenRefusal {
    /// The kind, which decides on the status and the error code.
    pub kind: RefusalKind,
    /// The `error_description`.
    pub why: &'static str,
}

impl TokenRefusal {
    /// The token is not accepted, for this reason.
    pub const fn token(why: &'static str) -> Self {
        let kind = RefusalKind::InvalidToken;
        Self { kind, why }
    }

    /// The token was issued, but is not accepted for this reason.
    pub const fn unfit(why: &'static str) -> Self {
        let kind = RefusalKind::UnfitToken;
        Self { kind, why }
    }

    pub(super) const fn proof(why: &'static str) -> Self {
        let kind = RefusalKind::InvalidProof;
        Self { kind, why }
    }

    /// The request is malformed, for this reason.
    pub const fn malformed(why: &'static str) -> Self {
        let kind = RefusalKind::Malformed;
        Self { kind, why }
    }

    /// The token cannot be checked now, for this reason.
    pub const fn unavailable(why: &'static str) -> Self {
        let kind = RefusalKind::Unavailable;
        Self { kind, why }
    }
}

impl fmt::Display for TokenRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.why)
    }
}

impl std::error::Error for TokenRefusal {}
