//! The position in a paged list, with protection against endless lists.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};

use crate::error::RequestError;
use crate::json::reader;

/// Maximum number of pages of one list, against servers that never end (R-PAG-08).
pub(super) const MAX_PAGES: usize = 10_000;

/// Maximum total size of one list, as a multiple of the longest message, so that a server cannot
/// fill the memory.
const MAX_MESSAGES: usize = 4;

/// The position in a list.
#[derive(Debug)]
pub(super) struct ListCursor {
    /// The cursor of the next page, raw JSON; `None` for the first.
    next: Option<String>,
    /// Digests of the cursors followed so far.
    followed: HashSet<u64>,
    /// The number of bytes that further pages may take.
    left: usize,
}

impl ListCursor {
    /// Starts at the first page of a list whose messages have at most `longest` bytes.
    pub fn first(longest: usize) -> Self {
        Self {
            next: None,
            followed: HashSet::new(),
            left: longest.saturating_mul(MAX_MESSAGES),
        }
    }

    /// The cursor of the page to ask for, raw JSON; `None` for the first.
    pub fn raw(&self) -> Option<&str> {
        self.next.as_deref()
    }

    /// Moves past a page. Returns whether another page follows.
    ///
    /// # Errors
    /// When the server repeats a cursor, or the list has too many pages or too many bytes.
    pub fn follow(&mut self, page: &str) -> Result<bool, RequestError> {
        self.left = self.left.checked_sub(page.len()).ok_or({
            RequestError::BadAnswer("a list longer than four of the longest messages")
        })?;
        // An empty string is a cursor too (R-PAG-03); null is none (R-PAG-07).
        let next = reader::find(page, "nextCursor").filter(|next| *next != "null");
        if next.is_some_and(|next| !self.followed.insert(digest(next))) {
            return Err(RequestError::BadAnswer("a list that repeats a cursor"));
        }
        if self.followed.len() >= MAX_PAGES {
            return Err(RequestError::BadAnswer("a list of more than 10000 pages"));
        }
        self.next = next.map(str::to_owned);
        Ok(self.next.is_some())
    }
}

/// A digest of a cursor, which may be long. If two cursors collide, only the list of the server
/// that made them fails.
fn digest(cursor: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    cursor.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(next: &str) -> String {
        format!("{{\"tools\":[],\"nextCursor\":{next}}}")
    }

    /// R-PAG-03, R-PAG-07, R-PAG-08.
    #[test]
    fn a_list_has_an_end() {
        let mut list = ListCursor::first(16 << 20);
        for next in ["\"a\"", "\"\"", "\"b\""] {
            assert_eq!(list.follow(&page(next)), Ok(true));
            assert_eq!(list.raw(), Some(next));
        }
        // A cycle of any length.
        assert!(list.follow(&page("\"a\"")).is_err());
        assert_eq!(ListCursor::first(16 << 20).follow(&page("null")), Ok(false));
        assert_eq!(ListCursor::first(16 << 20).follow("{}"), Ok(false));

        let mut list = ListCursor::first(16 << 20);
        let ended = (0..).find(|i| list.follow(&page(&format!("\"{i}\""))).is_err());
        assert_eq!(ended, Some(MAX_PAGES - 1));

        let mut list = ListCursor::first(16 << 20);
        let large = " ".repeat(1 << 20);
        let ended = (0..).find(|i| list.follow(&(page(&format!("\"{i}\"")) + &large)).is_err());
        assert_eq!(ended, Some(63));
    }
}
