//! When calls are due, and what each of them says.

use std::time::Duration;

use anyhow::{Result, bail, ensure};

/// How calls follow each other.
#[derive(Clone, Copy, Debug)]
pub enum Pace {
    /// So many calls per second, however long the server takes.
    Open(f64),
    /// So many in flight.
    Closed(usize),
}

impl Pace {
    pub fn open(rate: f64) -> Result<Self> {
        let is_fit = rate.is_finite() && rate > 0.0 && rate <= 1e7;
        ensure!(is_fit, "--rate must be more than 0, and at most 10 million");
        Ok(Self::Open(rate))
    }

    pub fn closed(in_flight: usize) -> Result<Self> {
        ensure!(
            (1..=100_000).contains(&in_flight),
            "--in-flight must be between 1 and 100,000"
        );
        Ok(Self::Closed(in_flight))
    }
}

/// A text with `{n}` at some places, for the number of a call.
pub struct Template(Vec<String>);

impl Template {
    pub fn new(text: &str) -> Self {
        Self(text.split("{n}").map(str::to_owned).collect())
    }

    pub fn of(&self, number: u64) -> String {
        self.0.join(&number.to_string())
    }
}

/// A time such as `500ms`, `30s` or `5m`.
pub fn duration(text: &str) -> Result<Duration> {
    let at = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(at);
    let factor = match unit {
        "ms" => 1e-3,
        "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        _ => bail!("{text:?} is no time; write 500ms, 30s, 5m or 1h"),
    };
    let seconds = number.parse::<f64>().map(|number| number * factor);
    match seconds.map(Duration::try_from_secs_f64) {
        Ok(Ok(time)) => Ok(time),
        _ => bail!("{text:?} is no time; write 500ms, 30s, 5m or 1h"),
    }
}
