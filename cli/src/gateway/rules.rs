//! What stands between clients and one server of a gateway, as the file says it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use mcpbolt::chain::{
    Approval, Breaker, CallReports, External, MaskedTexts, Masking, PinDrift, Pins, Retry,
    UpstreamCall,
};
use mcpbolt::policy::Redaction;
use mcpbolt::settings::{MaskingRule, matching_tools};
use tracing::{info, warn};

use super::reading::{Entry, Findings, Keys, Text};
use super::status::Seen;

/// The rules for one server.
#[derive(Debug, Default)]
pub struct Rules {
    /// Patterns of the tools whose calls the user of the client approves.
    approve: Vec<String>,
    /// The masks of results, and of arguments.
    mask: Option<Masking>,
    mask_arguments: Option<Masking>,
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
            mask: masking(keys, "mask", MaskedTexts::Results, findings),
            mask_arguments: masking(keys, "mask_arguments", MaskedTexts::Arguments, findings),
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
        for masking in [self.mask, self.mask_arguments].into_iter().flatten() {
            external = external.with(masking);
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

/// The mask of the texts that match the patterns under `key`; `None` if there are none, or one is wrong.
fn masking(
    keys: &mut Keys,
    key: &'static str,
    texts: MaskedTexts,
    findings: &mut Findings<'_>,
) -> Option<Masking> {
    let found = keys.texts(key, findings);
    let build = |patterns| {
        let rule = MaskingRule {
            patterns,
            secrets: Vec::new(),
            credentials: false,
            texts: Some(texts),
            max_bytes: None,
        };
        rule.build()
    };
    let (mut patterns, mut are_right) = (Vec::new(), true);
    // Each by itself, since each that is wrong is told with its line.
    for Text { path, at, text } in found {
        if let Err(error) = build(vec![text.clone()]) {
            findings.wrong(at, &path, error.reason);
            are_right = false;
        }
        patterns.push(text);
    }
    if patterns.is_empty() || !are_right {
        return None;
    }
    let path = format!("{}.{key}", keys.path());
    let built = build(patterns);
    built
        .map_err(|error| findings.wrong(keys.at, &path, error.reason))
        .ok()
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
