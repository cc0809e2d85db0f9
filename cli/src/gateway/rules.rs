//! What stands between clients and one server of a gateway, as the file says it.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use mcpbolt::chain::{
    Approval, Breaker, CallReports, External, MaskedTexts, Masking, PinDrift, Pins, Retry,
    UpstreamCall,
};
use mcpbolt::policy::Redaction;
use mcpbolt::settings::matching_tools;
use regex::{Regex, RegexBuilder};
use tracing::{info, warn};

use super::reading::{Entry, Findings, Keys, Text};
use super::status::Seen;

/// What takes the place of a masked text.
const MASK: &str = "***";

/// The most patterns of texts for one server and direction.
const MAX_PATTERNS: usize = 64;

/// The most memory of one pattern, in bytes.
const MAX_PATTERN_BYTES: usize = 1 << 20;

/// The rules for one server.
#[derive(Debug, Default)]
pub struct Rules {
    /// Patterns of the tools whose calls the user of the client approves.
    approve: Vec<String>,
    /// Patterns of texts that are masked in results, and in arguments.
    mask: Vec<Regex>,
    mask_arguments: Vec<Regex>,
    breaker: Option<Breaker>,
    retry: Option<u64>,
    trusts: bool,
}

impl Rules {
    pub fn of(keys: &mut Keys, findings: &mut Findings<'_>) -> Self {
        let approve = keys.texts("approve", findings);
        if keys.place("retry").is_none() {
            let why = "is for a server whose requests are sent again; write retry =";
            keys.needless(&["trust_annotations"], why, findings);
        }
        Self {
            approve: approve.into_iter().map(|pattern| pattern.text).collect(),
            mask: patterns(keys, "mask", findings),
            mask_arguments: patterns(keys, "mask_arguments", findings),
            breaker: keys
                .take("breaker")
                .and_then(|entry| breaker(entry, findings)),
            retry: keys.number("retry", findings),
            trusts: keys.flag("trust_annotations", findings),
        }
    }

    /// What refuses requests while the server is sick.
    pub fn breaker(&self) -> Option<Breaker> {
        self.breaker.clone()
    }

    /// The server with the rules around it. What comes first sees requests first.
    pub fn around(
        self,
        external: External,
        audits: bool,
        pins: Option<Pins>,
        seen: &Arc<Seen>,
    ) -> External {
        let name: Arc<str> = external.name().into();
        let mut external = external;
        if audits {
            external = external.with(CallReports::new(name.clone(), audit));
        }
        // Fails if there are none.
        if let Ok(tools) = matching_tools(self.approve) {
            external = external.with(Approval::by_client(tools));
        }
        for (texts, patterns) in [
            (MaskedTexts::Results, self.mask),
            (MaskedTexts::Arguments, self.mask_arguments),
        ] {
            if !patterns.is_empty() {
                external = external.with(Masking::new(texts, move |text| masked(&patterns, text)));
            }
        }
        let counts = seen.clone();
        external = external.with(CallReports::new(name, move |call| counts.count(call)));
        if let Some(breaker) = self.breaker {
            external = external.with(breaker);
        }
        if let Some(times) = self.retry {
            let retry = Retry::new(u32::try_from(times).unwrap_or(u32::MAX));
            external = external.with(match self.trusts {
                true => retry.trusting_annotations(),
                false => retry,
            });
        }
        // What is sent again, over another connection, is looked at again.
        if let Some(pins) = pins {
            external = external.with(pins);
        }
        external
    }
}

fn patterns(keys: &mut Keys, key: &'static str, findings: &mut Findings<'_>) -> Vec<Regex> {
    let texts = keys.texts(key, findings);
    if texts.len() > MAX_PATTERNS {
        let path = format!("{}.{key}", keys.path());
        let why = format!("has {} patterns; there may be {MAX_PATTERNS}", texts.len());
        findings.wrong(keys.at, &path, why);
    }
    let mut patterns = Vec::new();
    for Text { path, at, text } in texts {
        let built = RegexBuilder::new(&text)
            .size_limit(MAX_PATTERN_BYTES)
            .build();
        match built {
            Ok(pattern) if pattern.is_match("") => {
                findings.wrong(at, &path, format_args!("{text:?} matches an empty text"));
            }
            Ok(pattern) => patterns.push(pattern),
            Err(error) => {
                let why = error.to_string().replace('\n', " ");
                findings.wrong(
                    at,
                    &path,
                    format_args!("{text:?} is no regular expression: {why}"),
                );
            }
        }
    }
    patterns
}

fn masked<'t>(patterns: &[Regex], text: &'t str) -> Cow<'t, str> {
    let mut masked = Cow::Borrowed(text);
    for pattern in patterns {
        if let Cow::Owned(replaced) = pattern.replace_all(&masked, MASK) {
            masked = Cow::Owned(replaced);
        }
    }
    masked
}

fn breaker(entry: Entry, findings: &mut Findings<'_>) -> Option<Breaker> {
    let mut keys = Keys::of(entry, findings)?;
    let failures = keys.number("failures", findings).unwrap_or(5);
    let window = keys.number("window", findings).unwrap_or(10);
    let rest = keys.number("rest", findings).unwrap_or(10);
    keys.end(findings);
    let failures = usize::try_from(failures).unwrap_or(usize::MAX);
    let breaker = Breaker::new().failures(failures, Duration::from_secs(window));
    Some(breaker.rest(Duration::from_secs(rest)))
}

/// The tools of a server that are as they were pinned. Others are told in the log.
pub fn pinned(server: &str, pins: BTreeMap<String, String>) -> Pins {
    Pins::new(server, pins, |drift: &PinDrift<'_>| {
        warn!(
            target: "mcpbolt::audit",
            server = drift.server,
            tool = drift.tool,
            pinned = drift.pinned,
            found = drift.found,
            "a tool is not what was pinned",
        );
    })
}

/// One line for a request: who asked which server for what, and what came of it.
fn audit(call: &UpstreamCall<'_>) {
    let name = call
        .name
        .map(|name| Redaction::new().text(name).into_owned());
    info!(
        target: "mcpbolt::audit",
        server = call.server,
        method = call.method,
        name,
        principal = call.principal,
        outcome = call.outcome.name(),
        seconds = call.duration.as_secs_f64(),
    );
}
