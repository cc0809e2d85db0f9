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
/// The user does not want it, sampling for example (R-ERR-22).
pub const REJECTED: i64 = -1;
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
    /// The user does not want it (R-ERR-22).
    Rejected,
}

/// Whose codes are spoken: those of the protocol, or those that a dialect of it puts in place of
/// some (table F.1). A dialect has no effect from 2026-07-28 on (R-ERR-28).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Codes {
    /// Those of the revision.
    #[default]
    Official,
    /// Unknown tools and prompts have codes of their own.
    OwnNames,
    /// An unknown tool has a code of its own, and what fails to be read another.
    OwnTools,
    /// An unknown tool is an unknown method.
    ToolsAreMethods,
}

/// Columns of the table: revisions up to 2025-11-25, 2026-07-28, then the dialects.
const CODES: [(ErrorKind, [i64; 5]); 14] = {
    use ErrorKind::*;
    [
        (Parse, [PARSE_ERROR; 5]),
        (InvalidRequest, [INVALID_REQUEST; 5]),
        (MethodNotFound, [METHOD_NOT_FOUND; 5]),
        (InvalidParams, [INVALID_PARAMS; 5]),
        (
            ToolNotFound,
            [
                INVALID_PARAMS,
                INVALID_PARAMS,
                -32001,
                -32003,
                METHOD_NOT_FOUND,
            ],
        ),
        (
            PromptNotFound,
            [
                INVALID_PARAMS,
                INVALID_PARAMS,
                -32003,
                INVALID_PARAMS,
                INVALID_PARAMS,
            ],
        ),
        (
            ResourceNotFound,
            [-32002, INVALID_PARAMS, -32002, -32002, -32002],
        ),
        (HeaderMismatch, [HEADER_MISMATCH; 5]),
        (
            UnsupportedVersion,
            [
                INVALID_PARAMS,
                UNSUPPORTED_VERSION,
                INVALID_PARAMS,
                INVALID_PARAMS,
                INVALID_PARAMS,
            ],
        ),
        (
            MissingClientCapability,
            [
                INVALID_REQUEST,
                MISSING_CLIENT_CAPABILITY,
                INVALID_REQUEST,
                INVALID_REQUEST,
                INVALID_REQUEST,
            ],
        ),
        (Overloaded, [OVERLOADED; 5]),
        (ShuttingDown, [SHUTTING_DOWN; 5]),
        (Internal, [INTERNAL_ERROR; 5]),
        (Rejected, [REJECTED; 5]),
    ]
};

impl ErrorKind {
    /// The code on the wire of that revision.
    pub fn code(self, revision: Revision) -> i64 {
        self.code_in(Codes::Official, revision)
    }

    /// The code on the wire of that revision, as a dialect has it.
    ///
    /// ```
    /// use mcpbolt::mcp::{Codes, ErrorKind, Revision};
    /// let unknown = ErrorKind::ToolNotFound;
    /// assert_eq!(unknown.code_in(Codes::OwnNames, Revision::V2025_03_26), -32001);
    /// assert_eq!(unknown.code_in(Codes::OwnNames, Revision::V2026_07_28), -32602);
    /// ```
    pub fn code_in(self, codes: Codes, revision: Revision) -> i64 {
        let column = match codes {
            _ if revision.rules().result_type => 1,
            Codes::Official => 0,
            Codes::OwnNames => 2,
            Codes::OwnTools => 3,
            Codes::ToolsAreMethods => 4,
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
        let more = [
            ResourceNotFound,
            HeaderMismatch,
            UnsupportedVersion,
            MissingClientCapability,
            Overloaded,
            ShuttingDown,
            Internal,
            Rejected,
        ];
        for kind in kinds.into_iter().chain(more) {
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

    /// R-ERR-28: dialects have codes of their own, up to 2025-11-25.
    #[test]
    fn the_table_is_in_the_order_of_the_kinds_and_dialects_end_with_the_handshake() {
        for (i, (kind, _)) in CODES.iter().enumerate() {
            assert_eq!(*kind as usize, i);
            for codes in [Codes::OwnNames, Codes::OwnTools, Codes::ToolsAreMethods] {
                let newest = Revision::V2026_07_28;
                assert_eq!(kind.code_in(codes, newest), kind.code(newest), "{kind:?}");
            }
        }
        let old = Revision::V2025_06_18;
        let tool = |codes| ErrorKind::ToolNotFound.code_in(codes, old);
        let all = [
            Codes::Official,
            Codes::OwnNames,
            Codes::OwnTools,
            Codes::ToolsAreMethods,
        ];
        assert_eq!(all.map(tool), [-32602, -32001, -32003, -32601]);
        assert_eq!(
            ErrorKind::PromptNotFound.code_in(Codes::OwnNames, old),
            -32003
        );
    }
}
