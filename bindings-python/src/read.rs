//! Parses JSON text into Python objects, in one pass: text that the engine has validated, and any other.
//!
//! Integers of any size are exact (up to the interpreter's own limit on digits), floats are the nearest
//! double, and of several members with one name the last wins. A string with a lone surrogate is refused,
//! since it is not valid Unicode and could not be sent back. The garbage collector is disabled while a
//! large value is built: the new objects are not garbage, and traversing them repeatedly takes three times
//! as long as building them.

use std::borrow::Cow;
use std::cell::Cell;

use mcpbolt::json::string::unescape;
use mcpbolt::json::validate;
use mcpbolt::scan;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyNone, PyString};

use crate::panics::{self, caught};

/// The length of a text, in bytes, from which the garbage collector is disabled.
const REST_BYTES: usize = 64 << 10;
/// The number of cached keys of each thread, and the longest cached key, in bytes.
const KEY_COUNT: usize = 1024;
const KEY_BYTES: usize = 64;

/// Parses a text that was validated as one JSON value.
pub fn value<'py>(py: Python<'py>, json: &str) -> PyResult<Bound<'py, PyAny>> {
    read(py, json, usize::MAX)
}

/// Parses any text, and validates it at the same time. An error may say less than that of [`validate`].
pub fn unproved<'py>(py: Python<'py>, json: &str, max_depth: usize) -> PyResult<Bound<'py, PyAny>> {
    read(py, json, max_depth)
}

fn read<'py>(py: Python<'py>, text: &str, max_depth: usize) -> PyResult<Bound<'py, PyAny>> {
    let build = || {
        // A nested read meanwhile starts with an empty cache.
        let mut reader = Reader {
            py,
            text,
            at: 0,
            room: max_depth,
            is_proved: max_depth == usize::MAX,
            keys: KEYS.take(),
            items: Vec::new(),
            error: None,
        };
        let value = reader.whole();
        let Reader { keys, error, .. } = reader;
        KEYS.set(keys);
        value.map_err(|Failed| error.unwrap_or_else(not_json))
    };
    match text.len() {
        0..REST_BYTES => build(),
        _ => without_collector(py, build),
    }
}

/// Parses a string that is often repeated, such as a name, with the cache of keys.
pub fn name<'py>(py: Python<'py>, json: &str) -> PyResult<Bound<'py, PyAny>> {
    let inner = json
        .strip_prefix('"')
        .and_then(|json| json.strip_suffix('"'));
    match inner.filter(|inner| memchr::memchr(b'\\', inner.as_bytes()).is_none()) {
        Some(plain) => {
            let mut keys = KEYS.take();
            let key = keys.key(py, plain);
            KEYS.set(keys);
            Ok(key.into_any())
        }
        None => value(py, json),
    }
}

/// Parses an object into a dict.
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
    let built = caught(|| {
        panics::point("read");
        build()
    });
    enable.bind(py).call0()?;
    built.unwrap_or_else(|panic| Err(panic.exception(py)))
}

struct Reader<'a, 'py> {
    py: Python<'py>,
    text: &'a str,
    at: usize,
    /// How many more containers may be open.
    room: usize,
    is_proved: bool,
    keys: Keys,
    /// The elements so far of all open arrays.
    items: Vec<Bound<'py, PyAny>>,
    /// The exception that reading failed with; `None` for invalid JSON.
    error: Option<PyErr>,
}

/// Reading failed. The reader holds the reason, so that results stay small.
struct Failed;

type Read<T> = Result<T, Failed>;

/// The text of a string between its quotes.
struct Found<'a> {
    raw: &'a str,
    escaped: bool,
}

