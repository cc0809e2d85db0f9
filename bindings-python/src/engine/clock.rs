//! What time it is, as the program says or by the machine's own clock.

use std::time::{Duration, Instant};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// Instants of the engine's for the numbers of a program's clock.
pub struct Clock {
    begun: Instant,
    /// What the program's clock said then.
    zero: f64,
}

impl Clock {
    pub fn new(zero: Option<f64>) -> Self {
        Self {
            begun: Instant::now(),
            zero: zero.unwrap_or_default(),
        }
    }

    /// The instant at which the program's clock says `now`; the machine's, when it says nothing.
    pub fn at(&self, now: Option<f64>) -> PyResult<Instant> {
        let Some(now) = now else {
            return Ok(Instant::now());
        };
        let passed = Duration::try_from_secs_f64((now - self.zero).max(0.0)).ok();
        let at = passed.and_then(|passed| self.begun.checked_add(passed));
        at.ok_or_else(|| PyValueError::new_err("the time is a number of seconds"))
    }
}
