//! Two servers in turns, or one server directly and through a gateway.

use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use anyhow::{Context, Result};
use serde::Serialize;

use super::bootstrap::{Estimate, LEAST_ROUNDS, estimate};
use super::drive::{Outcome, drive};
use super::live::Live;
use super::plan::Plan;
use super::report::{Latency, Report};
use super::side::Side;
use super::threshold::{Figure, Figures};
use super::units::Quantity;

/// How long each turn but the first one warms up.
const LATER_WARM_UP: Duration = Duration::from_millis(200);

/// How the second address relates to the first one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Relation {
    /// A gateway before the first one.
    Through,
    /// Another server.
    Against,
}

/// The results of the rounds.
#[derive(Debug, Serialize)]
pub struct Pair {
    relation: Relation,
    pub first: Report,
    pub second: Report,
    pub rounds: Vec<Round>,
    /// The second side's median over the rounds, divided by that of the first one; absent if a turn has none.
    ratio: Ratios,
    /// The latency that the second side adds.
    added_ms: Added,
    /// The processor time of a gateway, without the server if that is its child.
    #[serde(skip_serializing_if = "Option::is_none")]
    gateway_cpu_us_per_call: Option<f64>,
}

/// One turn of either side.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Round {
    pub first: Turn,
    pub second: Turn,
}

/// The figures of a turn.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Turn {
    /// This and the next one are absent without an answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p50_ms: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p99_ms: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_us: Option<f64>,
}

#[derive(Clone, Copy, Debug, Serialize)]
struct Ratios {
    #[serde(skip_serializing_if = "Option::is_none")]
    p50: Option<Ratio>,
    #[serde(skip_serializing_if = "Option::is_none")]
    p99: Option<Ratio>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cpu: Option<Ratio>,
}

#[derive(Clone, Copy, Debug, Serialize)]
struct Ratio {
    #[serde(flatten)]
    estimate: Estimate,
    verdict: Verdict,
}

/// The conclusion from a ratio, about the second side.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Verdict {
    Less,
    More,
    Undecided,
}

#[derive(Clone, Copy, Debug, Serialize)]
struct Added {
    #[serde(skip_serializing_if = "Option::is_none")]
    p50: Option<Estimate>,
    #[serde(skip_serializing_if = "Option::is_none")]
    p99: Option<Estimate>,
}

/// Runs the plan with both sides, round by round. The side that begins changes with each round.
pub fn run(
    relation: Relation,
    sides: [Arc<Side>; 2],
    plan: &Plan,
    count: usize,
    live: &Live,
) -> Result<Pair> {
    let mut rounds = Vec::new();
    let mut all: Option<[Outcome; 2]> = None;
    let numbers: [_; 2] = std::array::from_fn(|_| Arc::new(AtomicU64::new(0)));
    'rounds: for round in 0..count {
        let warm_up = match round {
            0 => plan.warm_up,
            _ => plan.warm_up.min(LATER_WARM_UP),
        };
        let plan = Plan {
            warm_up,
            ..plan.clone()
        };
        let mut outcomes = [None, None];
        let order = if round % 2 == 0 { [0, 1] } else { [1, 0] };
        for side in order {
            live.title(&format!(
                "round {} of {count}: {}",
                round + 1,
                sides[side].name
            ));
            let outcome = drive(&sides[side], &plan, &numbers[side], live)?;
            if plan.interrupt.has_come() {
                break 'rounds;
            }
            outcomes[side] = Some(outcome);
        }
        let [Some(first), Some(second)] = outcomes else {
            continue;
        };
        rounds.push(Round {
            first: Turn::of(&first),
            second: Turn::of(&second),
        });
        // Only the sums are kept, so that many rounds take no more memory.
        all = Some(match all {
            None => [first, second],
            Some([mut firsts, mut seconds]) => {
                firsts.add(&first)?;
                seconds.add(&second)?;
                [firsts, seconds]
            }
        });
    }
    let [first, second] = all.context("interrupted before the first round was over")?;
    let of = |figure: fn(&Turn) -> Option<f64>| {
        let pair = |round: &Round| figure(&round.first).zip(figure(&round.second));
        rounds.iter().map(pair).collect::<Option<Vec<_>>>()
    };
    let (p50, p99) = (of(|turn| turn.p50_ms), of(|turn| turn.p99_ms));
    let minus = |first: f64, second: f64| second - first;
    let second = together(&sides[1], &second);
    Ok(Pair {
        relation,
        ratio: Ratios {
            p50: p50.as_deref().map(Ratio::of),
            p99: p99.as_deref().map(Ratio::of),
            cpu: of(|turn| turn.cpu_us).map(|cpu| Ratio::of(&cpu)),
        },
        added_ms: Added {
            p50: p50.map(|rounds| estimate(&rounds, minus)),
            p99: p99.map(|rounds| estimate(&rounds, minus)),
        },
        gateway_cpu_us_per_call: second
            .server_alone_cpu_us_per_call
            .filter(|_| relation == Relation::Through),
        first: together(&sides[0], &first),
        second,
        rounds,
    })
}

/// The report of all turns of a side.
fn together(side: &Side, turns: &Outcome) -> Report {
    let mut report = Report::new(&side.name, turns);
    report.timeline.clear();
    report
}

impl Turn {
    fn of(outcome: &Outcome) -> Self {
        let latency = Latency::of(&outcome.whole);
        let used = outcome.used.as_ref();
        Self {
            p50_ms: latency.map(|latency| latency.p50),
            p99_ms: latency.map(|latency| latency.p99),
            cpu_us: used.and_then(|used| outcome.each(used.cpu)),
        }
    }
}

