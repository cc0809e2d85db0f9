//! Masks credentials in texts: in errors, in failures of tools and in audit events.

use std::borrow::Cow;

use crate::connection::{is_secret, mask_with};

/// What takes the place of a masked text.
pub(crate) const MASK: &str = "***";

/// Prefixes of well-known kinds of tokens.
const PREFIXES: [&str; 17] = [
    "sk-",
    "sk_",
    "rk_",
    "pk_live_",
    "ghp_",
    "gho_",
    "ghu_",
    "ghs_",
    "ghr_",
    "github_pat_",
    "glpat-",
    "xoxa-",
    "xoxb-",
    "xoxp-",
    "AKIA",
    "AIza",
    "npm_",
];
/// Shortest token that is recognised by its form.
const SHORTEST: usize = 12;

/// Finds and masks credentials in texts: values after names that suggest secrets, what follows `Bearer`
/// and `Basic`, tokens of known forms, passwords in URLs, private keys, and secrets that the program
/// registers.
#[derive(Clone, Debug, Default)]
pub struct Redaction {
    secrets: Vec<String>,
}

impl Redaction {
    /// Creates a redaction without registered secrets.
    pub fn new() -> Self {
        Self::default()
    }

    /// Masks every occurrence of `secret`. An empty `secret` is ignored.
    #[must_use]
    pub fn secret(mut self, secret: impl Into<String>) -> Self {
        let secret = secret.into();
        if !secret.is_empty() {
            self.secrets.push(secret);
            // Longest first, since one secret may be part of another.
            self.secrets
                .sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        }
        self
    }

    /// Returns the text with its credentials masked.
    ///
    /// ```
    /// use mcpbolt::policy::Redaction;
    /// let redaction = Redaction::new().secret("hunter2");
    /// assert_eq!(redaction.text("no hunter2 at postgres://me:pw@db/x"), "no *** at postgres://***@db/x");
    /// assert_eq!(redaction.text("Authorization: Bearer a1b2c3d4"), "Authorization: Bearer ***");
    /// ```
    pub fn text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let mut text = Cow::Borrowed(text);
        for secret in &self.secrets {
            if text.contains(&**secret) {
                text = Cow::Owned(text.replace(&**secret, MASK));
            }
        }
        if let Some(keyless) = without_keys(&text) {
            text = Cow::Owned(keyless);
        }
        let masked = words(&text);
        if masked == *text {
            return text;
        }
        Cow::Owned(masked)
    }

    /// Returns JSON with credentials masked, both in strings and in members whose names suggest
    /// secrets.
    pub fn json(&self, json: &str) -> String {
        mask_with(json, |text| self.text(text).into_owned())
    }
}

/// Masks private keys in PEM; `None` if there is none.
fn without_keys(text: &str) -> Option<String> {
    const KIND: &str = "PRIVATE KEY-----";
    let begin = text.find("-----BEGIN ")?;
    let head = text[begin..].find(KIND)? + begin + KIND.len();
    let end = text[head..]
        .find(KIND)
        .map_or(text.len(), |at| head + at + KIND.len());
    let rest = &text[end..];
    let rest = without_keys(rest).unwrap_or_else(|| rest.to_owned());
    Some(format!("{}{MASK}{rest}", &text[..begin]))
}

/// The kind of word that is expected next, given the words before it.
#[derive(Clone, Copy, PartialEq)]
enum Next {
    Plain,
    /// The value of a name that suggests a secret.
    Secret,
    /// The word after `Bearer` or `Basic`, if it looks like a credential.
    Credential,
}

fn words(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut next = Next::Plain;
    for piece in text.split_inclusive(parts) {
        let found = piece.trim_end_matches(parts);
        if !found.is_empty() {
            next = word(&mut out, found, next);
        }
        out.push_str(&piece[found.len()..]);
    }
    out
}

fn parts(c: char) -> bool {
    c.is_whitespace() || "\"'`,;(){}[]<>|&?".contains(c)
}

