//! URI templates (RFC 6570, levels 1 to 3 without lists), matched against URIs in linear time.
//!
//! A template is a sequence of literals and variables. A variable takes the shortest text after
//! which the next literal matches, and two variables are never adjacent, so no backtracking is
//! needed (R-RES-05).

use std::borrow::Cow;
use std::fmt;
use std::path::{Component, Path, PathBuf};

use memchr::{memchr, memchr2, memchr3, memmem};

/// Why a text is not a valid template.
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
    /// are adjacent.
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

    /// Returns whether the template has a variable with this name.
    pub fn has_variable(&self, name: &str) -> bool {
        self.parts.iter().any(|(own, ..)| own == name)
    }

    /// Returns the variables' values, percent-decoded once, if the URI matches the template.
    ///
    /// For every scheme, the decoded URI has no segment `..` and no NUL. The value of a `{name}` is
    /// one segment: it has no `/` and no `\`, and is neither `.` nor `..`. The value of a `{+name}`
    /// may be several segments, and absolute: join it with [`path_under`] (R-RES-03).
    pub fn match_uri(&self, uri: &str) -> Option<Vec<(String, String)>> {
        Some(owned(self.match_checked(CheckedUri::new(uri)?)?))
    }

    /// Matches a URI that is checked once for several templates; values without escapes are
    /// borrowed.
    pub(super) fn match_checked<'a>(
        &'a self,
        CheckedUri(uri): CheckedUri<'a>,
    ) -> Option<Values<'a>> {
        let mut rest = uri.strip_prefix(self.prefix.as_str())?;
        // The cheap test of the suffix comes before any search or decoding.
        if !self
            .parts
            .last()
            .is_none_or(|(.., last)| rest.ends_with(last))
        {
            return None;
        }
        let mut values = Vec::with_capacity(self.parts.len());
        for (i, (name, reserved, literal)) in self.parts.iter().enumerate() {
            let end = match i + 1 == self.parts.len() {
                true => rest.len().checked_sub(literal.len())?,
                false => memmem::find(rest.as_bytes(), literal.as_bytes())?,
            };
            let value = rest.get(..end)?;
            rest = rest.get(end + literal.len()..)?;
            if value.is_empty()
                || (!reserved && memchr3(b'/', b'?', b'#', value.as_bytes()).is_some())
            {
                return None;
            }
            let value = decode(value)?;
            let is_segment = memchr2(b'/', b'\\', value.as_bytes()).is_none() && value != ".";
            if leads_out(&value) || !(*reserved || is_segment) {
                return None;
            }
            values.push((name.as_str(), value));
        }
        rest.is_empty().then_some(values)
    }
}

/// Variables with their values, in order.
pub(super) type Values<'a> = Vec<(&'a str, Cow<'a, str>)>;

pub(super) fn owned(values: Values<'_>) -> Vec<(String, String)> {
    let owned = |(name, value): (&str, Cow<'_, str>)| (name.to_owned(), value.into_owned());
    values.into_iter().map(owned).collect()
}

/// A URI with valid escapes whose decoded form has no segment `..` and no NUL.
#[derive(Clone, Copy)]
pub(super) struct CheckedUri<'a>(&'a str);

impl<'a> CheckedUri<'a> {
    /// Checks a URI; `None` if it can match no template.
    pub fn new(uri: &'a str) -> Option<Self> {
        (!leads_out(&decode(uri)?)).then_some(Self(uri))
    }
}

/// Returns whether a decoded URI, or a part of it, has a segment `..` or a NUL, which ends a path
/// on some systems.
fn leads_out(text: &str) -> bool {
    let uri = text.as_bytes();
    let is_parent = |segment: &[u8]| segment == b"..";
    memchr(0, uri).is_some()
        || text.contains("..")
            && uri
                .split(|byte| matches!(byte, b'/' | b'\\'))
                .any(is_parent)
}

