//! Numbers from raw JSON tokens; integers are exact or `None`.

/// Whether a raw JSON number has neither a fraction nor an exponent.
pub fn is_integer(raw: &str) -> bool {
    let digits = raw.strip_prefix('-').unwrap_or(raw);
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

/// The value of a raw integer token; `None` if it is not an integer or does not fit.
pub fn as_i64(raw: &str) -> Option<i64> {
    is_integer(raw).then(|| raw.parse().ok()).flatten()
}

/// The value of a raw integer token; `None` if it is not an integer or does not fit. `-0` is zero.
pub fn as_u64(raw: &str) -> Option<u64> {
    match raw {
        "-0" => Some(0),
        _ => is_integer(raw).then(|| raw.parse().ok()).flatten(),
    }
}

/// The double nearest to a raw number token; `None` if the text is not a number.
pub fn as_f64(raw: &str) -> Option<f64> {
    serde_json::from_str(raw).ok()
}

/// Appends an integer in decimal.
#[inline]
pub fn append(out: &mut Vec<u8>, value: impl itoa::Integer) {
    out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_read_exactly_or_not_at_all() {
        assert_eq!(as_u64("18446744073709551615"), Some(u64::MAX));
        assert_eq!(as_u64("18446744073709551616"), None);
        assert_eq!(as_u64("1.0"), None);
        assert_eq!(as_u64("1e3"), None);
        assert_eq!(as_u64("-0"), Some(0));
        assert_eq!(as_i64("-9223372036854775808"), Some(i64::MIN));
        assert_eq!(as_i64("+1"), None);
        assert_eq!(as_i64(""), None);
        assert_eq!(as_f64("1.5e2"), Some(150.0));
        assert_eq!(as_f64("\"1\""), None);
    }
}
