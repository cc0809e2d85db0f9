//! JSON text as Python objects, in one pass: text that the engine has proved, and any other.
//!
//! Integers of any size are exact (up to the interpreter's own limit on digits), floats are the
//! nearest double, the last of several members of one name counts. A string with a lone
//! surrogate is refused: it is no text, and nothing could send it back. The collector of cycles
//! rests while something large is built: what is being built is no garbage, and looking through
//! it again and again costs three times the building.

use std::borrow::Cow;
use std::cell::Cell;

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
const KEY_COUNT: usize = 1024;
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
        // Whoever reads meanwhile has others.
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

/// A string that comes again and again, as names do: kept and interned.
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
    keys: Keys,
    /// The elements of the arrays that are open.
    items: Vec<Bound<'py, PyAny>>,
    /// What failed, unless the text is no JSON.
    error: Option<PyErr>,
}

/// There is no value. Why is noted in the reader: what is handed from value to value stays small.
struct Failed;

type Read<T> = Result<T, Failed>;

/// A string between its quotes.
struct Found<'a> {
    raw: &'a str,
    escaped: bool,
}

impl<'a, 'py> Reader<'a, 'py> {
    /// The one value that the text is.
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

    /// Made when all its elements are there: a list of the right length never grows.
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

    /// The string that begins here; what is short never gets to a kernel.
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

thread_local! {
    static KEYS: Cell<Keys> = const { Cell::new(Keys(Vec::new())) };
}

/// Keys of objects, as they are spelled and as Python has them: the same ones come again and again.
#[derive(Default)]
struct Keys(Vec<Option<Key>>);

struct Key {
    ends: Ends,
    /// The whole, where its ends do not say it.
    text: Option<Box<str>>,
    key: Py<PyString>,
    is_interned: bool,
}

impl Keys {
    /// A key; from the second time on interned, as names of arguments are.
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

/// How a text begins and ends, and its length: names are told apart by those.
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

    /// Whether there is nothing between them.
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
