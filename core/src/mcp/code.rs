//! Revision-independent error kinds, and their codes per revision and profile.

use super::profile::Profile;
use super::revision::Revision;

/// Invalid JSON.
pub const PARSE_ERROR: i64 = -32700;
/// Valid JSON, but not a valid message.
pub const INVALID_REQUEST: i64 = -32600;
/// Unknown method.
pub const METHOD_NOT_FOUND: i64 = -32601;
/// Invalid params.
pub const INVALID_PARAMS: i64 = -32602;
/// Unexpected failure.
pub const INTERNAL_ERROR: i64 = -32603;
/// The HTTP headers and the request itself disagree (2026-07-28).
pub const HEADER_MISMATCH: i64 = -32020;
/// The request needs a client capability that was not declared (2026-07-28).
pub const MISSING_CLIENT_CAPABILITY: i64 = -32021;
/// The request's protocol version is not supported (2026-07-28).
pub const UNSUPPORTED_VERSION: i64 = -32022;
/// The user has to visit the pages that `data.elicitations` names. In 2025-11-25 alone (R-ERR-05).
pub const URL_ELICITATION_REQUIRED: i64 = -32042;
/// The answer to a cancelled request in one profile; tolerated when received (R-ERR-27).
pub const REQUEST_CANCELLED: i64 = -32800;
/// The user rejected the request, of sampling for example (R-ERR-22).
pub const REJECTED: i64 = -1;
/// Too many requests at once; `data.retryAfter` says when to try again, in seconds. Outside the
/// range that MCP reserves (R-ERR-07).
pub const OVERLOADED: i64 = -31999;
/// This side is shutting down and starts no new requests. Outside the range that MCP reserves
/// (R-ERR-07).
pub const SHUTTING_DOWN: i64 = -31998;

/// The client exceeds its rate; `data.retryAfter` says when to try again, in seconds. Outside the
/// range that MCP reserves (R-ERR-07).
pub const RATE_LIMITED: i64 = -31997;
/// The client lacks the scope that `data.scope` names. Outside the range that MCP reserves
/// (R-ERR-07).
pub const INSUFFICIENT_SCOPE: i64 = -31996;
/// The client is not authenticated. Outside the range that MCP reserves (R-ERR-07).
pub const UNAUTHENTICATED: i64 = -31995;

/// The kind of an error, independent of revision and profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// Not JSON.
    Parse,
    /// Not a valid message.
    InvalidRequest,
    /// The method does not exist, or is not offered.
    MethodNotFound,
    /// Invalid params, cursor or level.
    InvalidParams,
    /// The tool does not exist (R-ERR-11).
    ToolNotFound,
    /// The prompt does not exist (R-ERR-12).
    PromptNotFound,
    /// The resource does not exist.
    ResourceNotFound,
    /// The HTTP headers and the request itself disagree (R-HDR-02).
    HeaderMismatch,
    /// The request's protocol version is not supported.
    UnsupportedVersion,
    /// The request needs a client capability that was not declared.
    MissingClientCapability,
    /// Too many requests at once.
    Overloaded,
    /// This side is shutting down: it finishes requests in flight and starts no new ones.
    ShuttingDown,
    /// Unexpected failure.
    Internal,
    /// The user rejected the request (R-ERR-22).
    Rejected,
    /// The arguments violate the tool's schema, where that is a protocol error (R-TOL-05).
    ToolArguments,
    /// A tool failed, where that is a protocol error.
    ToolFailed,
    /// The resource exists but cannot be read.
    ResourceFailed,
    /// The client may not call the tool.
    ToolDenied,
    /// The client may not read the resource.
    ResourceDenied,
    /// A handler exceeded its time limit.
    TimedOut,
    /// The client exceeds its rate.
    RateLimited,
    /// The client has used up its quota for the period.
    QuotaExceeded,
    /// The client lacks a scope that the request needs.
    InsufficientScope,
    /// The client is not authenticated.
    Unauthenticated,
}

/// Columns: revisions up to 2025-11-25, 2026-07-28, then the profiles in order.
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
        // Reported as "not found" in revisions and profiles without a code for denial (R-PER-05).
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

/// A row with one official code, followed by the codes of the profiles.
const fn spelt(official: i64, [one, two, three, four]: [i64; 4]) -> [i64; 6] {
    [official, official, one, two, three, four]
}

/// A row whose code changed in 2026-07-28, and which no profile overrides.
const fn since_2026(before: i64, since: i64) -> [i64; 6] {
    [before, since, before, before, before, before]
}

impl ErrorKind {
    /// The code in that revision.
    pub fn code(self, revision: Revision) -> i64 {
        self.code_in(Profile::Official, revision)
    }

    /// The code in that revision under a profile. Profiles have no effect from 2026-07-28 on
    /// (R-ERR-28).
    ///
    /// ```
    /// use mcpbolt::mcp::{ErrorKind, Profile, Revision};
    /// let unknown = ErrorKind::ToolNotFound;
    /// assert_eq!(unknown.code_in(Profile::Chain, Revision::V2025_03_26), -32001);
    /// assert_eq!(unknown.code_in(Profile::Chain, Revision::V2026_07_28), -32602);
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
