//! Values that all connections of a source share.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use super::source::RequestSource;

/// How many sources may be known before those without a connection are first removed.
const FEW: usize = 64;

/// One value per source, shared by the source's connections. It lives as long as one of them holds it.
#[derive(Debug)]
pub struct BySource<T> {
    values: HashMap<RequestSource, Weak<T>>,
    /// How many sources may be known before those without a connection are removed again.
    enough: usize,
}

impl<T> Default for BySource<T> {
    fn default() -> Self {
        Self {
            values: HashMap::new(),
            enough: FEW,
        }
    }
}

impl<T> BySource<T> {
    /// Returns the value of `source`; makes it if no connection holds one.
    pub fn get_or_insert_with(
        &mut self,
        source: &RequestSource,
        make: impl FnOnce() -> T,
    ) -> Arc<T> {
        if let Some(value) = self.values.get(source).and_then(Weak::upgrade) {
            return value;
        }
        if self.values.len() >= self.enough {
            self.values.retain(|_, value| value.strong_count() > 0);
            self.enough = (self.values.len() * 2).max(FEW);
        }
        let value = Arc::new(make());
        self.values.insert(source.clone(), Arc::downgrade(&value));
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_of_one_source_share_a_value_which_goes_with_them() {
        let mut all = BySource::default();
        let source = |n| RequestSource::of_address([10, 0, 0, n].into());
        let one = all.get_or_insert_with(&source(1), || 1);
        let same = all.get_or_insert_with(&source(1), || 2);
        let other = all.get_or_insert_with(&source(2), || 3);
        assert_eq!((*one, *same, *other), (1, 1, 3));
        drop((one, same));
        assert_eq!(*all.get_or_insert_with(&source(1), || 4), 4);
        for n in 0..=255 {
            drop(all.get_or_insert_with(&source(n), || 0));
        }
        assert!(all.values.len() <= FEW);
    }
}
