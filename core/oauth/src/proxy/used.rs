//! Marks of what is good once.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, PoisonError};

/// Most marks that are kept; beyond that the oldest are forgotten.
pub const MAX_USED_TOKENS: usize = 1 << 16;

/// The used codes and refresh tokens, and the logins that are over, by digest, until they would have ended
/// anyway. Kept in this process: another one does not know them.
#[derive(Debug, Default)]
pub struct UsedTokens(Mutex<Marks>);

#[derive(Debug, Default)]
struct Marks {
    until: HashMap<String, u64>,
    order: VecDeque<String>,
}

impl UsedTokens {
    /// Marks a text; whether it was not marked before.
    pub fn mark(&self, what: &str, until: u64, now: u64) -> bool {
        let mut marks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if marks.until.contains_key(what) {
            return false;
        }
        while let Some(first) = marks.order.front() {
            let is_over = marks.until.get(first).is_none_or(|until| *until <= now);
            if !is_over && marks.order.len() < MAX_USED_TOKENS {
                break;
            }
            if let Some(first) = marks.order.pop_front() {
                marks.until.remove(&first);
            }
        }
        marks.order.push_back(what.to_owned());
        marks.until.insert(what.to_owned(), until);
        true
    }

    /// Takes a mark back.
    pub fn forget(&self, what: &str) {
        let mut marks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        marks.until.remove(what);
        marks.order.retain(|own| own != what);
    }

    pub fn has(&self, what: &str) -> bool {
        let marks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        marks.until.contains_key(what)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_made_once_and_ends() {
        let used = UsedTokens::default();
        assert!(used.mark("a", 10, 0) && !used.mark("a", 10, 1) && used.has("a"));
        assert!(used.mark("b", 20, 10) && !used.has("a"));
        used.forget("b");
        assert!(!used.has("b") && used.mark("b", 20, 11));
        for n in 0..MAX_USED_TOKENS {
            assert!(used.mark(&n.to_string(), 100, 12));
        }
        assert!(!used.has("b") && used.has("0"));
    }
}
