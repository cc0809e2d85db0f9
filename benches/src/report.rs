//! Writes the table and the plot of `benches/CODEC.md`.

use std::fmt::Write;
use std::path::Path;
use std::process::Command;
use std::{fs, io};

use mcpbolt::scan::Isa;

use crate::harness::Row;

/// The other contenders in the plot and the table, by the beginning of their name, and their labels.
const SHOWN: [(&str, &str); 6] = [
    ("serde_json RawValue+routes", "RawValue + routing"),
    ("serde_json Value", "serde_json Value"),
    ("simd-json tape (+copy)", "simd-json tape"),
    ("sonic-rs LazyValue", "sonic-rs lazy"),
    ("jsonrpsee-types", "jsonrpsee-types"),
    ("rmcp at a", "rmcp"),
];

/// The lines before and after the table.
const MARKS: (&str, &str) = ("<!-- codec table -->\n", "<!-- end of codec table -->");

/// Writes the plot and replaces the table between its marks.
pub fn publish(root: &Path, rows: &[Row]) -> io::Result<()> {
    fs::write(root.join("benches/codec.svg"), plot(rows))?;
    let path = root.join("benches/CODEC.md");
    let page = fs::read_to_string(&path)?;
    let parts = page.split_once(MARKS.0).and_then(|(head, rest)| {
        let (_, tail) = rest.split_once(MARKS.1)?;
        Some((head, tail))
    });
    let Some((head, tail)) = parts else {
        return Err(io::Error::other(
            "benches/CODEC.md has no marks for the table",
        ));
    };
    fs::write(
        &path,
        format!("{head}{}{}{}{tail}", MARKS.0, table(rows), MARKS.1),
    )
}

/// The engine's row of each decode class, with the ratios of the other contenders.
fn decoded(rows: &[Row]) -> impl Iterator<Item = (&Row, Vec<Option<f64>>)> {
    let classes = rows.iter().filter(|row| {
        let fastest = row.contender.starts_with("mcpbolt") && !row.class.contains(' ');
        let others = rows.iter().filter(|other| other.class == row.class);
        fastest
            && others
                .clone()
                .next()
                .is_some_and(|first| first.contender == row.contender)
            && others
                .clone()
                .any(|other| other.contender.starts_with(SHOWN[0].0))
    });
    classes.map(|own| {
        let ratio = |(name, _): &(&str, &str)| {
            let mut others = rows.iter().filter(|row| row.class == own.class);
            let other = others.find(|row| row.contender.starts_with(name))?;
            Some(other.median_ns / own.median_ns)
        };
        (own, SHOWN.iter().map(ratio).collect())
    })
}

/// The machine and date of the figures.
fn machine() -> String {
    let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let field = |name: &str| {
        let line = info.lines().find_map(|line| line.strip_prefix(name));
        let value = line.and_then(|line| line.split_once(": "));
        value.map_or("unknown", |(_, value)| value).to_owned()
    };
    let date = Command::new("date").arg("+%F").output().ok();
    let date = date.map_or_else(String::new, |output| {
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    });
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    format!(
        "{} (family {}, model {}), {} cores, a load of {}; kernels {:?}; {date}.",
        field("model name"),
        field("cpu family"),
        field("model\t"),
        std::thread::available_parallelism().map_or(1, usize::from),
        load.split(' ').next().unwrap_or("unknown"),
        Isa::chosen(),
    )
}

fn table(rows: &[Row]) -> String {
    let mut out = format!("{}\n\n", machine());
    out += "| class | bytes | mcpbolt, ns | GB/s |";
    for (_, name) in SHOWN {
        let _ = write!(out, " {name} |");
    }
    out += "\n|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n";
    for (own, ratios) in decoded(rows) {
        let rate = own.bytes as f64 / own.median_ns;
        let _ = write!(
            out,
            "| {} | {} | {:.0} | {rate:.2} |",
            own.class, own.bytes, own.median_ns
        );
        for ratio in ratios {
            let _ = match ratio {
                Some(ratio) => write!(out, " {ratio:.1}× |"),
                None => write!(out, " – |"),
            };
        }
        out.push('\n');
    }
    out
}

/// A bar chart on a logarithmic scale: how many times longer each other contender takes.
fn plot(rows: &[Row]) -> String {
    const COLOURS: [&str; 6] = [
        "#4477aa", "#66ccee", "#228833", "#ccbb44", "#ee6677", "#aa3377",
    ];
    const LEFT: f64 = 130.0;
    const SCALE: f64 = 260.0;
    const BAR: f64 = 7.0;
    let mut bars = String::new();
    let mut y = 60.0;
    for (own, ratios) in decoded(rows) {
        let _ = writeln!(
            bars,
            r#"<text x="{}" y="{}" text-anchor="end">{}</text>"#,
            LEFT - 8.0,
            y + 4.0 * BAR,
            own.class
        );
        for (ratio, colour) in ratios.iter().zip(COLOURS) {
            if let Some(ratio) = ratio {
                let width = (ratio.log10() * SCALE).max(1.0);
                let _ = writeln!(
                    bars,
                    r#"<rect x="{LEFT}" y="{y}" width="{width:.1}" height="{BAR}" fill="{colour}"/>"#
                );
            }
            y += BAR;
        }
        y += 8.0;
    }
    let mut rest = String::new();
    for (index, ((_, name), colour)) in SHOWN.iter().zip(COLOURS).enumerate() {
        let x = LEFT + 125.0 * index as f64;
        let _ = writeln!(
            rest,
            r#"<rect x="{x}" y="14" width="10" height="10" fill="{colour}"/><text x="{}" y="23">{name}</text>"#,
            x + 14.0
        );
    }
    for (times, label) in [(1.0, "1×"), (10.0, "10×"), (100.0, "100×")] {
        let x = LEFT + f64::log10(times) * SCALE;
        let _ = writeln!(
            rest,
            r##"<line x1="{x}" y1="52" x2="{x}" y2="{y}" stroke="#999" stroke-width="0.5"/><text x="{x}" y="46" text-anchor="middle">{label}</text>"##
        );
    }
    format!(
        r##"<svg xmlns="http://www.w3.org/2000/svg" width="900" height="{:.0}" font-family="sans-serif" font-size="11"><title>Time to decode, as a multiple of mcpbolt's</title><rect width="100%" height="100%" fill="#fff"/>
{bars}{rest}</svg>
"##,
        y + 10.0
    )
}
