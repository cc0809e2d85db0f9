//! JSON text as Python objects, in one pass: text that the engine has proved, and any other.
//!
//! Integers of any size are exact (up to the interpreter's own limit on digits), floats are the
//! nearest double, the last of several members of one name counts. A string with a lone
//! surrogate is refused: it is no text, and nothing could send it back. The collector of cycles
//! rests while something large is built: what is being built is no garbage, and looking through
//! it again and again costs three times the building.

use std::borrow::Cow;
use std::cell::RefCell;

use mcpbolt::json::string::unescape;
use mcpbolt::json::validate;
use mcpbolt::scan;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyNone, PyString};

/// Length of a text, in bytes, from which the collector rests.
const REST_BYTES: usize = 64 << 10;
/// Keys kept for each thread, and how long one may be, in bytes.
const KEYS: usize = 1024;
const KEY_BYTES: usize = 64;

/// Any value, of a text that is proved to be one.
pub fn value<'py>(py: Python<'py>, json: &str) -> PyResult<Bound<'py, PyAny>> {
    read(py, json, usize::MAX)
}

/// Any value, of a text that may be anything: proved while it is read. An error may say less than
/// [`validate`] does.
pub fn unproved<'py>(py: Python<'py>, json: &str, max_depth: usize) -> PyResult<Bound<'py, PyAny>> {
    read(py, json, max_depth)
}

fn read<'py>(py: Python<'py>, text: &str, max_depth: usize) -> PyResult<Bound<'py, PyAny>> {
    let build = || {
        let mut reader = Reader {
            py,
            text,
            at: 0,
            room: max_depth,
            is_proved: max_depth == usize::MAX,
        };
        let value = reader.value()?;
        match reader.skip_ws() {
            0 if reader.at >= text.len() => Ok(value),
            _ => Err(not_json()),
        }
    };
    match text.len() {
        0..REST_BYTES => build(),
        _ => without_collector(py, build),
    }
}

/// A string that comes again and again, as names do: kept and interned.
pub fn name<'py>(py: Python<'py>, json: &str) -> PyResult<Bound<'py, PyAny>> {
    let inner = json
        .strip_prefix('"')
        .and_then(|json| json.strip_suffix('"'));
    match inner.filter(|inner| memchr::memchr(b'\\', inner.as_bytes()).is_none()) {
        Some(plain) => Ok(key(py, plain).into_any()),
        None => value(py, json),
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
    /// How many more containers may be open.
    room: usize,
    is_proved: bool,
}

/// A string between its quotes.
struct Found<'a> {
    raw: &'a str,
    escaped: bool,
}

impl<'a> Found<'a> {
    fn text(&self) -> PyResult<Cow<'a, str>> {
        let lone = |_| PyValueError::new_err("a string holds a lone surrogate");
        match self.escaped {
            false => Ok(Cow::Borrowed(self.raw)),
            true => unescape(self.raw).map_err(lone),
        }
    }
}

impl<'a, 'py> Reader<'a, 'py> {
    /// The byte at hand; 0 behind the end.
    #[inline]
    fn byte(&self) -> u8 {
        self.text.as_bytes().get(self.at).copied().unwrap_or(0)
    }

    #[inline]
    fn skip_ws(&mut self) -> u8 {
        loop {
            match self.byte() {
                b' ' | b'\t' | b'\n' | b'\r' => self.at += 1,
                byte => return byte,
            }
        }
    }

