//! Pages of lists that the server lets this client keep for a while (2026-07-28).

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::experimental::Advice;
use crate::json::{number, reader};
use crate::limits::{MAX_CACHED_BYTES, MAX_CACHED_PAGES};
use crate::mcp::Method;

/// Shared by the clones of a client whose host tells of changes.
#[derive(Debug, Default)]
pub(super) struct Cache {
    lists: Mutex<HashMap<Method, Pages>>,
}

/// The pages of one list.
#[derive(Debug, Default)]
struct Pages {
    /// Counts what made them stale: an answer to an older question is not kept.
    changes: u64,
    /// By cursor, each with the end of its time (R-CCH-03, R-CCH-06).
    kept: HashMap<Option<String>, (Instant, Box<str>)>,
}

impl Cache {
    fn lists(&self) -> MutexGuard<'_, HashMap<Method, Pages>> {
        self.lists.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The page of that cursor, if its time is not up (R-CCH-04); else how often the list has
    /// changed so far.
    pub fn page(&self, list: Method, cursor: Option<&str>) -> Result<Box<str>, u64> {
        let mut lists = self.lists();
        let pages = lists.entry(list).or_default();
        let key = cursor.map(str::to_owned);
        match pages.kept.get(&key) {
            Some((until, page)) if *until > Instant::now() => Ok(page.clone()),
            _ => Err(pages.changes),
        }
    }

    /// Keeps a page as long as it says itself, or as its server advises for all, unless the list
    /// has changed since it was asked for.
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
        let until = crate::limits::later(Instant::now(), ttl);
        let most = advice.map_or(MAX_CACHED_PAGES, |advice| {
            advice.pages.min(MAX_CACHED_PAGES)
        });
        let mut lists = self.lists();
        let pages = lists.entry(list).or_default();
        let fits = pages.kept.len() < most && page.len() < MAX_CACHED_BYTES;
        if pages.changes == changes && fits {
            pages
                .kept
                .insert(cursor.map(str::to_owned), (until, page.into()));
        }
    }

    /// What is kept of a list is stale (R-CCH-07).
    pub fn forget(&self, list: Method) {
        let mut lists = self.lists();
        let pages = lists.entry(list).or_default();
        pages.changes += 1;
        pages.kept.clear();
    }

    /// The same for what a notification says has changed.
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
