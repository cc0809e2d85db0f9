//! Texts in UTF-16 units, as JavaScript counts: one unit for the first byte of each character, and one more
//! for each character beyond the basic plane.
//!
//! JavaScript's strings are read into memory that is reused:
//!
//! 1. Node-API writes at most the number of bytes it is given, with the zero that ends them, and that many are reserved;
//!    without memory it writes nothing.
//! 2. It returns how many it wrote, without that zero.

use encoding_rs::mem::{convert_str_to_utf16, encode_latin1_lossy, is_str_latin1};
use napi::{Env, Error, JsString, JsValue, Result, check_status, sys};

/// So many bytes have at most as many units, which fits into a byte.
const COUNTED_BYTES: usize = 192;

/// The bytes of longer texts are counted before memory is reserved for them.
const MEASURED_UNITS: usize = 1 << 20;

/// How many units a text has.
pub fn len(text: &str) -> usize {
    text.as_bytes().chunks(COUNTED_BYTES).map(count).sum()
}

/// Creates a JavaScript string from a text of that many units. JavaScript engines take UTF-16 or Latin-1
/// several times faster than they decode UTF-8.
pub fn string<'env>(env: &'env Env, text: &str, units: usize) -> Result<JsString<'env>> {
    if units == text.len() {
        return env.create_string_latin1(text);
    }
    if is_str_latin1(text) {
        return env.create_string_latin1(encode_latin1_lossy(text));
    }
    let mut wide = vec![0; text.len()];
    let written = convert_str_to_utf16(text, &mut wide);
    env.create_string_utf16(wide.get(..written).unwrap_or_default())
}

/// Reads a JavaScript string of at most that many units into `memory`. Lone surrogates become U+FFFD.
///
/// # Errors
/// Node-API failed.
#[allow(unsafe_code)]
pub fn read<'a>(text: &JsString<'_>, units: usize, memory: &'a mut Vec<u8>) -> Result<&'a str> {
    let value = text.value();
    let mut written = 0;
    let mut get = |to: *mut u8, bytes| -> Result<usize> {
        // SAFETY: 1
        check_status!(unsafe {
            sys::napi_get_value_string_utf8(value.env, value.value, to.cast(), bytes, &mut written)
        })?;
        Ok(written)
    };
    // A unit has at most three bytes, and a zero ends the text.
    let bytes = match units {
        ..=MEASURED_UNITS => 3 * units + 1,
        _ => get(std::ptr::null_mut(), 0)? + 1,
    };
    memory.clear();
    memory.reserve(bytes);
    let written = get(memory.as_mut_ptr(), bytes)?;
    // SAFETY: 2
    unsafe { memory.set_len(written) };
    str::from_utf8(memory).map_err(|error| Error::from_reason(error.to_string()))
}

/// The byte at which the first `units` units of a text end.
pub fn boundary(text: &str, units: usize) -> usize {
    let (mut at, mut left) = (0, units);
    for chunk in text.as_bytes().chunks(COUNTED_BYTES) {
        let units = count(chunk);
        if units > left {
            break;
        }
        left -= units;
        at += chunk.len();
    }
    let rest = text.as_bytes().get(at..).unwrap_or_default();
    let first = |byte: &u8| {
        let units = of(*byte);
        let is_behind = units > 0 && left == 0;
        left = left.saturating_sub(units.into());
        is_behind
    };
    at + rest.iter().position(first).unwrap_or(rest.len())
}

/// The units of at most [`COUNTED_BYTES`].
fn count(bytes: &[u8]) -> usize {
    bytes.iter().copied().map(of).sum::<u8>().into()
}

#[inline]
fn of(byte: u8) -> u8 {
    u8::from(byte & 0xc0 != 0x80) + u8::from(byte >= 0xf0)
}
