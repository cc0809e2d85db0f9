//! Marks of what is no longer good.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Mutex, PoisonError};

use super::redemptions::Redemptions;

/// Most marks that a table keeps. When it is full, the mark that ends first goes.
pub const MAX_MARKS: usize = 1 << 16;

/// What is no longer good, by digest, until it would have ended anyway. Each kind has a table of its own, so that
/// many refreshes push out neither a code nor a login. Kept in this process: another one, or this one started
/// again, does not know them.
#[derive(Debug, Default)]
pub struct Used {
    /// Codes that were redeemed.
    pub codes: Redemptions,
    /// Refresh tokens that were used.
    pub tokens: Redemptions,
    /// Logins that are over.
    pub logins: Marks,
}

/// A table of marks.
#[derive(Debug, Default)]
pub struct Marks(Mutex<Table>);

#[derive(Debug, Default)]
struct Table {
    until: HashMap<String, u64>,
    order: BTreeSet<(u64, String)>,
}

impl Marks {
    /// Marks a text; whether it was not marked before. Of two ends, the later one counts.
    pub fn mark(&self, what: &str, until: u64, now: u64) -> bool {
        let mut table = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let table = &mut *table;
        if let Some(end) = table.until.get_mut(what) {
            if *end < until {
                table.order.remove(&(*end, what.to_owned()));
                table.order.insert((until, what.to_owned()));
                *end = until;
            }
            return false;
        }
        while let Some((first, _)) = table.order.first() {
            if *first > now && table.order.len() < MAX_MARKS {
                break;
            }
            if let Some((_, first)) = table.order.pop_first() {
                table.until.remove(&first);
            }
        }
        table.order.insert((until, what.to_owned()));
        table.until.insert(what.to_owned(), until);
        true
    }

    /// Takes a mark back.
    pub fn forget(&self, what: &str) {
        let mut table = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(until) = table.until.remove(what) {
            table.order.remove(&(until, what.to_owned()));
        }
    }

    pub fn has(&self, what: &str) -> bool {
        let table = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        table.until.contains_key(what)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_made_once_and_ends() {
        let used = Marks::default();
        assert!(used.mark("a", 10, 0) && !used.mark("a", 10, 1) && used.has("a"));
        assert!(used.mark("b", 20, 10) && !used.has("a"));
        used.forget("b");
        assert!(!used.has("b") && used.mark("b", 200, 11));
        assert!(used.mark("c", 20, 11));
        // The later end counts, whichever comes first.
        for (first, second) in [(20, 30), (30, 20)] {
            let used = Marks::default();
            assert!(used.mark("a", first, 0) && !used.mark("a", second, 1));
            assert!(used.mark("b", 90, 29) && used.has("a"));
            assert!(used.mark("c", 90, 30) && !used.has("a"));
        }
        for n in 0..MAX_MARKS - 1 {
            assert!(used.mark(&n.to_string(), 100, 12));
        }
        assert!(!used.has("c") && used.has("b") && used.has("0"));
    }
}
