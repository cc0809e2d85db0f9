//! Checks requests against the server's policy, and attaches observers to their answers.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hmac_sha256::Hash;

use crate::connection::{
    Answer, Awaited, Batch, Call, CallKey, Caller, Disposition, Handle, IncomingRequest,
    Interceptor, Limited, Operation, Principal, Rejection, RequestSource, is_secret,
};
use crate::json::{number, reader};
use crate::limits::{Quota, whole_seconds};
use crate::mcp::{ErrorKind, Method};
use crate::message::{Dialect, Field, MessageRef};
use crate::model::ToolResult;
use crate::policy::{AuditOutcome, Credentials, Policy, RequestInterceptor, Subject};
use crate::server::access::subject;
use crate::server::lookup::Refusal;
use crate::server::registry::Registry;

/// The checks of one connection.
#[derive(Debug)]
pub(super) struct Admission {
    handle: Handle,
    /// The origin of the connection, as far as the transport knows it.
    pub from: RequestSource,
    /// Whether there is neither a profile nor anybody who says who the callers are.
    is_plain: bool,
    /// The sender of the current message, where the transport knows it per message.
    pub current: Option<Principal>,
    /// Whether another process has counted the current message.
    pub is_repeated: bool,
    /// What the current request has waited for, until it is answered or dispatched.
    pub awaited: Option<Awaited>,
    /// The callers of requests that are deferred but not yet dispatched, by the digest of their
    /// `auth`.
    pub proven: Vec<([u8; 32], Principal)>,
}

impl Admission {
    pub fn new(handle: Handle) -> Self {
        let is_official = handle.config().profile == crate::mcp::Profile::Official;
        Self {
            is_plain: is_official && handle.callers().is_none(),
            handle,
            from: RequestSource::Unknown,
            current: None,
            is_repeated: false,
            awaited: None,
            proven: Vec::new(),
        }
    }

