//! Functions of an existing server whose arguments need no validator, nor what they give back: each
//! parameter is text, a number or a truth value without further conditions. A call that holds
//! anything else takes the way round, by the function that validates.

use mcpbolt::connection::ResultWriter;
use mcpbolt::json::{reader, string};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyString};

use crate::read;
use crate::tool_answer::append_text;

/// Digits of an integer that any reader of numbers reads alike.
const DIGITS: usize = 18;

/// A function that takes its arguments by name and gives back its value.
#[derive(Debug, FromPyObject)]
pub struct Straight {
    pub function: Py<PyAny>,
    /// Name, kind, and whether it is needed.
    parameters: Vec<(Py<PyString>, String, bool)>,
    /// The kind of what is structured content, too, as its member `result`.
    wraps: Option<String>,
    /// The `_meta` of such a result.
    meta: Option<String>,
    /// Makes a result of anything else it gives back: `finish(value, revision)`, JSON.
    pub finish: Py<PyAny>,
    /// Makes a result of what it raised, JSON, or raises an error of the protocol.
    pub fail: Py<PyAny>,
}

/// A value that it gave back, as text and as JSON.
pub enum Plain<'py> {
    Text(Bound<'py, PyString>),
    Word(String),
}

impl Straight {
    /// The arguments by name; `None` when they are for the validator to look at.
    pub fn arguments<'py>(&self, py: Python<'py>, json: &str) -> Option<Bound<'py, PyDict>> {
        let arguments = PyDict::new(py);
        let mut missing = self.parameters.iter().filter(|one| one.2).count();
        for (key, value) in reader::members(json) {
            let named = |one: &&(Py<PyString>, _, _)| {
                one.0.bind(py).to_str().is_ok_and(|name| name == key.raw())
            };
            let (name, kind, required) = self.parameters.iter().find(named)?;
            let name = name.bind(py);
            if arguments.contains(name).ok()? {
                return None;
            }
            arguments.set_item(name, argument(py, kind, value)?).ok()?;
            missing -= usize::from(*required);
        }
        (missing == 0).then_some(arguments)
    }

    /// What it gave back, if that needs no conversion.
    pub fn plain<'py>(&self, value: &Bound<'py, PyAny>) -> Option<Plain<'py>> {
        let kind = kind(value)?;
        if self.wraps.as_deref().is_some_and(|wraps| wraps != kind) {
            return None;
        }
        if let Ok(text) = value.cast_exact::<PyString>() {
            // What is no Unicode is told of on the way round.
            text.to_str().ok()?;
            return Some(Plain::Text(text.clone()));
        }
        if let Ok(truth) = value.cast_exact::<PyBool>() {
            return Some(Plain::Word(truth.is_true().to_string()));
        }
        Some(Plain::Word(value.extract::<i64>().ok()?.to_string()))
    }

    pub fn write(&self, value: &Plain<'_>, result: &mut ResultWriter<'_>) {
        let text = match value {
            Plain::Text(text) => text.to_str().unwrap_or_default(),
            Plain::Word(word) => word,
        };
        result.with("content", |out| append_text(out, text));
        if self.wraps.is_some() {
            result.with("structuredContent", |out| {
                out.extend_from_slice(b"{\"result\":");
                match value {
                    Plain::Text(_) => string::append(out, text),
                    Plain::Word(_) => out.extend_from_slice(text.as_bytes()),
                }
                out.push(b'}');
            });
        }
        result.raw("isError", "false");
        if let Some(meta) = &self.meta {
            result.meta(meta);
        }
    }
}

fn kind(value: &Bound<'_, PyAny>) -> Option<&'static str> {
    if value.is_exact_instance_of::<PyString>() {
        Some("str")
    } else if value.is_exact_instance_of::<PyInt>() {
        Some("int")
    } else if value.is_exact_instance_of::<PyBool>() {
        Some("bool")
    } else {
        None
    }
}

fn argument<'py>(py: Python<'py>, kind: &str, json: &str) -> Option<Bound<'py, PyAny>> {
    let begins = *json.as_bytes().first()?;
    let is_integer = json.len() <= DIGITS && json.bytes().skip(1).all(|it| it.is_ascii_digit());
    match (kind, begins) {
        ("str", b'"') | ("bool", b't' | b'f') => read::value(py, json).ok(),
        ("int", b'-' | b'0'..=b'9') if is_integer => read::value(py, json).ok(),
        ("float", b'-' | b'0'..=b'9') if json.len() <= DIGITS => {
            let number: f64 = json.parse().ok()?;
            number
                .is_finite()
                .then(|| PyFloat::new(py, number).into_any())
        }
        _ => None,
    }
}
