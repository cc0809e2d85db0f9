//! URI templates (RFC 6570, levels 1 to 3 without lists) matched against URIs in linear time.
//!
//! A template is a sequence of literals and variables; a variable takes as little as lets the
//! next literal match, and two variables never touch, so no backtracking is needed (R-RES-05).

use std::fmt;

/// Why a text is not a usable template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidTemplate(Box<str>);

impl fmt::Display for InvalidTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the URI template is not valid: {}", self.0)
    }
}

impl std::error::Error for InvalidTemplate {}

/// A parsed template.
#[derive(Clone, Debug, PartialEq)]
pub struct Template {
    prefix: String,
    /// Each variable, whether it may contain reserved characters such as `/`, and the literal
    /// that follows it.
    parts: Vec<(String, bool, String)>,
}

impl Template {
    /// Parses `scheme://literal/{variable}/{+path}`.
    ///
    /// # Errors
    /// When braces do not match, a name is empty, an operator is not supported, or two variables
    /// touch.
    pub fn parse(text: &str) -> Result<Self, InvalidTemplate> {
        let invalid = |why: String| Err(InvalidTemplate(why.into()));
        let mut pieces = text.split('{');
        let prefix = pieces.next().unwrap_or_default();
        if prefix.contains('}') {
            return invalid("a brace closes nothing".into());
        }
        let mut parts: Vec<(String, bool, String)> = Vec::new();
        for piece in pieces {
            let Some((name, literal)) = piece.split_once('}') else {
                return invalid("a brace is not closed".into());
            };
            let (reserved, name) = match name.strip_prefix('+') {
                Some(name) => (true, name),
                None => (false, name),
            };
            let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
            if name.is_empty() || !name.chars().all(plain) {
                return invalid(format!("{{{name}}} is not supported"));
            }
            if literal.contains('}') {
                return invalid("a brace closes nothing".into());
            }
            if parts.last().is_some_and(|(.., literal)| literal.is_empty()) {
                return invalid("two variables touch".into());
            }
            parts.push((name.into(), reserved, literal.into()));
        }
        Ok(Self {
            prefix: prefix.into(),
            parts,
        })
    }

    /// Whether it has a variable of that name.
    pub fn has_variable(&self, name: &str) -> bool {
        self.parts.iter().any(|(own, ..)| own == name)
    }

    /// The variables' values, percent-decoded, if the URI is one of this template.
    pub fn match_uri(&self, uri: &str) -> Option<Vec<(String, String)>> {
        let mut rest = uri.strip_prefix(self.prefix.as_str())?;
        let mut values = Vec::with_capacity(self.parts.len());
        for (i, (name, reserved, literal)) in self.parts.iter().enumerate() {
            let last = i + 1 == self.parts.len();
            let end = match (literal.is_empty(), last) {
                (true, _) => rest.len(),
                (false, true) => rest
                    .len()
                    .checked_sub(literal.len())
                    .filter(|at| rest.ends_with(literal) && rest.is_char_boundary(*at))?,
                (false, false) => rest.find(literal.as_str())?,
            };
            let (value, after) = rest.split_at(end);
            if value.is_empty() || (!reserved && value.contains(['/', '?', '#'])) {
                return None;
            }
            values.push((name.clone(), decode(value)?));
            rest = after.get(literal.len()..)?;
        }
        rest.is_empty().then_some(values)
    }
}

/// Percent-decoding; `None` when the result is no UTF-8 or an escape is broken.
fn decode(text: &str) -> Option<String> {
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        if byte != b'%' {
            out.push(byte);
            continue;
        }
        let mut digit = || (bytes.next()? as char).to_digit(16);
        out.push((digit()? * 16 + digit()?) as u8);
    }
    String::from_utf8(out).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(template: &str, uri: &str) -> Option<Vec<String>> {
        let values = Template::parse(template).unwrap().match_uri(uri)?;
        Some(values.into_iter().map(|(_, value)| value).collect())
    }

    /// R-RES-05.
    #[test]
    fn variables_take_what_lies_between_the_literals() {
        assert_eq!(
            values("test://t/{id}/data", "test://t/123/data").unwrap(),
            ["123"]
        );
        assert_eq!(
            values("file:///{+path}", "file:///a/b%20c.txt").unwrap(),
            ["a/b c.txt"]
        );
        assert_eq!(
            values("db://{table}/{row}", "db://users/7").unwrap(),
            ["users", "7"]
        );
        assert_eq!(values("x:{a}-{b}", "x:1-2-3").unwrap(), ["1", "2-3"]);
        for uri in [
            "test://t//data",
            "test://t/1/2/data",
            "test://t/1/dat",
            "other://t/1/data",
            "test://t/%zz/data",
        ] {
            assert_eq!(values("test://t/{id}/data", uri), None, "{uri}");
        }
    }

    /// R-RES-05.
    #[test]
    fn what_is_not_supported_is_refused() {
        for template in [
            "x:{", "x:}", "x:{}", "x:{a}{b}", "x:{?q}", "x:{a,b}", "x:{a*}",
        ] {
            assert!(Template::parse(template).is_err(), "{template}");
        }
    }
}
