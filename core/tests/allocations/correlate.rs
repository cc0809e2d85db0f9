//! Correlation allocates nothing once it has grown.
#![allow(clippy::unwrap_used)]

use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use mcpbolt::correlate::{InFlight, PendingRequests, TimerQueue};

use crate::COUNT;

/// Allocations of the second of two equal rounds.
fn allocations_once_warm(mut round: impl FnMut()) -> usize {
    round();
    let before = COUNT.get();
    assert!(
        before > 0,
        "the first round grows the table, so the counter must have moved"
    );
    round();
    COUNT.get() - before
}

#[test]
fn outgoing_requests() {
    let table = PendingRequests::<Result<u64, u64>>::new(1000);
    let mut cx = Context::from_waker(Waker::noop());
    let mut keys = Vec::with_capacity(1000);
    let count = allocations_once_warm(|| {
        keys.extend((0..1000).map(|_| table.register().unwrap()));
        for (n, key) in keys.drain(..).enumerate() {
            assert!(table.poll(key, &mut cx).is_pending());
            match n % 3 {
                0 => assert!(table.cancel(key)),
                _ => {
                    assert_eq!(table.complete(key, Ok(7)), Ok(()));
                    assert_eq!(table.poll(key, &mut cx), Poll::Ready(Some(Ok(7))));
                }
            }
            assert_eq!(table.complete(key, Err(9)), Err(Err(9)));
        }
    });
    assert_eq!(count, 0);
}

/// The ids are hashed with a seed of chance. Places of removed ones are used up or swept; where
/// chance leaves so many that a sweep comes while the table is over half full, it grows once more,
/// and then never again.
#[test]
fn incoming_requests() {
    let mut table = InFlight::<u64, u64>::new(1000);
    let mut keys = Vec::with_capacity(1000);
    let mut next = 0;
    let mut round = || {
        for _ in 0..10 {
            keys.extend((next..next + 1000).map(|id| table.insert(id, id).unwrap()));
            next += 1000;
            assert_eq!(
                keys.drain(..).filter_map(|key| table.remove(key)).count(),
                1000
            );
        }
    };
    let counts: Vec<_> = (0..20).map(|_| allocations_once_warm(&mut round)).collect();
    let grown: usize = counts.iter().sum();
    assert!(grown <= 1, "{counts:?}");
}

#[test]
fn timers() {
    let start = Instant::now();
    let mut timers = TimerQueue::default();
    let mut now = start;
    let count = allocations_once_warm(|| {
        for n in 0..1000 {
            let timer = timers.insert(now + Duration::from_millis(n), n).unwrap();
            if n % 3 == 0 {
                assert_eq!(timers.cancel(timer), Some(n));
            }
        }
        now += Duration::from_secs(2);
        assert_eq!(std::iter::from_fn(|| timers.poll(now)).count(), 666);
    });
    assert_eq!(count, 0);
}
