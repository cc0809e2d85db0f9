//! Rising rates, up to the one that the server no longer holds.

use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use anyhow::{Result, ensure};
use serde::Serialize;

use super::STRAY;
use super::drive::drive;
use super::live::Live;
use super::plan::{Pace, Plan};
use super::report::Report;
use super::side::Side;
use super::threshold::{Figure, Figures};
use super::units::Quantity;

/// How often the gap between the last rate that is held and the first that is not is halved.
const HALVINGS: usize = 3;

/// A step of which less is answered in its time is not held,
const HELD: f64 = 0.98;

/// but for so many answers that come after its end.
const AFTER_THE_END: f64 = 2.0;

/// Without a limit of one's own, the p99 may become so many times that of the first step.
const GROWTH: f64 = 10.0;

/// The same limit is at least this, in milliseconds.
const LEAST_LIMIT: f64 = 10.0;

/// The results of the steps.
#[derive(Debug, Serialize)]
pub struct Ramp {
    /// By their rates.
    pub steps: Vec<Step>,
    /// The highest rate that was held; absent if the first one was not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub knee: Option<f64>,
    /// The p99 up to which a rate counts as held; absent if it is that of the first step, and nothing was answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    p99_limit_ms: Option<f64>,
    /// Messages of the server that no request has asked for, at whatever rate.
    pub strays: u64,
    /// Whether a signal has ended it.
    #[serde(skip)]
    is_interrupted: bool,
}

/// One rate.
#[derive(Debug, Serialize)]
pub struct Step {
    /// Requests per second. Not serialised, since the report has it, too.
    #[serde(skip)]
    pub rate: f64,
    /// Whether all was answered rightly, in time, and within the limit of the p99.
    pub is_held: bool,
    #[serde(flatten)]
    pub report: Report,
}

/// Runs the plan at rates that rise by the same factor, then between the last two.
pub fn run(
    side: &Arc<Side>,
    plan: &Plan,
    (from, to): (f64, f64),
    steps: u32,
    limit: Option<Duration>,
    live: &Live,
) -> Result<Ramp> {
    let number = Arc::new(AtomicU64::new(0));
    let mut ramp = Ramp {
        steps: Vec::new(),
        knee: None,
        p99_limit_ms: limit.map(|limit| limit.as_secs_f64() * 1e3),
        strays: 0,
        is_interrupted: false,
    };
    let one = |ramp: &mut Ramp, rate: f64| -> Result<bool> {
        let is_over = || plan.interrupt.has_come();
        if is_over() {
            return Ok(false);
        }
        live.title(&format!("{rate:.0} a second"));
        let plan = Plan {
            pace: Pace::Rate(rate),
            ..plan.clone()
        };
        let report = Report::new(&side.name, &drive(side, &plan, &number, live)?);
        if is_over() {
            return Ok(false);
        }
        let p99 = report.latency_ms.map(|latency| latency.p99);
        let by_default = p99.map(|p99| (p99 * GROWTH).max(LEAST_LIMIT));
        ramp.p99_limit_ms = ramp.p99_limit_ms.or(by_default);
        let is_within = p99
            .zip(ramp.p99_limit_ms)
            .is_some_and(|(p99, limit)| p99 <= limit);
        let seconds = report.duration_s;
        let is_held = report.errors == 0
            && report.calls_per_second * seconds + AFTER_THE_END >= rate * seconds * HELD
            && is_within;
        if is_held {
            ramp.knee = Some(ramp.knee.unwrap_or_default().max(rate));
        }
        ramp.steps.push(Step {
            rate,
            is_held,
            report,
        });
        Ok(is_held)
    };
    let last = steps.max(2) - 1;
    let factor = (to / from).powf(1.0 / f64::from(last));
    let mut too_high = None;
    for step in 0..=last {
        let rate = from * factor.powf(f64::from(step));
        if !one(&mut ramp, rate)? {
            too_high = Some(rate);
            break;
        }
    }
    for _ in 0..HALVINGS {
        if let (Some(held), Some(lost)) = (ramp.knee, too_high) {
            let rate = (held * lost).sqrt();
            if !one(&mut ramp, rate)? {
                too_high = Some(rate);
            }
        }
    }
    ensure!(
        !ramp.steps.is_empty(),
        "interrupted before the first rate was measured"
    );
    ramp.is_interrupted = plan.interrupt.has_come();
    ramp.steps
        .sort_by(|one, other| one.rate.total_cmp(&other.rate));
    Ok(ramp)
}

