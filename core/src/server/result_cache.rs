//! A cache of tool results: repeated calls get the stored result.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::cache_hint::CacheScope;
use super::store::{Bounds, Keep, MemoryStore, Store};
use crate::connection::Budget;
use crate::json::writer;
use crate::limits::{CHECK_HERE_BYTES, MAX_KEPT_BYTES, MAX_KEPT_RESULTS, later};
use crate::model::ToolResult;

/// A cache of tool results: see [`Builder::kept_tool`](super::Builder::kept_tool). Cheap to clone; a
/// handler that changes the underlying data calls [`forget`](Self::forget). `T` is the result type
/// of a custom executor.
#[derive(Clone)]
pub struct Results<T = ToolResult> {
    ttl: Duration,
    scope: CacheScope,
    kept: Arc<Kept<T>>,
}

struct Kept<T> {
    store: Box<dyn Store<T>>,
    /// Number of invalidations so far.
    forgotten: AtomicU64,
}

impl<T: Clone + Send + 'static> Results<T> {
    /// Creates an empty cache whose entries live for `ttl`. Entries of
    /// [`Public`](CacheScope::Public) scope are shared by all callers; private entries belong to
    /// one caller and are not stored if the caller is unknown. Calls with more than
    /// [`CHECK_HERE_BYTES`] of arguments are not cached. The cache holds at most
    /// [`MAX_KEPT_RESULTS`] entries with [`MAX_KEPT_BYTES`] in total and removes the oldest first.
    pub fn new(ttl: Duration, scope: CacheScope) -> Self {
        let store = MemoryStore::new(Bounds {
            values: MAX_KEPT_RESULTS,
            bytes: MAX_KEPT_BYTES,
            evicts: true,
        });
        Self {
            ttl,
            scope,
            kept: Arc::new(Kept {
                store: Box::new(store),
                forgotten: AtomicU64::new(0),
            }),
        }
    }

    /// How long a result is cached.
    pub fn ttl(&self) -> Duration {
        self.ttl
    }

    /// Counts the entries in the budget of a server; when the budget is full, the oldest entries
    /// are removed. [`Builder::kept_tool`](super::Builder::kept_tool) calls this itself. Only the
    /// first call has an effect.
    pub fn count_in(&self, budget: &Arc<Budget>) {
        self.kept.store.count_in(budget);
    }

    /// Removes the results of a tool. Results of calls that are still running are not stored.
    pub fn forget(&self, tool: &str) {
        let is_own = |key: &str| {
            key.strip_prefix(tool)
                .is_some_and(|rest| rest.starts_with('\0'))
        };
        self.forget_where(&|key| is_own(key));
    }

    /// Removes the results of all tools. Results of calls that are still running are not stored.
    pub fn forget_all(&self) {
        self.forget_where(&|_| true);
    }

    fn forget_where(&self, is_one: &dyn Fn(&str) -> bool) {
        self.kept.forgotten.fetch_add(1, Ordering::SeqCst);
        self.kept.store.retain(&mut |key, _| !is_one(key));
    }

    /// Prepares the lookup of a call, for a custom executor: the tool, its arguments (raw JSON) and
    /// the caller, if known. `None` when the result must not be cached.
    pub fn ask(&self, tool: &str, given: &str, who: Option<&str>) -> Option<KeptCall<T>> {
        let whose = match self.scope {
            CacheScope::Public => None,
            CacheScope::Private => Some(who?),
        };
        if given.len() > CHECK_HERE_BYTES || tool.contains('\0') {
            return None;
        }
        // JSON contains no NUL, so the parts of the key are distinct.
        let mut key = Vec::with_capacity(tool.len() + given.len() + 2);
        key.extend_from_slice(tool.as_bytes());
        key.push(0);
        writer::append_compact(&mut key, given);
        if let Some(whose) = whose {
            key.push(0);
            key.extend_from_slice(whose.as_bytes());
        }
        Some(KeptCall {
            key: String::from_utf8(key).ok()?,
            results: self.clone(),
            forgotten: self.kept.forgotten.load(Ordering::SeqCst),
        })
    }
}

/// A call whose result can be cached. See [`Results::ask`].
pub struct KeptCall<T = ToolResult> {
    results: Results<T>,
    /// The tool, the arguments and, for private results, the caller.
    key: String,
    /// The number of invalidations when the call came.
    forgotten: u64,
}

impl<T: Clone + Send + 'static> KeptCall<T> {
    /// Returns the stored result of the same call.
    pub fn found(&self) -> Option<T> {
        self.results.kept.store.get(&self.key)
    }

    /// Stores the result, of this size in bytes, unless something was invalidated since the call
    /// came: the result may show the state from before.
    pub fn keep(&self, result: T, bytes: usize) {
        let kept = &self.results.kept;
        let is_current = || kept.forgotten.load(Ordering::SeqCst) == self.forgotten;
        if !is_current() {
            return;
        }
        let keep = Keep {
            until: later(Instant::now(), self.results.ttl),
            bytes,
            replaces: true,
        };
        kept.store.put(&self.key, result, keep);
        // An invalidation may have come between the check and the store.
        if !is_current() {
            kept.store.remove(&self.key);
        }
    }
}

impl<T> fmt::Debug for KeptCall<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeptCall").finish_non_exhaustive()
    }
}

impl<T> fmt::Debug for Results<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Results")
            .field("ttl", &self.ttl)
            .field("scope", &self.scope)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keep(results: &Results<usize>, arguments: usize, bytes: usize) {
        let call = results.ask("t", &arguments.to_string(), None);
        call.unwrap().keep(arguments, bytes);
    }

    fn found(results: &Results<usize>, arguments: usize) -> Option<usize> {
        results.ask("t", &arguments.to_string(), None)?.found()
    }

    #[test]
    fn no_more_are_kept_than_may_be() {
        let results = Results::new(Duration::from_secs(1000), CacheScope::Public);
        for n in 0..MAX_KEPT_RESULTS + 10 {
            keep(&results, n, 1);
        }
        assert_eq!((found(&results, 9), found(&results, 10)), (None, Some(10)));
    }

    #[test]
    fn they_take_no_more_bytes_than_they_may() {
        let results = Results::new(Duration::from_secs(1000), CacheScope::Public);
        keep(&results, 0, MAX_KEPT_BYTES);
        assert_eq!(found(&results, 0), None, "it is too large with its key");
        for n in 1..10 {
            keep(&results, n, MAX_KEPT_BYTES / 4);
        }
        assert_eq!((found(&results, 6), found(&results, 9)), (None, Some(9)));
    }

    #[test]
    fn results_from_before_an_invalidation_are_not_kept() {
        let results = Results::new(Duration::from_secs(1000), CacheScope::Public);
        let early = results.ask("t", "1", None).unwrap();
        keep(&results, 2, 1);
        results.forget("other");
        assert_eq!(found(&results, 2), Some(2));
        early.keep(1, 1);
        assert_eq!(found(&results, 1), None);
        results.forget("t");
        assert_eq!(found(&results, 2), None);
    }
}
