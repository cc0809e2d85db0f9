//! JSON text that the engine has validated, as Python objects, in one pass.
//!
//! Integers of any size are exact (up to the interpreter's own limit on digits), floats are the
//! nearest double, the last of several members of one name counts. A string with a lone
//! surrogate is refused: it is no text, and nothing could send it back. The collector of cycles
//! rests while something large is built: what is being built is no garbage, and looking through
//! it again and again costs three times the building.

use std::borrow::Cow;
use std::cell::RefCell;

use mcpbolt::json::string::unescape;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyNone, PyString};

/// Length of a text, in bytes, from which the collector rests.
const REST_BYTES: usize = 64 << 10;
/// Keys kept for each thread, and how long one may be, in bytes.
const KEYS: usize = 1024;
const KEY_BYTES: usize = 64;

/// Any value.
pub fn value<'py>(py: Python<'py>, json: &str) -> PyResult<Bound<'py, PyAny>> {
    let build = || {
        Reader {
            py,
            text: json,
            at: 0,
        }
        .value()
    };
    match json.len() {
        0..REST_BYTES => build(),
        _ => without_collector(py, build),
    }
}

/// An object, as a dict.
pub fn object<'py>(py: Python<'py>, json: &str) -> PyResult<Bound<'py, PyDict>> {
    Ok(value(py, json)?.cast_into()?)
}

fn without_collector<T>(py: Python<'_>, build: impl FnOnce() -> PyResult<T>) -> PyResult<T> {
    static GC: PyOnceLock<[Py<PyAny>; 3]> = PyOnceLock::new();
    let [is_enabled, disable, enable] = GC.get_or_try_init(py, || {
        let gc = py.import("gc")?;
        let method = |name| gc.getattr(name).map(Bound::unbind);
        Ok::<_, PyErr>([method("isenabled")?, method("disable")?, method("enable")?])
    })?;
    if !is_enabled.bind(py).call0()?.is_truthy()? {
        return build();
    }
    disable.bind(py).call0()?;
    let built = build();
    enable.bind(py).call0()?;
    built
}

struct Reader<'a, 'py> {
    py: Python<'py>,
    text: &'a str,
    at: usize,
}

impl<'a, 'py> Reader<'a, 'py> {
    fn skip_ws(&mut self) -> u8 {
        let bytes = self.text.as_bytes();
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = bytes.get(self.at) {
            self.at += 1;
        }
        bytes.get(self.at).copied().unwrap_or(0)
    }

    fn value(&mut self) -> PyResult<Bound<'py, PyAny>> {
        match self.skip_ws() {
            b'{' => self.object(),
            b'[' => self.array(),
            b'"' => {
                let text = self.string()?;
                Ok(PyString::new(self.py, &text).into_any())
            }
            b't' => Ok(self.word(4, PyBool::new(self.py, true).to_owned().into_any())),
            b'f' => Ok(self.word(5, PyBool::new(self.py, false).to_owned().into_any())),
            b'n' => Ok(self.word(4, PyNone::get(self.py).to_owned().into_any())),
            _ => self.number(),
        }
    }

    fn word(&mut self, len: usize, value: Bound<'py, PyAny>) -> Bound<'py, PyAny> {
        self.at += len;
        value
    }

    fn object(&mut self) -> PyResult<Bound<'py, PyAny>> {
        let dict = PyDict::new(self.py);
        self.at += 1;
        while self.skip_ws() == b'"' {
            let key = key(self.py, &self.string()?);
            self.skip_ws();
            self.at += 1;
            dict.set_item(key, self.value()?)?;
            if self.skip_ws() == b',' {
                self.at += 1;
            }
        }
        self.at += 1;
        Ok(dict.into_any())
    }

    fn array(&mut self) -> PyResult<Bound<'py, PyAny>> {
        let list = PyList::empty(self.py);
        self.at += 1;
        while !matches!(self.skip_ws(), b']' | 0) {
            list.append(self.value()?)?;
            if self.skip_ws() == b',' {
                self.at += 1;
            }
        }
        self.at += 1;
        Ok(list.into_any())
    }

    fn string(&mut self) -> PyResult<Cow<'a, str>> {
        let bytes = self.text.as_bytes();
        let start = self.at + 1;
        let mut end = start;
        let mut escaped = false;
        loop {
            let rest = bytes.get(end..).ok_or_else(not_json)?;
            end += memchr::memchr2(b'"', b'\\', rest).ok_or_else(not_json)?;
            if bytes[end] == b'"' {
                break;
            }
            escaped = true;
            end += 2;
        }
        self.at = end + 1;
        let raw = self.text.get(start..end).ok_or_else(not_json)?;
        match escaped {
            false => Ok(Cow::Borrowed(raw)),
            true => {
                unescape(raw).map_err(|_| PyValueError::new_err("a string holds a lone surrogate"))
            }
        }
    }

    fn number(&mut self) -> PyResult<Bound<'py, PyAny>> {
        let rest = self.text.get(self.at..).ok_or_else(not_json)?;
        let part = |byte: u8| matches!(byte, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E');
        let len = rest
            .bytes()
            .position(|byte| !part(byte))
            .unwrap_or(rest.len());
        let token = &rest[..len];
        self.at += len;
        if let Ok(small) = token.parse::<i64>() {
            return Ok(small.into_pyobject(self.py)?.into_any());
        }
        if token.bytes().any(|byte| matches!(byte, b'.' | b'e' | b'E')) {
            let number: f64 = token.parse().map_err(|_| not_json())?;
            return Ok(PyFloat::new(self.py, number).into_any());
        }
        self.py.get_type::<PyInt>().call1((token,))
    }
}

fn not_json() -> PyErr {
    PyValueError::new_err("not JSON")
}

/// A key as it is spelled and as Python has it.
type Slot = Option<(Box<str>, Py<PyString>)>;

/// A key, interned; the same keys come again and again.
fn key<'py>(py: Python<'py>, text: &str) -> Bound<'py, PyString> {
    thread_local! {
        static CACHE: RefCell<Vec<Slot>> = const { RefCell::new(Vec::new()) };
    }
    if text.len() > KEY_BYTES {
        return PyString::new(py, text);
    }
    CACHE.with_borrow_mut(|cache| {
        if cache.is_empty() {
            cache.resize_with(KEYS, || None);
        }
        let slot = &mut cache[hash(text) % KEYS];
        match slot {
            Some((kept, key)) if **kept == *text => key.bind(py).clone(),
            _ => {
                let key = PyString::intern(py, text);
                *slot = Some((text.into(), key.clone().unbind()));
                key
            }
        }
    })
}

/// FNV-1a.
fn hash(text: &str) -> usize {
    let step = |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
    let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325, step);
    (hash ^ hash >> 32) as usize
}
