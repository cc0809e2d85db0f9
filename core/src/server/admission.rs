//! Requests held against the policy of a server, and those who look at their answers.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::access::subject;
use super::content::ToolResult;
use super::host::{ServerHost, missing, unknown_tool};
use super::registry::Registry;
use crate::connection::{Answer, Batch, CallKey, Disposition, Incoming, Watch};
use crate::handler::Executor;
use crate::mcp::{Era, ErrorKind, Method};
use crate::message::Dialect;
use crate::policy::{Asked, Outcome, Policy, Watched};

impl<E: Executor> ServerHost<E> {
    /// Gives the answer back to who is to write it, or writes it here.
    pub(super) fn admit<'a>(
        &mut self,
        registry: &Registry,
        request: &Incoming<'_>,
        answer: Answer<'a>,
    ) -> Result<Answer<'a>, Disposition> {
        let Some(watched) = self.watched(registry, request, false) else {
            return Ok(answer);
        };
        let answer = answer.watched(Some(watched.clone()));
        let Some(policy) = &registry.policy else {
            return Ok(answer);
        };
        if let Err(wait) = self.take(policy, request, &answer) {
            watched.foresee(Outcome::Limited);
            return Err(too_often(request, answer, wait));
        }
        let Some((method, name)) = subject(request) else {
            return Ok(answer);
        };
        match policy.admits(method, &name) {
            Ok(()) => Ok(answer),
            Err(kind @ ErrorKind::ToolDenied) => Err(unknown_tool(answer, kind, &name)),
            Err(kind) => Err(missing(answer, kind, &name)),
        }
    }

    /// Has the answers of a turn looked at, and bounds how long they may take.
    pub(super) fn watch(&mut self, batch: &mut Batch) {
        if self.registry.policy.is_none() && !self.speaks_profile() {
            return;
        }
        let registry = self.registry.clone();
        let limits = registry
            .policy
            .as_ref()
            .filter(|policy| policy.has_limits());
        batch.watch(|request, key| {
            let watched = self.watched(&registry, request, true)?;
            if let Some(policy) = limits
                && request.method == Some(Method::CallTool)
                && let Some(limit) = request.message.name().and_then(|name| policy.limit(&name))
            {
                self.limit(request, key, limit, watched.clone());
            }
            Some(watched as Arc<dyn Watch>)
        });
    }

    fn speaks_profile(&self) -> bool {
        self.handle.config().profile != crate::mcp::Profile::Official
    }

    fn watched(
        &self,
        registry: &Registry,
        request: &Incoming<'_>,
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
            principal: self.handle.principal(),
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
        let now = Instant::now();
        if let Some(principal) = self.handle.principal() {
            return policy.take(principal, now);
        }
        if request.revision.era() == Era::Stateless && answer.is_exchange() {
            return policy.take("", now);
        }
        let client = self.client.get_or_insert_with(|| policy.next_client());
        policy.take(client, now)
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

/// A client asks more often than it may.
fn too_often(request: &Incoming<'_>, answer: Answer<'_>, wait: Duration) -> Disposition {
    let seconds = wait.as_millis().div_ceil(1000).max(1);
    let why = format!("too many requests: try again in {seconds} s");
    let is_action = request.message.dialect() != Dialect::Rpc;
    if request.method == Some(Method::CallTool) && !answer.is_exchange() && !is_action {
        return answer.result(|result| ToolResult::error(why).write(result));
    }
    let data = format!("{{\"retryAfter\":{seconds}}}");
    answer.error(ErrorKind::RateLimited, &why, Some(&data))
}
