//! Neutral error kinds and their codes per revision (requirements table F.1).

use super::profile::Profile;
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
/// The user does not want it, sampling for example (R-ERR-22).
pub const REJECTED: i64 = -1;
/// Too many requests at once; `data.retryAfter` says when to try again, in seconds. Outside the
/// range that MCP reserves (R-ERR-07).
pub const OVERLOADED: i64 = -31999;
/// The side that was asked is shutting down and begins nothing new. Outside the range that MCP
/// reserves (R-ERR-07).
pub const SHUTTING_DOWN: i64 = -31998;

/// A client asks more often than it may; `data.retryAfter` says when to try again, in seconds.
/// Outside the range that MCP reserves (R-ERR-07).
pub const RATE_LIMITED: i64 = -31997;
/// Who asks may not, for lack of what `data.scope` names. Outside the range that MCP reserves
/// (R-ERR-07).
pub const INSUFFICIENT_SCOPE: i64 = -31996;
/// Who asks has not proven who it is. Outside the range that MCP reserves (R-ERR-07).
pub const UNAUTHENTICATED: i64 = -31995;

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
    /// The user does not want it (R-ERR-22).
    Rejected,
    /// Arguments that break the schema of a tool, where that is an error of the protocol
    /// (R-TOL-05).
    ToolArguments,
    /// A tool failed, where that is an error of the protocol.
    ToolFailed,
    /// A resource is there, and cannot be read.
    ResourceFailed,
    /// A tool that this client may not call.
    ToolDenied,
    /// A resource that this client may not read.
    ResourceDenied,
    /// A handler took longer than it may.
    TimedOut,
    /// The client asks more often than it may.
    RateLimited,
    /// The client has used up what it may do in a period.
    QuotaExceeded,
    /// The client was not granted what this takes.
    InsufficientScope,
    /// The client has not proven who it is.
    Unauthenticated,
}

/// Columns of the table: revisions up to 2025-11-25, 2026-07-28, then the profiles in their order.
const CODES: [(ErrorKind, [i64; 6]); 24] = {
    use ErrorKind::*;
    const MISSING: i64 = -32002;
    [
        (Parse, [PARSE_ERROR; 6]),
        (InvalidRequest, [INVALID_REQUEST; 6]),
        (MethodNotFound, [METHOD_NOT_FOUND; 6]),
        (InvalidParams, [INVALID_PARAMS; 6]),
        (
            ToolNotFound,
            spelt(
                INVALID_PARAMS,
                [INVALID_PARAMS, -32001, -32003, METHOD_NOT_FOUND],
            ),
        ),
        (
            PromptNotFound,
            spelt(
                INVALID_PARAMS,
                [INVALID_PARAMS, -32003, INVALID_PARAMS, INVALID_PARAMS],
            ),
        ),
        (
            ResourceNotFound,
            [MISSING, INVALID_PARAMS, MISSING, MISSING, MISSING, MISSING],
        ),
        (HeaderMismatch, [HEADER_MISMATCH; 6]),
        (
            UnsupportedVersion,
            since_2026(INVALID_PARAMS, UNSUPPORTED_VERSION),
        ),
        (
            MissingClientCapability,
            since_2026(INVALID_REQUEST, MISSING_CLIENT_CAPABILITY),
        ),
        (Overloaded, [OVERLOADED; 6]),
        (ShuttingDown, [SHUTTING_DOWN; 6]),
        (Internal, [INTERNAL_ERROR; 6]),
        (Rejected, [REJECTED; 6]),
        (ToolArguments, [INVALID_PARAMS; 6]),
        (
            ToolFailed,
            spelt(
                INTERNAL_ERROR,
                [INTERNAL_ERROR, -32004, -32004, INTERNAL_ERROR],
            ),
        ),
        (
            ResourceFailed,
            spelt(
                INTERNAL_ERROR,
                [INTERNAL_ERROR, INTERNAL_ERROR, -32001, INTERNAL_ERROR],
            ),
        ),
        // Masked as not found where no profile has a word for it (R-PER-05).
        (
            ToolDenied,
            spelt(
                INVALID_PARAMS,
                [INVALID_PARAMS, -32004, -32005, METHOD_NOT_FOUND],
            ),
        ),
        (
            ResourceDenied,
            [MISSING, INVALID_PARAMS, MISSING, -32005, -32005, MISSING],
        ),
        (
            TimedOut,
            spelt(
                INTERNAL_ERROR,
                [INTERNAL_ERROR, -32004, -32004, INTERNAL_ERROR],
            ),
        ),
        (RateLimited, [RATE_LIMITED; 6]),
        (QuotaExceeded, [RATE_LIMITED; 6]),
        (InsufficientScope, [INSUFFICIENT_SCOPE; 6]),
        (Unauthenticated, [UNAUTHENTICATED; 6]),
    ]
};

