//! Bounds that make the command fail, such as `p99>5ms`.

use std::fmt;
use std::str::FromStr;

use anyhow::{Context, Error, Result, bail};

use super::units::Quantity;

/// A figure, with the interval in which it lies.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Figure {
    pub low: Quantity,
    pub high: Quantity,
}

impl Figure {
    /// A figure without an interval.
    pub fn exact(quantity: Quantity) -> Self {
        Self {
            low: quantity,
            high: quantity,
        }
    }
}

/// A report with figures.
pub trait Figures {
    /// The figure of a name; `None` if it is not known here.
    fn figure(&self, name: &str) -> Option<Figure>;

    /// Tells why there is no result, which is a failure whatever the bounds are.
    fn missing(&self) -> Option<String>;
}

/// All names of figures: their units, and what they are.
pub const NAMES: [(&str, Unit); 19] = [
    ("p50", Unit::Time),
    ("p90", Unit::Time),
    ("p95", Unit::Time),
    ("p99", Unit::Time),
    ("max", Unit::Time),
    ("mean", Unit::Time),
    ("lag", Unit::Time),
    ("cpu", Unit::Time),
    ("memory", Unit::Bytes),
    ("errors", Unit::Plain),
    ("errors%", Unit::Percent),
    ("rate", Unit::Plain),
    ("knee", Unit::Plain),
    ("added.p50", Unit::Time),
    ("added.p99", Unit::Time),
    ("gateway.cpu", Unit::Time),
    ("ratio.p50", Unit::Plain),
    ("ratio.p99", Unit::Plain),
    ("ratio.cpu", Unit::Plain),
];

/// The unit of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    Time,
    Bytes,
    Percent,
    Plain,
}

/// A condition under which the command fails.
#[derive(Clone, Debug)]
pub struct Threshold {
    text: String,
    /// The share of errors has the name `errors%`.
    name: &'static str,
    is_above: bool,
    bound: Quantity,
}

impl FromStr for Threshold {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let sign = text.find(['<', '>']);
        let sign = sign.with_context(|| format!("{text:?} has neither < nor >; write p99>5ms"))?;
        let (name, rest) = text.split_at(sign);
        let bound = Quantity::parse(&rest[1..])?;
        let name = match (name.trim(), bound) {
            ("errors", Quantity::Percent(_)) => "errors%",
            (name, _) => name,
        };
        let known = NAMES.iter().find(|(known, _)| *known == name);
        let Some((name, unit)) = known else {
            let names: Vec<_> = NAMES.iter().map(|(name, _)| *name).collect();
            bail!(
                "{name:?} is not a figure; the figures are {}",
                names.join(", ")
            );
        };
        let fits = match bound {
            Quantity::Millis(_) => Unit::Time,
            Quantity::Bytes(_) => Unit::Bytes,
            Quantity::Percent(_) => Unit::Percent,
            Quantity::Plain(_) => Unit::Plain,
        };
        if fits != *unit {
            let example = match unit {
                Unit::Time => "5ms",
                Unit::Bytes => "64MB",
                Unit::Percent => "0.1%",
                Unit::Plain => "10",
            };
            bail!("{text:?} compares {name} with another unit; write {name}>{example}");
        }
        Ok(Self {
            text: text.to_owned(),
            name,
            is_above: text[sign..].starts_with('>'),
            bound,
        })
    }
}

impl Threshold {
    /// Whether it is about errors, so that the one by default does not apply.
    pub fn is_of_errors(&self) -> bool {
        self.name.starts_with("errors")
    }

    /// The sentence that tells of a crossed bound. A figure with an interval crosses it with all of the interval.
    pub fn crossed(&self, figures: &dyn Figures) -> Option<String> {
        let Self { text, name, .. } = self;
        let name = name.trim_end_matches('%');
        let Some(Figure { low, high }) = figures.figure(self.name) else {
            return Some(format!(
                "{name} is not known here, so {text:?} cannot be checked"
            ));
        };
        let nearest = if self.is_above { low } else { high };
        let is_crossed = match self.is_above {
            true => nearest.number() > self.bound.number(),
            false => nearest.number() < self.bound.number(),
        };
        let range = match low == high {
            true => format!("{low}"),
            false => format!("between {low} and {high}"),
        };
        is_crossed.then(|| format!("{name} is {range}, and the load is to fail if {text}"))
    }
}

impl Quantity {
    fn number(self) -> f64 {
        match self {
            Self::Millis(number)
            | Self::Bytes(number)
            | Self::Percent(number)
            | Self::Plain(number) => number,
        }
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Millis(millis) if *millis < 1.0 => write!(f, "{:.1} µs", millis * 1e3),
            Self::Millis(millis) => write!(f, "{millis:.2} ms"),
            Self::Bytes(bytes) => write!(f, "{:.1} MB", bytes / 1e6),
            Self::Percent(percent) => write!(f, "{percent:.2} %"),
            Self::Plain(number) if number.fract() == 0.0 => write!(f, "{number}"),
            Self::Plain(number) => write!(f, "{number:.3}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct One(&'static str, Figure);

    impl Figures for One {
        fn figure(&self, name: &str) -> Option<Figure> {
            (name == self.0).then_some(self.1)
        }

        fn missing(&self) -> Option<String> {
            None
        }
    }

    fn crossed(text: &str, figures: &dyn Figures) -> Option<String> {
        text.parse::<Threshold>().unwrap().crossed(figures)
    }

    #[test]
    fn a_bound_is_crossed_on_its_own_side_only() {
        let p99 = One("p99", Figure::exact(Quantity::Millis(7.0)));
        let said = crossed("p99>5ms", &p99).unwrap();
        assert_eq!(said, "p99 is 7.00 ms, and the load is to fail if p99>5ms");
        assert_eq!(crossed("p99 > 7ms", &p99), None);
        assert_eq!(crossed("p99<5ms", &p99), None);
        assert!(crossed("p99<1s", &p99).is_some());
        assert!(crossed("p50>5ms", &p99).unwrap().contains("not known here"));
    }

    #[test]
    fn an_interval_crosses_a_bound_as_a_whole() {
        let (low, high) = (Quantity::Plain(0.95), Quantity::Plain(1.2));
        let ratio = One("ratio.p50", Figure { low, high });
        assert_eq!(crossed("ratio.p50>1", &ratio), None, "undecided");
        let said = crossed("ratio.p50>0.9", &ratio).unwrap();
        assert!(said.contains("between 0.950 and 1.200"), "{said}");
    }

    #[test]
    fn what_is_not_a_bound_is_told() {
        for (text, why) in [
            ("p99", "neither < nor >"),
            ("p98>5ms", "the figures are p50, "),
            ("p99>5", "write p99>5ms"),
            ("errors>5ms", "write errors>10"),
            ("memory>5%", "write memory>64MB"),
            ("p99>", "begin with a number"),
        ] {
            let error = text.parse::<Threshold>().unwrap_err();
            assert!(format!("{error:#}").contains(why), "{text}: {error:#}");
        }
    }
}
