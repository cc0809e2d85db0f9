//! The cache of list pages that the server lets this client keep (2026-07-28).

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::json::{number, reader};
use crate::limits::{MAX_CACHED_BYTES, MAX_CACHED_PAGES};
use crate::mcp::Method;

/// Shared by the clones of a client whose host forwards change notifications.
#[derive(Debug, Default)]
pub(super) struct ListCache {
    lists: Mutex<HashMap<Method, CachedList>>,
}

/// A server's advice on caching its lists: for how long, and how many pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Advice {
    pub ttl: Duration,
    pub pages: usize,
}

/// The pages of one list.
#[derive(Debug, Default)]
struct CachedList {
    /// Number of invalidations; an answer to an older request is not stored.
    changes: u64,
    /// Pages by cursor, each with its expiry (R-CCH-03, R-CCH-06).
    kept: HashMap<Option<String>, (Instant, Box<str>)>,
}

impl ListCache {
    fn lists(&self) -> MutexGuard<'_, HashMap<Method, CachedList>> {
        self.lists.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the page with this cursor if it has not expired (R-CCH-04); else the number of
    /// invalidations so far, as the error.
    pub fn page(&self, list: Method, cursor: Option<&str>) -> Result<Box<str>, u64> {
        let mut lists = self.lists();
        let pages = lists.entry(list).or_default();
        let key = cursor.map(str::to_owned);
        match pages.kept.get(&key) {
            Some((until, page)) if *until > Instant::now() => Ok(page.clone()),
            _ => Err(pages.changes),
        }
    }

    /// Stores a page for the lifetime that the page or else the server's advice states, unless the
    /// list was invalidated since the request.
    pub fn keep(
        &self,
        list: Method,
        cursor: Option<&str>,
        page: &str,
        (changes, advice): (u64, Option<Advice>),
    ) {
        let ttl = reader::find(page, "ttlMs").and_then(number::as_u64);
        let own = ttl.map(Duration::from_millis);
        let ttl = own.or(advice.map(|advice| advice.ttl));
        let Some(ttl) = ttl.filter(|ttl| !ttl.is_zero()) else {
            return;
        };
        let now = Instant::now();
        let until = crate::limits::later(now, ttl);
        let most = advice.map_or(MAX_CACHED_PAGES, |advice| {
            advice.pages.min(MAX_CACHED_PAGES)
        });
        let mut lists = self.lists();
        let pages = lists.entry(list).or_default();
        if pages.changes != changes || page.len() >= MAX_CACHED_BYTES {
            return;
        }
        let key = cursor.map(str::to_owned);
        if pages.kept.len() >= most {
            // The new page replaces the one with its cursor.
            pages
                .kept
                .retain(|cursor, (until, _)| *until > now && *cursor != key);
        }
        if pages.kept.len() < most {
            pages.kept.insert(key, (until, page.into()));
        }
    }

    /// Invalidates the stored pages of a list (R-CCH-07).
    pub fn forget(&self, list: Method) {
        let mut lists = self.lists();
        let pages = lists.entry(list).or_default();
        pages.changes += 1;
        pages.kept.clear();
    }

    /// Invalidates the lists that a notification reports as changed.
    pub fn note(&self, notification: Method) {
        match notification {
            Method::ToolsChanged => self.forget(Method::ListTools),
            Method::PromptsChanged => self.forget(Method::ListPrompts),
            Method::ResourcesChanged => {
                self.forget(Method::ListResources);
                self.forget(Method::ListResourceTemplates);
                // The files of skills are resources.
                self.forget(Method::ListSkills);
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_pages_are_kept_than_may_be() {
        let cache = ListCache::default();
        let keep = |cursor: &str, page: &str| {
            cache.keep(Method::ListTools, Some(cursor), page, (0, None));
        };
        let page = r#"{"tools":[],"ttlMs":60000}"#;
        let long = format!(
            r#"{{"x":"{}","ttlMs":60000}}"#,
            "y".repeat(MAX_CACHED_BYTES)
        );
        keep("long", &long);
        for n in 0..MAX_CACHED_PAGES + 10 {
            keep(&n.to_string(), page);
        }
        let found = |cursor: &str| cache.page(Method::ListTools, Some(cursor)).is_ok();
        let kept = (0..MAX_CACHED_PAGES + 10).filter(|n| found(&n.to_string()));
        assert_eq!(kept.count(), MAX_CACHED_PAGES);
        assert!(!found("long"));
    }

    #[test]
    fn expired_pages_take_no_room() {
        let cache = ListCache::default();
        let expired = |n: usize| (Some(n.to_string()), (Instant::now(), Box::from("{}")));
        let pages = CachedList {
            changes: 0,
            kept: (0..MAX_CACHED_PAGES).map(expired).collect(),
        };
        cache.lists().insert(Method::ListTools, pages);
        let page = r#"{"tools":[],"ttlMs":60000}"#;
        for cursor in ["0", "new"] {
            cache.keep(Method::ListTools, Some(cursor), page, (0, None));
            assert_eq!(
                cache.page(Method::ListTools, Some(cursor)),
                Ok(page.into()),
                "{cursor}"
            );
        }
    }
}