/// The official code, then those of the profiles.
const fn spelt(official: i64, [one, two, three, four]: [i64; 4]) -> [i64; 6] {
    [official, official, one, two, three, four]
}

/// A code that is another since 2026-07-28, and that no profile changes.
const fn since_2026(before: i64, since: i64) -> [i64; 6] {
    [before, since, before, before, before, before]
}

impl ErrorKind {
    /// The code on the wire of that revision.
    pub fn code(self, revision: Revision) -> i64 {
        self.code_in(Profile::Official, revision)
    }

    /// The code on the wire of that revision, as a profile has it. Profiles have no effect from
    /// 2026-07-28 on (R-ERR-28).
    ///
    /// ```
    /// use mcpbolt::mcp::{ErrorKind, Profile, Revision};
    /// let unknown = ErrorKind::ToolNotFound;
    /// assert_eq!(unknown.code_in(Profile::Seed002, Revision::V2025_03_26), -32001);
    /// assert_eq!(unknown.code_in(Profile::Seed002, Revision::V2026_07_28), -32602);
    /// ```
    pub fn code_in(self, profile: Profile, revision: Revision) -> i64 {
        let column = match profile {
            _ if revision.rules().result_type => 1,
            Profile::Official => 0,
            other => 1 + other as usize,
        };
        CODES[self as usize].1[column]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_revision_emits_only_the_codes_it_knows() {
        // R-ERR-03, R-ERR-04, R-ERR-05, R-ERR-07
        use ErrorKind::*;
        let kinds = [
            Parse,
            InvalidRequest,
            MethodNotFound,
            InvalidParams,
            ToolNotFound,
            PromptNotFound,
        ];
        assert!(
            kinds
                .iter()
                .all(|kind| CODES.iter().any(|(row, _)| row == kind))
        );
        for (kind, _) in CODES {
            let code = kind.code(Revision::V2026_07_28);
            let of_json_rpc = matches!(code, -32700 | -32603..=-32600);
            let of_mcp = matches!(code, -32022..=-32020);
            let own = !(-32768..=-32000).contains(&code);
            assert!(of_json_rpc || of_mcp || own, "{kind:?}");
            assert!(!(-32019..=-32000).contains(&code), "{kind:?}");
            assert!(
                !(-32099..=-32020).contains(&code) || matches!(code, -32022..=-32020),
                "{kind:?}"
            );
        }
        assert_eq!(ResourceNotFound.code(Revision::V2025_11_25), -32002);
    }

    /// R-ERR-28: profiles have codes of their own, up to 2025-11-25.
    #[test]
    fn the_table_is_in_the_order_of_the_kinds_and_profiles_end_with_the_handshake() {
        for (i, (kind, _)) in CODES.iter().enumerate() {
            assert_eq!(*kind as usize, i);
            for profile in Profile::ALL {
                let newest = Revision::V2026_07_28;
                assert_eq!(kind.code_in(profile, newest), kind.code(newest), "{kind:?}");
            }
        }
        let old = Revision::V2025_06_18;
        let of = |kind: ErrorKind| Profile::ALL.map(|profile| kind.code_in(profile, old));
        assert_eq!(
            of(ErrorKind::ToolNotFound),
            [-32602, -32602, -32001, -32003, -32601]
        );
        assert_eq!(
            of(ErrorKind::PromptNotFound),
            [-32602, -32602, -32003, -32602, -32602]
        );
        assert_eq!(
            of(ErrorKind::ResourceFailed),
            [-32603, -32603, -32603, -32001, -32603]
        );
    }
}
