//! Quantities as people write them: `500ms`, `10k`, `64MB`, `0.1%`.

use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

use super::plan::MAX_IN_FLIGHT;
use super::workload::MARK_BYTES;

/// The longest time, in milliseconds. The sum of a few can be added to any instant.
const LONGEST_MS: f64 = 1000.0 * 3_600e3;

/// A number with its unit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Quantity {
    /// A time, in milliseconds.
    Millis(f64),
    /// Bytes.
    Bytes(f64),
    /// A share, in per cent.
    Percent(f64),
    /// A number without a unit.
    Plain(f64),
}

impl Quantity {
    pub fn parse(text: &str) -> Result<Self> {
        let text = text.trim();
        let end = text.find(|c: char| !c.is_ascii_digit() && c != '.');
        let (number, unit) = text.split_at(end.unwrap_or(text.len()));
        let number: f64 = number
            .parse()
            .with_context(|| format!("{text:?} does not begin with a number"))?;
        Ok(match unit.trim() {
            "" => Self::Plain(number),
            "k" => Self::Plain(number * 1e3),
            "M" => Self::Plain(number * 1e6),
            "us" | "µs" => Self::Millis(number / 1e3),
            "ms" => Self::Millis(number),
            "s" => Self::Millis(number * 1e3),
            "m" => Self::Millis(number * 60e3),
            "h" => Self::Millis(number * 3_600e3),
            "B" => Self::Bytes(number),
            "kB" => Self::Bytes(number * 1e3),
            "MB" => Self::Bytes(number * 1e6),
            "GB" => Self::Bytes(number * 1e9),
            "%" => Self::Percent(number),
            _ => bail!("{unit:?} is not a unit; write us, ms, s, m, h, B, kB, MB, GB, k, M or %"),
        })
    }
}

/// A time such as `500ms`, `30s` or `5m`.
pub fn duration(text: &str) -> Result<Duration> {
    match Quantity::parse(text) {
        Ok(Quantity::Millis(millis)) if millis <= LONGEST_MS => {
            Ok(Duration::from_secs_f64(millis / 1e3))
        }
        Ok(Quantity::Millis(_)) => bail!("{text:?} is more than 1000h"),
        _ => bail!("{text:?} is not a time; write 500ms, 30s, 5m or 1h"),
    }
}

/// A time that is not 0.
pub fn some_duration(text: &str) -> Result<Duration> {
    let duration = duration(text)?;
    ensure!(!duration.is_zero(), "it must be more than 0");
    Ok(duration)
}

/// A number from 1 on.
pub fn count(text: &str) -> Result<usize> {
    let count: usize = text.parse()?;
    ensure!(count > 0, "it must be at least 1");
    Ok(count)
}

/// A number of requests in flight.
pub fn in_flight(text: &str) -> Result<usize> {
    let count = text.parse()?;
    ensure!(
        (1..=MAX_IN_FLIGHT).contains(&count),
        "it must be between 1 and {MAX_IN_FLIGHT}"
    );
    Ok(count)
}

/// The size of a text, such as `100`, `10k` or `1MB`, in bytes.
pub fn size(text: &str) -> Result<usize> {
    match Quantity::parse(text)? {
        Quantity::Plain(bytes) | Quantity::Bytes(bytes) if bytes.fract() == 0.0 => {
            ensure!(bytes <= 64e6, "{text:?} is more than 64 MB");
            let bytes = bytes as usize;
            ensure!(
                bytes >= MARK_BYTES,
                "it must be at least {MARK_BYTES}, so that each text is different"
            );
            Ok(bytes)
        }
        _ => bail!("{text:?} is not a size; write 100, 10k or 1MB"),
    }
}

/// A rate such as `200` or `20k`, per second.
pub fn rate(text: &str) -> Result<f64> {
    match Quantity::parse(text)? {
        Quantity::Plain(rate) if (1e-3..=1e7).contains(&rate) => Ok(rate),
        _ => bail!("a rate must be between 0.001 and 10 million per second"),
    }
}

/// How many times faster than recorded: `2`, `0.5`.
pub fn speed(text: &str) -> Result<f64> {
    match Quantity::parse(text)? {
        Quantity::Plain(speed) if (1e-3..=1e6).contains(&speed) => Ok(speed),
        _ => bail!("a speed must be between 0.001 and 1 million"),
    }
}

/// Two rates, as in `100..20k`.
pub fn rates(text: &str) -> Result<(f64, f64)> {
    let (from, to) = text
        .split_once("..")
        .with_context(|| format!("{text:?} is not a range of rates; write 100..20k"))?;
    let (from, to) = (rate(from)?, rate(to)?);
    ensure!(
        from < to,
        "the first rate of {text:?} must be the lower one"
    );
    Ok((from, to))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_have_the_units_that_people_write() {
        for (text, quantity) in [
            ("5ms", Quantity::Millis(5.0)),
            ("250 us", Quantity::Millis(0.25)),
            ("1.5s", Quantity::Millis(1500.0)),
            ("64MB", Quantity::Bytes(64e6)),
            ("0.1%", Quantity::Percent(0.1)),
            ("20k", Quantity::Plain(20e3)),
        ] {
            assert_eq!(Quantity::parse(text).unwrap(), quantity, "{text}");
        }
        for wrong in ["", "ms", "-1ms", "5 parsecs", "1.2.3s"] {
            assert!(Quantity::parse(wrong).is_err(), "{wrong}");
        }
        assert_eq!(duration("2m").unwrap(), Duration::from_secs(120));
        let most = format!("{}h", "9".repeat(400));
        assert!(
            duration("1000h").is_ok() && duration("1001h").is_err() && duration(&most).is_err()
        );
        assert!(rate("0.001").is_ok() && rate("0.0001").is_err() && rate("11M").is_err());
        assert!(speed("0.5").is_ok() && speed("0").is_err() && speed("2M").is_err());
        assert!(duration("5").is_err() && duration("5MB").is_err());
        assert!(some_duration("0s").is_err() && some_duration("1ms").is_ok());
        assert!(count("1").is_ok() && count("0").is_err() && count("-1").is_err());
        assert!(in_flight("65536").is_ok() && in_flight("65537").is_err());
        assert_eq!(size("10k").unwrap(), 10_000);
        assert!(size("1GB").is_err() && size("15").is_err() && size("5ms").is_err());
        assert_eq!(rates("100..20k").unwrap(), (100.0, 20e3));
        assert!(rates("20..10").is_err() && rates("0..10").is_err() && rates("10").is_err());
    }
}