    /// Applies the policy to a request. Returns the answer if the request is admitted; otherwise
    /// the refusal is already written.
    #[inline]
    pub fn admit<'a>(
        &mut self,
        registry: &Registry,
        request: &IncomingRequest<'_>,
        answer: Answer<'a>,
    ) -> Result<Answer<'a>, Disposition> {
        if registry.policy().is_none() && self.is_plain {
            return Ok(answer);
        }
        self.check(registry, request, answer)
    }

    fn check<'a>(
        &mut self,
        registry: &Registry,
        request: &IncomingRequest<'_>,
        answer: Answer<'a>,
    ) -> Result<Answer<'a>, Disposition> {
        if self.awaited.is_none() && self.has_to_wait(registry, request) {
            return Err(Disposition::Deferred(Operation::AwaitAdmission));
        }
        let who = self.identify(registry, request);
        let Some(interceptor) = self.interceptor(
            registry,
            request,
            who.as_ref().ok().and_then(Option::as_ref),
            false,
        ) else {
            return Ok(answer);
        };
        let answer = answer.intercepted(Some(interceptor.clone()));
        let Some(policy) = registry.policy() else {
            return Ok(answer);
        };
        // Requests that fail authentication count against the rate, too.
        let taken = self.take(policy, &answer).and_then(|()| match &who {
            Err(Rejection::Refused(_)) => {
                let taken = policy.count_wrong(&self.from, Instant::now());
                taken.map_err(Limited::Rate)
            }
            Err(_) | Ok(_) => Ok(()),
        });
        if let Err(limited) = taken {
            interceptor.foresee(AuditOutcome::Limited);
            return Err(too_often(request, answer, limited));
        }
        if let Err(rejection) = &who {
            let (kind, data) = told(rejection);
            return Err(answer.error(kind, rejection.why(), data));
        }
        if let Some(name) = misplaced(registry, policy, request) {
            return Err(answer.error(ErrorKind::InvalidParams, MISPLACED, Some(&name)));
        }
        let Some((method, name)) = subject(request) else {
            return Ok(answer);
        };
        if !policy.can_audit() {
            // A request that cannot be audited is not served.
            interceptor.pass_over();
            return Err(answer.error(ErrorKind::Overloaded, UNAUDITED, None));
        }
        match policy.admits(method, &name) {
            Ok(()) => match policy.lacks(method, &name, answer.principal()) {
                None => match self.take_call(policy, request, &answer) {
                    Ok(()) => Ok(answer),
                    Err(limited) => {
                        interceptor.foresee(AuditOutcome::Limited);
                        Err(too_often(request, answer, limited))
                    }
                },
                Some(scope) => {
                    let data = serde_json::json!({ "scope": scope }).to_string();
                    let why = "more has to be granted for this";
                    Err(answer.error(ErrorKind::InsufficientScope, why, Some(&data)))
                }
            },
            Err(kind @ ErrorKind::ToolDenied) => Err(Refusal::tool(kind, &name).send(answer)),
            Err(kind) => Err(Refusal::resource(kind, &name).send(answer)),
        }
    }

    /// Attaches observers to the answers of a batch and starts their timeouts. Callers that can no
    /// longer be identified are refused here.
    pub fn intercept(&mut self, registry: &Registry, batch: &mut Batch) {
        // It belongs to the one request of this batch.
        let awaited = self.awaited.take();
        if registry.policy().is_none() && self.is_plain {
            return;
        }
        let limits = registry.policy().filter(|policy| policy.has_limits());
        let mut unknown = Vec::new();
        batch.intercept(|request, key| {
            let who = match &awaited {
                Some(awaited) => awaited.sender.clone(),
                None => self.admitted(registry, request),
            };
            let who = who.unwrap_or_else(|rejection| {
                unknown.push((key, rejection));
                None
            });
            let interceptor = self.interceptor(registry, request, who.as_ref(), true)?;
            if let Some(policy) = limits
                && request.method == Some(Method::CallTool)
                && let Some(limit) = request.message.name().and_then(|name| policy.limit(&name))
            {
                self.limit(request, key, limit, interceptor.clone());
            }
            Some(interceptor as Arc<dyn Interceptor>)
        });
        for (key, rejection) in unknown {
            if let Some(call) = batch.take_one(key) {
                let mut replies = self.handle.replies();
                let (kind, data) = told(&rejection);
                replies.error(&call.reply, kind, rejection.why(), data);
            }
        }
    }

    /// Returns the caller that the transport knows or the request itself proves; a proven caller is
    /// remembered until the request is answered or dispatched.
    ///
    /// # Errors
    /// Why the request must prove its caller but does not.
    fn identify(
        &mut self,
        registry: &Registry,
        request: &IncomingRequest<'_>,
    ) -> Result<Option<Principal>, Rejection> {
        if let Some(awaited) = &self.awaited {
            return awaited.sender.clone();
        }
        if let Some(known) = self.known(request)?.settled(registry) {
            return known;
        }
        let said = auth(&request.message);
        let who = match registry.policy() {
            Some(policy) if !policy.verifies_later() => {
                Credentials::with_said(said, |brought| policy.verify(brought))?
            }
            _ => return Err(UNVERIFIED),
        };
        self.proven.push((digest(said), who.clone()));
        Ok(Some(who))
    }

    /// Whether the request is decided only after others were asked: about its sender, or its limits.
    fn has_to_wait(&self, registry: &Registry, request: &IncomingRequest<'_>) -> bool {
        registry.policy().is_some_and(|policy| {
            policy.counts_elsewhere(request.method) && !self.is_repeated
                || policy.verifies_later() && matches!(self.known(request), Ok(Known::Nobody))
        })
    }

    /// The sender of a call that is deferred until others were asked, as far as it is known without its credentials.
    ///
    /// # Errors
    /// As [`known`](Self::known).
    pub fn known_of(&self, call: &Call) -> Result<Known<'static>, Rejection> {
        Ok(match self.known(&request_of(call))? {
            Known::Caller(known) => Known::Caller(Cow::Owned(known.into_owned())),
            Known::Chain => Known::Chain,
            Known::Nobody => Known::Nobody,
        })
    }

    /// Returns the caller found when the request was admitted just before, without verifying again
    /// if it is still remembered.
    ///
    /// # Errors
    /// As [`identify`](Self::identify).
    fn admitted(
        &mut self,
        registry: &Registry,
        request: &IncomingRequest<'_>,
    ) -> Result<Option<Principal>, Rejection> {
        if registry.verifies() && matches!(self.known(request)?, Known::Nobody) {
            let digest = digest(auth(&request.message));
            if let Some(at) = self.proven.iter().rposition(|(own, _)| *own == digest) {
                return Ok(Some(self.proven.remove(at).1));
            }
        }
        let before = self.proven.len();
        let who = self.identify(registry, request);
        self.proven.truncate(before);
        who
    }

    /// The caller that the transport knows, or the party that passes the request on.
    ///
    /// # Errors
    /// The caller does not wait for the answer any more: a handler is not to run for nobody.
    fn known(&self, request: &IncomingRequest<'_>) -> Result<Known<'_>, Rejection> {
        let mut unknown = Known::Nobody;
        if let Some(callers) = self.handle.callers() {
            let id = request.message.id().and_then(|id| number::as_u64(id.raw()));
            match id.map_or(Caller::Nobody, |id| callers.caller(id)) {
                Caller::Is(Some(who)) => return Ok(Known::Caller(Cow::Owned(who))),
                Caller::Is(None) => {}
                Caller::Nobody if request.method.is_some_and(runs_handlers) => return Err(GONE),
                Caller::Nobody => unknown = Known::Chain,
            }
        }
        let known = self.current.as_ref().or_else(|| self.handle.verified());
        Ok(known.map_or(unknown, |known| Known::Caller(Cow::Borrowed(known))))
    }

    fn interceptor(
        &self,
        registry: &Registry,
        request: &IncomingRequest<'_>,
        who: Option<&Principal>,
        is_deferred: bool,
    ) -> Option<Arc<RequestInterceptor>> {
        let policy = registry.policy();
        if policy.is_none() && self.is_plain {
            return None;
        }
        let about = subject(request).map(|(_, name)| name);
        let asked = Subject {
            request,
            about: about.as_deref().unwrap_or_default(),
            principal: who,
            is_deferred,
        };
        RequestInterceptor::new(policy, self.handle.config().profile, asked)
    }

    /// Counts a request against the client's rate, unless it was counted elsewhere.
    fn take(&self, policy: &Policy, answer: &Answer<'_>) -> Result<(), Limited> {
        match self.counted() {
            Some(Err(limited @ Limited::Rate(_))) => Err(limited),
            Some(_) => Ok(()),
            None if policy.has_rates() && !self.is_repeated => {
                policy.take(&self.client(answer), Instant::now())
            }
            None => Ok(()),
        }
    }

    /// Counts a tool call against the client's quota, unless it was counted elsewhere.
    fn take_call(
        &self,
        policy: &Policy,
        request: &IncomingRequest<'_>,
        answer: &Answer<'_>,
    ) -> Result<(), Limited> {
        match self.counted() {
            Some(counted) => counted,
            None if policy.has_quotas() && request.method == Some(Method::CallTool) => {
                policy.take_call(&self.client(answer), Instant::now())
            }
            None => Ok(()),
        }
    }

    fn counted(&self) -> Option<Result<(), Limited>> {
        self.awaited.as_ref()?.counted
    }

    /// The source that the client's requests are counted by.
    fn client(&self, answer: &Answer<'_>) -> RequestSource {
        self.from.clone().or_principal(answer.principal())
    }

    /// R-PER-06
    fn limit(
        &self,
        request: &IncomingRequest<'_>,
        key: CallKey,
        limit: Duration,
        interceptor: Arc<RequestInterceptor>,
    ) {
        let is_action = request.message.dialect() != Dialect::Rpc;
        self.handle
            .limit(key, request.revision, limit, move |answer| {
                interceptor.foresee(AuditOutcome::TimedOut);
                let why = format!("the tool took longer than {limit:?}");
                let is_error = is_action || interceptor.tells_timeouts();
                let answer = answer.intercepted(Some(interceptor));
                match is_error {
                    true => answer.error(ErrorKind::TimedOut, &why, None),
                    false => answer.result(|result| ToolResult::error(why).write(result)),
                }
            });
    }
}

