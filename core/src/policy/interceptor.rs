//! Applies a policy or a profile to the answer of one request, and audits the request.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use super::audit::{AuditEvent, AuditOutcome};
use super::{Policy, Redaction};
use crate::connection::{IncomingRequest, Interceptor, Principal, Verdict};
use crate::json::reader;
use crate::mcp::profile::{Failure, Spelt};
use crate::mcp::{ErrorKind, Method, Profile, Revision};

/// A request, what it names and who sent it.
pub(crate) struct Subject<'a> {
    pub request: &'a IncomingRequest<'a>,
    /// A tool, a prompt or a URI; empty if the request names nothing.
    pub about: &'a str,
    pub principal: Option<&'a Principal>,
    /// Whether the request is answered later: then it may end without an answer.
    pub is_deferred: bool,
}

/// The interceptor of one request. See the [module documentation](self).
#[derive(Debug)]
pub(crate) struct RequestInterceptor {
    policy: Option<Arc<Policy>>,
    profile: Profile,
    revision: Revision,
    method: Option<Method>,
    about: Box<str>,
    principal: Option<Principal>,
    audited: Option<Audited>,
    /// An outcome fixed before the answer.
    foreseen: OnceLock<AuditOutcome>,
    settled: AtomicBool,
}

#[derive(Debug)]
struct Audited {
    id: Box<str>,
    arguments: Option<String>,
    begun: Instant,
    is_deferred: bool,
}

impl RequestInterceptor {
    /// Creates the interceptor of a request; `None` if there is nothing to intercept.
    pub fn new(
        policy: Option<&Arc<Policy>>,
        profile: Profile,
        asked: Subject<'_>,
    ) -> Option<Arc<Self>> {
        let Subject { request, about, .. } = asked;
        let profile = profile.in_revision(request.revision);
        let is_plain = profile == Profile::Official || about.is_empty();
        if policy.is_none() && asked.principal.is_none() && is_plain {
            return None;
        }
        let audits = |policy: &&Arc<Policy>| policy.audits() && !about.is_empty();
        let audited = policy.filter(audits).map(|policy| {
            let arguments = request
                .message
                .arguments()
                .filter(|_| policy.keeps_arguments);
            Audited {
                id: request.message.id().map_or("", |id| id.raw()).into(),
                arguments: arguments.map(|arguments| policy.redaction.json(arguments)),
                begun: Instant::now(),
                is_deferred: asked.is_deferred,
            }
        });
        Some(Arc::new(Self {
            policy: policy.cloned(),
            profile,
            revision: request.revision,
            method: request.method,
            about: about.into(),
            principal: asked.principal.cloned(),
            audited,
            foreseen: OnceLock::new(),
            settled: AtomicBool::new(false),
        }))
    }

    /// Suppresses the audit event of this request.
    pub fn pass_over(&self) {
        self.settled.store(true, Ordering::Relaxed);
    }

    /// Fixes the outcome for the audit, whatever the answer looks like.
    pub fn foresee(&self, outcome: AuditOutcome) {
        let _ = self.foreseen.set(outcome);
    }

    /// Whether a tool that takes too long is answered with an error instead of a result with `isError`:
    /// only if the profile has its own code for it.
    pub fn tells_timeouts(&self) -> bool {
        let own = ErrorKind::TimedOut.code_in(self.profile, self.revision);
        own != ErrorKind::TimedOut.code(self.revision)
    }

    fn redaction(&self) -> Option<&Redaction> {
        self.policy.as_ref().map(|policy| &policy.redaction)
    }

    /// Audits the request, once.
    fn settle(&self, seen: AuditOutcome, code: Option<i64>, message: Option<&str>) {
        let (Some(policy), Some(audited)) = (&self.policy, &self.audited) else {
            return;
        };
        if self.settled.swap(true, Ordering::Relaxed) {
            return;
        }
        let clean = |text: &str| policy.redaction.text(text).into_owned();
        policy.tell(&AuditEvent {
            method: self.method.map_or("", Method::name),
            name: &clean(&self.about),
            principal: self
                .principal
                .as_ref()
                .map(|who| clean(who.as_str()))
                .as_deref(),
            id: &audited.id,
            revision: self.revision.name(),
            outcome: *self.foreseen.get().unwrap_or(&seen),
            code,
            message,
            duration: audited.begun.elapsed(),
            arguments: audited.arguments.as_deref(),
            dropped: 0,
        });
    }

    /// Handles a result in which a tool reports a failure.
    fn failed(&self, object: &str) -> Verdict {
        let text = said(object);
        if self.profile.overlay().failures_are_errors {
            return Verdict::Refuse(ErrorKind::ToolFailed, text, None);
        }
        let Some(redaction) = self.redaction() else {
            return Verdict::Keep;
        };
        let clean = redaction.json(object);
        self.settle(AuditOutcome::ToolFailed, None, Some(&redaction.text(&text)));
        match clean == object {
            true => Verdict::Keep,
            false => Verdict::Replace(clean),
        }
    }

