//! What a load came to.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Duration;

use serde::Serialize;

use super::drive::Outcome;

/// The report, as `--json` writes it.
#[derive(Serialize)]
pub struct Report {
    /// Calls that were answered as they should be.
    calls: u64,
    errors: u64,
    /// Good answers a second, as they came.
    calls_per_second: f64,
    duration_s: f64,
    latency_ms: Latency,
    /// Processor time of the server, with its children; absent where it is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    server_cpu_us_per_call: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    server_peak_bytes: Option<u64>,
    /// How often each failure was seen.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    failures: BTreeMap<String, u64>,
}

#[derive(Serialize)]
struct Latency {
    p50: f64,
    p90: f64,
    p95: f64,
    p99: f64,
    max: f64,
}

impl Report {
    pub fn new(outcome: &Outcome) -> Self {
        let latency = &outcome.latency;
        let at = |quantile| latency.value_at_quantile(quantile) as f64 / 1e3;
        let used = outcome.used;
        let each = |cpu: Duration| cpu.as_secs_f64() * 1e6 / outcome.ended.max(1) as f64;
        Self {
            calls: latency.len(),
            errors: outcome.errors,
            calls_per_second: outcome.answered as f64 / outcome.duration.as_secs_f64(),
            duration_s: outcome.duration.as_secs_f64(),
            latency_ms: Latency {
                p50: at(0.5),
                p90: at(0.9),
                p95: at(0.95),
                p99: at(0.99),
                max: latency.max() as f64 / 1e3,
            },
            server_cpu_us_per_call: used.map(|used| each(used.cpu)),
            server_peak_bytes: used.map(|used| used.peak_bytes),
            failures: outcome.failures.clone(),
        }
    }

    /// The report for people.
    pub fn table(&self) -> String {
        let mut text = String::new();
        let mut row = |name: &str, value: String| {
            let _ = writeln!(text, "{name:<12}{value}");
        };
        row(
            "calls",
            format!(
                "{} due in {} s, {:.1} answered a second",
                self.calls, self.duration_s, self.calls_per_second
            ),
        );
        row("errors", self.errors.to_string());
        let Latency {
            p50,
            p90,
            p95,
            p99,
            max,
        } = self.latency_ms;
        row(
            "latency",
            format!(
                "p50 {p50:.2} ms, p90 {p90:.2} ms, p95 {p95:.2} ms, p99 {p99:.2} ms, max {max:.2} ms"
            ),
        );
        if let Some(cpu) = self.server_cpu_us_per_call {
            row("server CPU", format!("{cpu:.1} µs a call"));
        }
        if let Some(peak) = self.server_peak_bytes {
            row("server peak", format!("{:.1} MB", peak as f64 / 1e6));
        }
        for (failure, count) in &self.failures {
            row("failed", format!("{count} times: {failure}"));
        }
        text
    }

    /// What is beyond its bound.
    pub fn beyond(&self, max_errors: f64, max_p99: Option<Duration>) -> Vec<String> {
        let all = self.calls + self.errors;
        let errors = self.errors as f64 * 100.0 / all.max(1) as f64;
        let mut beyond = Vec::new();
        if all == 0 {
            beyond.push("no call was due".to_owned());
        }
        if errors > max_errors {
            beyond.push(format!(
                "{errors:.2} % of the calls failed; at most {max_errors} % may"
            ));
        }
        if let Some(max) = max_p99
            .map(|max| max.as_secs_f64() * 1e3)
            .filter(|max| self.latency_ms.p99 > *max)
        {
            let p99 = self.latency_ms.p99;
            beyond.push(format!(
                "the 99th percentile is {p99:.2} ms; at most {max} ms may be"
            ));
        }
        beyond
    }
}
