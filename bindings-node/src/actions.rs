//! Calls of the action dialect, and their outcomes.

use mcpbolt::action::ErrorType;
use mcpbolt::client::{
    ActionAnswer, ActionCall, ActionError, ActionFailure, BreakerPolicy, Client, RetryPolicy,
};
use mcpbolt::error::RequestError;
use napi_derive::napi;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::calls::Underway;
use crate::error::{self, Result, error};
use crate::inbox::Event;
use crate::link::{Link, duration};
use crate::requests::Task;

/// Options of an action call.
#[napi(object)]
pub struct ActionOptions {
    pub tool: Option<String>,
    pub context: Option<String>,
    /// As JSON.
    pub metadata: Option<String>,
    pub timeout_ms: Option<f64>,
    pub streamed: bool,
    /// Whether parts are reported as they arrive.
    pub wants_partials: bool,
    pub retry: Option<ActionRetry>,
    pub breaker: Option<ActionBreaker>,
    /// The name and the params, as JSON, of the action to call if this one fails.
    pub fallback: Option<Vec<String>>,
}

/// A retry policy; each member defaults to the engine's.
#[napi(object)]
pub struct ActionRetry {
    pub tries: Option<u32>,
    pub base_ms: Option<f64>,
    pub longest_ms: Option<f64>,
}

/// A breaker policy; each member defaults to the engine's.
#[napi(object)]
pub struct ActionBreaker {
    pub failures: Option<u32>,
    pub pause_ms: Option<f64>,
}

impl ActionOptions {
    fn call(&self, client: &Client, name: &str, params: &str) -> Result<ActionCall> {
        let mut call = client.action(name, &read::<Box<RawValue>>(params)?);
        if let Some(tool) = &self.tool {
            call = call.tool(tool);
        }
        if let Some(context) = &self.context {
            call = call.context(context);
        }
        if let Some(metadata) = &self.metadata {
            call = call.metadata(&read(metadata)?);
        }
        if let Some(timeout) = self.timeout_ms {
            call = call.timeout(duration(timeout)?);
        }
        if self.streamed {
            call = call.streamed();
        }
        let time = |ms: Option<f64>, usual| ms.map_or(Ok(usual), duration);
        if let Some(retry) = &self.retry {
            let usual = RetryPolicy::default();
            call = call.retry(RetryPolicy {
                tries: retry.tries.unwrap_or(usual.tries),
                base: time(retry.base_ms, usual.base)?,
                longest: time(retry.longest_ms, usual.longest)?,
            });
        }
        if let Some(breaker) = &self.breaker {
            let usual = BreakerPolicy::default();
            call = call.breaker(BreakerPolicy {
                failures: breaker.failures.unwrap_or(usual.failures),
                pause: time(breaker.pause_ms, usual.pause)?,
            });
        }
        Ok(call)
    }
}

fn read<'a, T: serde::Deserialize<'a>>(json: &'a str) -> Result<T> {
    serde_json::from_str(json).map_err(|why| error("ERR_MCP_MISUSE", why))
}

#[napi]
impl Link {
    /// Calls an action. Returns the number under which the outcome will come, `{data, metadata, partials}` or
    /// `{failure}`, and before it the parts, as progress.
    #[napi(catch_unwind)]
    pub fn action(&mut self, name: String, params: String, options: ActionOptions) -> Result<u32> {
        let client = self.client()?;
        let mut call = options.call(client, &name, &params)?;
        if let Some([name, params]) = options.fallback.as_deref() {
            call = call.or(options.call(client, name, params)?);
        }
        let inbox = self.inbox.clone();
        Ok(self.wait(|number| -> Task {
            if options.wants_partials {
                let report = move |part: &str| inbox.push(Event::Partial(number, part.to_owned()));
                call = call.on_partial(report);
            }
            Box::pin(async move { outcome(call.await) })
        }))
    }

