//! A bounded table of what a policy remembers per source.

use std::collections::HashMap;

use crate::connection::Source;
use crate::limits::MAX_RATED_CLIENTS;

/// One value per source, for a limited number of sources. If there is no room for another source, the
/// entries of least weight are removed.
#[derive(Debug)]
pub(super) struct Known<T>(HashMap<Source, T>);

impl<T> Default for Known<T> {
    fn default() -> Self {
        Self(HashMap::new())
    }
}

impl<T> Known<T> {
    /// Returns the value of `source`, or `fresh` for a new source. `weight` is how much a source would
    /// gain if its value were forgotten; a value without weight is no different from a fresh one.
    pub fn of(
        &mut self,
        source: &Source,
        fresh: impl FnOnce() -> T,
        weight: impl Fn(&T) -> u128,
    ) -> &mut T {
        if !self.0.contains_key(source) {
            self.make_room(weight);
        }
        self.0.entry(source.clone()).or_insert_with(fresh)
    }

    /// Makes room for many sources at once, so that not every new source costs a search.
    fn make_room(&mut self, weight: impl Fn(&T) -> u128) {
        if self.0.len() < MAX_RATED_CLIENTS {
            return;
        }
        self.0.retain(|_, known| weight(known) > 0);
        let enough = MAX_RATED_CLIENTS - MAX_RATED_CLIENTS / 8;
        if self.0.len() <= enough {
            return;
        }
        let mut weights: Vec<_> = self.0.values().map(&weight).collect();
        let mut excess = weights.len() - enough;
        let (_, least, _) = weights.select_nth_unstable(excess - 1);
        let least = *least;
        self.0.retain(|_, known| {
            let goes = excess > 0 && weight(known) <= least;
            excess -= usize::from(goes);
            !goes
        });
    }

    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.0.len()
    }
}
