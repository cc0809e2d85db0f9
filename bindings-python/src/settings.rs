//! Reads the package's options, which cross from Python as JSON.

use std::fmt::Display;
use std::time::Duration;

use mcpbolt::settings::{self, SettingsError};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use serde::Deserialize;

/// Reads options of one kind.
///
/// # Errors
/// A `ValueError` that names the option, as Python spells it.
pub fn read<'a, T: Deserialize<'a>>(json: &'a str) -> PyResult<T> {
    settings::read(json).map_err(unusable)
}

/// A `ValueError` that names the option, as Python spells it.
#[expect(clippy::needless_pass_by_value, reason = "as it is mapped")]
pub fn unusable(error: SettingsError) -> PyErr {
    let mut text = String::new();
    for letter in error.field.chars() {
        if letter.is_ascii_uppercase() {
            text.push('_');
        }
        text.push(letter.to_ascii_lowercase());
    }
    if !text.is_empty() {
        text.push_str(": ");
    }
    PyValueError::new_err(text + &error.reason)
}

/// A `ValueError` with the error's text.
pub fn wrong(error: impl Display) -> PyErr {
    PyValueError::new_err(error.to_string())
}

/// Converts a number of seconds.
pub fn seconds(seconds: f64) -> PyResult<Duration> {
    let time = Duration::try_from_secs_f64(seconds);
    time.map_err(|_| wrong("a time is a positive number of seconds"))
}
