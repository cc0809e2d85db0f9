//! Counts durations in fixed buckets, without a lock.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use super::shards::Adder;

/// Upper bounds of the buckets, in seconds. From 10 ms on they are those of the OpenTelemetry conventions for MCP; the ones
/// below tell apart what is faster.
pub const BUCKETS: [f64; 20] = [
    0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0,
    10.0, 30.0, 60.0, 120.0, 300.0,
];

/// The bounds in nanoseconds.
const NANOS: [u64; BUCKETS.len()] = {
    let mut nanos = [0; BUCKETS.len()];
    let mut i = 0;
    while i < nanos.len() {
        nanos[i] = (BUCKETS[i] * 1e9 + 0.5) as u64;
        i += 1;
    }
    nanos
};

#[derive(Debug, Default)]
pub(super) struct Histogram {
    /// Durations in each bucket, the last one without a bound.
    counts: [AtomicU64; BUCKETS.len() + 1],
    /// The sum. In nanoseconds it would be full after 584 years, which many sessions soon last together.
    micros: AtomicU64,
}

/// The values of histograms at one moment.
pub(super) struct Counts {
    /// For each bucket, the number of durations up to its bound.
    pub up_to: [u64; BUCKETS.len()],
    pub count: u64,
    pub seconds: f64,
}

impl Histogram {
    pub fn record(&self, duration: Duration, adder: Adder) {
        let nanos = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        let bucket = NANOS.iter().take_while(|bound| nanos > **bound).count();
        if let Some(count) = self.counts.get(bucket) {
            adder.add(count, 1);
        }
        adder.add(&self.micros, nanos.saturating_add(500) / 1000);
    }

    /// How many durations there are.
    pub fn count(&self) -> u64 {
        self.counts.iter().map(|count| count.load(Relaxed)).sum()
    }
}

impl Counts {
    /// Of several histograms together.
    pub fn of<'a>(all: impl Iterator<Item = &'a Histogram> + Clone) -> Self {
        let mut up_to = [0; BUCKETS.len()];
        let mut count = 0;
        for bucket in 0..=BUCKETS.len() {
            let each = all.clone().filter_map(|it| it.counts.get(bucket));
            count += each.map(|own| own.load(Relaxed)).sum::<u64>();
            if let Some(up_to) = up_to.get_mut(bucket) {
                *up_to = count;
            }
        }
        let micros = all.map(|it| it.micros.load(Relaxed)).sum();
        Self {
            up_to,
            count,
            seconds: Duration::from_micros(micros).as_secs_f64(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_counts_in_the_first_bucket_whose_bound_it_does_not_exceed() {
        let histogram = Histogram::default();
        for micros in [0, 100, 101, 10_000, 400_000_000] {
            histogram.record(Duration::from_micros(micros), Adder::Shared);
        }
        let Counts {
            up_to,
            count,
            seconds,
        } = Counts::of([&histogram].into_iter());
        assert_eq!(histogram.count(), count);
        assert_eq!((up_to[0], up_to[1], up_to[5], up_to[6]), (2, 3, 3, 4));
        assert_eq!((up_to[BUCKETS.len() - 1], count), (4, 5));
        assert!((seconds - 400.010_201).abs() < 1e-6, "{seconds}");
    }

    #[test]
    fn the_sum_has_room_for_many_long_durations() {
        let histogram = Histogram::default();
        let year = Duration::from_secs(365 * 24 * 60 * 60);
        for _ in 0..10_000 {
            histogram.record(year / 10, Adder::Shared);
        }
        let counts = Counts::of([&histogram].into_iter());
        assert_eq!(counts.seconds, (1000 * year).as_secs_f64());
    }
}
