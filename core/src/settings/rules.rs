//! Options of the middleware that this crate has for chains.

use std::borrow::Cow;
use std::time::Duration;

use regex::{Regex, RegexBuilder};
use serde::Deserialize;

use super::{SettingsError, parsed, set};
use crate::chain::{Breaker, MAX_FAILURES, MAX_REPEATS, MaskedTexts, Masking, Retry};
use crate::policy::{MASK, Redaction};

/// The most patterns of one rule.
const MAX_PATTERNS: usize = 64;

/// The most memory of one pattern, in bytes.
const MAX_PATTERN_BYTES: usize = 1 << 20;

/// When requests to a server are refused for a time: see [`Breaker`].
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct BreakerRule<T> {
    /// How many failures within `window` it takes, from 1 to 1000. Default: 5.
    pub failures: Option<usize>,
    /// Default: 10 s.
    pub window: Option<T>,
    /// How long the server is left alone. Default: 10 s.
    pub rest: Option<T>,
}

impl<T: Into<Duration>> BreakerRule<T> {
    /// The middleware.
    ///
    /// # Errors
    /// If `failures` is out of range.
    pub fn build(self) -> Result<Breaker, SettingsError> {
        let failures = self.failures.unwrap_or(5);
        if !(1..=MAX_FAILURES).contains(&failures) {
            let why = format!("a number from 1 to {MAX_FAILURES}, not {failures}");
            return Err(SettingsError::at("failures", why));
        }
        let mut window = Duration::from_secs(10);
        set(&mut window, self.window);
        let breaker = Breaker::new().failures(failures, window);
        Ok(match self.rest {
            Some(rest) => breaker.rest(rest.into()),
            None => breaker,
        })
    }
}

/// Which requests are sent again when the server is lost: see [`Retry`].
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RetryRule {
    /// How often, from 0 to 10.
    pub times: u32,
    /// Whether calls of tools are repeated that their server says may be.
    #[serde(default)]
    pub trust_annotations: bool,
}

impl RetryRule {
    /// The middleware.
    ///
    /// # Errors
    /// If `times` is out of range.
    pub fn build(self) -> Result<Retry, SettingsError> {
        if self.times > MAX_REPEATS {
            let why = format!("a number from 0 to {MAX_REPEATS}, not {}", self.times);
            return Err(SettingsError::at("times", why));
        }
        let retry = Retry::new(self.times);
        Ok(match self.trust_annotations {
            true => retry.trusting_annotations(),
            false => retry,
        })
    }
}

/// Which texts are masked: see [`Masking`]. Each is replaced by `***`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct MaskingRule {
    /// Regular expressions in the syntax of the crate `regex`, which take time linear in the text; at most 64.
    #[serde(default)]
    pub patterns: Vec<String>,
    /// Texts that are masked wherever they stand.
    #[serde(default)]
    pub secrets: Vec<String>,
    /// Whether what looks like a credential is masked: see [`Redaction`].
    #[serde(default)]
    pub credentials: bool,
    /// `results`, `arguments` or `both`. Default: `results`.
    #[serde(default, deserialize_with = "parsed")]
    pub texts: Option<MaskedTexts>,
    /// The length of a result, or of params, above which nothing is passed on but an error. Default: 16 MiB.
    pub max_bytes: Option<usize>,
}

impl MaskingRule {
    /// The middleware.
    ///
    /// # Errors
    /// If nothing is to be masked, or a pattern is no regular expression, matches an empty text or takes too much memory.
    pub fn build(self) -> Result<Masking, SettingsError> {
        let secrets = self.secrets.into_iter().filter(|secret| !secret.is_empty());
        let mut secrets: Vec<_> = secrets.collect();
        // One secret may be part of another.
        secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        if self.patterns.is_empty() && secrets.is_empty() && !self.credentials {
            let why = "masking masks nothing: give it patterns, secrets or credentials";
            return Err(SettingsError::at("", why));
        }
        if self.patterns.len() > MAX_PATTERNS {
            let why = format!("at most {MAX_PATTERNS}, not {}", self.patterns.len());
            return Err(SettingsError::at("patterns", why));
        }
        let patterns: Result<Vec<_>, _> = self.patterns.iter().map(|text| pattern(text)).collect();
        let (patterns, credentials) = (patterns?, self.credentials.then(Redaction::new));
        let mask = move |text: &str| -> Option<String> {
            let mut masked = Cow::Borrowed(text);
            for secret in &secrets {
                if masked.contains(&**secret) {
                    masked = Cow::Owned(masked.replace(&**secret, MASK));
                }
            }
            for pattern in &patterns {
                if let Cow::Owned(replaced) = pattern.replace_all(&masked, MASK) {
                    masked = Cow::Owned(replaced);
                }
            }
            if let Some(credentials) = &credentials
                && let Cow::Owned(replaced) = credentials.text(&masked)
            {
                masked = Cow::Owned(replaced);
            }
            match masked {
                Cow::Borrowed(_) => None,
                Cow::Owned(masked) => Some(masked),
            }
        };
        let masking = Masking::new(self.texts.unwrap_or(MaskedTexts::Results), move |text| {
            mask(text).map_or(Cow::Borrowed(text), Cow::Owned)
        });
        Ok(match self.max_bytes {
            Some(max_bytes) => masking.max_bytes(max_bytes),
            None => masking,
        })
    }
}

