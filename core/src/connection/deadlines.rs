//! The deadlines of this side's requests, in the usual case.
//!
//! Nearly all requests of a connection wait equally long, so each is due after the one before it, and a
//! queue suffices: insertion needs no search, and a finished request is not removed but skipped when it
//! reaches the front. Deadlines out of order go to the timer wheel.

use std::collections::VecDeque;
use std::time::Instant;

use crate::correlate::RequestKey;

/// Deadlines of requests, earliest first.
#[derive(Debug, Default)]
pub(super) struct Deadlines {
    line: VecDeque<(Instant, RequestKey)>,
}

/// How many finished requests the queue may hold beyond the number of pending ones.
const SLACK: usize = 64;

impl Deadlines {
    /// Adds a request; `false` if its deadline is earlier than the last one in the queue.
    #[inline]
    pub fn push(&mut self, due: Instant, key: RequestKey) -> bool {
        let in_turn = self.line.back().is_none_or(|(last, _)| *last <= due);
        if in_turn {
            self.line.push_back((due, key));
        }
        in_turn
    }

    /// The earliest deadline.
    #[inline]
    pub fn first(&self) -> Option<Instant> {
        self.line.front().map(|(due, _)| *due)
    }

    /// Takes a request that is due at `now`.
    pub fn pop(&mut self, now: Instant) -> Option<RequestKey> {
        self.first().filter(|due| *due <= now)?;
        self.line.pop_front().map(|(_, key)| key)
    }

    /// Removes finished requests from the front, and from the whole queue if there are too many. The
    /// amortised cost per request is constant.
    #[inline]
    pub fn tidy(&mut self, pending: usize, is_pending: impl Fn(RequestKey) -> bool) {
        while self.line.front().is_some_and(|(_, key)| !is_pending(*key)) {
            self.line.pop_front();
        }
        if self.line.len() > 2 * pending + SLACK {
            self.line.retain(|(_, key)| is_pending(*key));
        }
    }

    /// Removes all deadlines.
    pub fn clear(&mut self) {
        self.line = VecDeque::new();
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::time::Duration;

    use super::*;

    fn key(n: u64) -> RequestKey {
        RequestKey::from_wire(n).unwrap()
    }

    #[test]
    fn they_come_due_in_turn_and_what_is_out_of_turn_is_refused() {
        let now = Instant::now();
        let ms = |n| now + Duration::from_millis(n);
        let mut deadlines = Deadlines::default();
        assert!(deadlines.push(ms(5), key(1)) && deadlines.push(ms(5), key(2)));
        assert!(deadlines.push(ms(9), key(3)) && !deadlines.push(ms(8), key(4)));
        assert_eq!(
            (deadlines.first(), deadlines.pop(ms(4))),
            (Some(ms(5)), None)
        );
        let due: Vec<_> = std::iter::from_fn(|| deadlines.pop(ms(8))).collect();
        assert_eq!(due, [key(1), key(2)]);
        assert_eq!(deadlines.first(), Some(ms(9)));
    }

    #[test]
    fn those_that_are_over_do_not_pile_up_behind_one_that_is_not() {
        let now = Instant::now();
        let mut deadlines = Deadlines::default();
        let mut pending = BTreeSet::from([1]);
        assert!(deadlines.push(now, key(1)));
        for n in 2..10_000 {
            let done = n - 1;
            pending.insert(n);
            assert!(deadlines.push(now, key(n)));
            if done > 1 {
                pending.remove(&done);
                deadlines.tidy(pending.len(), |key| pending.contains(&key.get()));
            }
            assert!(deadlines.line.len() <= 2 * pending.len() + SLACK + 1);
        }
        let left: Vec<_> = std::iter::from_fn(|| deadlines.pop(now)).collect();
        assert_eq!((left[0], *left.last().unwrap()), (key(1), key(9_999)));
    }
}