impl<'a, 'py> Reader<'a, 'py> {
    /// Reads the whole text as one value.
    fn whole(&mut self) -> Read<Bound<'py, PyAny>> {
        let value = self.value()?;
        match self.skip_ws() {
            0 if self.at >= self.text.len() => Ok(value),
            _ => Err(Failed),
        }
    }

    fn noted<T>(&mut self, outcome: PyResult<T>) -> Read<T> {
        outcome.map_err(|error| {
            self.error = Some(error);
            Failed
        })
    }

    /// The current byte; 0 after the end.
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

    fn value(&mut self) -> Read<Bound<'py, PyAny>> {
        match self.skip_ws() {
            b'"' => {
                let found = self.string()?;
                let text = self.decoded(&found)?;
                Ok(PyString::new(self.py, &text).into_any())
            }
            b'{' => self.object(),
            b'[' => self.array(),
            b't' => self.word("true", PyBool::new(self.py, true).to_owned().into_any()),
            b'f' => self.word("false", PyBool::new(self.py, false).to_owned().into_any()),
            b'n' => self.word("null", PyNone::get(self.py).to_owned().into_any()),
            _ => self.number(),
        }
    }

    fn word(&mut self, word: &str, value: Bound<'py, PyAny>) -> Read<Bound<'py, PyAny>> {
        let end = self.at + word.len();
        if self.text.as_bytes().get(self.at..end) != Some(word.as_bytes()) {
            return Err(Failed);
        }
        self.at = end;
        Ok(value)
    }

    fn open(&mut self) -> Read<()> {
        self.room = self.room.checked_sub(1).ok_or(Failed)?;
        self.at += 1;
        Ok(())
    }

    fn object(&mut self) -> Read<Bound<'py, PyAny>> {
        let dict = PyDict::new(self.py);
        self.open()?;
        let mut byte = self.skip_ws();
        if byte != b'}' {
            loop {
                if byte != b'"' {
                    return Err(Failed);
                }
                let found = self.string()?;
                let text = self.decoded(&found)?;
                let key = self.keys.key(self.py, &text);
                if self.skip_ws() != b':' {
                    return Err(Failed);
                }
                self.at += 1;
                let value = self.value()?;
                let set = dict.set_item(key, value);
                self.noted(set)?;
                match self.skip_ws() {
                    b',' => self.at += 1,
                    b'}' => break,
                    _ => return Err(Failed),
                }
                byte = self.skip_ws();
            }
        }
        self.close();
        Ok(dict.into_any())
    }

    /// Reads an array. The list is made after all its elements, so that it never has to grow.
    fn array(&mut self) -> Read<Bound<'py, PyAny>> {
        self.open()?;
        let first = self.items.len();
        if self.skip_ws() != b']' {
            loop {
                let item = self.value()?;
                self.items.push(item);
                match self.skip_ws() {
                    b',' => self.at += 1,
                    b']' => break,
                    _ => return Err(Failed),
                }
            }
        }
        self.close();
        let list = PyList::new(self.py, self.items.drain(first..));
        Ok(self.noted(list)?.into_any())
    }

    fn close(&mut self) {
        self.room += 1;
        self.at += 1;
    }

    /// Reads the string that begins here; a short one does not need the general scanner.
    #[inline]
    fn string(&mut self) -> Read<Found<'a>> {
        let bytes = self.text.as_bytes();
        let start = self.at + 1;
        let ahead = bytes.get(start..).unwrap_or_default();
        let near = match ahead.first_chunk() {
            Some(chunk) => scan::stops(chunk).mask.trailing_zeros() as usize,
            None => {
                let stop = |byte: &u8| matches!(byte, b'"' | b'\\' | 0..=0x1f);
                ahead.iter().position(stop).unwrap_or(ahead.len())
            }
        };
        let (end, escaped) = match ahead.get(near) {
            Some(b'"') if near < 16 => (start + near, false),
            _ => {
                let found = scan::string_end(bytes, start).ok_or(Failed)?;
                (found.end, found.escaped)
            }
        };
        self.at = end + 1;
        let raw = self.text.get(start..end).ok_or(Failed)?;
        Ok(Found { raw, escaped })
    }

    #[inline]
    fn decoded(&mut self, found: &Found<'a>) -> Read<Cow<'a, str>> {
        match found.escaped {
            false => Ok(Cow::Borrowed(found.raw)),
            true => {
                let lone = |_| PyValueError::new_err("a string holds a lone surrogate");
                self.noted(unescape(found.raw).map_err(lone))
            }
        }
    }

    fn number(&mut self) -> Read<Bound<'py, PyAny>> {
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
            let Ok(value) = value.into_pyobject(self.py);
            return Ok(value.into_any());
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

    /// Reads the rest of a number after its point, if it is short: dividend and divisor are then exact
    /// doubles, so the quotient is the nearest double (Clinger, 1990).
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

    fn long_number(&mut self) -> Read<Bound<'py, PyAny>> {
        let rest = self.text.get(self.at..).ok_or(Failed)?;
        let len = rest.bytes().position(|byte| !is_of_number(byte));
        let token = &rest[..len.unwrap_or(rest.len())];
        self.at += token.len();
        if !self.is_proved && validate(token.as_bytes(), 0).is_err() {
            return Err(Failed);
        }
        if token.bytes().any(|byte| matches!(byte, b'.' | b'e' | b'E')) {
            let number: f64 = token.parse().map_err(|_| Failed)?;
            return Ok(PyFloat::new(self.py, number).into_any());
        }
        if token.is_empty() {
            return Err(Failed);
        }
        let number = self.py.get_type::<PyInt>().call1((token,));
        self.noted(number)
    }
}