/// Who sends a request, as far as is known without its credentials.
pub(super) enum Known<'a> {
    Caller(Cow<'a, Principal>),
    /// A chain of this process on its own behalf, which has no credentials.
    Chain,
    Nobody,
}

impl Known<'_> {
    /// The sender, `None` for nobody in particular, unless its credentials are still to be verified.
    ///
    /// # Errors
    /// Its credentials have expired.
    pub fn settled(self, registry: &Registry) -> Option<Result<Option<Principal>, Rejection>> {
        match self {
            Self::Caller(known) if known.has_expired() => Some(Err(EXPIRED.into())),
            Self::Caller(known) => Some(Ok(Some(known.into_owned()))),
            Self::Nobody if registry.verifies() => None,
            Self::Chain | Self::Nobody => Some(Ok(None)),
        }
    }
}

/// A deferred request as it was admitted.
pub(super) fn request_of(call: &Call) -> IncomingRequest<'_> {
    IncomingRequest {
        message: call.message.as_ref(),
        method: call.method,
        revision: call.reply.revision(),
    }
}

/// Whether a request is a tool call that its sender may make and that can be audited, which alone counts against quotas.
pub(super) fn is_allowed_call(
    registry: &Registry,
    policy: &Policy,
    request: &IncomingRequest<'_>,
    who: Option<&Principal>,
) -> bool {
    let Some((method @ Method::CallTool, name)) = subject(request) else {
        return false;
    };
    policy.can_audit()
        && policy.admits(method, &name).is_ok()
        && policy.lacks(method, &name, who).is_none()
        && misplaced(registry, policy, request).is_none()
}

