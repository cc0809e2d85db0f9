//! Functions of an SDK or FastMCP server whose arguments and values need no validator: each parameter is a
//! string, a number or a boolean without further constraints. A call with anything else goes through the
//! function that validates.

use mcpbolt::connection::ResultWriter;
use mcpbolt::json::{reader, string};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyString};

use crate::blocks::append_text;
use crate::read;

/// The longest integer, in characters, that all number parsers read alike.
const DIGITS: usize = 18;

/// A function that takes its arguments by name and returns its plain value.
#[derive(Debug, FromPyObject)]
pub struct Straight {
    pub function: Py<PyAny>,
    /// Name, type, and whether it is required.
    parameters: Vec<(Py<PyString>, String, bool)>,
    /// The type of value that also becomes structured content, as its member `result`.
    wraps: Option<String>,
    /// The `_meta` of a result with such structured content.
    meta: Option<String>,
    /// Makes the result of any other value, as JSON: `finish(value, revision)`.
    pub finish: Py<PyAny>,
    /// Makes the result of an exception, as JSON, or raises a protocol error.
    pub fail: Py<PyAny>,
}

/// A return value that needs no conversion: text, or a word that is both text and JSON.
pub enum Plain<'py> {
    Text(Bound<'py, PyString>),
    Word(String),
}

impl Straight {
    /// Shows the garbage collector the Python objects held here.
    pub fn visit(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.function)?;
        visit.call(&self.finish)?;
        visit.call(&self.fail)
    }

    /// The arguments by name; `None` if they need the validator.
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

    /// The return value, if it needs no conversion.
    pub fn plain<'py>(&self, value: &Bound<'py, PyAny>) -> Option<Plain<'py>> {
        let kind = kind(value)?;
        if self.wraps.as_deref().is_some_and(|wraps| wraps != kind) {
            return None;
        }
        if let Ok(text) = value.cast_exact::<PyString>() {
            // A lone surrogate is reported by `finish`.
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
