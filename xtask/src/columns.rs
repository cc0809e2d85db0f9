//! Tables of figures for people to read.

use std::fmt::Write;
use std::time::Duration;

/// Aligns columns: the first `words` columns to the left, the others (figures) to the right.
pub fn align<const N: usize>(rows: &[[String; N]], words: usize) -> String {
    let width = |column: usize| {
        rows.iter()
            .map(|row| row[column].chars().count())
            .max()
            .unwrap_or(0)
    };
    let mut text = String::new();
    for row in rows {
        let cells: Vec<String> = row
            .iter()
            .enumerate()
            .map(|(column, cell)| match column {
                _ if column < words => format!("{cell:<0$}", width(column)),
                _ => format!("{cell:>0$}", width(column)),
            })
            .collect();
        let _ = writeln!(text, "{}", cells.join("  ").trim_end());
    }
    text
}

pub fn in_micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

pub fn micros(time: Duration) -> String {
    match in_micros(time) {
        us if us < 100.0 => format!("{us:.1} µs"),
        us if us < 10_000.0 => format!("{us:.0} µs"),
        us => format!("{:.1} ms", us / 1e3),
    }
}

pub fn millis(time: Duration) -> String {
    format!("{:.1} ms", in_micros(time) / 1e3)
}

/// A whole number with separated thousands.
pub fn thousands(value: f64) -> String {
    let digits = format!("{value:.0}");
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_read_well() {
        assert_eq!(thousands(1_234_567.4), "1,234,567");
        assert_eq!(thousands(999.6), "1,000");
        assert_eq!(micros(Duration::from_nanos(7_640)), "7.6 µs");
        assert_eq!(micros(Duration::from_millis(44)), "44.0 ms");
    }

    #[test]
    fn words_stand_to_the_left_and_figures_to_the_right() {
        let row = |a: &str, b: &str| [a.to_owned(), b.to_owned()];
        let text = align(&[row("a", "1"), row("bcd", "100")], 1);
        assert_eq!(text, "a      1\nbcd  100\n");
    }
}
