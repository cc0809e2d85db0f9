//! Rows about a run while it goes on.

use std::io::IsTerminal;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::tally::Counts;
use crate::shown;

/// A table on stderr with a row for each second.
pub struct Live {
    is_shown: bool,
    has_head: AtomicBool,
}

impl Live {
    /// A table if it is wanted, or if stderr is a terminal.
    pub fn new(is_wanted: bool) -> Self {
        Self {
            is_shown: is_wanted || std::io::stderr().is_terminal(),
            has_head: AtomicBool::new(false),
        }
    }

    pub fn is_shown(&self) -> bool {
        self.is_shown
    }

    /// Says what comes next.
    pub fn title(&self, title: &str) {
        if self.is_shown {
            shown::tell(title);
        }
    }

    /// The requests that ended in the second up to `at`.
    pub fn row(&self, at: Duration, counts: &Counts, in_flight: usize, cpu: Option<Duration>) {
        if !self.has_head.swap(true, Ordering::Relaxed) {
            shown::tell(&format!(
                "{:>8} {:>10} {:>8} {:>10} {:>10} {:>10} {:>10} {:>10}",
                "second", "answered", "errors", "in flight", "p50 ms", "p99 ms", "max ms", "CPU %"
            ));
        }
        let cpu = cpu.map_or_else(
            || "-".to_owned(),
            |cpu| format!("{:.0}", cpu.as_secs_f64() * 100.0),
        );
        let millis = |quantile| {
            let millis = counts.millis(quantile);
            millis.map_or_else(|| "-".to_owned(), |millis| format!("{millis:.3}"))
        };
        shown::tell(&format!(
            "{:>8} {:>10} {:>8} {in_flight:>10} {:>10} {:>10} {:>10} {cpu:>10}",
            at.as_secs(),
            counts.latency.len(),
            counts.errors,
            millis(0.5),
            millis(0.99),
            millis(1.0),
        ));
    }
}
