//! The table of results, as text and as JSON.

use std::fmt::Write;
use std::time::Duration;

use serde_json::json;

use super::script::{Report, State};
use crate::columns::{align, in_micros, micros, millis, thousands};

const HEAD: [&str; 9] = [
    "server",
    "step",
    "in flight",
    "calls/s",
    "p50",
    "p99",
    "CPU/call",
    "peak RSS",
    "first list",
];

/// The whole table, with faults below it.
pub fn text(reports: &[Report]) -> String {
    let mut rows = vec![HEAD.map(str::to_owned)];
    let mut notes = String::new();
    for report in reports {
        rows.push([const { String::new() }; 9]);
        match &report.state {
            State::Missing(why) => {
                let mut row = HEAD.map(|_| String::new());
                row[0] = report.name.to_owned();
                row[1] = "MISSING".to_owned();
                rows.push(row);
                let _ = writeln!(notes, "{}: MISSING: {why}", report.name);
            }
            State::Played {
                first_list,
                rows: steps,
                ..
            } => {
                for (index, (step, figures)) in steps.iter().enumerate() {
                    let first = |text: String| if index == 0 { text } else { String::new() };
                    rows.push([
                        first(report.name.to_owned()),
                        step.name.to_owned(),
                        step.in_flight.to_string(),
                        thousands(figures.calls_per_second),
                        micros(figures.p50),
                        micros(figures.p99),
                        micros(figures.cpu_per_call),
                        format!("{:.1} MB", figures.peak_bytes as f64 / 1e6),
                        first(millis(*first_list)),
                    ]);
                }
                notes.push_str(&note(report));
            }
        }
    }
    align(&rows, 2) + "\n" + &notes
}

/// The results that have no column: the cancelled sleep, the exit, and every fault.
fn note(report: &Report) -> String {
    let State::Played {
        cancelled_after,
        exited_after,
        faults,
        ..
    } = &report.state
    else {
        return String::new();
    };
    let after = |time: &Option<Duration>| {
        time.map_or("NEVER".to_owned(), |time| format!("after {}", millis(time)))
    };
    let mut note = format!(
        "{}: cancelled sleep ended {}, exited {}",
        report.name,
        after(cancelled_after),
        after(exited_after)
    );
    match (&faults.first, faults.count) {
        (None, _) => note.push_str(", every answer right"),
        (Some(first), total) => {
            let _ = write!(note, ", FAULTS: {total} wrong answers; first: {first}");
        }
    }
    note.push('\n');
    note
}

/// One JSON object per line and step; a missing server is also a line.
pub fn json_lines(reports: &[Report]) -> String {
    let mut lines = String::new();
    for report in reports {
        match &report.state {
            State::Missing(why) => {
                let _ = writeln!(
                    lines,
                    "{}",
                    json!({ "server": report.name, "missing": why })
                );
            }
            State::Played {
                first_list,
                rows,
                cancelled_after,
                exited_after,
                faults,
            } => {
                for (step, figures) in rows {
                    let line = json!({
                        "server": report.name,
                        "step": step.name,
                        "in_flight": step.in_flight,
                        "calls": figures.calls,
                        "calls_per_second": figures.calls_per_second,
                        "p50_us": in_micros(figures.p50),
                        "p99_us": in_micros(figures.p99),
                        "cpu_us_per_call": in_micros(figures.cpu_per_call),
                        "peak_rss_bytes": figures.peak_bytes,
                        "first_list_ms": in_micros(*first_list) / 1e3,
                        "cancelled_after_ms": cancelled_after.map(|time| in_micros(time) / 1e3),
                        "exited_after_ms": exited_after.map(|time| in_micros(time) / 1e3),
                        "faults": faults.count,
                        "first_fault": faults.first,
                    });
                    let _ = writeln!(lines, "{line}");
                }
            }
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_server_is_shown_and_told() {
        let reports = [Report::missing(
            "mcpbolt node",
            "it does not build".to_owned(),
        )];
        let table = text(&reports);
        assert!(table.contains("mcpbolt node  MISSING"), "{table}");
        assert!(table.contains("it does not build"), "{table}");
        assert!(json_lines(&reports).contains(r#""missing":"it does not build""#));
    }
}
