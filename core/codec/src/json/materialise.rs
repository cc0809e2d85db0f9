//! Trees and typed values from raw JSON, by the faster of two parsers.
//!
//! ```text
//!   short, or few escapes, or a negative zero ──────────────────▶ serde_json
//!   else: padded copy ─▶ simd-json ─▶ value
//!                            └─ refuses (lone surrogate, integer beyond 64 bits, …) ─▶ serde_json
//! ```
//!
//! simd-json is faster where strings are full of escapes (documents as text, source code, JSON
//! within JSON): half the time with an escape every 25 bytes. Without escapes it is slower than
//! serde_json, which does not check UTF-8 again and makes no copy: twice the time for 100 KB of
//! Chinese text, a tenth more for numbers. `cargo xtask bench codec -- materialise` compares the
//! two.
//!
//! The parsers agree: whatever simd-json accepts, serde_json accepts with the same result, and
//! whatever simd-json refuses is left to serde_json. Integers of up to 64 bits and all floats are
//! exact. Wider integers are exact in types that hold them (`i128`, [`RawValue`]) and become the
//! nearest double in a tree; the raw text always has their digits.
//!
//! [`RawValue`]: serde_json::value::RawValue

use serde::Deserialize;
use simd_json::{Buffers, Deserializer, INPUT_PADDING, Tape};

/// A tree that borrows its strings from the [`Materialiser`] it came from.
pub use simd_json::BorrowedValue as Tree;

/// Shortest text that is given to simd-json, in bytes; for shorter text, the copy and the tape cost
/// as much as they save.
pub const LARGE: usize = 2048;

/// Most bytes per escape for which simd-json is used: an escape costs serde_json about as much as
/// 128 bytes of copy and tape cost simd-json.
pub const ESCAPE_EVERY: usize = 128;

/// Deepest nesting; the limit of serde_json.
const MAX_DEPTH: usize = 128;

/// Materialises values one after another; reuses its buffers, which grow to the longest value.
pub struct Materialiser {
    copy: Vec<u8>,
    buffers: Buffers,
}

impl Materialiser {
    /// A materialiser with empty buffers.
    pub fn new() -> Self {
        Self {
            copy: Vec::new(),
            buffers: Buffers::with_max_depth(0, MAX_DEPTH),
        }
    }

    /// Parses the raw JSON `raw` into a [`Tree`], a [`serde_json::Value`] or any type of the
    /// program.
    ///
    /// # Errors
    /// The text is not JSON, nests deeper than 128 levels, or does not fit the type.
    pub fn value<'a, T: Deserialize<'a>>(&'a mut self, raw: &'a str) -> serde_json::Result<T> {
        if raw.len() >= LARGE
            && has_many_escapes(raw.as_bytes())
            && !has_negative_zero(raw.as_bytes())
            && let Some(value) = self.by_tape(raw)
        {
            return Ok(value);
        }
        serde_json::from_str(raw)
    }

    fn by_tape<'a, T: Deserialize<'a>>(&'a mut self, raw: &str) -> Option<T> {
        self.copy.clear();
        self.copy.reserve(raw.len() + INPUT_PADDING);
        self.copy.extend_from_slice(raw.as_bytes());
        self.copy.resize(raw.len() + INPUT_PADDING, 0);
        let mut tape = Tape(Vec::new());
        simd_json::fill_tape_padded(&mut self.copy, raw.len(), &mut self.buffers, &mut tape)
            .ok()?;
        T::deserialize(&mut Deserializer::from_tape(tape)).ok()
    }
}

impl Default for Materialiser {
    fn default() -> Self {
        Self::new()
    }
}

impl std::fmt::Debug for Materialiser {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Materialiser").finish_non_exhaustive()
    }
}

fn has_many_escapes(text: &[u8]) -> bool {
    memchr::memchr_iter(b'\\', text).count() >= text.len() / ESCAPE_EVERY
}

/// Whether `-0` may occur as a number: simd-json reads it as the integer 0.
fn has_negative_zero(text: &[u8]) -> bool {
    memchr::memmem::find_iter(text, b"-0").any(|at| {
        let behind = text.get(at + 2);
        behind.is_none_or(|byte| matches!(byte, b',' | b']' | b'}' | b' ' | b'\n' | b'\r' | b'\t'))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::Value;
    use serde_json::value::RawValue;

    use super::*;

    /// An array that contains `value` and is long and escaped enough for simd-json.
    fn large(value: &str) -> String {
        format!("[{value},\"{}\"]", "plain text\\n".repeat(LARGE / 8))
    }

    fn both(text: &str) -> (Option<Value>, Option<Value>) {
        let value: Option<(Value, String)> = Materialiser::new().value(text).ok();
        let expected: Option<(Value, String)> = serde_json::from_str(text).ok();
        (value.map(|pair| pair.0), expected.map(|pair| pair.0))
    }

    #[test]
    fn every_value_is_what_serde_json_makes_of_it() {
        let values = [
            "9007199254740993",
            "18446744073709551615",
            "18446744073709551616",
            "-9223372036854775808",
            "-9223372036854775809",
            "-0",
            "-0.0",
            "0.1",
            "5e-324",
            "2.2250738585072014e-308",
            "1.7976931348623157e308",
            "123456789012345678901234567890.5",
            "0.1000000000000000055511151231257827",
            "1e400",
            "{\"a\":1,\"a\":[true,null,{}]}",
            "\"\\ud83d\\ude00 \\u0041\"",
            "\"\\ud800\"",
            "tru",
        ];
        for value in values {
            let (found, expected) = both(&large(value));
            assert_eq!(found, expected, "{value}");
            let bits = |value: Option<Value>| value.and_then(|v| v.as_f64()).map(f64::to_bits);
            assert_eq!(bits(found), bits(expected), "{value}");
        }
        let deep = "[".repeat(200) + &"]".repeat(200);
        assert_eq!(both(&large(&deep)), (None, None));
    }

    #[test]
    fn floats_survive_exactly() {
        let mut bits = 0x9e37_79b9_7f4a_7c15_u64;
        let mut floats = Vec::new();
        for _ in 0..20_000 {
            bits = bits.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
            floats.extend(Some(f64::from_bits(bits)).filter(|float| float.is_finite()));
        }
        let lines = "\n".repeat(20_000);
        let text = serde_json::to_string(&(&floats, &lines)).unwrap();
        assert!(has_many_escapes(text.as_bytes()));
        let found: (Vec<f64>, String) = Materialiser::new().value(&text).unwrap();
        assert_eq!(found, (floats, lines));
    }

    #[test]
    fn what_only_serde_json_can_do_is_left_to_it() {
        let wide = large("170141183460469231731687303715884105727");
        let found: (i128, String) = Materialiser::new().value(&wide).unwrap();
        assert_eq!(found.0, i128::MAX);
        let found: Vec<&RawValue> = serde_json::from_str(&wide).unwrap();
        let raw: Vec<Box<RawValue>> = Materialiser::new().value(&wide).unwrap();
        assert_eq!(raw[0].get(), found[0].get());
    }

    #[test]
    fn a_tree_borrows_and_buffers_serve_again() {
        let mut materialiser = Materialiser::new();
        for value in ["{\"a\":[1,2.5]}", "7", "{\"a\":\"\\u00e9\"}"] {
            let text = large(value);
            let tree: Tree<'_> = materialiser.value(&text).unwrap();
            let own: Value = serde_json::from_str(&text).unwrap();
            assert_eq!(serde_json::to_value(&tree).unwrap(), own);
        }
    }
}