/// The credentials in a request's `_meta`, raw JSON.
pub(super) fn auth<'a>(request: &MessageRef<'a>) -> Option<&'a str> {
    reader::find(request.raw(Field::Meta)?, "auth")
}

/// A digest of credentials, so that the credentials themselves are not stored.
fn digest(auth: Option<&str>) -> [u8; 32] {
    Hash::hash(auth.unwrap_or_default().as_bytes())
}

/// How a request is refused whose sender is not verified: the error, and its data.
fn told(rejection: &Rejection) -> (ErrorKind, Option<&'static str>) {
    match rejection {
        Rejection::Refused(_) => (ErrorKind::Unauthenticated, None),
        Rejection::Unavailable(_) => (ErrorKind::Overloaded, Some("{\"retryAfter\":1}")),
    }
}

/// Whether handlers run for requests of this method, on behalf of their caller.
fn runs_handlers(method: Method) -> bool {
    matches!(
        method,
        Method::CallTool | Method::GetPrompt | Method::ReadResource | Method::Complete
    )
}

/// Why a request is not served whose sender nobody has verified.
pub(super) const UNVERIFIED: Rejection =
    Rejection::Unavailable(Cow::Borrowed("the sender is not verified"));

/// Why a request is refused whose caller has given it up on the way.
const GONE: Rejection = Rejection::Unavailable(Cow::Borrowed("the caller does not wait any more"));

/// Why requests are refused on a connection whose client proved itself by credentials that have ended.
const EXPIRED: &str = "the credentials have expired: connect again with others";

const UNAUDITED: &str = "the audit of this server is behind: try again later";

const MISPLACED: &str = "credentials have no place among the params: send them with the carrier, or as auth in the metadata";

/// Schema keywords that may define properties outside the root's `properties`.
const ELSEWHERE: [&str; 6] = [
    "$ref",
    "$dynamicRef",
    "allOf",
    "anyOf",
    "oneOf",
    "patternProperties",
];

/// Finds a string argument of a tool call that looks like a credential and that the schema does not
/// ask for, as far as the schema shows it (R-AUX-01). Returns error details.
fn misplaced(
    registry: &Registry,
    policy: &Policy,
    request: &IncomingRequest<'_>,
) -> Option<String> {
    if !policy.has_verifier() || request.method != Some(Method::CallTool) {
        return None;
    }
    let mut suspects = reader::members(request.message.arguments()?).filter_map(|(name, value)| {
        let name = name.decode().ok()?;
        (is_secret(&name) && reader::as_str(value).is_some()).then_some(name)
    });
    // Few calls have any, so the schema is seldom read.
    let first = suspects.next()?;
    let tool = registry.tool_at(registry.tool(&request.message.name()?)?)?;
    let schema = &tool.input_schema;
    if ELSEWHERE
        .iter()
        .any(|word| reader::find(schema, word).is_some())
    {
        return None;
    }
    let is_asked_for = |name: &str| reader::find_path(schema, &["properties", name]).is_some();
    let name = std::iter::once(first)
        .chain(suspects)
        .find(|name| !is_asked_for(name))?;
    Some(serde_json::json!({ "parameter": name }).to_string())
}

/// Answers a client that exceeds its rate or quota.
fn too_often(request: &IncomingRequest<'_>, answer: Answer<'_>, limited: Limited) -> Disposition {
    let (kind, what, wait) = match limited {
        Limited::Rate(wait) => (ErrorKind::RateLimited, "too many requests".to_owned(), wait),
        Limited::Quota(Quota { calls, period }, wait) => {
            let what = format!("the quota of {calls} calls in {period:?} is used up");
            (ErrorKind::QuotaExceeded, what, wait)
        }
    };
    let why = format!("{what}: try again in {} s", whole_seconds(wait));
    let is_action = request.message.dialect() != Dialect::Rpc;
    if request.method == Some(Method::CallTool) && !answer.is_exchange() && !is_action {
        return answer.result(|result| ToolResult::error(why).write(result));
    }
    let data = format!("{{\"retryAfter\":{}}}", whole_seconds(wait));
    answer.error(kind, &why, Some(&data))
}
