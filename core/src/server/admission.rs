//! Requests held against the policy of a server, and those who look at their answers.

use std::sync::Arc;
use std::time::{Duration, Instant};

use sha2::{Digest, Sha256};

use super::access::subject;
use super::content::ToolResult;
use super::host::ServerHost;
use super::operations::{missing, unknown_tool};
use super::registry::Registry;
use crate::connection::{
    Answer, Batch, CallKey, Disposition, Incoming, Principal, Watch, is_secret,
};
use crate::handler::Executor;
use crate::json::reader;
use crate::limits::{Quota, whole_seconds};
use crate::mcp::{Era, ErrorKind, Method};
use crate::message::{Dialect, Field};
use crate::policy::{Asked, Credentials, Outcome, Policy, Watched};

impl<E: Executor> ServerHost<E> {
    /// Gives the answer back to who is to write it, or writes it here.
    pub(super) fn admit<'a>(
        &mut self,
        registry: &Registry,
        request: &Incoming<'_>,
        answer: Answer<'a>,
    ) -> Result<Answer<'a>, Disposition> {
        if registry.policy.is_none() && !self.speaks_profile() {
            return Ok(answer);
        }
        let who = self.identify(registry, request);
        let Some(watched) = self.watched(
            registry,
            request,
            who.as_ref().ok().and_then(Option::as_ref),
            false,
        ) else {
            return Ok(answer);
        };
        let answer = answer.watched(Some(watched.clone()));
        let Some(policy) = &registry.policy else {
            return Ok(answer);
        };
        // Who tries credentials is counted, too.
        if let Err(wait) = self.take(policy, request, &answer) {
            watched.foresee(Outcome::Limited);
            let why = format!("too many requests: try again in {} s", whole_seconds(wait));
            return Err(too_often(
                request,
                answer,
                ErrorKind::RateLimited,
                &why,
                wait,
            ));
        }
        if let Err(why) = &who {
            return Err(answer.error(ErrorKind::Unauthenticated, why, None));
        }
        if let Some(name) = misplaced(registry, policy, request) {
            return Err(answer.error(ErrorKind::InvalidParams, MISPLACED, Some(&name)));
        }
        let Some((method, name)) = subject(request) else {
            return Ok(answer);
        };
        match policy.admits(method, &name) {
            Ok(()) => match policy.lacks(method, &name, answer.principal()) {
                None => match self.take_call(policy, request, &answer) {
                    Ok(()) => Ok(answer),
                    Err((why, wait)) => {
                        watched.foresee(Outcome::Limited);
                        let kind = ErrorKind::QuotaExceeded;
                        Err(too_often(request, answer, kind, &why, wait))
                    }
                },
                Some(scope) => {
                    let data = serde_json::json!({ "scope": scope }).to_string();
                    let why = "more has to be granted for this";
                    Err(answer.error(ErrorKind::InsufficientScope, why, Some(&data)))
                }
            },
            Err(kind @ ErrorKind::ToolDenied) => Err(unknown_tool(answer, kind, &name)),
            Err(kind) => Err(missing(answer, kind, &name)),
        }
    }

    /// Has the answers of a turn looked at, and bounds how long they may take. Who is not known any
    /// more is refused here.
    pub(super) fn watch(&mut self, batch: &mut Batch) {
        if self.registry.policy.is_none() && !self.speaks_profile() {
            return;
        }
        let registry = self.registry.clone();
        let limits = registry
            .policy
            .as_ref()
            .filter(|policy| policy.has_limits());
        let mut unknown = Vec::new();
        batch.watch(|request, key| {
            let who = self.admitted(&registry, request);
            let who = who.unwrap_or_else(|why| {
                unknown.push((key, why));
                None
            });
            let watched = self.watched(&registry, request, who.as_ref(), true)?;
            if let Some(policy) = limits
                && request.method == Some(Method::CallTool)
                && let Some(limit) = request.message.name().and_then(|name| policy.limit(&name))
            {
                self.limit(request, key, limit, watched.clone());
            }
            Some(watched as Arc<dyn Watch>)
        });
        for (key, why) in unknown {
            if let Some(call) = batch.take_one(key) {
                let mut replies = self.handle.replies();
                replies.error(&call.reply, ErrorKind::Unauthenticated, &why, None);
            }
        }
    }

    /// Who asks, as the carrier knows or the request itself proves; noted until the request is
    /// answered or handed on.
    ///
    /// # Errors
    /// It does not, and has to.
    fn identify(
        &mut self,
        registry: &Registry,
        request: &Incoming<'_>,
    ) -> Result<Option<Principal>, String> {
        if let Some(known) = self.known() {
            return Ok(Some(known.clone()));
        }
        let Some(policy) = registry.policy.as_ref().filter(|_| registry.verifies()) else {
            return Ok(None);
        };
        let said = auth(request);
        let who = Credentials::with_said(said, |brought| policy.verify(brought))?;
        self.proven.push((digest(said), who.clone()));
        Ok(Some(who))
    }

    /// Who was found to ask when the request was admitted, a moment ago: nobody is asked twice of
    /// what is still known.
    ///
    /// # Errors
    /// As [`identify`](Self::identify).
    fn admitted(
        &mut self,
        registry: &Registry,
        request: &Incoming<'_>,
    ) -> Result<Option<Principal>, String> {
        if self.known().is_none() && registry.verifies() {
            let digest = digest(auth(request));
            if let Some(at) = self.proven.iter().rposition(|(own, _)| *own == digest) {
                return Ok(Some(self.proven.remove(at).1));
            }
        }
        let before = self.proven.len();
        let who = self.identify(registry, request);
        self.proven.truncate(before);
        who
    }

    /// Who asks, as the carrier knows.
    fn known(&self) -> Option<&Principal> {
        self.current.as_ref().or_else(|| self.handle.verified())
    }

    fn speaks_profile(&self) -> bool {
        self.handle.config().profile != crate::mcp::Profile::Official
    }

    fn watched(
        &self,
        registry: &Registry,
        request: &Incoming<'_>,
        who: Option<&Principal>,
        is_deferred: bool,
    ) -> Option<Arc<Watched>> {
        let policy = registry.policy.as_ref();
        if policy.is_none() && !self.speaks_profile() {
            return None;
        }
        let about = subject(request).map(|(_, name)| name);
        let asked = Asked {
            request,
            about: about.as_deref().unwrap_or_default(),
            principal: who,
            is_deferred,
        };
        Watched::new(policy, self.handle.config().profile, asked)
    }

    /// Counts a request of this client.
    fn take(
        &mut self,
        policy: &Policy,
        request: &Incoming<'_>,
        answer: &Answer<'_>,
    ) -> Result<(), Duration> {
        if !policy.has_rates() {
            return Ok(());
        }
        policy.take(self.client(policy, request, answer), Instant::now())
    }

    /// Counts a call of this client.
    ///
    /// # Errors
    /// Why it is one too many, and how long it will be.
    fn take_call(
        &mut self,
        policy: &Policy,
        request: &Incoming<'_>,
        answer: &Answer<'_>,
    ) -> Result<(), (String, Duration)> {
        if !policy.has_quotas() || request.method != Some(Method::CallTool) {
            return Ok(());
        }
        let client = self.client(policy, request, answer);
        let taken = policy.take_call(client, Instant::now());
        taken.map_err(|(Quota { calls, period }, wait)| {
            let seconds = whole_seconds(wait);
            let why = format!(
                "the quota of {calls} calls in {period:?} is used up: try again in {seconds} s"
            );
            (why, wait)
        })
    }

    /// What a client is counted as.
    fn client<'a>(
        &'a mut self,
        policy: &Policy,
        request: &Incoming<'_>,
        answer: &'a Answer<'_>,
    ) -> &'a str {
        if let Some(principal) = answer.principal() {
            return principal.as_str();
        }
        if request.revision.era() == Era::Stateless && answer.is_exchange() {
            return "";
        }
        self.client.get_or_insert_with(|| policy.next_client())
    }

    /// R-PER-06
    fn limit(&self, request: &Incoming<'_>, key: CallKey, limit: Duration, watched: Arc<Watched>) {
        // An action may have none.
        let Some(id) = request.message.echo() else {
            return;
        };
        let call = (key, id, request.revision);
        let is_action = request.message.dialect() != Dialect::Rpc;
        self.handle.limit(call, limit, move |answer| {
            watched.foresee(Outcome::TimedOut);
            let why = format!("the tool took longer than {limit:?}");
            let is_error = is_action || watched.tells_timeouts();
            let answer = answer.watched(Some(watched));
            match is_error {
                true => answer.error(ErrorKind::TimedOut, &why, None),
                false => answer.result(|result| ToolResult::error(why).write(result)),
            }
        });
    }
}