fn word(out: &mut String, word: &str, expected: Next) -> Next {
    if matches!(word.to_ascii_lowercase().as_str(), "bearer" | "basic") {
        out.push_str(word);
        return Next::Credential;
    }
    if expected == Next::Secret || expected == Next::Credential && is_credential(word) {
        out.push_str(MASK);
        return Next::Plain;
    }
    let mut masked = |before: &str, after: &str| out.extend([before, MASK, after]);
    if let Some((scheme, rest)) = word.split_once("://") {
        let authority = rest.find('/').unwrap_or(rest.len());
        if let Some(at) = rest[..authority].rfind('@') {
            masked(&word[..scheme.len() + 3], &rest[at..]);
            return Next::Plain;
        }
    }
    if let Some(at) = word.find(['=', ':']) {
        let (name, value) = word.split_at(at + 1);
        let is_secret = is_secret(&word[..at]);
        if is_secret && value.is_empty() {
            out.push_str(name);
            return Next::Secret;
        }
        if is_secret || is_token(value) {
            masked(name, "");
            return Next::Plain;
        }
    }
    out.push_str(if is_token(word) { MASK } else { word });
    Next::Plain
}

/// Whether the word looks like a credential rather than a word of a sentence.
fn is_credential(word: &str) -> bool {
    let odd = |byte: u8| byte.is_ascii_digit() || b"=_+/.~".contains(&byte);
    word.len() >= 16 || word.trim_end_matches('.').bytes().any(odd)
}

/// Whether the word has the form of a token.
fn is_token(word: &str) -> bool {
    let jwt = word.starts_with("eyJ") && word.matches('.').count() >= 2;
    let known = PREFIXES.iter().any(|prefix| word.starts_with(prefix));
    word.len() >= SHORTEST && (jwt || known)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// R-ERR-29
    #[test]
    fn credentials_are_masked_wherever_they_are_planted() {
        let redaction = Redaction::new().secret("correct horse").secret("");
        for (text, shown) in [
            ("the correct horse knows", "the *** knows"),
            ("password=hunter2 was wrong", "password=*** was wrong"),
            ("password: hunter2", "password: ***"),
            ("X-Api-Key: 12345", "X-Api-Key: ***"),
            (
                "Authorization: Bearer abc.def_1",
                "Authorization: Bearer ***",
            ),
            (
                "Authorization: Basic dXNlcjpwdw==",
                "Authorization: Basic ***",
            ),
            (
                "GET https://u:p@host/x?access_token=t&n=1",
                "GET https://***@host/x?access_token=***&n=1",
            ),
            ("key sk-1234567890abcdef", "key ***"),
            ("got eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln", "got ***"),
            (
                "-----BEGIN RSA PRIVATE KEY-----\nMII\n-----END RSA PRIVATE KEY-----!",
                "***!",
            ),
            ("ghp_0123456789abcdef, and more", "***, and more"),
        ] {
            assert_eq!(redaction.text(text), shown);
        }
    }

    #[test]
    fn ordinary_sentences_stay_as_they_are() {
        let redaction = Redaction::new();
        for text in [
            "",
            "the token has expired",
            "Basic auth is off, use Bearer tokens.",
            "no tool \"x\": see https://example.com/a?b=c",
            "at 12:30:05 in file:///a/b.txt",
            "task-force sk-8",
        ] {
            assert!(
                matches!(redaction.text(text), Cow::Borrowed(same) if same == text),
                "{text}"
            );
        }
    }

    /// R-ERR-29
    #[test]
    fn json_stays_json() {
        let redaction = Redaction::new().secret("hunter2");
        let json = r#"{"why":"at\nsk-1234567890abcdef","nested":[{"api_key":"k","n":1}],"t":"a hunter2\""}"#;
        let shown = r#"{"why":"at\n***","nested":[{"api_key":"***","n":1}],"t":"a ***\""}"#;
        assert_eq!(redaction.json(json), shown);
    }
}