/// The number of digits that always fit into an `i64`.
const SMALL_DIGITS: usize = 18;

/// The number of digits that are always exact as a double, and the powers of ten for that many places.
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

thread_local! {
    static KEYS: Cell<Keys> = const { Cell::new(Keys(Vec::new())) };
}

/// A cache of object keys, since the same keys are often repeated: their text and their Python strings.
#[derive(Default)]
struct Keys(Vec<Option<Key>>);

struct Key {
    ends: Ends,
    /// The whole text, if its ends do not contain all of it.
    text: Option<Box<str>>,
    key: Py<PyString>,
    is_interned: bool,
}

impl Keys {
    /// The Python string of a key; from its second use on it is interned, as argument names are.
    fn key<'py>(&mut self, py: Python<'py>, text: &str) -> Bound<'py, PyString> {
        if text.len() > KEY_BYTES {
            return PyString::new(py, text);
        }
        if self.0.is_empty() {
            self.0.resize_with(KEY_COUNT, || None);
        }
        let ends = Ends::of(text);
        let slot = &mut self.0[ends.hash() % KEY_COUNT];
        let is_it = |kept: &&mut Key| {
            kept.ends == ends && kept.text.as_deref().is_none_or(|whole| whole == text)
        };
        if let Some(kept) = slot.as_mut().filter(is_it) {
            if !kept.is_interned {
                kept.key = PyString::intern(py, text).unbind();
                kept.is_interned = true;
            }
            return kept.key.bind(py).clone();
        }
        let key = PyString::new(py, text);
        *slot = Some(Key {
            ends,
            text: (!ends.is_all()).then(|| text.into()),
            key: key.clone().unbind(),
            is_interned: false,
        });
        key
    }
}

/// The first and last 8 bytes of a text, and its length: the fingerprint of a key.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Ends {
    first: u64,
    last: u64,
    len: usize,
}

impl Ends {
    #[inline]
    fn of(text: &str) -> Self {
        let bytes = text.as_bytes();
        let (first, last) = match (bytes.first_chunk(), bytes.last_chunk()) {
            (Some(first), Some(last)) => (u64::from_le_bytes(*first), u64::from_le_bytes(*last)),
            _ => {
                let fold = |word, byte: &u8| word << 8 | u64::from(*byte);
                (bytes.iter().fold(0, fold), 0)
            }
        };
        Self {
            first,
            last,
            len: bytes.len(),
        }
    }

    /// Whether the ends contain the whole text.
    fn is_all(self) -> bool {
        self.len <= 16
    }

    #[inline]
    fn hash(self) -> usize {
        const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
        let ends = self.first ^ self.last.rotate_left(29) ^ self.len as u64;
        (ends.wrapping_mul(ODD) >> 32) as usize
    }
}
