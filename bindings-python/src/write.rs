//! Serializes Python objects to JSON text.

use std::cell::Cell;

use mcpbolt::json::{number, string};
use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyBytes, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};

/// The deepest nesting that is written; it also stops cycles.
const MAX_DEPTH: usize = 256;

/// The initial capacity of a thread's scratch buffer, and the most that is kept for the next use, in bytes.
const FIRST_BYTES: usize = 4 << 10;
const KEEP_BYTES: usize = 256 << 10;

thread_local! {
    static SCRATCH: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// Makes `bytes` of what `write` appends, in the thread's scratch buffer.
pub fn bytes<'py>(
    py: Python<'py>,
    write: impl FnOnce(&mut Vec<u8>) -> PyResult<()>,
) -> PyResult<Bound<'py, PyBytes>> {
    // A nested call meanwhile gets a new buffer.
    let mut out = SCRATCH.take();
    out.reserve(FIRST_BYTES);
    let written = write(&mut out).map(|()| PyBytes::new(py, &out));
    out.clear();
    out.shrink_to(KEEP_BYTES);
    SCRATCH.set(out);
    written
}

/// Serializes `value` to JSON text.
pub fn json(value: &Bound<'_, PyAny>) -> PyResult<String> {
    let mut out = Vec::new();
    append(&mut out, value)?;
    String::from_utf8(out).map_err(|_| PyValueError::new_err("not Unicode"))
}

/// Appends `value` as JSON text.
pub fn append(out: &mut Vec<u8>, value: &Bound<'_, PyAny>) -> PyResult<()> {
    append_at(out, value, 0)
}

/// Appends `value` as JSON text; it must be an object.
pub fn append_object(out: &mut Vec<u8>, value: &Bound<'_, PyAny>) -> PyResult<()> {
    let start = out.len();
    append(out, value)?;
    match out.get(start) {
        Some(b'{') => Ok(()),
        _ => Err(PyTypeError::new_err("a JSON object: a dict, or its bytes")),
    }
}

/// Appends a value. The most frequent types are checked first, those whose check needs a call last.
fn append_at(out: &mut Vec<u8>, value: &Bound<'_, PyAny>, depth: usize) -> PyResult<()> {
    if let Ok(text) = value.cast::<PyString>() {
        string::append(out, text.to_str()?);
        return Ok(());
    }
    if let Ok(truth) = value.cast::<PyBool>() {
        out.extend_from_slice(if truth.is_true() { b"true" } else { b"false" });
        return Ok(());
    }
    if let Ok(integer) = value.cast::<PyInt>() {
        return append_integer(out, integer);
    }
    if value.is_none() {
        out.extend_from_slice(b"null");
        return Ok(());
    }
    if let Ok(float) = value.cast_exact::<PyFloat>() {
        return append_float(out, float.value());
    }
    if depth > MAX_DEPTH {
        return Err(PyValueError::new_err("nested too deep, or into itself"));
    }
    if let Ok(dict) = value.cast::<PyDict>() {
        append_dict(out, dict, depth)
    } else if let Ok(list) = value.cast::<PyList>() {
        append_items(out, list.iter(), depth)
    } else if let Ok(tuple) = value.cast::<PyTuple>() {
        append_items(out, tuple.iter(), depth)
    } else if let Ok(float) = value.cast::<PyFloat>() {
        append_float(out, float.value())
    } else {
        append_at(out, &jsonable(value)?, depth + 1)
    }
}

fn append_integer(out: &mut Vec<u8>, integer: &Bound<'_, PyInt>) -> PyResult<()> {
    if let Ok(small) = integer.extract::<i64>() {
        number::append(out, small);
        return Ok(());
    }
    // A subclass (such as an enum) may print differently.
    let int = integer.py().get_type::<PyInt>();
    let text = int.call_method1("__repr__", (integer,))?;
    out.extend_from_slice(text.cast::<PyString>()?.to_str()?.as_bytes());
    Ok(())
}

fn append_float(out: &mut Vec<u8>, value: f64) -> PyResult<()> {
    if !value.is_finite() {
        return Err(PyValueError::new_err("JSON has no infinity and no NaN"));
    }
    serde_json::to_writer(out, &value).map_err(|error| PyValueError::new_err(error.to_string()))
}

fn append_dict(out: &mut Vec<u8>, dict: &Bound<'_, PyDict>, depth: usize) -> PyResult<()> {
    let start = out.len();
    out.push(b'{');
    let len = dict.len();
    let mut items = dict.iter();
    // Writing a value may run code that changes the dict, and the iterator would then panic.
    for i in 0..len {
        let Some((key, value)) = (match dict.len() == len {
            true => items.next(),
            false => None,
        }) else {
            return Err(changed());
        };
        if i > 0 {
            out.push(b',');
        }
        match key.cast::<PyString>() {
            Ok(key) => string::append(out, key.to_str()?),
            // Numbers, dates and the like become strings.
            Err(_) => {
                out.truncate(start);
                return append_at(out, &jsonable(dict)?, depth + 1);
            }
        }
        out.push(b':');
        append_at(out, &value, depth + 1)?;
    }
    out.push(b'}');
    Ok(())
}

fn changed() -> PyErr {
    PyRuntimeError::new_err("the dict changed while it was written")
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
        append_at(out, &item, depth + 1)?;
    }
    out.push(b']');
    Ok(())
}

/// Converts dataclasses, pydantic models, dates and the like to JSON-serializable values.
fn jsonable<'py>(value: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    static JSONABLE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    JSONABLE
        .import(value.py(), "mcpbolt._jsonable", "jsonable")?
        .call1((value,))
}
