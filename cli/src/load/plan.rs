//! When requests are due.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, ensure};

use super::interrupt::Interrupt;

/// The most requests in flight. One that is due beyond that fails.
pub const MAX_IN_FLIGHT: usize = 65_536;

/// How requests follow each other.
#[derive(Clone, Debug)]
pub enum Pace {
    /// An open loop: so many per second, however long the server takes.
    Rate(f64),
    /// An open loop: at the times of a trace, which begins again at its end.
    Recorded(Arc<Recording>),
    /// A closed loop: so many in flight, each followed by the next one when it is answered.
    InFlight(usize),
}

/// The times of a recorded trace.
#[derive(Debug)]
pub struct Recording {
    /// When each request was sent, from the first one on.
    times: Vec<Duration>,
    /// How much faster than recorded it is replayed.
    speed: f64,
}

/// One run.
#[derive(Clone, Debug)]
pub struct Plan {
    pub pace: Pace,
    /// How long to load before measuring.
    pub warm_up: Duration,
    /// How long to measure.
    pub duration: Duration,
    /// What ends the run before that.
    pub interrupt: Interrupt,
}

impl Pace {
    /// When requests of an open loop are due, from the begin of the run on, without an end; none for a closed loop.
    pub fn dues(&self) -> Box<dyn Iterator<Item = Duration>> {
        match self {
            Self::Rate(rate) => {
                let rate = *rate;
                Box::new((0_u64..).map(move |number| seconds(number as f64 / rate)))
            }
            Self::Recorded(recording) => {
                let recording = recording.clone();
                Box::new((0..).map(move |number| recording.due(number)))
            }
            Self::InFlight(_) => Box::new(std::iter::empty()),
        }
    }

    /// Requests per second, where the plan says so.
    pub fn rate(&self) -> Option<f64> {
        match self {
            Self::Rate(rate) => Some(*rate),
            Self::Recorded(recording) => {
                let length = recording.length().as_secs_f64() / recording.speed;
                Some(recording.times.len() as f64 / length)
            }
            Self::InFlight(_) => None,
        }
    }
}

impl Recording {
    /// Fails if the times are all the same, which is no pace.
    pub fn new(times: Vec<Duration>, speed: f64) -> Result<Self> {
        ensure!(
            times.last() > times.first(),
            "the trace has no two different at_ms, so they are no pace: add --rate or --in-flight"
        );
        Ok(Self { times, speed })
    }

    /// From the first request of the trace to that of its repetition: as long after the last one as they are apart.
    fn length(&self) -> Duration {
        let last = self.times.last().copied().unwrap_or_default();
        let gaps = u32::try_from(self.times.len().saturating_sub(1)).unwrap_or(u32::MAX);
        let gap = last.checked_div(gaps).unwrap_or_default();
        last.saturating_add(gap)
    }

    fn due(&self, number: usize) -> Duration {
        let count = self.times.len().max(1);
        let repetition = (number / count) as f64;
        let within = self.times.get(number % count).copied().unwrap_or_default();
        let recorded = repetition * self.length().as_secs_f64() + within.as_secs_f64();
        seconds(recorded / self.speed)
    }
}

/// A time; the longest one if it is longer.
fn seconds(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_does_not_drift() {
        let mut dues = Pace::Rate(3.0).dues();
        assert_eq!(dues.nth(3_000_000), Some(Duration::from_secs(1_000_000)));
    }

    #[test]
    fn a_trace_begins_again_after_its_mean_gap() {
        let times = [0, 10, 40].map(Duration::from_millis).into();
        let pace = Pace::Recorded(Arc::new(Recording::new(times, 2.0).unwrap()));
        let dues: Vec<_> = pace.dues().take(5).map(|due| due.as_micros()).collect();
        assert_eq!(dues, [0, 5_000, 20_000, 30_000, 35_000]);
        assert_eq!(pace.rate(), Some(100.0));
    }

    #[test]
    fn times_that_are_all_the_same_are_no_pace() {
        for count in 1..3 {
            assert!(Recording::new(vec![Duration::ZERO; count], 1.0).is_err());
        }
    }

    #[test]
    fn times_beyond_all_clocks_are_the_longest_one() {
        let times = vec![Duration::ZERO, Duration::MAX];
        let pace = Pace::Recorded(Arc::new(Recording::new(times, 1e-3).unwrap()));
        assert_eq!(pace.dues().nth(1), Some(Duration::MAX));
        assert_eq!(pace.dues().nth(2), Some(Duration::MAX));
    }
}