/// Joins a file name chosen by a client to `root`, for example the `{+path}` of a [resource
/// template](super::Builder::resource_template). `None` if the name is absolute, has a segment
/// `..`, a `\` or a NUL, or names no file.
///
/// Checks names only. If clients can create symbolic links under `root`, also canonicalize the path
/// and check that it begins with the canonical `root`.
///
/// ```
/// use std::path::Path;
/// use mcpbolt::server::path_under;
/// let root = Path::new("/srv/docs");
/// assert_eq!(path_under(root, "a/b.txt"), Some("/srv/docs/a/b.txt".into()));
/// assert_eq!(path_under(root, "../secret"), None);
/// assert_eq!(path_under(root, "/etc/passwd"), None);
/// ```
pub fn path_under(root: &Path, name: &str) -> Option<PathBuf> {
    if name.contains(['\0', '\\']) {
        return None;
    }
    let mut path = root.to_path_buf();
    for component in Path::new(name).components() {
        match component {
            Component::Normal(part) => path.push(part),
            Component::CurDir => {}
            Component::Prefix(_) | Component::RootDir | Component::ParentDir => return None,
        }
    }
    (path != root).then_some(path)
}

/// Number of unescaped bytes after which the next escape is searched for with `memchr`; searching
/// for near ones costs more than it saves.
const PLAIN_RUN: usize = 16;