    fn value(&mut self) -> PyResult<Bound<'py, PyAny>> {
        match self.skip_ws() {
            b'{' => self.object(),
            b'[' => self.array(),
            b'"' => {
                let found = self.string()?;
                Ok(PyString::new(self.py, &found.text()?).into_any())
            }
            b't' => self.word("true", PyBool::new(self.py, true).to_owned().into_any()),
            b'f' => self.word("false", PyBool::new(self.py, false).to_owned().into_any()),
            b'n' => self.word("null", PyNone::get(self.py).to_owned().into_any()),
            _ => self.number(),
        }
    }

    fn word(&mut self, word: &str, value: Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let end = self.at + word.len();
        if self.text.as_bytes().get(self.at..end) != Some(word.as_bytes()) {
            return Err(not_json());
        }
        self.at = end;
        Ok(value)
    }

    fn open(&mut self) -> PyResult<()> {
        self.room = self.room.checked_sub(1).ok_or_else(not_json)?;
        self.at += 1;
        Ok(())
    }

    fn object(&mut self) -> PyResult<Bound<'py, PyAny>> {
        let dict = PyDict::new(self.py);
        self.open()?;
        let mut byte = self.skip_ws();
        if byte != b'}' {
            loop {
                if byte != b'"' {
                    return Err(not_json());
                }
                let key = key(self.py, &self.string()?.text()?);
                if self.skip_ws() != b':' {
                    return Err(not_json());
                }
                self.at += 1;
                dict.set_item(key, self.value()?)?;
                match self.skip_ws() {
                    b',' => self.at += 1,
                    b'}' => break,
                    _ => return Err(not_json()),
                }
                byte = self.skip_ws();
            }
        }
        self.close();
        Ok(dict.into_any())
    }

    fn array(&mut self) -> PyResult<Bound<'py, PyAny>> {
        let list = PyList::empty(self.py);
        self.open()?;
        if self.skip_ws() != b']' {
            loop {
                list.append(self.value()?)?;
                match self.skip_ws() {
                    b',' => self.at += 1,
                    b']' => break,
                    _ => return Err(not_json()),
                }
            }
        }
        self.close();
        Ok(list.into_any())
    }

    fn close(&mut self) {
        self.room += 1;
        self.at += 1;
    }

    /// The string that begins here; what is short never gets to a kernel.
    #[inline]
    fn string(&mut self) -> PyResult<Found<'a>> {
        let bytes = self.text.as_bytes();
        let start = self.at + 1;
        let ahead = bytes.get(start..).unwrap_or_default();
        let near = ahead
            .first_chunk()
            .map_or(0, |chunk| scan::stops(chunk).mask);
        let near = near.trailing_zeros() as usize;
        let (end, escaped) = match ahead.get(near) {
            Some(b'"') if near < 16 => (start + near, false),
            _ => {
                let found = scan::string_end(bytes, start).ok_or_else(not_json)?;
                (found.end, found.escaped)
            }
        };
        self.at = end + 1;
        let raw = self.text.get(start..end).ok_or_else(not_json)?;
        Ok(Found { raw, escaped })
    }

    fn number(&mut self) -> PyResult<Bound<'py, PyAny>> {
        let start = self.at;
        let is_negative = self.byte() == b'-';
        self.at += usize::from(is_negative);
        let digits = self.at;
        let mut small = 0i64;
        while let byte @ b'0'..=b'9' = self.byte()
            && self.at < digits + SMALL_DIGITS
        {
            small = small * 10 + i64::from(byte - b'0');
            self.at += 1;
        }
        let begins_with_zero = self.text.as_bytes().get(digits) == Some(&b'0');
        let is_whole = self.at == digits + 1 || self.at > digits && !begins_with_zero;
        if is_whole && !is_of_number(self.byte()) {
            let value = if is_negative { -small } else { small };
            return Ok(value.into_pyobject(self.py)?.into_any());
        }
        if is_whole
            && self.byte() == b'.'
            && let Some(value) = self.short_float(digits, small)
        {
            let value = if is_negative { -value } else { value };
            return Ok(PyFloat::new(self.py, value).into_any());
        }
        self.at = start;
        self.long_number()
    }

    /// The rest of a number behind its point, if it is short: both parts of the fraction are
    /// doubles without loss then, and so the quotient is the nearest (Clinger, 1990).
    fn short_float(&mut self, digits: usize, whole: i64) -> Option<f64> {
        self.at += 1;
        let behind = self.at;
        let mut digits_of_all = whole;
        while let byte @ b'0'..=b'9' = self.byte()
            && self.at <= digits + EXACT_DIGITS
        {
            digits_of_all = digits_of_all * 10 + i64::from(byte - b'0');
            self.at += 1;
        }
        let places = self.at - behind;
        let is_short = places > 0 && self.at - digits <= EXACT_DIGITS + 1;
        let divisor = POWERS.get(places)?;
        (is_short && !is_of_number(self.byte())).then(|| digits_of_all as f64 / divisor)
    }

    fn long_number(&mut self) -> PyResult<Bound<'py, PyAny>> {
        let rest = self.text.get(self.at..).ok_or_else(not_json)?;
        let len = rest.bytes().position(|byte| !is_of_number(byte));
        let token = &rest[..len.unwrap_or(rest.len())];
        self.at += token.len();
        if !self.is_proved && validate(token.as_bytes(), 0).is_err() {
            return Err(not_json());
        }
        if token.bytes().any(|byte| matches!(byte, b'.' | b'e' | b'E')) {
            let number: f64 = token.parse().map_err(|_| not_json())?;
            return Ok(PyFloat::new(self.py, number).into_any());
        }
        if token.is_empty() {
            return Err(not_json());
        }
        self.py.get_type::<PyInt>().call1((token,))
    }
}

/// Digits of an integer that surely fits.
const SMALL_DIGITS: usize = 18;

/// Digits of an integer that is a double without loss, and the powers of ten that are.
const EXACT_DIGITS: usize = 15;
const POWERS: [f64; 16] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
];

#[inline]
fn is_of_number(byte: u8) -> bool {
    matches!(byte, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E')
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

/// Of what begins and ends it, and of its length: names are told apart by those.
#[inline]
fn hash(text: &str) -> usize {
    const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
    let bytes = text.as_bytes();
    let ends = match (bytes.first_chunk(), bytes.last_chunk()) {
        (Some(first), Some(last)) => {
            u64::from_le_bytes(*first) ^ u64::from_le_bytes(*last).rotate_left(29)
        }
        _ => bytes
            .iter()
            .fold(0, |word, byte| word << 8 | u64::from(*byte)),
    };
    let hash = (ends ^ bytes.len() as u64).wrapping_mul(ODD);
    (hash >> 32) as usize
}
