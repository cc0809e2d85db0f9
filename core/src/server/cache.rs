//! How long what a server says may be kept (2026-07-28).

use std::time::Duration;

/// Who may keep an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CacheScope {
    /// Whoever passes it on, for everybody.
    Public,
    /// The client that asked, for itself.
    #[default]
    Private,
}

/// How long an answer may be kept and by whom. Not at all by default (R-CCH-09).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct CacheHint {
    pub ttl: Duration,
    pub scope: CacheScope,
}

impl CacheHint {
    /// As members of a result, to follow others (R-CCH-01).
    pub fn members(self) -> String {
        let scope = match self.scope {
            CacheScope::Public => "public",
            CacheScope::Private => "private",
        };
        let ttl = u64::try_from(self.ttl.as_millis()).unwrap_or(u64::MAX);
        format!(",\"ttlMs\":{ttl},\"cacheScope\":\"{scope}\"")
    }
}
