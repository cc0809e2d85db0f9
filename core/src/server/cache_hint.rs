//! Cache hints: how long clients may cache an answer (2026-07-28).

use std::time::Duration;

/// The parties that may cache an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CacheScope {
    /// Any intermediary, for all users.
    Public,
    /// Only the client that asked, for itself.
    #[default]
    Private,
}

/// How long an answer may be cached and by whom. Default: not at all (R-CCH-09).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct CacheHint {
    pub ttl: Duration,
    pub scope: CacheScope,
}

impl CacheHint {
    /// Writes the members for a result, with a leading comma (R-CCH-01).
    pub fn members(self) -> String {
        let scope = match self.scope {
            CacheScope::Public => "public",
            CacheScope::Private => "private",
        };
        let ttl = u64::try_from(self.ttl.as_millis()).unwrap_or(u64::MAX);
        format!(",\"ttlMs\":{ttl},\"cacheScope\":\"{scope}\"")
    }
}
