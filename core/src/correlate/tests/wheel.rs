//! Tests of [`TimerWheel`].

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::super::{TimerKey, TimerWheel};
use super::support::{Random, rounds};

const MS: Duration = Duration::from_millis(1);

fn fired(wheel: &mut TimerWheel<u64>, now: Instant) -> Vec<u64> {
    std::iter::from_fn(|| wheel.poll(now)).collect()
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
        let mut wheel = TimerWheel::new(start);
        let deadline = start + after * MS;
        wheel.insert(deadline, after as u64);
        if after > 0 {
            assert_eq!(
                fired(&mut wheel, deadline - Duration::from_nanos(1)),
                [0; 0],
                "{after}"
            );
        }
        assert!(wheel.next_deadline().is_some_and(|next| next <= deadline));
        assert_eq!(fired(&mut wheel, deadline), [after as u64]);
        assert_eq!(fired(&mut wheel, deadline + 99 * MS), [0; 0]);
        assert_eq!((wheel.len(), wheel.next_deadline()), (0, None));
    }
}

#[test]
fn a_fraction_of_a_tick_is_rounded_up() {
    let start = Instant::now();
    let mut wheel = TimerWheel::new(start);
    wheel.insert(start + Duration::from_nanos(1), 1);
    assert_eq!(
        fired(&mut wheel, start + Duration::from_micros(999)),
        [0; 0]
    );
    assert_eq!(fired(&mut wheel, start + MS), [1]);
}

#[test]
fn deadlines_in_the_past_fire_at_once_and_beyond_all_time_never() {
    let start = Instant::now();
    let mut wheel = TimerWheel::new(start);
    assert_eq!(fired(&mut wheel, start + 500 * MS), [0; 0]);
    wheel.insert(start + 20 * MS, 1);
    wheel.insert(start + Duration::from_secs(1 << 40), 2);
    assert_eq!(wheel.next_deadline(), Some(start + 500 * MS));
    assert_eq!(fired(&mut wheel, start + 500 * MS), [1]);
    assert_eq!(
        fired(&mut wheel, start + Duration::from_secs(1 << 30)),
        [0; 0]
    );
}

#[test]
fn a_cancelled_timer_does_not_fire_and_its_key_is_void() {
    let start = Instant::now();
    let mut wheel = TimerWheel::new(start);
    let (first, second) = (
        wheel.insert(start + 5 * MS, 1),
        wheel.insert(start + 5 * MS, 2),
    );
    assert_eq!(wheel.cancel(first), Some(1));
    assert_eq!(wheel.cancel(first), None);
    let third = wheel.insert(start + 9 * MS, 3);
    assert_ne!(first, third);
    assert_eq!(wheel.cancel(first), None, "an earlier use of the node");
    assert!(!wheel.reset(first, start));
    assert_eq!(fired(&mut wheel, start + 5 * MS), [2]);
    assert_eq!(wheel.cancel(second), None);
    assert_eq!(wheel.cancel(third), Some(3));
    assert_eq!(wheel.next_deadline(), None);
}

#[test]
fn a_reset_timer_fires_at_its_new_deadline_only() {
    let start = Instant::now();
    let mut wheel = TimerWheel::new(start);
    let timer = wheel.insert(start + 60 * MS, 1);
    for progress in 1..100 {
        let now = start + progress * 50 * MS;
        assert_eq!(fired(&mut wheel, now), [0; 0]);
        assert!(wheel.reset(timer, now + 60 * MS));
    }
    assert_eq!(fired(&mut wheel, start + (99 * 50 + 59) * MS), [0; 0]);
    assert_eq!(fired(&mut wheel, start + (99 * 50 + 60) * MS), [1]);
}

#[test]
fn timers_may_be_cancelled_and_inserted_while_others_fire() {
    for count in [5, 13, 14, 40] {
        let start = Instant::now();
        let mut wheel = TimerWheel::new(start);
        let timers: Vec<_> = (0..count).map(|n| wheel.insert(start + MS, n)).collect();
        let now = start + 3 * MS;
        let first = wheel.poll(now).unwrap();
        let mut others = (0..count).filter(|&n| n != first);
        let (cancelled, moved) = (others.next().unwrap(), others.next().unwrap());
        assert_eq!(wheel.cancel(timers[cancelled as usize]), Some(cancelled));
        wheel.insert(start + 2 * MS, 99);
        assert!(wheel.reset(timers[moved as usize], start + 8 * MS));
        let mut rest = fired(&mut wheel, now);
        rest.sort_unstable();
        assert_eq!(rest, others.chain([99]).collect::<Vec<_>>());
        assert_eq!(fired(&mut wheel, start + 8 * MS), [moved]);
    }
}

#[test]
fn waking_at_next_deadline_reaches_every_timer_on_its_tick() {
    let start = Instant::now();
    let mut random = Random::new();
    let mut wheel = TimerWheel::new(start);
    let mut left = 2_000.min(rounds(2_000));
    for _ in 0..left {
        let after = random.next() % (1 << (4 + random.below(24)));
        wheel.insert(start + Duration::from_millis(after), after);
    }
    let mut idle = 0;
    while let Some(next) = wheel.next_deadline() {
        let due = fired(&mut wheel, next);
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
        let mut wheel = TimerWheel::new(start);
        let mut model = BTreeMap::<u64, (u64, TimerKey)>::new();
        let mut keys: Vec<(u64, TimerKey)> = Vec::new();
        for name in 0..400u64 {
            let spread = 1 << random.below(30);
            let at = now + random.next() % spread;
            let deadline = start + Duration::from_millis(at);
            match random.below(10) {
                0..5 => {
                    let key = wheel.insert(deadline, name);
                    model.insert(name, (at, key));
                    keys.push((name, key));
                }
                5..7 => {
                    let Some(&(name, key)) = random.pick(&keys) else {
                        continue;
                    };
                    let expected = model.remove(&name).map(|_| name);
                    assert_eq!(wheel.cancel(key), expected);
                }
                7 => {
                    let Some(&(name, key)) = random.pick(&keys) else {
                        continue;
                    };
                    let expected = model.get_mut(&name).map(|timer| timer.0 = at);
                    assert_eq!(wheel.reset(key, deadline), expected.is_some());
                }
                _ => {
                    now = at;
                    let mut got = fired(&mut wheel, deadline);
                    got.sort_unstable();
                    let due = |(name, timer): (&u64, &(u64, _))| (timer.0 <= now).then_some(*name);
                    let expected: Vec<_> = model.iter().filter_map(due).collect();
                    model.retain(|_, timer| timer.0 > now);
                    assert_eq!(got, expected);
                }
            }
            assert_eq!(wheel.len(), model.len());
            let first = model.values().map(|timer| timer.0).min();
            let next = wheel
                .next_deadline()
                .map(|next| (next - start).as_millis() as u64);
            assert_eq!(next.is_some(), first.is_some());
            assert!(
                next <= first.map(|first| first.max(now)),
                "{next:?} for {first:?}"
            );
        }
    }
}
