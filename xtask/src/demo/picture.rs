//! Draws the CPU time of a call on each server, as bars on a logarithmic scale.

use std::fmt::Write;

use super::script::{Report, State};
use crate::columns::{in_micros, micros};

/// Where the bars begin, in pixels.
const LEFT: f64 = 190.0;
/// The length of a bar for each power of ten.
const DECADE: f64 = 150.0;
const ROW: f64 = 22.0;
/// The height above the first row.
const HEAD: f64 = 90.0;

/// Draws the CPU time of one short `echo` with many in flight. Servers that did not run are left out.
pub fn svg(reports: &[Report], is_ours: impl Fn(&str) -> bool, machine: &str) -> String {
    let mut rows = String::new();
    let mut y = HEAD;
    for report in reports {
        let State::Played { rows: steps, .. } = &report.state else {
            continue;
        };
        let Some((step, figures)) = steps.iter().find(|(step, _)| step.in_flight > 1) else {
            continue;
        };
        let time = figures.cpu_per_call;
        let width = (in_micros(time).max(1.0).log10() * DECADE).max(2.0);
        let colour = if is_ours(report.name) {
            "#2a6fdb"
        } else {
            "#9aa4b2"
        };
        let (text, middle) = (report.name, y + 14.0);
        let _ = writeln!(
            rows,
            r#"<text x="{}" y="{middle}" text-anchor="end">{text}</text><rect x="{LEFT}" y="{}" width="{width:.0}" height="16" fill="{colour}"><title>{text}: {} in flight</title></rect><text x="{:.0}" y="{middle}">{}</text>"#,
            LEFT - 8.0,
            y + 2.0,
            step.in_flight,
            LEFT + width + 6.0,
            micros(time),
        );
        y += ROW;
    }
    let title = "CPU time of the server for one call: echo of 100 bytes, 32 in flight, over stdio";
    let mut about = String::new();
    for (line, text) in machine.split("; ").enumerate() {
        let y = 40 + 14 * line;
        let _ = writeln!(
            about,
            r##"<text x="12" y="{y}" font-size="11" fill="#555">{text}</text>"##
        );
    }
    format!(
        r##"<svg xmlns="http://www.w3.org/2000/svg" width="760" height="{:.0}" font-family="sans-serif" font-size="12"><title>{title}</title><rect width="100%" height="100%" fill="#fff"/><text x="12" y="22" font-size="14" font-weight="bold">{title}</text>
{about}{rows}</svg>
"##,
        y + 12.0
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_did_not_run_has_no_bar() {
        let reports = [Report::missing(
            "mcpbolt node",
            "it does not build".to_owned(),
        )];
        let drawn = svg(&reports, |_| true, "a machine");
        assert!(
            !drawn.contains("mcpbolt node") && drawn.ends_with("</svg>\n"),
            "{drawn}"
        );
    }
}