/// What a request says of who asks, raw JSON.
fn auth<'a>(request: &Incoming<'a>) -> Option<&'a str> {
    reader::find(request.message.raw(Field::Meta)?, "auth")
}

/// Stands for it without showing it.
fn digest(auth: Option<&str>) -> [u8; 32] {
    Sha256::digest(auth.unwrap_or_default()).into()
}

const MISPLACED: &str = "credentials have no place among the params: send them with the carrier, or as auth in the metadata";

/// Where a schema may name properties that its root does not.
const ELSEWHERE: [&str; 6] = [
    "$ref",
    "$dynamicRef",
    "allOf",
    "anyOf",
    "oneOf",
    "patternProperties",
];

/// What among the arguments of a tool looks like credentials, a text, and is none of what it asks
/// for, where that can be seen (R-AUX-01): as details.
fn misplaced(registry: &Registry, policy: &Policy, request: &Incoming<'_>) -> Option<String> {
    if !policy.has_verifier() || request.method != Some(Method::CallTool) {
        return None;
    }
    let tool = registry.tool_at(registry.tool(&request.message.name()?)?)?;
    let schema = &tool.input_schema;
    if ELSEWHERE
        .iter()
        .any(|word| reader::find(schema, word).is_some())
    {
        return None;
    }
    let mut names = reader::members(request.message.arguments()?).filter_map(|(name, value)| {
        let name = name.decode().ok()?;
        let asked_for = reader::find_path(schema, &["properties", &name]);
        let is_text = reader::as_str(value).is_some();
        (is_text && is_secret(&name) && asked_for.is_none()).then_some(name)
    });
    Some(serde_json::json!({"parameter": names.next()?}).to_string())
}

/// A client asks more often than it may.
fn too_often(
    request: &Incoming<'_>,
    answer: Answer<'_>,
    kind: ErrorKind,
    why: &str,
    wait: Duration,
) -> Disposition {
    let is_action = request.message.dialect() != Dialect::Rpc;
    if request.method == Some(Method::CallTool) && !answer.is_exchange() && !is_action {
        return answer.result(|result| ToolResult::error(why).write(result));
    }
    let data = format!("{{\"retryAfter\":{}}}", whole_seconds(wait));
    answer.error(kind, why, Some(&data))
}