/// Percent-decodes; borrows if nothing is escaped. `None` when the result is not UTF-8 or an escape
/// is malformed.
fn decode(text: &str) -> Option<Cow<'_, str>> {
    let Some(first) = memchr(b'%', text.as_bytes()) else {
        return Some(text.into());
    };
    let (plain, escaped) = text.as_bytes().split_at(first);
    let mut out = Vec::with_capacity(text.len());
    out.extend_from_slice(plain);
    let mut bytes = escaped.iter();
    let mut run = 0;
    while let Some(byte) = bytes.next() {
        if *byte == b'%' {
            run = 0;
            let mut digit = || char::from(*bytes.next()?).to_digit(16);
            out.push((digit()? * 16 + digit()?) as u8);
            continue;
        }
        out.push(*byte);
        run += 1;
        if run == PLAIN_RUN {
            let rest = bytes.as_slice();
            let (plain, escaped) = rest.split_at(memchr(b'%', rest).unwrap_or(rest.len()));
            out.extend_from_slice(plain);
            bytes = escaped.iter();
        }
    }
    Some(String::from_utf8(out).ok()?.into())
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

    /// R-RES-03, R-RES-05: on every scheme, and however it is spelled.
    #[test]
    fn no_variable_leads_out_of_its_place() {
        for scheme in ["file:///docs/", "notes://", "x:"] {
            let one = format!("{scheme}{{name}}");
            let path = format!("{scheme}{{+path}}");
            for bad in [
                "%2Fetc%2Fpasswd",
                "a%2fb",
                "a%5Cb",
                "a\\b",
                "a%00b",
                "%00",
                ".",
                "%2e",
                "..",
                "%2E%2e",
                ".%2e",
            ] {
                assert_eq!(values(&one, &format!("{scheme}{bad}")), None, "{bad}");
            }
            for good in ["a..b", "...", ".a", "a.", "%252e%252e", "a b%20c"] {
                assert!(values(&one, &format!("{scheme}{good}")).is_some(), "{good}");
            }
            for bad in [
                "..",
                "../a",
                "a/..",
                "a/../b",
                "a%2f..%2Fb",
                "a\\..\\b",
                "a%5c%2e%2E",
                "a/%00",
            ] {
                assert_eq!(values(&path, &format!("{scheme}{bad}")), None, "{bad}");
            }
            for (good, value) in [
                ("a/b", "a/b"),
                ("a%2Fb", "a/b"),
                ("/a", "/a"),
                ("a/./b", "a/./b"),
                ("a..b/...", "a..b/..."),
            ] {
                let found = values(&path, &format!("{scheme}{good}"));
                assert_eq!(found.unwrap(), [value], "{good}");
            }
        }
        // A preceding literal does not help either.
        assert_eq!(values("file:///a/.{+path}", "file:///a/../b"), None);
    }

    /// The rules of [`Template::match_uri`], spelled out without regard to cost.
    fn naive(template: &Template, uri: &str) -> Option<Vec<(String, String)>> {
        fn decoded(text: &str) -> Option<String> {
            let mut out = Vec::new();
            let mut pieces = text.split('%');
            out.extend(pieces.next()?.bytes());
            for piece in pieces {
                let (digits, plain) = piece.as_bytes().split_at_checked(2)?;
                let value = |digit: &u8| char::from(*digit).to_digit(16);
                out.push((value(&digits[0])? * 16 + value(&digits[1])?) as u8);
                out.extend(plain);
            }
            String::from_utf8(out).ok()
        }
        let leads_out =
            |text: &str| text.contains('\0') || text.split(['/', '\\']).any(|part| part == "..");
        if leads_out(&decoded(uri)?) {
            return None;
        }
        let mut rest = uri.strip_prefix(&template.prefix)?.to_owned();
        let mut values = Vec::new();
        for (i, (name, reserved, literal)) in template.parts.iter().enumerate() {
            let value = match i + 1 == template.parts.len() {
                true => rest.strip_suffix(literal)?.to_owned(),
                false => rest.split_once(literal)?.0.to_owned(),
            };
            rest = rest[value.len() + literal.len()..].to_owned();
            let read = decoded(&value)?;
            let is_segment = !value.contains(['/', '?', '#'])
                && !read.contains(['/', '\\'])
                && ![".", ".."].contains(&read.as_str());
            if value.is_empty() || leads_out(&read) || !(*reserved || is_segment) {
                return None;
            }
            values.push((name.clone(), read));
        }
        rest.is_empty().then_some(values)
    }

    /// R-RES-03, R-RES-05: random URIs and templates made of the parts that the rules distinguish.
    #[test]
    fn matching_is_what_the_rules_say() {
        const PARTS: [&str; 24] = [
            "a", "b", ".", "..", "...", "/", "//", "\\", "?", "#", "\0", "%", "%2", "%2e", "%2E",
            "%2f", "%5c", "%00", "%25", "%c3%a9", "%c3", "é", "/text", "-",
        ];
        const TEMPLATES: [&str; 12] = [
            "x:",
            "x:{a}",
            "x:{+a}",
            "x:{a}/text",
            "x:{+a}/text",
            "x:{a}-{b}",
            "x:{a}/{+b}",
            "x:{+a}.{b}",
            "x:{+a}/{+b}-",
            "x:{a}%2{+b}",
            "x:.{+a}e",
            "x:{+a}é",
        ];
        let templates = TEMPLATES.map(|text| Template::parse(text).unwrap());
        // A Lehmer generator: the same URIs in each run.
        let mut seed = 1_u64;
        let mut below = |n: usize| {
            seed = seed * 48_271 % 0x7fff_ffff;
            seed as usize % n
        };
        let mut matched = 0;
        for _ in 0..50_000 {
            let parts: String = (0..below(7)).map(|_| PARTS[below(PARTS.len())]).collect();
            let uri = format!("x:{parts}");
            for (template, text) in templates.iter().zip(TEMPLATES) {
                let found = template.match_uri(&uri);
                assert_eq!(found, naive(template, &uri), "{text} {uri:?}");
                matched += usize::from(found.is_some());
            }
        }
        assert!(matched > 10_000, "{matched}");
    }

    #[test]
    fn paths_are_joined_under_their_root() {
        let root = Path::new("/srv/docs");
        let under = |name| path_under(root, name);
        assert_eq!(under("a//b/./c"), Some(root.join("a/b/c")));
        assert_eq!(under("./a"), Some(root.join("a")));
        for bad in ["", ".", "..", "a/../../b", "/a", "//a", "a\0", "a\\b"] {
            assert_eq!(under(bad), None, "{bad:?}");
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
