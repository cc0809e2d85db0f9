//! Calls that need somebody's approval.

use std::collections::VecDeque;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use hmac_sha256::Hash;

use super::super::middleware::{
    ChainAnswer, ChainRequest, ChainResponse, Middleware, NextHop, RelayDirection, refusal,
};
use super::super::params::json_text;
use crate::error::RequestError;
use crate::json::reader;
use crate::mcp::code::INVALID_PARAMS;
use crate::mcp::{Era, Method};
use crate::sync::lock;

/// The most approved calls that are remembered while their servers ask something. The oldest is forgotten for another.
const MAX_ASKING: usize = 1024;

/// How long an approved call is remembered while its server asks something.
const ASKING_TIME: Duration = Duration::from_secs(3600);

type Verdict = Pin<Box<dyn Future<Output = Result<(), String>> + Send>>;

/// Middleware that passes on calls of some tools only when they are approved: by the program, or by the user of the client.
/// Other requests pass.
///
/// ```
/// use mcpbolt::chain::Approval;
/// let by_user = Approval::by_client(|tool| tool.starts_with("delete"));
/// let by_program = Approval::new(|tool| tool == "pay", |request| {
///     let is_small = request.params().len() < 200;
///     async move { is_small.then_some(()).ok_or_else(|| "too large".to_owned()) }
/// });
/// # let _ = (by_user, by_program);
/// ```
pub struct Approval {
    needs: Box<dyn Fn(&str) -> bool + Send + Sync>,
    by: By,
    asking: Mutex<Asking>,
}

/// Approved calls whose servers ask something, oldest first.
#[derive(Default)]
struct Asking(VecDeque<(Instant, [u8; 32])>);

impl Asking {
    fn add(&mut self, call: [u8; 32], now: Instant) {
        self.forget(now);
        if self.0.len() >= MAX_ASKING {
            self.0.pop_front();
        }
        self.0.push_back((now, call));
    }

    /// Whether it is such a call, which goes on once.
    fn take(&mut self, call: [u8; 32], now: Instant) -> bool {
        self.forget(now);
        let at = self.0.iter().position(|(_, one)| *one == call);
        at.and_then(|at| self.0.remove(at)).is_some()
    }

    fn forget(&mut self, now: Instant) {
        let is_old = |since: Instant| now.saturating_duration_since(since) > ASKING_TIME;
        while self.0.front().is_some_and(|(since, _)| is_old(*since)) {
            self.0.pop_front();
        }
    }
}

/// What an approval covers when a call goes on with this state: its sender and all of its params but what each round has anew.
fn approved(request: &ChainRequest, state: &str) -> [u8; 32] {
    let mut hash = Hash::new();
    let mut part = |text: &str| {
        hash.update(text.len().to_le_bytes());
        hash.update(text);
    };
    let principal = request.principal();
    part(if principal.is_some() { "verified" } else { "" });
    part(principal.map_or("", |principal| principal.as_str()));
    part(state);
    for (name, value) in reader::members(request.params()) {
        if name != "_meta" && name != "requestState" && name != "inputResponses" {
            part(name.raw());
            part(value);
        }
    }
    hash.finalize()
}

enum By {
    Client,
    Program(Box<dyn Fn(ChainRequest) -> Verdict + Send + Sync>),
}

impl Approval {
    /// Approval by the program: `approve` gets each call of a tool for which `needs` is true, and returns why it refuses the
    /// call, if it does. The future is dropped when the call is cancelled. A call that goes on after questions of its server
    /// (`input_required`) is a further call, which `approve` gets, too.
    pub fn new<F>(
        needs: impl Fn(&str) -> bool + Send + Sync + 'static,
        approve: impl Fn(ChainRequest) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Result<(), String>> + Send + 'static,
    {
        Self {
            needs: Box::new(needs),
            by: By::Program(Box::new(move |request| Box::pin(approve(request)))),
            asking: Mutex::default(),
        }
    }

    /// Approval by the user of the client, who is asked by elicitation and sees the name of the tool and its arguments. Calls of
    /// clients without elicitation are refused. A call that goes on after questions of its server, with the same arguments, is
    /// not asked about again.
    pub fn by_client(needs: impl Fn(&str) -> bool + Send + Sync + 'static) -> Self {
        Self {
            needs: Box::new(needs),
            by: By::Client,
            asking: Mutex::default(),
        }
    }
}

impl Middleware for Approval {
    fn keeps_lists(&self) -> bool {
        true
    }

