//! Tests of [`TimerQueue`].

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::super::{TimerKey, TimerQueue};
use super::support::{Random, rounds};

const MS: Duration = Duration::from_millis(1);

fn fired(timers: &mut TimerQueue<u64>, now: Instant) -> Vec<u64> {
    std::iter::from_fn(|| timers.poll(now)).collect()
}

#[test]
fn a_timer_fires_once_at_its_deadline_and_not_before() {
    let start = Instant::now();
    for after in [
        0,
        1,
        63,
        64,
        65,
        4095,
        4096,
        4097,
        60_000,
        600_000,
        1 << 24,
        1 << 30,
    ] {
        let mut timers = TimerQueue::default();
        let deadline = start + after * MS;
        timers.insert(deadline, after as u64);
        if after > 0 {
            assert_eq!(
                fired(&mut timers, deadline - Duration::from_nanos(1)),
                [0; 0],
                "{after}"
            );
        }
        assert!(timers.next_deadline().is_some_and(|next| next <= deadline));
        assert_eq!(fired(&mut timers, deadline), [after as u64]);
        assert_eq!(fired(&mut timers, deadline + 99 * MS), [0; 0]);
        assert_eq!((timers.len(), timers.next_deadline()), (0, None));
    }
}

#[test]
fn deadlines_in_the_past_fire_at_once_and_far_ones_later() {
    let start = Instant::now();
    let mut timers = TimerQueue::default();
    assert_eq!(fired(&mut timers, start + 500 * MS), [0; 0]);
    timers.insert(start + 20 * MS, 1);
    timers.insert(start + Duration::from_secs(1 << 31), 2);
    assert_eq!(timers.next_deadline(), Some(start + 20 * MS));
    assert_eq!(fired(&mut timers, start + 500 * MS), [1]);
    assert_eq!(
        fired(&mut timers, start + Duration::from_secs(1 << 30)),
        [0; 0]
    );
}

#[test]
fn a_cancelled_timer_does_not_fire_and_its_key_is_void() {
    let start = Instant::now();
    let mut timers = TimerQueue::default();
    let (first, second) = (
        timers.insert(start + 5 * MS, 1).unwrap(),
        timers.insert(start + 5 * MS, 2).unwrap(),
    );
    assert_eq!(timers.cancel(first), Some(1));
    assert_eq!(timers.cancel(first), None);
    let third = timers.insert(start + 9 * MS, 3).unwrap();
    assert_ne!(first, third);
    assert_eq!(timers.cancel(first), None, "an earlier use of the node");
    assert_eq!(fired(&mut timers, start + 5 * MS), [2]);
    assert_eq!(timers.cancel(second), None);
    assert_eq!(timers.cancel(third), Some(3));
    assert_eq!(timers.next_deadline(), None);
}

#[test]
fn timers_may_be_cancelled_and_inserted_while_others_fire() {
    for count in [5, 13, 14, 40] {
        let start = Instant::now();
        let mut timers = TimerQueue::default();
        let keys: Vec<_> = (0..count)
            .map(|n| timers.insert(start + MS, n).unwrap())
            .collect();
        let now = start + 3 * MS;
        let first = timers.poll(now).unwrap();
        let mut others = (0..count).filter(|&n| n != first);
        let cancelled = others.next().unwrap();
        assert_eq!(timers.cancel(keys[cancelled as usize]), Some(cancelled));
        timers.insert(start + 2 * MS, 99);
        let mut rest = fired(&mut timers, now);
        rest.sort_unstable();
        assert_eq!(rest, others.chain([99]).collect::<Vec<_>>());
    }
}

#[test]
fn waking_at_next_deadline_reaches_every_timer_in_time() {
    let start = Instant::now();
    let mut random = Random::new();
    let mut timers = TimerQueue::default();
    let mut left = 2_000.min(rounds(2_000));
    for _ in 0..left {
        let after = random.next() % (1 << (4 + random.below(24)));
        timers.insert(start + Duration::from_millis(after), after);
    }
    let mut idle = 0;
    while let Some(next) = timers.next_deadline() {
        let due = fired(&mut timers, next);
        let tick = (next - start).as_millis() as u64;
        assert!(due.iter().all(|&after| after == tick), "{due:?} at {tick}");
        left -= due.len();
        idle += usize::from(due.is_empty());
    }
    assert_eq!(left, 0);
    assert!(idle <= 2_000 * 4, "{idle} times woken for nothing");
}

#[test]
fn it_does_what_a_sorted_map_does() {
    let mut random = Random::new();
    for _ in 0..rounds(300) {
        let start = Instant::now();
        let mut now = 0u64;
        let mut timers = TimerQueue::default();
        let mut model = BTreeMap::<u64, (u64, TimerKey)>::new();
        let mut keys: Vec<(u64, TimerKey)> = Vec::new();
        for name in 0..400u64 {
            let spread = 1 << random.below(30);
            let at = now + random.next() % spread;
            let deadline = start + Duration::from_millis(at);
            match random.below(10) {
                0..5 => {
                    let key = timers.insert(deadline, name).unwrap();
                    model.insert(name, (at, key));
                    keys.push((name, key));
                }
                5..8 => {
                    let Some(&(name, key)) = random.pick(&keys) else {
                        continue;
                    };
                    let expected = model.remove(&name).map(|_| name);
                    assert_eq!(timers.cancel(key), expected);
                }
                _ => {
                    now = at;
                    let mut got = fired(&mut timers, deadline);
                    got.sort_unstable();
                    let due = |(name, timer): (&u64, &(u64, _))| (timer.0 <= now).then_some(*name);
                    let expected: Vec<_> = model.iter().filter_map(due).collect();
                    model.retain(|_, timer| timer.0 > now);
                    assert_eq!(got, expected);
                }
            }
            assert_eq!(timers.len(), model.len());
            let first = model.values().map(|timer| timer.0).min();
            let next = timers
                .next_deadline()
                .map(|next| (next - start).as_millis() as u64);
            assert_eq!(next.is_some(), first.is_some());
            assert!(next <= first, "{next:?} for {first:?}");
        }
    }
}