impl Ratio {
    fn of(rounds: &[(f64, f64)]) -> Self {
        let estimate = estimate(rounds, |first, second| second / first);
        let verdict = match estimate {
            Estimate { low, .. } if low > 1.0 => Verdict::More,
            Estimate { high, .. } if high < 1.0 => Verdict::Less,
            _ => Verdict::Undecided,
        };
        Self { estimate, verdict }
    }

    fn sentence(&self, name: &str, second: &str) -> String {
        let Estimate { value, low, high } = self.estimate;
        if low.is_infinite() {
            return format!(
                "{name} is undecided: {value:.3} times; an interval takes {LEAST_ROUNDS} --rounds or more"
            );
        }
        let range = format!("{value:.3} times (about 95 %: {low:.3} to {high:.3})");
        match self.verdict {
            Verdict::Less => format!("{name} of {second} is lower: {range}"),
            Verdict::More => format!("{name} of {second} is higher: {range}"),
            Verdict::Undecided => format!("{name} is undecided: {range}; more --rounds narrow it"),
        }
    }
}

impl Pair {
    /// The errors of both sides.
    fn errors(&self) -> u64 {
        self.first.errors + self.second.errors
    }

    /// The report for people.
    pub fn table(&self) -> String {
        let mut text = String::new();
        let names = match self.relation {
            Relation::Through => ["directly", "through the gateway"],
            Relation::Against => ["first", "second"],
        };
        for (name, report) in names.iter().zip([&self.first, &self.second]) {
            let _ = writeln!(text, "{name}: {}\n{}", report.server, report.table());
        }
        let second = names[1];
        let Ratios { p50, p99, cpu } = &self.ratio;
        let sentences = [("p50", p50), ("p99", p99), ("CPU", cpu)];
        for (name, ratio) in sentences {
            if let Some(ratio) = ratio {
                let _ = writeln!(text, "{}", ratio.sentence(name, second));
            }
        }
        if self.relation == Relation::Through {
            for (name, added) in [("p50", self.added_ms.p50), ("p99", self.added_ms.p99)] {
                let Some(Estimate { value, low, high }) = added else {
                    continue;
                };
                let [value, low, high] = [value, low, high].map(|millis| millis * 1e3);
                let interval = match low.is_finite() {
                    true => format!(" (about 95 %: {low:.0} to {high:.0} µs)"),
                    false => String::new(),
                };
                let _ = writeln!(
                    text,
                    "the gateway adds {value:.0} µs to the {name}{interval}"
                );
            }
            if let Some(cpu) = self.gateway_cpu_us_per_call {
                let _ = writeln!(text, "the gateway itself uses {cpu:.1} µs of CPU a call");
            }
        }
        text
    }
}

/// Figures without a prefix are those of the second side, but errors are those of both.
impl Figures for Pair {
    fn figure(&self, name: &str) -> Option<Figure> {
        let estimate = |estimate: Estimate, unit: fn(f64) -> Quantity| Figure {
            low: unit(estimate.low),
            high: unit(estimate.high),
        };
        let ratio = |ratio: Ratio| estimate(ratio.estimate, Quantity::Plain);
        match name {
            "ratio.p50" => self.ratio.p50.map(ratio),
            "ratio.p99" => self.ratio.p99.map(ratio),
            "ratio.cpu" => self.ratio.cpu.map(ratio),
            "added.p50" => Some(estimate(self.added_ms.p50?, Quantity::Millis)),
            "added.p99" => Some(estimate(self.added_ms.p99?, Quantity::Millis)),
            "gateway.cpu" => {
                let micros = self.gateway_cpu_us_per_call?;
                Some(Figure::exact(Quantity::Millis(micros / 1e3)))
            }
            "errors" => Some(Figure::exact(Quantity::Plain(self.errors() as f64))),
            "errors%" => {
                let sent = self.errors() + self.first.calls + self.second.calls;
                let share = self.errors() as f64 * 100.0 / sent.max(1) as f64;
                Some(Figure::exact(Quantity::Percent(share)))
            }
            _ => self.second.figure(name),
        }
    }

    fn missing(&self) -> Option<String> {
        let turns = self
            .rounds
            .iter()
            .flat_map(|round| [round.first, round.second]);
        let empty = turns.filter(|turn| turn.p50_ms.is_none()).count();
        (empty > 0).then(|| {
            let all = self.rounds.len() * 2;
            format!(
                "{empty} of {all} turns have no answered request, so there is no ratio: use a longer --duration"
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verdict_needs_all_of_the_interval() {
        let rounds = |second: [f64; 6]| second.map(|second| (100.0, second));
        let verdict = |second| Ratio::of(&rounds(second)).verdict;
        assert_eq!(
            verdict([120.0, 121.0, 119.0, 125.0, 118.0, 122.0]),
            Verdict::More
        );
        assert_eq!(verdict([80.0, 81.0, 79.0, 85.0, 78.0, 82.0]), Verdict::Less);
        assert_eq!(
            verdict([80.0, 121.0, 79.0, 125.0, 78.0, 122.0]),
            Verdict::Undecided
        );
    }

    /// Five rounds that agree are no interval of 95 %, so they decide nothing and cross no bound.
    #[test]
    fn too_few_rounds_decide_nothing() {
        let ratio = Ratio::of(&[(100.0, 200.0); 5]);
        assert_eq!(
            (ratio.estimate.value, ratio.verdict),
            (2.0, Verdict::Undecided)
        );
        let said = ratio.sentence("p50", "second");
        assert!(
            said.ends_with("an interval takes 6 --rounds or more"),
            "{said}"
        );
        let ratio = Ratio::of(&[(100.0, 200.0); 6]);
        assert_eq!(ratio.verdict, Verdict::More);
    }
}
