//! Counts requests: all of a run, and those of each stretch of time in it.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::Result;
use hdrhistogram::Histogram;

use super::workload::Failure;

/// The most different failures that are told apart.
const MAX_FAILURES: usize = 10;

/// The longest latency that is told from longer ones, in nanoseconds: an hour.
const LONGEST: u64 = 3_600_000_000_000;

/// The most stretches of a run.
const MAX_STRETCHES: u32 = 120;

/// The times of a run.
#[derive(Clone, Copy, Debug)]
pub struct Window {
    pub begin: Instant,
    /// When the warm-up is over.
    pub measured: Instant,
    pub end: Instant,
}

/// Requests that were due in some time.
#[derive(Clone, Debug)]
pub struct Counts {
    /// The latency of those that were answered as they should be, in nanoseconds.
    pub latency: Histogram<u64>,
    pub errors: u64,
}

/// All counts of a run.
#[derive(Clone, Debug)]
pub struct Tally {
    window: Window,
    /// All that were due in the measured time.
    pub whole: Counts,
    /// The same, by when they were due.
    pub stretches: Vec<Counts>,
    pub stretch: Duration,
    /// Those that ended since the last look, whenever they were due.
    pub recent: Counts,
    /// How often each failure was seen.
    pub failures: BTreeMap<String, u64>,
    /// Those that ended within the measured time, whenever they were due.
    pub ended: u64,
    /// The part of them that was answered as it should be.
    pub answered: u64,
}

/// Counts times in nanoseconds, right within a thousandth (3 digits) or a hundredth (2).
pub fn latencies(digits: u8) -> Result<Histogram<u64>> {
    Ok(Histogram::new_with_bounds(1, LONGEST, digits)?)
}

impl Counts {
    fn new(digits: u8) -> Result<Self> {
        Ok(Self {
            latency: latencies(digits)?,
            errors: 0,
        })
    }

    fn note(&mut self, latency: Option<u64>) {
        match latency {
            Some(latency) => self.latency.saturating_record(latency.max(1)),
            None => self.errors += 1,
        }
    }

    /// Adds those of another time.
    pub fn add(&mut self, other: &Self) -> Result<()> {
        self.latency.add(&other.latency)?;
        self.errors += other.errors;
        Ok(())
    }

    /// A latency in milliseconds; `None` if nothing was answered.
    pub fn millis(&self, quantile: f64) -> Option<f64> {
        let is_answered = !self.latency.is_empty();
        is_answered.then(|| self.latency.value_at_quantile(quantile) as f64 / 1e6)
    }
}

impl Tally {
    pub fn new(window: Window) -> Result<Self> {
        let measured = window.end - window.measured;
        // A second, or longer for long runs, or a twentieth of short ones.
        let stretch = (measured / 20)
            .min(Duration::from_secs(1))
            .max(measured / MAX_STRETCHES)
            .max(Duration::from_millis(1));
        let count = measured.as_nanos().div_ceil(stretch.as_nanos());
        Ok(Self {
            window,
            whole: Counts::new(3)?,
            stretches: vec![Counts::new(2)?; usize::try_from(count)?],
            stretch,
            recent: Counts::new(2)?,
            failures: BTreeMap::new(),
            ended: 0,
            answered: 0,
        })
    }

    /// Notes the end of a request that was due at a time.
    pub fn ended(&mut self, due: Instant, now: Instant, ended: Result<(), Failure>) {
        let is_within = self.window.measured <= now && now < self.window.end;
        self.ended += u64::from(is_within);
        self.answered += u64::from(is_within && ended.is_ok());
        let took = u64::try_from((now - due).as_nanos()).unwrap_or(u64::MAX);
        let latency = ended.as_ref().ok().map(|()| took);
        self.recent.note(latency);
        if due < self.window.measured || due >= self.window.end {
            return;
        }
        self.whole.note(latency);
        let since = (due - self.window.measured).as_nanos() / self.stretch.as_nanos();
        let stretch = usize::try_from(since).unwrap_or(usize::MAX);
        if let Some(stretch) = self.stretches.get_mut(stretch) {
            stretch.note(latency);
        }
        if let Err(failure) = ended {
            self.name(&failure.why, 1);
        }
    }

    /// Notes failures that belong to no request.
    pub fn failed(&mut self, why: &str, count: u64) {
        self.whole.errors += count;
        self.name(why, count);
    }

    fn name(&mut self, why: &str, count: u64) {
        let is_known = self.failures.contains_key(why);
        let why = match is_known || self.failures.len() < MAX_FAILURES {
            true => why,
            false => "others",
        };
        *self.failures.entry(why.to_owned()).or_default() += count;
    }

    /// Those that ended since the last call of this.
    pub fn take_recent(&mut self) -> Counts {
        let taken = self.recent.clone();
        self.recent.latency.reset();
        self.recent.errors = 0;
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tally(measured: Duration) -> (Tally, Instant) {
        let begin = Instant::now();
        let from = begin + Duration::from_secs(1);
        let window = Window {
            begin,
            measured: from,
            end: from + measured,
        };
        (Tally::new(window).unwrap(), from)
    }

    #[test]
    fn what_was_due_in_the_measured_time_counts_whenever_it_ended() {
        let (mut tally, from) = tally(Duration::from_secs(20));
        let after = |millis| from + Duration::from_millis(millis);
        tally.ended(from - Duration::from_millis(1), after(5), Ok(()));
        tally.ended(after(0), after(30_000), Ok(()));
        tally.ended(after(2_500), after(2_600), Err(Failure::wrong("no")));
        tally.ended(after(20_000), after(20_001), Ok(()));
        assert_eq!((tally.whole.latency.len(), tally.whole.errors), (1, 1));
        assert_eq!((tally.ended, tally.answered), (2, 1));
        let millis = tally.whole.millis(0.5).unwrap();
        assert!((millis - 30_000.0).abs() < 30.0, "{millis}");
        assert_eq!(tally.stretches.len(), 20);
        assert_eq!(tally.stretches[2].errors, 1);
        assert_eq!(
            tally.stretches[2].millis(0.5),
            None,
            "no latency, rather than one of 0 ms"
        );
        assert_eq!(tally.take_recent().latency.len(), 3);
        assert_eq!(tally.take_recent().latency.len(), 0);
    }

    #[test]
    fn long_runs_have_long_stretches_and_failures_are_bounded() {
        let (mut tally, from) = tally(Duration::from_secs(24 * 3600));
        assert_eq!(tally.stretches.len(), 120);
        for number in 0..20 {
            tally.ended(from, from, Err(Failure::wrong(format!("{number}"))));
        }
        assert_eq!(tally.failures.len(), MAX_FAILURES + 1);
        assert_eq!(tally.failures["others"], 10);
    }
}
