//! Patterns of URIs: `*` matches anything within one path segment, `**` anything.

/// Normalises a URI for matching: scheme and host in lower case, unnecessary escapes decoded, no `.`
/// and no empty segments in the path. `None` if the path has a `..` segment, in any spelling: such URIs
/// are never allowed (R-PER-04).
pub(super) fn normalised(uri: &str) -> Option<String> {
    let plain = unescaped(uri);
    let (scheme, rest) = plain.split_once(':').unwrap_or(("", &plain));
    let (rest, tail) = rest.split_at(rest.find(['?', '#']).unwrap_or(rest.len()));
    let rest = rest.replace('\\', "/");
    let (host, path) = match rest.strip_prefix("//") {
        None => (None, &*rest),
        Some(rest) => {
            let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
            (Some(host), path)
        }
    };
    let steps: Vec<&str> = path.split('/').collect();
    if steps.contains(&"..") {
        return None;
    }
    let last = steps.len() - 1;
    let mut kept = Vec::with_capacity(steps.len());
    for (i, step) in steps.into_iter().enumerate() {
        let is_edge = i == 0 || i == last;
        if step != "." && (is_edge || !step.is_empty()) {
            kept.push(step);
        }
    }
    let mut out = String::with_capacity(uri.len());
    if !scheme.is_empty() {
        out.push_str(&scheme.to_ascii_lowercase());
        out.push(':');
    }
    if let Some(host) = host {
        out.push_str("//");
        out.push_str(&host.to_ascii_lowercase());
    }
    out.push_str(&kept.join("/"));
    out.push_str(tail);
    Some(out)
}

/// Decodes unnecessary escapes (RFC 3986, 2.3) and escaped slashes and backslashes.
fn unescaped(uri: &str) -> String {
    let mut out = Vec::with_capacity(uri.len());
    let mut rest = uri.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        let code = after
            .get(..2)
            .filter(|_| byte == b'%')
            .and_then(|digits| str::from_utf8(digits).ok())
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        let plain = |code: &u8| code.is_ascii_alphanumeric() || b"-._~/\\".contains(code);
        match code.filter(plain) {
            Some(code) => {
                out.push(code);
                rest = &after[2..];
            }
            None => {
                out.push(byte);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// Whether `pattern` matches all of `text`. Takes time proportional to the product of both lengths.
pub(super) fn fits(pattern: &str, text: &str) -> bool {
    let text = text.as_bytes();
    // reach[j]: the pattern read so far matches the first j bytes.
    let mut reach = vec![false; text.len() + 1];
    reach[0] = true;
    let mut rest = pattern.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        if byte != b'*' {
            for at in (0..text.len()).rev() {
                reach[at + 1] = reach[at] && text[at] == byte;
            }
            reach[0] = false;
            continue;
        }
        let across = rest.first() == Some(&b'*');
        if across {
            rest = &rest[1..];
        }
        for at in 0..text.len() {
            reach[at + 1] |= reach[at] && (across || text[at] != b'/');
        }
    }
    reach[text.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// R-PER-04
    #[test]
    fn stars_stay_within_a_segment_and_two_of_them_do_not() {
        for (pattern, text, expected) in [
            ("file:///a/*", "file:///a/b", true),
            ("file:///a/*", "file:///a/", true),
            ("file:///a/*", "file:///a/b/c", false),
            ("file:///a/**", "file:///a/b/c", true),
            ("file:///a/**", "file:///ab", false),
            ("**", "anything://at/all", true),
            ("*", "a/b", false),
            ("file:///**/*.txt", "file:///a/b/c.txt", true),
            ("file:///**/*.txt", "file:///c.txt.exe", false),
            ("", "", true),
            ("", "a", false),
            ("a*b*c", "aXbYbZc", true),
        ] {
            assert_eq!(fits(pattern, text), expected, "{pattern} {text}");
        }
        let long = "a".repeat(10_000);
        assert!(!fits(&"*a".repeat(50), &format!("{long}b")));
    }

    /// R-PER-04
    #[test]
    fn one_place_has_one_spelling() {
        for (spelt, plain) in [
            ("FILE:///A/./b", "file:///A/b"),
            ("file:////a//b", "file:///a/b"),
            ("file:///%61/b%20c", "file:///a/b%20c"),
            (
                "HTTPS://Example.COM/X?q=%2e%2e/..",
                "https://example.com/X?q=../..",
            ),
            ("file:///a\\b", "file:///a/b"),
            ("file:///a/", "file:///a/"),
            ("users:7", "users:7"),
        ] {
            assert_eq!(normalised(spelt).as_deref(), Some(plain), "{spelt}");
        }
        for upwards in [
            "file:///a/../b",
            "file:///a/%2e%2E/b",
            "file:///a%2f..%2fb",
            "file:///a\\..\\b",
            "file:///a%5c..%5cb",
            "file:..",
        ] {
            assert_eq!(normalised(upwards), None, "{upwards}");
        }
    }
}
