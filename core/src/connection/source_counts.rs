//! Counts the requests in flight of each source, so that one source cannot use up the common limit.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use super::by_source::BySource;
use super::source::RequestSource;

/// How many requests each source has in flight.
#[derive(Debug, Default)]
pub(super) struct SourceCounts(Mutex<BySource<AtomicUsize>>);

/// One connection's part in the count of its source.
#[derive(Debug)]
pub(super) struct SourceCount {
    source: RequestSource,
    requests: Arc<AtomicUsize>,
}

impl SourceCounts {
    /// The count of a source; `None` for an unknown source, whose peers cannot be told apart.
    pub fn of(&self, source: &RequestSource) -> Option<SourceCount> {
        if *source == RequestSource::Unknown {
            return None;
        }
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let requests = counts.get_or_insert_with(source, AtomicUsize::default);
        let source = source.clone();
        Some(SourceCount { source, requests })
    }
}

impl SourceCount {
    pub fn is_of(&self, source: &RequestSource) -> bool {
        self.source == *source
    }

    /// Requests in flight of the source, on all its connections.
    pub fn requests(&self) -> usize {
        self.requests.load(Relaxed)
    }

    /// Replaces one connection's part of the count, `old`, by `new`.
    pub fn change(&self, old: usize, new: usize) {
        if old != new {
            // Wraps around when the part shrinks; the sum is right.
            self.requests.fetch_add(new.wrapping_sub(old), Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_of_one_source_share_a_count() {
        let counts = SourceCounts::default();
        let source = |n| RequestSource::of_address([10, 0, 0, n].into());
        let (one, same) = (
            counts.of(&source(1)).unwrap(),
            counts.of(&source(1)).unwrap(),
        );
        let other = counts.of(&source(2)).unwrap();
        one.change(0, 3);
        same.change(0, 2);
        one.change(3, 1);
        assert_eq!(
            (one.requests(), same.requests(), other.requests()),
            (3, 3, 0)
        );
        assert!(counts.of(&RequestSource::Unknown).is_none());
    }
}
