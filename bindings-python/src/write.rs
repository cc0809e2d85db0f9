//! Python objects as JSON text.

use mcpbolt::json::{number, string};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};

/// Deepest nesting that is written: a cycle ends here.
const MAX_DEPTH: usize = 256;

/// `value` as a JSON text.
pub fn json(value: &Bound<'_, PyAny>) -> PyResult<String> {
    let mut out = Vec::new();
    append(&mut out, value, 0)?;
    String::from_utf8(out).map_err(|_| PyValueError::new_err("not Unicode"))
}

fn append(out: &mut Vec<u8>, value: &Bound<'_, PyAny>, depth: usize) -> PyResult<()> {
    if depth > MAX_DEPTH {
        return Err(PyValueError::new_err("nested too deep, or into itself"));
    }
    if let Ok(text) = value.cast::<PyString>() {
        string::append(out, text.to_str()?);
    } else if value.is_none() {
        out.extend_from_slice(b"null");
    } else if let Ok(truth) = value.cast::<PyBool>() {
        out.extend_from_slice(if truth.is_true() { b"true" } else { b"false" });
    } else if let Ok(integer) = value.cast::<PyInt>() {
        match integer.extract::<i64>() {
            Ok(small) => number::append(out, small),
            Err(_) => {
                // A subclass (an enumeration) may print as something else.
                let text = value
                    .py()
                    .get_type::<PyInt>()
                    .call_method1("__repr__", (value,))?;
                out.extend_from_slice(text.cast::<PyString>()?.to_str()?.as_bytes());
            }
        }
    } else if let Ok(float) = value.cast::<PyFloat>() {
        append_float(out, float.value())?;
    } else if let Ok(dict) = value.cast::<PyDict>() {
        append_dict(out, dict, depth)?;
    } else if let Ok(list) = value.cast::<PyList>() {
        append_items(out, list.iter(), depth)?;
    } else if let Ok(tuple) = value.cast::<PyTuple>() {
        append_items(out, tuple.iter(), depth)?;
    } else {
        append(out, &plain(value)?, depth + 1)?;
    }
    Ok(())
}

fn append_float(out: &mut Vec<u8>, value: f64) -> PyResult<()> {
    if !value.is_finite() {
        return Err(PyValueError::new_err("JSON has no infinity and no NaN"));
    }
    serde_json::to_writer(out, &value).map_err(|error| PyValueError::new_err(error.to_string()))
}

fn append_dict(out: &mut Vec<u8>, dict: &Bound<'_, PyDict>, depth: usize) -> PyResult<()> {
    out.push(b'{');
    let mut first = true;
    for (key, value) in dict {
        if !std::mem::take(&mut first) {
            out.push(b',');
        }
        match key.cast::<PyString>() {
            Ok(key) => string::append(out, key.to_str()?),
            Err(_) => {
                return Err(PyTypeError::new_err(
                    "the keys of a JSON object are strings",
                ));
            }
        }
        out.push(b':');
        append(out, &value, depth + 1)?;
    }
    out.push(b'}');
    Ok(())
}

fn append_items<'py>(
    out: &mut Vec<u8>,
    items: impl Iterator<Item = Bound<'py, PyAny>>,
    depth: usize,
) -> PyResult<()> {
    out.push(b'[');
    for (i, item) in items.enumerate() {
        if i > 0 {
            out.push(b',');
        }
        append(out, &item, depth + 1)?;
    }
    out.push(b']');
    Ok(())
}

/// Dataclasses, pydantic models, dates and the like as what JSON knows.
fn plain<'py>(value: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    static PLAIN: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    PLAIN
        .import(value.py(), "mcpbolt._plain", "plain")?
        .call1((value,))
}
