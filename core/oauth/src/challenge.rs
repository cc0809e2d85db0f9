//! `WWW-Authenticate`: what a server asks for, read and written (RFC 9110, section 11.6.1).
//!
//! ```
//! use mcpbolt_oauth::challenge::Challenge;
//! let header = r#"Basic realm="files", Bearer error="invalid_token", scope="read write""#;
//! let challenges = Challenge::parse_all([header.as_bytes()]);
//! let bearer = challenges.iter().find(|it| it.is("bearer")).unwrap();
//! assert_eq!(bearer.get("scope"), Some("read write"));
//! assert_eq!(bearer.to_string(), r#"Bearer error="invalid_token", scope="read write""#);
//! ```

use std::borrow::Cow;
use std::fmt;

/// Most bytes of all headers together that are read; the rest is ignored.
const MAX_BYTES: usize = 16 << 10;

/// Most challenges that are kept.
const MAX_CHALLENGES: usize = 16;

/// Most parameters of one challenge that are kept.
const MAX_PARAMETERS: usize = 32;

/// One challenge: a scheme, and either parameters or one token in place of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Challenge {
    scheme: String,
    token68: Option<String>,
    parameters: Vec<(String, String)>,
}

impl Challenge {
    /// A challenge without parameters. The scheme is a token, such as `Bearer`.
    pub fn new(scheme: impl Into<String>) -> Self {
        Self {
            scheme: scheme.into(),
            token68: None,
            parameters: Vec::new(),
        }
    }

    /// Adds a parameter. The name is a token; the value may be any text and is quoted as needed.
    #[must_use]
    pub fn with(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.parameters.push((name.into(), value.into()));
        self
    }

    /// The scheme, as it was written.
    pub fn scheme(&self) -> &str {
        &self.scheme
    }

    /// Whether the challenge has that scheme, in any case.
    pub fn is(&self, scheme: &str) -> bool {
        self.scheme.eq_ignore_ascii_case(scheme)
    }

    /// The value of a parameter, by its name in any case. If it is given twice, the first counts.
    pub fn get(&self, name: &str) -> Option<&str> {
        let mut parameters = self.parameters.iter();
        let found = parameters.find(|(own, _)| own.eq_ignore_ascii_case(name));
        found.map(|(_, value)| &**value)
    }

    /// The token in place of parameters, if there is one.
    pub fn token68(&self) -> Option<&str> {
        self.token68.as_deref()
    }

    /// The challenges of all `WWW-Authenticate` headers of one response, in order. What is malformed is
    /// skipped to the next comma. At most 16 challenges with 32 parameters each, from 16 KiB, are read.
    pub fn parse_all<'a>(headers: impl IntoIterator<Item = &'a [u8]>) -> Vec<Self> {
        let (mut all, mut left) = (Vec::new(), MAX_BYTES);
        for header in headers {
            let header = header.get(..left).unwrap_or(header);
            left -= header.len();
            Parser { rest: header }.challenges(&mut all);
        }
        all
    }
}

/// Writes the challenge as the value of a header. Values are quoted; characters that no header may have
/// become spaces or question marks.
impl fmt::Display for Challenge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.scheme)?;
        if let Some(token) = &self.token68 {
            return write!(f, " {token}");
        }
        for (at, (name, value)) in self.parameters.iter().enumerate() {
            write!(f, "{} {name}=\"", if at > 0 { "," } else { "" })?;
            for c in value.chars() {
                match c {
                    '"' | '\\' => write!(f, "\\{c}")?,
                    ' '..='~' => write!(f, "{c}")?,
                    _ if c.is_ascii_control() => f.write_str(" ")?,
                    _ => f.write_str("?")?,
                }
            }
            f.write_str("\"")?;
        }
        Ok(())
    }
}

/// Reads one header from its front.
struct Parser<'a> {
    rest: &'a [u8],
}

impl<'a> Parser<'a> {
    fn challenges(&mut self, all: &mut Vec<Challenge>) {
        let before = all.len();
        loop {
            self.take_while(|byte| is_space(byte) || byte == b',');
            if self.rest.is_empty() {
                return;
            }
            let name = self.take_while(is_token);
            if name.is_empty() {
                self.skip_item();
                continue;
            }
            let spaces = self.take_while(is_space);
            if self.peek() == Some(b'=') {
                let value = self.parameter_value();
                // Parameters belong to the challenge before them, which must be of the same header.
                if let Some(value) = value
                    && let Some(challenge) = all.get_mut(before..).and_then(<[_]>::last_mut)
                    && challenge.parameters.len() < MAX_PARAMETERS
                {
                    challenge
                        .parameters
                        .push((text(name).into(), value.into_owned()));
                }
                continue;
            }
            if all.len() == MAX_CHALLENGES {
                return;
            }
            let mut challenge = Challenge::new(text(name));
            if !spaces.is_empty() {
                challenge.token68 = self.token68().map(Into::into);
            }
            all.push(challenge);
        }
    }

    /// The token after a scheme, if nothing else follows before the next comma.
    fn token68(&mut self) -> Option<Cow<'a, str>> {
        let start = self.rest;
        let token = self.take_while(|byte| {
            byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~' | b'+' | b'/')
        });
        let padding = self.take_while(|byte| byte == b'=');
        self.take_while(is_space);
        if !token.is_empty() && matches!(self.peek(), None | Some(b',')) {
            return start.get(..token.len() + padding.len()).map(text);
        }
        self.rest = start;
        None
    }

    /// The value after `=`; `None` if it is malformed.
    fn parameter_value(&mut self) -> Option<Cow<'a, str>> {
        self.skip(1);
        self.take_while(is_space);
        if self.peek() == Some(b'"') {
            return self.quoted();
        }
        // Servers leave addresses unquoted, too.
        let value = self.take_while(|byte| !is_space(byte) && byte != b',' && byte != b'"');
        let is_alone = matches!(self.peek(), None | Some(b',' | b' ' | b'\t'));
        match is_alone && !value.is_empty() {
            true => Some(text(value)),
            false => {
                self.skip_item();
                None
            }
        }
    }

    /// A quoted text, without its quotes; `None` if it has no end.
    fn quoted(&mut self) -> Option<Cow<'a, str>> {
        self.skip(1);
        let mut value = Vec::new();
        while let Some(byte) = self.next() {
            match byte {
                b'"' => return Some(text(&value).into_owned().into()),
                b'\\' => value.push(self.next()?),
                _ => value.push(byte),
            }
        }
        None
    }

    /// Skips to the next comma outside of quotes.
    fn skip_item(&mut self) {
        while let Some(byte) = self.peek() {
            match byte {
                b',' => return,
                b'"' => drop(self.quoted()),
                _ => self.skip(1),
            }
        }
    }

    fn peek(&self) -> Option<u8> {
        self.rest.first().copied()
    }

    fn next(&mut self) -> Option<u8> {
        let byte = self.peek();
        self.skip(1);
        byte
    }

    fn skip(&mut self, len: usize) {
        self.rest = self.rest.get(len..).unwrap_or_default();
    }

    fn take_while(&mut self, belongs: impl Fn(u8) -> bool) -> &'a [u8] {
        let len = self.rest.iter().position(|&byte| !belongs(byte));
        let (taken, rest) = self.rest.split_at(len.unwrap_or(self.rest.len()));
        self.rest = rest;
        taken
    }
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

/// Whether a byte may be part of a token (RFC 9110, section 5.6.2).
fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

fn text(bytes: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}
