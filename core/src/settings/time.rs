//! Spans of time as numbers, in the unit of the language that gives them.

use std::time::Duration;

use serde::de::Error;
use serde::{Deserialize, Deserializer};

/// A span of time that is given as a number of seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seconds(pub Duration);

/// A span of time that is given as a number of milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Milliseconds(pub Duration);

impl From<Seconds> for Duration {
    fn from(time: Seconds) -> Self {
        time.0
    }
}

impl From<Milliseconds> for Duration {
    fn from(time: Milliseconds) -> Self {
        time.0
    }
}

impl<'de> Deserialize<'de> for Seconds {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let time = Duration::try_from_secs_f64(f64::deserialize(deserializer)?);
        let wrong = |_| D::Error::custom("a time is a positive number of seconds");
        time.map(Self).map_err(wrong)
    }
}

impl<'de> Deserialize<'de> for Milliseconds {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let time = Duration::try_from_secs_f64(f64::deserialize(deserializer)? / 1e3);
        let wrong = |_| D::Error::custom("a time is a positive number of milliseconds");
        time.map(Self).map_err(wrong)
    }
}
