//! Counts the requests in flight of each source, so that one source cannot use up the common limit.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use super::by_source::BySource;
use super::source::Source;

/// How many requests each source has in flight.
#[derive(Debug, Default)]
pub(super) struct Crowd(Mutex<BySource<AtomicUsize>>);

/// One connection's part in the count of its source.
#[derive(Debug)]
pub(super) struct Own {
    source: Source,
    requests: Arc<AtomicUsize>,
}

impl Crowd {
    /// The count of a source; `None` for an unknown source, whose peers cannot be told apart.
    pub fn own(&self, source: &Source) -> Option<Own> {
        if *source == Source::Unknown {
            return None;
        }
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let requests = counts.get_or_insert_with(source, AtomicUsize::default);
        let source = source.clone();
        Some(Own { source, requests })
    }
}

impl Own {
    pub fn is_of(&self, source: &Source) -> bool {
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
        let crowd = Crowd::default();
        let source = |n| Source::of_address([10, 0, 0, n].into());
        let (one, same) = (
            crowd.own(&source(1)).unwrap(),
            crowd.own(&source(1)).unwrap(),
        );
        let other = crowd.own(&source(2)).unwrap();
        one.change(0, 3);
        same.change(0, 2);
        one.change(3, 1);
        assert_eq!(
            (one.requests(), same.requests(), other.requests()),
            (3, 3, 0)
        );
        assert!(crowd.own(&Source::Unknown).is_none());
    }
}
