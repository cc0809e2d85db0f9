//! Calls in the action dialect: schema checks, retries, circuit breaker and fallbacks.
//!
//! ```text
//!   params ─▶ schema, if it is known ─▶ breaker ─▶ sent ─▶ answer ─┬─▶ data
//!               │ misfit                 │ open      ▲            ├─▶ transient: wait, again
//!               ▼                        ▼           ╰────────────╯
//!            refused                  refused ──────────────────▶ the fallback, if there is one
//! ```
//!
//! Data in the answer are checked against their schema, if it is known.

mod breaker;
mod failure;
mod references;
mod retry;
mod schemas;
mod state;

use std::collections::{BTreeMap, HashSet};
use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::json;

pub use self::breaker::BreakerPolicy;
pub use self::failure::{ActionCallError, ActionFailure};
pub use self::retry::RetryPolicy;
pub(super) use self::state::ActionState;
use super::client::Client;
use super::core::ClientCore;
use super::cursor::MAX_PAGES;
use crate::action;
use crate::connection::{ActOptions, PartialFn};
use crate::error::RequestError;
use crate::json::reader;
use crate::message::{Envelope, Field, Kind, Message, MessageRef};
use crate::sync::block_on;

/// The successful answer of an action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActionAnswer {
    /// The result: raw JSON; `null` if there is none.
    pub data: String,
    /// The metadata of the answer: a JSON object.
    pub metadata: String,
    /// The parts that arrived before the answer, raw JSON each, in order (R-ACT-26).
    pub partials: Vec<String>,
}

impl ActionAnswer {
    /// The result as a parsed value.
    pub fn data(&self) -> serde_json::Value {
        serde_json::from_str(&self.data).unwrap_or_default()
    }

    /// Joins the values of a string member of all parts, for example the tokens of a text.
    pub fn joined(&self, member: &str) -> String {
        let text = |part: &String| {
            let value = reader::find(part, member)?;
            reader::as_str(value).map(|text| text.into_owned())
        };
        self.partials.iter().filter_map(text).collect()
    }

    /// The outcomes of a batch, one for each operation that was carried out: its data, raw JSON, or
    /// its error (R-ACT-16).
    pub fn results(&self) -> Vec<Result<String, ActionCallError>> {
        let results = reader::find(&self.data, "results").unwrap_or("[]");
        let read = |one| match reader::find(one, "error") {
            Some(error) => Err({
                let metadata = reader::find(one, "metadata").unwrap_or("{}");
                ActionCallError::read(error).with_metadata(metadata.to_owned())
            }),
            None => Ok(reader::find(one, "data").unwrap_or("null").to_owned()),
        };
        reader::elements(results).map(read).collect()
    }
}

impl Client {
    /// Calls an action of a server of the action dialect. The client must be built with
    /// [`OpeningMode::Actions`](crate::connection::OpeningMode::Actions). `params` is a JSON object.
    ///
    /// ```
    /// # #[cfg(all(feature = "server", feature = "stdio"))] {
    /// use mcpbolt::client::{Client, block_on};
    /// use mcpbolt::connection::OpeningMode;
    /// use mcpbolt::server::{Arguments, Json, Server, Tool};
    /// use serde_json::json;
    ///
    /// let server = Server::builder("calculator", "1.0.0")
    ///     .actions(true)
    ///     .tool(Tool::new("calculator.add"), |_: Arguments, _| async { Json(json!({"result": 3})) })
    ///     .build()?;
    /// let client = Client::builder("me", "1").opening(OpeningMode::Actions).connect(&server);
    /// let client = block_on(client)?;
    /// let sum = client.action("calculator.add", &json!({"a": 1, "b": 2})).wait()?;
    /// assert_eq!(sum.data()["result"], 3);
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn action(&self, name: &str, params: &impl serde::Serialize) -> ActionCall {
        ActionCall::new(&self.core, name, params)
    }

    /// Calls several actions in order in one request. Stops at the first failure unless `continues`
    /// is `true`; see [`ActionAnswer::results`] (R-ACT-16, R-ACT-17).
    ///
    /// ```no_run
    /// # use mcpbolt::client::{ActionFailure, Client};
    /// # async fn run(client: Client) -> Result<(), ActionFailure> {
    /// use serde_json::json;
    ///
    /// let operations = [("file_system.read", json!({"path": "/a"})), ("mcp.health_check", json!({}))];
    /// for result in client.action_batch(operations, true).await?.results() {
    ///     println!("{}", result.map_or_else(|error| error.message, |data| data));
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn action_batch<'a>(
        &self,
        operations: impl IntoIterator<Item = (&'a str, serde_json::Value)>,
        continues: bool,
    ) -> ActionCall {
        let operation = |(action, params)| json!({"action": action, "params": params});
        let operations: Vec<_> = operations.into_iter().map(operation).collect();
        let params = json!({"operations": operations, "continue_on_error": continues});
        self.action("batch.execute", &params)
    }