    /// Refuses the contents of a resource that is too large.
    fn too_large(&self, object: &str) -> Option<Verdict> {
        let limit = self
            .policy
            .as_ref()?
            .permissions
            .as_ref()?
            .max_resource_size?;
        (size(object) > limit).then(|| {
            let why = format!("the resource is larger than {limit} bytes");
            let data = format!("{{\"maxResourceSize\":{limit}}}");
            Verdict::Refuse(ErrorKind::ResourceFailed, why, Some(data))
        })
    }

    fn outcome_of(kind: ErrorKind) -> AuditOutcome {
        match kind {
            ErrorKind::ToolDenied
            | ErrorKind::ResourceDenied
            | ErrorKind::InsufficientScope
            | ErrorKind::Unauthenticated => AuditOutcome::Denied,
            ErrorKind::RateLimited | ErrorKind::QuotaExceeded => AuditOutcome::Limited,
            ErrorKind::TimedOut => AuditOutcome::TimedOut,
            ErrorKind::ToolFailed => AuditOutcome::ToolFailed,
            _ => AuditOutcome::Failed,
        }
    }
}

impl Interceptor for RequestInterceptor {
    fn about(&self) -> &str {
        &self.about
    }

    fn principal(&self) -> Option<&Principal> {
        self.principal.as_ref()
    }

    fn result(&self, object: &str) -> Verdict {
        let verdict = match self.method {
            Some(Method::CallTool) if reader::find(object, "isError") == Some("true") => {
                self.failed(object)
            }
            Some(Method::ReadResource) => self.too_large(object).unwrap_or(Verdict::Keep),
            _ => Verdict::Keep,
        };
        if !matches!(verdict, Verdict::Refuse(..)) {
            self.settle(AuditOutcome::Done, None, None);
        }
        verdict
    }

    fn error<'a>(&'a self, failure: Failure<'a>) -> Spelt<'a> {
        let kind = match (failure.kind, self.method) {
            (ErrorKind::Internal, Some(Method::ReadResource)) => ErrorKind::ResourceFailed,
            (ErrorKind::Internal, Some(Method::CallTool)) => ErrorKind::ToolFailed,
            (kind, _) => kind,
        };
        let redaction = self.redaction();
        let why = redaction.map(|redaction| redaction.text(failure.why));
        let data = redaction.and_then(|redaction| Some(redaction.json(failure.data?)));
        let why = why.as_deref().unwrap_or(failure.why);
        let failure = Failure {
            kind,
            about: failure.about,
            why,
            data: data.as_deref().or(failure.data),
        };
        let spelt = self.profile.spell(self.revision, failure).into_owned();
        self.settle(Self::outcome_of(kind), Some(spelt.code), Some(why));
        spelt
    }

    fn coded<'a>(&'a self, error: Spelt<'a>) -> Spelt<'a> {
        let spelt = match self.redaction() {
            None => error,
            Some(redaction) => Spelt {
                code: error.code,
                message: redaction.text(&error.message).into_owned().into(),
                data: error.data.map(|data| redaction.json(&data).into()),
            },
        };
        self.settle(AuditOutcome::Failed, Some(spelt.code), Some(&spelt.message));
        spelt
    }
}

impl Drop for RequestInterceptor {
    fn drop(&mut self) {
        if self
            .audited
            .as_ref()
            .is_some_and(|audited| audited.is_deferred)
        {
            self.settle(AuditOutcome::Cancelled, None, None);
        }
    }
}

/// The first text of a result.
fn said(object: &str) -> String {
    let content = reader::find(object, "content").unwrap_or("[]");
    let text = |block| reader::find(block, "text").and_then(reader::as_str);
    let mut texts = reader::elements(content).filter_map(text);
    texts.next().unwrap_or_default().into_owned()
}

/// The size of a resource's contents, in bytes after decoding.
fn size(object: &str) -> u64 {
    let contents = reader::find(object, "contents").unwrap_or("[]");
    let bytes = |item| {
        let text = reader::find(item, "text").and_then(reader::as_str);
        let blob = reader::find(item, "blob").map(|blob| {
            let base64 = blob.trim_matches('"').trim_end_matches('=');
            base64.len() * 3 / 4
        });
        (text.map_or(0, |text| text.len()) + blob.unwrap_or(0)) as u64
    };
    reader::elements(contents).map(bytes).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_read_counts_as_it_is_and_not_as_it_is_written() {
        let read = |contents: &str| size(&format!("{{\"contents\":[{contents}]}}"));
        assert_eq!(read(r#"{"text":"a\u00e9\n"}"#), 4);
        assert_eq!(read(r#"{"blob":"AQID"},{"blob":"AQI="}"#), 5);
        assert_eq!(read(""), 0);
        use AuditOutcome::*;
        for outcome in [
            Done, ToolFailed, Failed, Denied, Limited, TimedOut, Cancelled,
        ] {
            let name = format!("\"{}\"", outcome.name());
            assert_eq!(serde_json::to_string(&outcome).unwrap(), name);
        }
    }
}
