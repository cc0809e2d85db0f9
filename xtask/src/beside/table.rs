//! The table of results, as text and as JSON.

use std::fmt::Write;
use std::time::Duration;

use anyhow::Result;
use serde_json::json;

use super::Turn;
use super::subject::{By, Probe, Subject};
use crate::columns::{align, in_micros, micros, millis, thousands};

const HEAD: [&str; 9] = [
    "server",
    "by",
    "CPU/call",
    "of it language",
    "better than",
    "calls/s",
    "p50 alone",
    "first list",
    "RSS",
];

/// All turns of one server.
pub struct Row {
    name: &'static str,
    by: By,
    than: Option<&'static str>,
    turns: Vec<Turn>,
    /// The error of a failed turn.
    failed: Option<String>,
}

impl Row {
    pub fn new(subject: &Subject) -> Self {
        Self {
            name: subject.name,
            by: subject.by,
            than: subject.than,
            turns: Vec::new(),
            failed: None,
        }
    }

    pub fn note(&mut self, outcome: Result<Turn>) {
        match outcome {
            Ok(turn) => self.turns.push(turn),
            Err(error) => self.failed = Some(format!("{error:#}")),
        }
    }

    pub fn is_clean(&self) -> bool {
        self.failed.is_none()
    }

    fn of<T: PartialOrd + Copy>(&self, figure: impl Fn(&Turn) -> Option<T>) -> Option<T> {
        median(self.turns.iter().filter_map(figure).collect())
    }

    fn cpu(&self) -> Option<Duration> {
        self.of(|turn| Some(turn.cpu))
    }

    /// How many times less CPU time it needs than the compared server.
    fn ratio(&self, rows: &[Self]) -> Option<f64> {
        let than = |row: &&Self| Some(row.name) == self.than && row.by == self.by;
        let other = rows.iter().find(than)?.cpu()?;
        Some(other.as_secs_f64() / self.cpu()?.as_secs_f64())
    }
}

/// The cost of loading something.
pub struct Cost {
    name: &'static str,
    turns: Vec<(Duration, u64)>,
}

impl Cost {
    pub fn new(probe: &Probe) -> Self {
        Self {
            name: probe.name,
            turns: Vec::new(),
        }
    }

    pub fn note(&mut self, turn: (Duration, u64)) {
        self.turns.push(turn);
    }

    fn cpu(&self) -> Option<Duration> {
        median(self.turns.iter().map(|turn| turn.0).collect())
    }

    fn bytes(&self) -> Option<u64> {
        median(self.turns.iter().map(|turn| turn.1).collect())
    }
}

fn median<T: PartialOrd + Copy>(mut values: Vec<T>) -> Option<T> {
    values.sort_by(|a, b| a.partial_cmp(b).unwrap_or(std::cmp::Ordering::Equal));
    values.get(values.len() / 2).copied()
}

/// The whole table, with failures below it.
pub fn text(rows: &[Row], costs: &[Cost]) -> String {
    let shown = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    let megabytes = |bytes: u64| format!("{:.1} MB", bytes as f64 / 1e6);
    let mut lines = vec![HEAD.map(str::to_owned)];
    let mut notes = String::new();
    for row in rows {
        let ratio = row
            .ratio(rows)
            .zip(row.than)
            .map(|(ratio, than)| format!("{ratio:.1} × {than}"));
        lines.push([
            row.name.to_owned(),
            row.by.name().to_owned(),
            shown(row.cpu().map(micros)),
            shown(row.of(|turn| turn.language).map(micros)),
            ratio.unwrap_or_default(),
            shown(row.of(|turn| Some(turn.calls_per_second)).map(thousands)),
            shown(row.of(|turn| Some(turn.p50_alone)).map(micros)),
            shown(row.of(|turn| Some(turn.first_list)).map(millis)),
            shown(row.of(|turn| Some(turn.bytes)).map(megabytes)),
        ]);
        if let Some(failed) = &row.failed {
            let _ = writeln!(notes, "{} by {}: {failed}", row.name, row.by.name());
        }
    }
    let mut loads = Vec::new();
    for cost in costs {
        loads.push([
            cost.name.to_owned(),
            shown(cost.cpu().map(millis)),
            shown(cost.bytes().map(megabytes)),
        ]);
    }
    format!("{}\n{}{notes}", align(&lines, 2), align(&loads, 1))
}

/// One JSON object per line: the servers, then the costs of loading.
pub fn json_lines(rows: &[Row], costs: &[Cost]) -> String {
    let mut lines = String::new();
    for row in rows {
        let line = json!({
            "server": row.name,
            "by": row.by.name(),
            "rounds": row.turns.len(),
            "cpu_us_per_call": row.cpu().map(in_micros),
            "cpu_us_of_language": row.of(|turn| turn.language).map(in_micros),
            "better": row.ratio(rows),
            "than": row.than,
            "calls_per_second": row.of(|turn| Some(turn.calls_per_second)),
            "p50_alone_us": row.of(|turn| Some(turn.p50_alone)).map(in_micros),
            "first_list_ms": row.of(|turn| Some(turn.first_list)).map(|it| in_micros(it) / 1e3),
            "rss_bytes": row.of(|turn| Some(turn.bytes)),
            "failed": row.failed,
        });
        let _ = writeln!(lines, "{line}");
    }
    for cost in costs {
        let line = json!({
            "loads": cost.name,
            "cpu_ms": cost.cpu().map(|it| in_micros(it) / 1e3),
            "rss_bytes": cost.bytes(),
        });
        let _ = writeln!(lines, "{line}");
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(name: &'static str, than: Option<&'static str>, micros: u64) -> Row {
        let turn = |cpu| Turn {
            cpu: Duration::from_micros(cpu),
            language: None,
            calls_per_second: 1e6,
            p50_alone: Duration::from_micros(50),
            first_list: Duration::from_millis(30),
            bytes: 20_000_000,
        };
        Row {
            name,
            by: By::Http,
            than,
            turns: [micros * 9, micros, micros].map(turn).into(),
            failed: None,
        }
    }

    #[test]
    fn a_server_is_compared_with_the_one_it_names() {
        let rows = [row("theirs", None, 600), row("ours", Some("theirs"), 8)];
        let shown = text(&rows, &[]);
        assert!(shown.contains("75.0 × theirs"), "{shown}");
        assert_eq!(rows[0].ratio(&rows), None);
        let lines = json_lines(&rows, &[]);
        assert!(lines.contains(r#""better":75.0"#), "{lines}");
    }

    #[test]
    fn what_failed_is_told_and_is_not_clean() {
        let mut failed = row("ours", None, 8);
        failed.note(Err(anyhow::anyhow!("it does not start")));
        assert!(!failed.is_clean());
        assert!(text(&[failed], &[]).contains("it does not start"));
    }
}
