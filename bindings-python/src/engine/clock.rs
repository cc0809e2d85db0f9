//! The time: on the program's clock if it has one, otherwise on the machine's.

use std::time::{Duration, Instant};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// Converts the numbers of a program's clock to the engine's instants.
pub struct Clock {
    begun: Instant,
    /// The reading of the program's clock at `begun`.
    zero: f64,
}

impl Clock {
    pub fn new(zero: Option<f64>) -> Self {
        Self {
            begun: Instant::now(),
            zero: zero.unwrap_or_default(),
        }
    }

    /// The instant at which the program's clock reads `now`; the machine's time for `None`.
    pub fn at(&self, now: Option<f64>) -> PyResult<Instant> {
        let Some(now) = now else {
            return Ok(Instant::now());
        };
        let passed = Duration::try_from_secs_f64((now - self.zero).max(0.0)).ok();
        let at = passed.and_then(|passed| self.begun.checked_add(passed));
        at.ok_or_else(|| PyValueError::new_err("the time is a number of seconds"))
    }
}