    /// Fetches the schemas of the actions; the outcome has them as its data.
    #[napi(catch_unwind)]
    pub fn action_schemas(&mut self) -> Result<u32> {
        let client = self.client()?.clone();
        Ok(self.wait(|_| {
            Box::pin(async move {
                outcome(client.action_schemas().await.map(|all| {
                    let member = |(name, schema)| format!("{}:{schema}", Value::String(name));
                    let members: Vec<_> = all.into_iter().map(member).collect();
                    ActionAnswer {
                        data: format!("{{{}}}", members.join(",")),
                        metadata: "{}".to_owned(),
                        partials: Vec::new(),
                    }
                }))
            })
        }))
    }

    /// The process or state that the call of an action belongs to.
    #[napi(catch_unwind)]
    pub fn action_context(&self, call: u32) -> Option<String> {
        self.calls.get(call)?.action_context()
    }

    /// The verified caller of a call.
    #[napi(catch_unwind)]
    pub fn principal(&self, call: u32) -> Option<String> {
        let who = self.calls.get(call)?.principal()?;
        Some(who.as_str().to_owned())
    }

    /// Whether the caller of a call was granted a scope.
    #[napi(catch_unwind)]
    pub fn has_scope(&self, call: u32, scope: String) -> bool {
        let who = self.calls.get(call).and_then(Underway::principal);
        who.is_some_and(|who| who.has_scope(&scope))
    }
}

/// The outcome of each operation of a batch, given the batch's data: an array of `{data}` and `{failure}`.
#[napi(catch_unwind)]
pub fn action_results(data: String) -> String {
    let batch = ActionAnswer {
        data,
        metadata: String::new(),
        partials: Vec::new(),
    };
    let one = |result: std::result::Result<String, ActionError>| match result {
        Ok(data) => format!("{{\"data\":{data}}}"),
        Err(error) => failed(&ActionFailure::Answered(error)),
    };
    let all: Vec<_> = batch.results().into_iter().map(one).collect();
    format!("[{}]", all.join(","))
}

fn outcome(
    outcome: std::result::Result<ActionAnswer, ActionFailure>,
) -> std::result::Result<String, RequestError> {
    Ok(match outcome {
        Ok(answer) => format!(
            "{{\"data\":{},\"metadata\":{},\"partials\":[{}]}}",
            answer.data,
            answer.metadata,
            answer.partials.join(",")
        ),
        Err(failure) => failed(&failure),
    })
}

/// `{failure}`: the JSON that the TypeScript side turns into an error.
fn failed(failure: &ActionFailure) -> String {
    let code = match failure {
        ActionFailure::Answered(_) => "ERR_MCP_ACTION",
        ActionFailure::BreakerOpen => "ERR_MCP_BREAKER_OPEN",
        ActionFailure::Invalid(_) => "ERR_MCP_INVALID_PARAMS",
        // The data do not fit.
        _ => "ERR_MCP_BAD_ANSWER",
    };
    let mut said = match failure {
        ActionFailure::Request(why) => {
            let mut json = String::new();
            error::request_json(&mut json, why);
            serde_json::from_str(&json).unwrap_or_default()
        }
        ActionFailure::Answered(error) => json!({
            "code": code,
            "message": error.message,
            "type": error.spelling,
            "kind": error.kind().map(ErrorType::name),
            "details": error.details.as_deref().and_then(|json| serde_json::from_str::<Value>(json).ok()),
            "actionCode": error.code,
            "helpUrl": error.help_url,
            "metadata": serde_json::from_str::<Value>(error.metadata()).ok(),
        }),
        _ => json!({ "code": code, "message": failure.to_string() }),
    };
    if let Value::Object(said) = &mut said {
        said.retain(|_, value| !value.is_null());
        said.insert("forPeople".into(), failure.for_people().into());
        said.insert("isTransient".into(), failure.is_transient().into());
        if let Some(wait) = failure.retry_after() {
            said.insert("retryAfterMs".into(), (wait.as_secs_f64() * 1000.0).into());
        }
    }
    json!({ "failure": said }).to_string()
}