fn pattern(text: &str) -> Result<Regex, SettingsError> {
    let built = RegexBuilder::new(text)
        .size_limit(MAX_PATTERN_BYTES)
        .build();
    match built {
        Ok(pattern) if pattern.is_match("") => {
            let why = format!("{text:?} matches an empty text");
            Err(SettingsError::at("patterns", why))
        }
        Ok(pattern) => Ok(pattern),
        Err(error) => {
            let why = error.to_string().replace('\n', " ");
            let why = format!("{text:?} is no regular expression: {why}");
            Err(SettingsError::at("patterns", why))
        }
    }
}

/// Whether a tool has a name that one of the patterns matches, in which `*` stands for any text: what an
/// [`Approval`](crate::chain::Approval) is needed for.
///
/// # Errors
/// If there is no pattern.
pub fn matching_tools(
    patterns: Vec<String>,
) -> Result<impl Fn(&str) -> bool + Send + Sync + 'static, SettingsError> {
    if patterns.is_empty() {
        let why = "an approval needs the tools that are approved: their names, or patterns such as delete*";
        return Err(SettingsError::at("tools", why));
    }
    Ok(move |tool: &str| patterns.iter().any(|pattern| matches(pattern, tool)))
}

/// Whether a name is that of a pattern in which each `*` stands for any text, slashes included.
fn matches(pattern: &str, name: &str) -> bool {
    let Some((begin, rest)) = pattern.split_once('*') else {
        return pattern == name;
    };
    let Some(mut name) = name.strip_prefix(begin) else {
        return false;
    };
    let mut parts: Vec<_> = rest.split('*').collect();
    let end = parts.pop().unwrap_or_default();
    for part in parts {
        let Some((_, after)) = name.split_once(part) else {
            return false;
        };
        name = after;
    }
    name.ends_with(end)
}

#[cfg(test)]
mod tests {
    use super::super::{Milliseconds, read};
    use super::*;

    fn why<T>(built: Result<T, SettingsError>) -> String {
        built.err().map(|error| error.to_string()).unwrap()
    }

    #[test]
    fn rules_are_described_and_wrong_ones_are_named() {
        let breaker = |json| read::<BreakerRule<Milliseconds>>(json).unwrap().build();
        assert!(breaker(r#"{"failures":2,"window":500,"rest":1000}"#).is_ok());
        let wrong = why(breaker(r#"{"failures":0}"#));
        assert_eq!(wrong, "failures: a number from 1 to 1000, not 0");
        let retry = |json| read::<RetryRule>(json).unwrap().build();
        assert!(retry(r#"{"times":10,"trustAnnotations":true}"#).is_ok());
        let wrong = why(retry(r#"{"times":11}"#));
        assert_eq!(wrong, "times: a number from 0 to 10, not 11");
        let masking = |json| read::<MaskingRule>(json).unwrap().build();
        assert!(masking(r#"{"patterns":["\\d{4}"],"texts":"both","maxBytes":9}"#).is_ok());
        assert!(why(masking("{}")).starts_with("masking masks nothing"));
        assert!(why(masking(r#"{"secrets":[""]}"#)).starts_with("masking masks nothing"));
        let wrong = why(masking(r#"{"patterns":["a*"]}"#));
        assert_eq!(wrong, "patterns: \"a*\" matches an empty text");
        let wrong = why(masking(r#"{"patterns":["("]}"#));
        assert!(wrong.starts_with("patterns: \"(\" is no regular expression"));
        let large = why(masking(r#"{"patterns":["(a{1000}){1000}"]}"#));
        assert!(large.contains("size limit"), "{large}");
        let many = serde_json::json!({ "patterns": vec!["a"; 65] }).to_string();
        assert_eq!(why(masking(&many)), "patterns: at most 64, not 65");
        assert!(why(matching_tools(Vec::new()).map(drop)).starts_with("tools: "));
        let needs = matching_tools(vec!["delete*".to_owned(), "pay".to_owned()]).unwrap();
        assert!(needs("delete_all") && needs("pay") && !needs("pays"));
        let fits = |pattern| matches(pattern, "files/delete/all");
        for pattern in [
            "*",
            "files*",
            "*all",
            "*delete*",
            "f*/*/a*l",
            "files/delete/all*",
        ] {
            assert!(fits(pattern), "{pattern}");
        }
        for pattern in ["", "*x", "file", "*delete", "f*all*l", "files/delete/all*l"] {
            assert!(!fits(pattern), "{pattern}");
        }
    }
}
