//! The place of a request in a distributed trace: the keys of W3C Trace Context and Baggage, which
//! `_meta` carries unchanged (2026-07-28).

/// The trace context of a request; contains only well-formed values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TraceContext {
    /// `traceparent`: version, trace, parent and flags.
    pub parent: String,
    /// `tracestate`: vendor-specific entries.
    pub state: Option<String>,
    /// `baggage`: entries of the application.
    pub baggage: Option<String>,
}

/// Whether `value` is well-formed for that `_meta` key. Keys other than the three are not checked
/// (R-MET-09).
///
/// ```
/// use mcpbolt::mcp::trace_context::is_valid;
/// let parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
/// assert!(is_valid("traceparent", parent) && !is_valid("traceparent", &parent[1..]));
/// ```
pub fn is_valid(key: &str, value: &str) -> bool {
    match key {
        "traceparent" => is_parent(value),
        "tracestate" => is_state(value),
        "baggage" => is_baggage(value),
        _ => true,
    }
}

/// Trace Context, 3.2: `version-trace-parent-flags`, in lower-case hexadecimal. Versions other than
/// 00 may have more fields.
fn is_parent(value: &str) -> bool {
    let mut parts = value.split('-');
    let mut part = |len: usize| {
        let is_hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        parts
            .next()
            .filter(|part| part.len() == len && part.bytes().all(is_hex))
    };
    let (Some(version), Some(trace), Some(parent), Some(_)) =
        (part(2), part(32), part(16), part(2))
    else {
        return false;
    };
    let is_zero = |part: &str| part.bytes().all(|byte| byte == b'0');
    let more = parts.next().is_some();
    let is_whole = version != "00" || !more;
    version != "ff" && is_whole && !is_zero(trace) && !is_zero(parent)
}

/// Trace Context, 3.3: up to 32 members `key=value` with distinct keys; empty members are ignored.
fn is_state(value: &str) -> bool {
    let members = value
        .split(',')
        .map(|member| member.trim_matches([' ', '\t']));
    let mut keys = Vec::new();
    for member in members.filter(|member| !member.is_empty()) {
        let Some((key, value)) = member.split_once('=') else {
            return false;
        };
        let printable = |byte: u8| (0x20..0x7f).contains(&byte) && !b",=".contains(&byte);
        let fits = is_state_key(key) && (1..=256).contains(&value.len());
        if !fits || !value.bytes().all(printable) || value.ends_with(' ') || keys.contains(&key) {
            return false;
        }
        keys.push(key);
    }
    keys.len() <= 32
}

fn is_state_key(key: &str) -> bool {
    let inner =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_-*/".contains(&byte);
    let part = |part: &str, len: usize| {
        let first = part.bytes().next();
        first.is_some_and(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
            && part.len() <= len
            && part.bytes().all(inner)
    };
    match key.split_once('@') {
        Some((tenant, system)) => part(tenant, 241) && part(system, 14),
        None => part(key, 256),
    }
}

/// Baggage, 3.3: members `key=value`, each with optional properties after semicolons.
fn is_baggage(value: &str) -> bool {
    let is_token = |key: &str| {
        let inner = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
        !key.is_empty() && key.bytes().all(inner)
    };
    let is_value = |value: &str| {
        let inner = |byte: u8| (0x21..0x7f).contains(&byte) && !b"\",;\\".contains(&byte);
        value.bytes().all(inner)
    };
    let trim = |text: &str| text.trim_matches([' ', '\t']).to_owned();
    let is_pair = |pair: &str| match pair.split_once('=') {
        Some((key, value)) => is_token(&trim(key)) && is_value(&trim(value)),
        None => false,
    };
    let is_member = |member: &str| {
        let mut parts = member.split(';');
        parts.next().is_some_and(is_pair)
            && parts.all(|property| is_token(&trim(property)) || is_pair(property))
    };
    !value.is_empty() && value.split(',').all(is_member)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// R-MET-09.
    #[test]
    fn each_key_has_the_syntax_of_its_recommendation() {
        let many = |n: usize| {
            let members: Vec<_> = (0..n).map(|n| format!("k{n}=v")).collect();
            members.join(",")
        };
        let trace = "0af7651916cd43dd8448eb211c80319c";
        let parent =
            |version: &str, rest: &str| format!("{version}-{trace}-b7ad6b7169203331-{rest}");
        let (thirty_two, thirty_three) = (many(32), many(33));
        let long = format!("a={}", "v".repeat(256));
        for (key, good, bad) in [
            (
                "traceparent",
                vec![parent("00", "01"), parent("01", "00-more")],
                vec![
                    String::new(),
                    parent("00", "1"),
                    parent("00", "01-more"),
                    parent("ff", "01"),
                    parent("00", "0G"),
                    parent("00", "01").to_uppercase(),
                    format!("00-{}-b7ad6b7169203331-01", "0".repeat(32)),
                    format!("00-{trace}-{}-01", "0".repeat(16)),
                ],
            ),
            (
                "tracestate",
                vec![
                    "a=b".into(),
                    "a=b, 1x@sys=c d ,".into(),
                    thirty_two,
                    long.clone(),
                ],
                vec![
                    "a".into(),
                    "A=b".into(),
                    "a=".into(),
                    "a=b,a=c".into(),
                    "a=b\n".into(),
                    "@s=b".into(),
                    thirty_three,
                    format!("{long}v"),
                ],
            ),
            (
                "baggage",
                vec!["k=v".into(), "a=1;p;q=2 , b = %20".into(), "a=".into()],
                vec![
                    "".into(),
                    "k".into(),
                    "a b=c".into(),
                    "a=b c".into(),
                    "a=\"b\"".into(),
                ],
            ),
        ] {
            for good in good {
                assert!(is_valid(key, &good), "{key}: {good}");
            }
            for bad in bad {
                assert!(!is_valid(key, &bad), "{key}: {bad}");
            }
        }
        assert!(is_valid("com.example/other", "\u{0}"));
    }
}