    /// Fetches the schemas of the server's actions from `mcp.get_schema`: by name, raw JSON objects
    /// with `description`, `params_schema`, `data_schema`, `examples` and more. From then on params
    /// are checked before they are sent, and data before they are returned.
    ///
    /// # Errors
    /// The same as any call.
    pub async fn action_schemas(&self) -> Result<BTreeMap<String, String>, ActionFailure> {
        let (mut all, mut params) = (BTreeMap::new(), serde_json::json!({}));
        let mut seen = HashSet::new();
        loop {
            let answer = self.action("mcp.get_schema", &params).await?;
            let actions = reader::find(&answer.data, "actions").unwrap_or("{}");
            all.extend(reader::members(actions).filter_map(|(name, value)| {
                Some((name.decode().ok()?.into_owned(), value.to_owned()))
            }));
            let next = reader::find(&answer.data, "next_cursor").and_then(reader::as_str);
            // A repeated cursor would loop forever.
            match next.filter(|next| seen.insert(next.to_string())) {
                Some(next) if seen.len() < MAX_PAGES => params["cursor"] = (&*next).into(),
                _ => break,
            }
        }
        self.core.actions.schemas.learn(&all);
        Ok(all)
    }
}

/// An action call that is not sent yet: await it, or [`wait`](Self::wait).
#[must_use = "nothing is sent before it is awaited"]
pub struct ActionCall {
    client: ClientCore,
    name: String,
    params: Result<String, RequestError>,
    options: ActOptions,
    /// The policy that the caller set.
    retry: Option<RetryPolicy>,
    breaker: BreakerPolicy,
    fallback: Option<Box<ActionCall>>,
    /// Takes the answer's data as they are, even if they look like a reference.
    is_part: bool,
}

impl std::fmt::Debug for ActionCall {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ActionCall")
            .field("name", &self.name)
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

impl ActionCall {
    fn new(client: &ClientCore, name: &str, params: &impl serde::Serialize) -> Self {
        let params = serde_json::to_string(params);
        Self {
            client: client.clone(),
            name: name.to_owned(),
            params: params.map_err(|_| RequestError::Misuse("params cannot be JSON")),
            options: ActOptions::default(),
            retry: None,
            breaker: BreakerPolicy::default(),
            fallback: None,
            is_part: false,
        }
    }

    /// Sets the tool or namespace that is called.
    pub fn tool(mut self, tool: &str) -> Self {
        self.options.tool = Some(tool.into());
        self
    }

    /// Sets the process or state that the call belongs to.
    pub fn context(mut self, context: &str) -> Self {
        self.options.context = Some(context.into());
        self
    }

    /// Sets further members of the metadata, an object: `client_id`, `auth` (R-AUX-01),
    /// `timestamp`.
    pub fn metadata(mut self, object: &serde_json::Value) -> Self {
        self.options.metadata = Some(object.to_string().into());
        self
    }

    /// Sets how long each attempt may go without news. Default:
    /// [`Limits::request_timeout`](crate::limits::Limits).
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.options.timeout = Some(timeout);
        self
    }

    /// Calls `report` with each part of the answer, raw JSON, as it arrives. A [fallback](Self::or)
    /// without its own callback uses the same one. Runs on the driver's thread; must not block.
    pub fn on_partial(mut self, report: impl Fn(&str) + Send + Sync + 'static) -> Self {
        self.options.partial = Some(Arc::new(report));
        self.streamed()
    }

    /// Asks for the answer in parts; [`ActionAnswer::partials`] collects them.
    pub fn streamed(mut self) -> Self {
        self.options.streamed = true;
        self
    }

    /// Sets the retry policy (R-ACT-35). Calling this also permits running the action twice:
    /// without it, a call whose stream broke off after it began and could not be resumed is not
    /// retried. A retry reports its parts from the first on again.
    pub fn retry(mut self, policy: RetryPolicy) -> Self {
        self.retry = Some(policy);
        self
    }