impl Ramp {
    /// The report for people.
    pub fn table(&self) -> String {
        let mut text = format!(
            "{:>10} {:>12} {:>8} {:>10} {:>10} {:>12} {:>6}\n",
            "rate", "answered/s", "errors", "p50 ms", "p99 ms", "CPU µs/call", "held"
        );
        for Step {
            rate,
            is_held,
            report,
        } in &self.steps
        {
            let known = |figure: Option<f64>, digits: usize| {
                figure.map_or_else(|| "-".to_owned(), |figure| format!("{figure:.digits$}"))
            };
            let _ = writeln!(
                text,
                "{rate:>10.0} {:>12.1} {:>8} {:>10} {:>10} {:>12} {:>6}",
                report.calls_per_second,
                report.errors,
                known(report.latency_ms.map(|latency| latency.p50), 3),
                known(report.latency_ms.map(|latency| latency.p99), 3),
                known(report.server_cpu_us_per_call, 1),
                if *is_held { "yes" } else { "no" },
            );
        }
        if self.strays > 0 {
            let _ = writeln!(text, "failed      {} times: {STRAY}", self.strays);
        }
        let limit = self.p99_limit_ms;
        let limit = limit.map_or_else(String::new, |limit| format!(" (p99 up to {limit:.1} ms)"));
        let is_last = self.steps.iter().all(|step| step.is_held);
        let _ = match self.knee {
            Some(rate) if is_last && self.is_interrupted => writeln!(
                text,
                "interrupted: {rate:.0} a second were held{limit}, higher rates were not measured"
            ),
            Some(rate) if is_last => writeln!(
                text,
                "all rates were held, up to {rate:.0} a second{limit}; the knee is higher"
            ),
            Some(rate) => writeln!(
                text,
                "the knee: {rate:.0} a second were held{limit}, more were not"
            ),
            None => writeln!(text, "the first rate was not held{limit}"),
        };
        text
    }
}

/// Figures other than the knee are those of the step at the knee. No request fails there, so the errors are the strays
/// of all steps.
impl Figures for Ramp {
    fn figure(&self, name: &str) -> Option<Figure> {
        let strays = self.strays as f64;
        let quantity = match name {
            "knee" => Quantity::Plain(self.knee?),
            "errors" => Quantity::Plain(strays),
            "errors%" => {
                let sent = |step: &Step| step.report.calls + step.report.errors;
                let sent = self.steps.iter().map(sent).sum::<u64>() + self.strays;
                Quantity::Percent(strays * 100.0 / sent.max(1) as f64)
            }
            _ => {
                let is_it = |step: &&Step| Some(step.rate) == self.knee;
                return self.steps.iter().find(is_it)?.report.figure(name);
            }
        };
        Some(Figure::exact(quantity))
    }

    fn missing(&self) -> Option<String> {
        let has_none = self.knee.is_none();
        has_none.then(|| "no rate was held, so there is no knee".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interrupted_ramp_says_nothing_of_rates_that_were_not_measured() {
        let mut ramp = Ramp {
            steps: vec![Step {
                rate: 50.0,
                is_held: true,
                report: Report::default(),
            }],
            knee: Some(50.0),
            p99_limit_ms: None,
            strays: 0,
            is_interrupted: true,
        };
        let said = "interrupted: 50 a second were held, higher rates were not measured\n";
        assert!(ramp.table().ends_with(said), "{}", ramp.table());
        ramp.is_interrupted = false;
        assert!(
            ramp.table().contains("all rates were held"),
            "{}",
            ramp.table()
        );
    }
}
