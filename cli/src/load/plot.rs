//! Drawings of latencies, as SVG.

use std::fmt::Write;

use super::pair::Pair;
use super::ramp::{Ramp, Step};
use super::report::{Latency, Report};

const WIDTH: f64 = 860.0;
const HEIGHT: f64 = 420.0;
const LEFT: f64 = 70.0;
const RIGHT: f64 = 130.0;
const TOP: f64 = 40.0;
const BOTTOM: f64 = 50.0;

/// Colours that people with a weakness for colours tell apart (Okabe and Ito).
const COLOURS: [&str; 4] = ["#0072b2", "#d55e00", "#009e73", "#cc79a7"];

/// A line of a drawing: its name and its points.
type Line = (&'static str, Vec<(f64, f64)>);

/// A drawing of latencies in milliseconds, on a logarithmic scale, over something else.
struct Drawing {
    title: String,
    across: &'static str,
    is_log_across: bool,
    lines: Vec<Line>,
    /// A place on the way across, with its name.
    mark: Option<(f64, String)>,
}

/// The latency over time.
pub fn of_run(report: &Report) -> String {
    let stretches = &report.timeline;
    let line = |of: fn(&super::report::Stretch) -> Option<f64>| {
        let points = stretches.iter().filter_map(|it| Some((it.at_s, of(it)?)));
        points.collect()
    };
    Drawing {
        title: format!("{}: latency over time", report.server),
        across: "seconds",
        is_log_across: false,
        lines: vec![
            ("p50", line(|it| it.p50_ms)),
            ("p99", line(|it| it.p99_ms)),
            ("max", line(|it| it.max_ms)),
        ],
        mark: None,
    }
    .svg()
}

/// The latency over the rate, with the knee.
pub fn of_ramp(ramp: &Ramp) -> String {
    let line = |of: fn(&Latency) -> f64| {
        let point = |step: &Step| Some((step.rate, of(step.report.latency_ms.as_ref()?)));
        ramp.steps.iter().filter_map(point).collect()
    };
    let server = ramp.steps.first().map(|step| step.report.server.as_str());
    Drawing {
        title: format!("{}: latency over the rate", server.unwrap_or_default()),
        across: "requests per second",
        is_log_across: true,
        lines: vec![
            ("p50", line(|latency| latency.p50)),
            ("p99", line(|latency| latency.p99)),
        ],
        mark: ramp.knee.map(|rate| (rate, format!("knee: {rate:.0}"))),
    }
    .svg()
}

/// The latency of both sides, round by round.
pub fn of_pair(pair: &Pair) -> String {
    let line = |of: fn(&super::pair::Round) -> Option<f64>| {
        let rounds = pair.rounds.iter().enumerate();
        rounds
            .filter_map(|(at, round)| Some(((at + 1) as f64, of(round)?)))
            .collect()
    };
    Drawing {
        title: format!(
            "{} and {}: latency by round",
            pair.first.server, pair.second.server
        ),
        across: "round",
        is_log_across: false,
        lines: vec![
            ("first p50", line(|round| round.first.p50_ms)),
            ("second p50", line(|round| round.second.p50_ms)),
            ("first p99", line(|round| round.first.p99_ms)),
            ("second p99", line(|round| round.second.p99_ms)),
        ],
        mark: None,
    }
    .svg()
}

/// Maps values to places.
struct Scale {
    low: f64,
    high: f64,
    from: f64,
    to: f64,
    is_log: bool,
}

impl Scale {
    fn at(&self, value: f64) -> f64 {
        let share = match self.is_log {
            true => (value / self.low).ln() / (self.high / self.low).ln(),
            false => (value - self.low) / (self.high - self.low),
        };
        self.from + share * (self.to - self.from)
    }

    /// Values to be written beside the scale.
    fn ticks(&self) -> Vec<f64> {
        let power = |of: f64| 10f64.powf(of.log10().floor());
        let mut ticks = Vec::new();
        if self.is_log {
            let mut decade = power(self.low);
            while decade <= self.high {
                ticks.extend([1.0, 2.0, 5.0].map(|times| times * decade));
                decade *= 10.0;
            }
        } else {
            let span = self.high - self.low;
            let step = [1.0, 2.0, 5.0, 10.0].map(|times| times * power(span / 6.0));
            let step = step.into_iter().find(|step| span / step <= 8.0);
            let step = step.unwrap_or(span);
            let first = (self.low / step).ceil();
            ticks.extend((0..10).map(|number| (first + f64::from(number)) * step));
        }
        ticks.retain(|tick| (self.low * 0.999_999..=self.high * 1.000_001).contains(tick));
        ticks
    }
}

impl Drawing {
    fn svg(&self) -> String {
        let points = || self.lines.iter().flat_map(|(_, points)| points);
        let least = |values: &mut dyn Iterator<Item = f64>| values.fold(f64::INFINITY, f64::min);
        let most = |values: &mut dyn Iterator<Item = f64>| values.fold(0.0, f64::max);
        let mut text = String::new();
        let _ = writeln!(
            text,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\" font-size=\"12\">\n\
             <rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"white\"/>\n\
             <text x=\"{LEFT}\" y=\"22\" font-size=\"15\">{}</text>",
            escaped(&self.title)
        );
        let across_low = least(&mut points().map(|(x, _)| *x));
        if !across_low.is_finite() {
            let _ = writeln!(
                text,
                "<text x=\"{LEFT}\" y=\"{TOP}\">nothing was answered</text>\n</svg>"
            );
            return text;
        }
        let across = Scale {
            low: across_low,
            high: most(&mut points().map(|(x, _)| *x)).max(across_low * 1.01 + 1e-9),
            from: LEFT,
            to: WIDTH - RIGHT,
            is_log: self.is_log_across,
        };
        let lowest = least(&mut points().map(|(_, y)| *y)).max(1e-4);
        let up = Scale {
            low: lowest / 1.2,
            high: most(&mut points().map(|(_, y)| *y)).max(lowest) * 1.2,
            from: HEIGHT - BOTTOM,
            to: TOP,
            is_log: true,
        };
        self.axes(&mut text, &across, &up);
        let colours = COLOURS.iter().cycle();
        for (number, ((name, points), colour)) in self.lines.iter().zip(colours).enumerate() {
            let place =
                |(x, y): &(f64, f64)| format!("{:.1},{:.1}", across.at(*x), up.at(y.max(up.low)));
            let places: Vec<_> = points.iter().map(place).collect();
            let y = TOP + 18.0 * number as f64;
            let x = WIDTH - RIGHT + 16.0;
            let _ = writeln!(
                text,
                "<polyline fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\" points=\"{}\"/>\n\
                 <rect x=\"{x}\" y=\"{y}\" width=\"12\" height=\"12\" fill=\"{colour}\"/>\
                 <text x=\"{}\" y=\"{}\">{name}</text>",
                places.join(" "),
                x + 18.0,
                y + 10.0
            );
        }
        if let Some((value, name)) = &self.mark {
            let x = across.at(*value);
            let _ = writeln!(
                text,
                "<line x1=\"{x:.1}\" y1=\"{TOP}\" x2=\"{x:.1}\" y2=\"{}\" stroke=\"black\" stroke-dasharray=\"4 4\"/>\n\
                 <text x=\"{:.1}\" y=\"{}\" text-anchor=\"end\">{name}</text>",
                HEIGHT - BOTTOM,
                x - 4.0,
                TOP + 12.0
            );
        }
        text + "</svg>\n"
    }

    fn axes(&self, text: &mut String, across: &Scale, up: &Scale) {
        let (bottom, right) = (HEIGHT - BOTTOM, WIDTH - RIGHT);
        for tick in up.ticks() {
            let y = up.at(tick);
            let _ = writeln!(
                text,
                "<line x1=\"{LEFT}\" y1=\"{y:.1}\" x2=\"{right}\" y2=\"{y:.1}\" stroke=\"#ddd\"/>\
                 <text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{} ms</text>",
                LEFT - 6.0,
                y + 4.0,
                short(tick)
            );
        }
        for tick in across.ticks() {
            let x = across.at(tick);
            let _ = writeln!(
                text,
                "<line x1=\"{x:.1}\" y1=\"{bottom}\" x2=\"{x:.1}\" y2=\"{}\" stroke=\"black\"/>\
                 <text x=\"{x:.1}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
                bottom + 5.0,
                bottom + 18.0,
                short(tick)
            );
        }
        let _ = writeln!(
            text,
            "<line x1=\"{LEFT}\" y1=\"{bottom}\" x2=\"{right}\" y2=\"{bottom}\" stroke=\"black\"/>\n\
             <text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
            f64::midpoint(LEFT, right),
            HEIGHT - 10.0,
            self.across
        );
    }
}

/// A number without the noise of its binary form.
fn short(value: f64) -> String {
    let digits = format!("{value:.4}");
    digits
        .trim_end_matches('0')
        .trim_end_matches('.')
        .to_owned()
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawing(lines: Vec<Line>) -> String {
        Drawing {
            title: "a & b".to_owned(),
            across: "seconds",
            is_log_across: false,
            lines,
            mark: Some((1.0, "here".to_owned())),
        }
        .svg()
    }

    #[test]
    fn all_points_lie_within_the_axes() {
        let svg = drawing(vec![("p50", vec![(0.0, 0.2), (1.0, 900.0), (9.0, 3.0)])]);
        let points = svg
            .split("points=\"")
            .nth(1)
            .unwrap()
            .split('"')
            .next()
            .unwrap();
        for point in points.split(' ') {
            let (x, y) = point.split_once(',').unwrap();
            let (x, y): (f64, f64) = (x.parse().unwrap(), y.parse().unwrap());
            assert!((LEFT..=WIDTH - RIGHT).contains(&x), "{svg}");
            assert!((TOP..=HEIGHT - BOTTOM).contains(&y), "{svg}");
        }
        for part in ["a &amp; b", ">1 ms<", ">100 ms<", ">here<", ">4<", "</svg>"] {
            assert!(svg.contains(part), "{part}: {svg}");
        }
    }

    #[test]
    fn a_single_point_and_none_are_drawn_too() {
        assert!(!drawing(vec![("p50", vec![(3.0, 1.0)])]).contains("NaN"));
        assert!(drawing(vec![("p50", Vec::new())]).contains("nothing was answered"));
    }
}
