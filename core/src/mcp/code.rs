//! Neutral error kinds and their codes per revision (requirements table F.1).

use super::revision::Revision;

/// Invalid JSON.
pub const PARSE_ERROR: i64 = -32700;
/// Valid JSON, but no valid message.
pub const INVALID_REQUEST: i64 = -32600;
/// No such method.
pub const METHOD_NOT_FOUND: i64 = -32601;
/// Bad params.
pub const INVALID_PARAMS: i64 = -32602;
/// Unexpected failure.
pub const INTERNAL_ERROR: i64 = -32603;
/// What the carrier says of a request and what the request says itself differ (2026-07-28).
pub const HEADER_MISMATCH: i64 = -32020;
/// A client capability that the request needs was not declared (2026-07-28).
pub const MISSING_CLIENT_CAPABILITY: i64 = -32021;
/// The request's protocol version is not supported (2026-07-28).
pub const UNSUPPORTED_VERSION: i64 = -32022;
/// An answer to a cancelled request under one profile; tolerated when received (R-ERR-27).
pub const REQUEST_CANCELLED: i64 = -32800;
/// Too many requests at once; `data.retryAfter` says when to try again, in seconds. Outside the
/// range that MCP reserves (R-ERR-07).
pub const OVERLOADED: i64 = -31999;
/// The side that was asked is shutting down and begins nothing new. Outside the range that MCP
/// reserves (R-ERR-07).
pub const SHUTTING_DOWN: i64 = -31998;

/// What went wrong, whatever the revision calls it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// Not JSON.
    Parse,
    /// Not a message.
    InvalidRequest,
    /// No such method, or not offered.
    MethodNotFound,
    /// Params, cursor or level that are not valid.
    InvalidParams,
    /// No such tool (R-ERR-11).
    ToolNotFound,
    /// No such prompt (R-ERR-12).
    PromptNotFound,
    /// No such resource.
    ResourceNotFound,
    /// What the carrier says of the request and what it says itself differ (R-HDR-02).
    HeaderMismatch,
    /// The request's version is not supported.
    UnsupportedVersion,
    /// The request needs a client capability that it did not declare.
    MissingClientCapability,
    /// Too many requests at once.
    Overloaded,
    /// This side finishes what is in flight and begins nothing new.
    ShuttingDown,
    /// Unexpected failure.
    Internal,
}

impl ErrorKind {
    /// The code on the wire of that revision.
    pub fn code(self, revision: Revision) -> i64 {
        match self {
            Self::Parse => PARSE_ERROR,
            Self::InvalidRequest => INVALID_REQUEST,
            Self::MethodNotFound => METHOD_NOT_FOUND,
            Self::InvalidParams | Self::ToolNotFound | Self::PromptNotFound => INVALID_PARAMS,
            Self::ResourceNotFound => revision.rules().resource_missing,
            Self::HeaderMismatch => HEADER_MISMATCH,
            Self::UnsupportedVersion if revision.rules().result_type => UNSUPPORTED_VERSION,
            Self::UnsupportedVersion => INVALID_PARAMS,
            Self::MissingClientCapability if revision.rules().result_type => {
                MISSING_CLIENT_CAPABILITY
            }
            Self::MissingClientCapability => INVALID_REQUEST,
            Self::Overloaded => OVERLOADED,
            Self::ShuttingDown => SHUTTING_DOWN,
            Self::Internal => INTERNAL_ERROR,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_revision_emits_only_the_codes_it_knows() {
        // R-ERR-03, R-ERR-04, R-ERR-05
        use ErrorKind::*;
        let kinds = [
            Parse,
            InvalidRequest,
            MethodNotFound,
            InvalidParams,
            ToolNotFound,
            PromptNotFound,
        ];
        let more = [
            ResourceNotFound,
            HeaderMismatch,
            UnsupportedVersion,
            MissingClientCapability,
            Overloaded,
            ShuttingDown,
            Internal,
        ];
        for kind in kinds.into_iter().chain(more) {
            let code = kind.code(Revision::V2026_07_28);
            assert!(!(-32019..=-32000).contains(&code), "{kind:?}");
            assert!(
                !(-32099..=-32020).contains(&code) || matches!(code, -32022..=-32020),
                "{kind:?}"
            );
        }
        assert_eq!(ResourceNotFound.code(Revision::V2025_11_25), -32002);
    }
}