    /// Sets the circuit breaker policy (R-ACT-36). Failures are counted over all calls of this
    /// client.
    pub fn breaker(mut self, policy: BreakerPolicy) -> Self {
        self.breaker = policy;
        self
    }

    /// Sets a fallback to call if this call finally fails, except when the call itself is wrong.
    pub fn or(mut self, other: Self) -> Self {
        self.fallback = Some(Box::new(other));
        self
    }

    /// Sends the call and blocks this thread until it is answered.
    ///
    /// # Errors
    /// See [`ActionFailure`].
    pub fn wait(self) -> Result<ActionAnswer, ActionFailure> {
        block_on(self.into_future())
    }

    async fn call(mut self) -> Result<ActionAnswer, ActionFailure> {
        let fallback = self.fallback.take();
        match (self.attempts().await, fallback) {
            (Err(failure), Some(mut other)) if failure.is_of_server() => {
                let own = &mut other.options;
                if let (None, Some(report)) = (&own.partial, self.options.partial) {
                    (own.partial, own.streamed) = (Some(report), true);
                }
                Box::pin(other.call()).await
            }
            (outcome, _) => outcome,
        }
    }

    async fn attempts(&self) -> Result<ActionAnswer, ActionFailure> {
        let params = self.params.as_ref().map_err(Clone::clone)?;
        self.client.actions.schemas.check(&self.name, params)?;
        let breaker = &self.client.actions.breaker;
        let mut failures = 0;
        loop {
            if !breaker.admits(Instant::now()) {
                return Err(ActionFailure::BreakerOpen);
            }
            let failure = match self.attempt(params).await {
                Ok(answer) => {
                    breaker.succeeded();
                    let answer = self.whole(answer).await?;
                    let schemas = &self.client.actions.schemas;
                    schemas.check_data(&self.name, &answer.data)?;
                    return Ok(answer);
                }
                Err(failure) => failure,
            };
            match failure.is_transient() || failure.is_lost_under_way() {
                true => breaker.failed(&self.breaker, Instant::now()),
                false => breaker.succeeded(),
            }
            failures += 1;
            let policy = self.retry.unwrap_or_default();
            let wait = policy.wait(failures, failure.retry_after());
            let may_help =
                failure.is_transient() || failure.is_lost_under_way() && self.retry.is_some();
            let Some(wait) = wait.filter(|_| may_help) else {
                return Err(failure);
            };
            #[cfg(feature = "tracing")]
            tracing::warn!(action = %self.name, %failure, ?wait, "an action failed and is tried again");
            self.client.handle.sleep(wait).await;
        }
    }

    async fn attempt(&self, params: &str) -> Result<ActionAnswer, ActionFailure> {
        let parts: Arc<Mutex<Vec<String>>> = Arc::default();
        let (into, report) = (parts.clone(), self.options.partial.clone());
        let partial: PartialFn = Arc::new(move |part| {
            into.lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push(part.to_owned());
            if let Some(report) = &report {
                report(part);
            }
        });
        let options = ActOptions {
            partial: Some(partial),
            ..self.options.clone()
        };
        let answer = self.client.handle.act(&self.name, params, options)?.await?;
        let partials = std::mem::take(&mut *parts.lock().unwrap_or_else(PoisonError::into_inner));
        read(&answer, partials)
    }
}

/// Parses an answer.
fn read(answer: &Message, partials: Vec<String>) -> Result<ActionAnswer, ActionFailure> {
    const DEPTH: usize = 1024;
    let mut envelope = Envelope::new();
    let copy = answer.as_ref().detach();
    let bad = || RequestError::BadAnswer("not an answer to an action");
    let frame = copy.frame().ok_or_else(bad)?;
    action::decode(frame, DEPTH, &mut envelope).map_err(|_| bad())?;
    let answer = MessageRef::new(frame, &envelope);
    match answer.kind() {
        Kind::Response => Ok(ActionAnswer {
            data: answer.result().unwrap_or("null").to_owned(),
            metadata: answer.raw(Field::Meta).unwrap_or("{}").to_owned(),
            partials,
        }),
        Kind::Error => {
            let error = answer.error().unwrap_or("{}");
            let metadata = answer.raw(Field::Meta).unwrap_or("{}").to_owned();
            let error = ActionCallError::read(error).with_metadata(metadata);
            Err(ActionFailure::Answered(error))
        }
        _ => Err(bad().into()),
    }
}

impl IntoFuture for ActionCall {
    type Output = Result<ActionAnswer, ActionFailure>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.call())
    }
}