    fn request<'a>(&'a self, request: ChainRequest, next: NextHop<'a>) -> ChainAnswer<'a> {
        let is_call = request.direction() == RelayDirection::ToServer
            && request.known_method() == Some(Method::CallTool);
        let tool = request.target().map(|tool| tool.into_owned());
        match tool.filter(|tool| is_call && (self.needs)(tool)) {
            None => next.run(request),
            Some(tool) => Box::pin(async move {
                match &self.by {
                    By::Client => self.by_user(&tool, request, next).await,
                    By::Program(approve) => {
                        approve(request.clone()).await.map_err(|why| {
                            let why = format!("the call of {tool:?} was not approved: {why}");
                            refusal(INVALID_PARAMS, why)
                        })?;
                        next.run(request).await
                    }
                }
            }),
        }
    }
}

impl Approval {
    /// Passes a call on when the user has approved it. Notes whether it is to go on after questions of the server.
    async fn by_user(
        &self,
        tool: &str,
        request: ChainRequest,
        next: NextHop<'_>,
    ) -> Result<ChainResponse, RequestError> {
        // Only clients of the stateless era answer questions by a further call.
        let may_go_on = request.revision().era() == Era::Stateless;
        let state = reader::find(request.params(), "requestState").filter(|_| may_go_on);
        let is_approved = state.is_some_and(|state| {
            lock(&self.asking).take(approved(&request, state), Instant::now())
        });
        if !is_approved {
            ask(tool, &request, &next).await?;
        }
        let answer = next.run(request.clone()).await?;
        let kind = reader::find(answer.result(), "resultType").and_then(reader::as_str);
        if may_go_on
            && kind.as_deref() == Some("input_required")
            && let Some(state) = reader::find(answer.result(), "requestState")
        {
            lock(&self.asking).add(approved(&request, state), Instant::now());
        }
        Ok(answer)
    }
}

async fn ask(tool: &str, request: &ChainRequest, next: &NextHop<'_>) -> Result<(), RequestError> {
    let arguments = reader::find(request.params(), "arguments").unwrap_or("{}");
    let message = json_text(&format!("Allow the call of {tool:?} with {arguments}?"));
    let form = format!(
        "{{\"message\":{message},\"requestedSchema\":{{\"type\":\"object\",\"properties\":{{}}}}}}"
    );
    let answer = next.ask(request, Method::Elicit.name(), &form).await;
    let answer = answer.map_err(|error| match error {
        RequestError::Unsupported(_) => refusal(
            INVALID_PARAMS,
            format!(
                "the call of {tool:?} needs the user's approval, and the client has no elicitation"
            ),
        ),
        error => error,
    })?;
    let action = reader::find(answer.result(), "action").and_then(reader::as_str);
    match action.as_deref() {
        Some("accept") => Ok(()),
        _ => Err(refusal(
            INVALID_PARAMS,
            format!("the user did not approve the call of {tool:?}"),
        )),
    }
}

impl fmt::Debug for Approval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Approval").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn approved_calls_whose_servers_ask_are_remembered_up_to_a_number_and_a_time() {
        let (mut asking, now) = (Asking::default(), Instant::now());
        let call = |n: usize| Hash::hash(&n.to_le_bytes());
        (0..MAX_ASKING + 2).for_each(|n| asking.add(call(n), now));
        assert_eq!(asking.0.len(), MAX_ASKING);
        assert!(!asking.take(call(1), now));
        assert!(asking.take(call(2), now + ASKING_TIME));
        assert!(!asking.take(call(2), now), "a call goes on once");
        assert!(!asking.take(call(3), now + ASKING_TIME + Duration::from_secs(1)));
        assert!(asking.0.is_empty());
    }
}
