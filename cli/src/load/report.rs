//! The report of a run, as `--json` writes it and as people read it.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Duration;

use serde::Serialize;

use super::drive::Outcome;
use super::tally::Counts;

/// The report of one run, or of several with one server.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Report {
    /// The address or the program.
    pub server: String,
    /// Requests that were due in the measured time and answered as they should be.
    pub calls: u64,
    pub errors: u64,
    /// The rate of an open loop, as asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<f64>,
    /// Good answers a second, as they came.
    pub calls_per_second: f64,
    pub duration_s: f64,
    /// In an open loop, from when the request was due; absent without an answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency_ms: Option<Latency>,
    /// How late an open loop sent, because this machine was late.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub send_lag_ms: Option<Lag>,
    /// Processor time of the server, with its children; absent where it is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server_cpu_us_per_call: Option<f64>,
    /// The same without its children.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server_alone_cpu_us_per_call: Option<f64>,
    /// The same by the names of threads.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub server_threads_cpu_us_per_call: BTreeMap<String, f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server_memory_bytes: Option<Memory>,
    /// Processor time of this program.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_cpu_us_per_call: Option<f64>,
    /// How often each failure was seen.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub failures: BTreeMap<String, u64>,
    /// Stretches of the measured time, by when requests were due.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub timeline: Vec<Stretch>,
}

/// Quantiles of the latency, in milliseconds.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Latency {
    pub p50: f64,
    pub p90: f64,
    pub p95: f64,
    pub p99: f64,
    pub max: f64,
    pub mean: f64,
}

/// How late requests were sent, in milliseconds.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Lag {
    pub p99: f64,
    pub max: f64,
}

/// Memory of the server's processes that is resident.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Memory {
    /// At the begin of the measured time.
    pub begin: u64,
    /// At its end.
    pub end: u64,
    /// The most since the processes were started.
    pub peak: u64,
}

/// A part of the measured time.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Stretch {
    /// Its begin, from the begin of the measured time.
    pub at_s: f64,
    pub calls: u64,
    pub errors: u64,
    /// This and the next two are absent without an answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p50_ms: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p99_ms: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_ms: Option<f64>,
}

impl Latency {
    /// `None` if nothing was answered.
    pub fn of(counts: &Counts) -> Option<Self> {
        Some(Self {
            p50: counts.millis(0.5)?,
            p90: counts.millis(0.9)?,
            p95: counts.millis(0.95)?,
            p99: counts.millis(0.99)?,
            max: counts.millis(1.0)?,
            mean: counts.latency.mean() / 1e6,
        })
    }
}

impl Report {
    pub fn new(server: &str, outcome: &Outcome) -> Self {
        let each = |cpu: Duration| outcome.each(cpu);
        let seconds = outcome.plan.duration.as_secs_f64();
        let used = outcome.used.as_ref();
        let lag = Lag {
            p99: outcome.lag.value_at_quantile(0.99) as f64 / 1e6,
            max: outcome.lag.max() as f64 / 1e6,
        };
        let rate = outcome.plan.pace.rate();
        let stretches = outcome.stretches.iter().enumerate();
        Self {
            server: server.to_owned(),
            calls: outcome.whole.latency.len(),
            errors: outcome.whole.errors,
            rate,
            calls_per_second: match seconds > 0.0 {
                true => outcome.answered as f64 / seconds,
                false => 0.0,
            },
            duration_s: seconds,
            latency_ms: Latency::of(&outcome.whole),
            send_lag_ms: rate.filter(|_| !outcome.lag.is_empty()).map(|_| lag),
            server_cpu_us_per_call: used.and_then(|used| each(used.cpu)),
            server_alone_cpu_us_per_call: used.and_then(|used| each(used.cpu_alone)),
            server_threads_cpu_us_per_call: used
                .into_iter()
                .flat_map(|used| &used.threads)
                .filter_map(|(name, cpu)| Some((name.clone(), each(*cpu)?)))
                .collect(),
            server_memory_bytes: used.map(|used| Memory {
                begin: used.bytes_before,
                end: used.bytes_after,
                peak: used.peak_bytes,
            }),
            client_cpu_us_per_call: outcome.own_cpu.and_then(each),
            failures: outcome.failures.clone(),
            timeline: stretches
                .map(|(number, counts)| Stretch {
                    at_s: (outcome.stretch * number as u32).as_millis() as f64 / 1e3,
                    calls: counts.latency.len(),
                    errors: counts.errors,
                    p50_ms: counts.millis(0.5),
                    p99_ms: counts.millis(0.99),
                    max_ms: counts.millis(1.0),
                })
                .collect(),
        }
    }

    /// The share of requests that failed, in per cent.
    pub fn error_percent(&self) -> f64 {
        self.errors as f64 * 100.0 / (self.calls + self.errors).max(1) as f64
    }

    /// Counts failures that belong to no request.
    pub fn failed(&mut self, why: &str, count: u64) {
        if count > 0 {
            self.errors += count;
            *self.failures.entry(why.to_owned()).or_default() += count;
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
        if let Some(latency) = self.latency_ms {
            let Latency {
                p50,
                p90,
                p95,
                p99,
                max,
                ..
            } = latency;
            row(
                "latency",
                format!(
                    "p50 {p50:.3} ms, p90 {p90:.3} ms, p95 {p95:.3} ms, p99 {p99:.3} ms, max {max:.3} ms"
                ),
            );
        }
        if let Some(cpu) = self.server_cpu_us_per_call {
            row("server CPU", format!("{cpu:.1} µs a call"));
        }
        if let Some(Memory { begin, end, peak }) = self.server_memory_bytes {
            let [begin, end, peak] = [begin, end, peak].map(|bytes| bytes as f64 / 1e6);
            let memory =
                format!("{begin:.1} MB at the begin, {end:.1} MB at the end, peak {peak:.1} MB");
            row("memory", memory);
        }
        if let Some(cpu) = self.client_cpu_us_per_call {
            row("own CPU", format!("{cpu:.1} µs a call"));
        }
        for (failure, count) in &self.failures {
            row("failed", format!("{count} times: {failure}"));
        }
        text + &self.late().unwrap_or_default()
    }

    /// Tells if this machine sent so late that it shows in the latency.
    fn late(&self) -> Option<String> {
        let lag = self.send_lag_ms?;
        let is_late = lag.p99 > 1.0 && lag.p99 > self.latency_ms?.p50 / 10.0;
        is_late.then(|| {
            format!(
                "warning: one in a hundred requests was sent {:.1} ms late or later, since this machine was busy; the latency contains that\n",
                lag.p99
            )
        })
    }
}
