//! Calls of the action dialect, and their outcomes.

use mcpbolt::action::ErrorType;
use mcpbolt::client::{ActionAnswer, ActionCallError, ActionFailure};
use mcpbolt::error::RequestError;
use mcpbolt::settings::{ActionSettings, Milliseconds};
use napi::Env;
use napi_derive::napi;
use serde_json::{Value, json};

use crate::error::{Failure, Result};
use crate::json::{raw, read};
use crate::kinds::Inbound;
use crate::link::Link;
use crate::requests::Task;

#[napi]
impl Link {
    /// Calls an action, with settings as JSON. Returns the number under which the outcome will come,
    /// `{data, metadata, partials}` or `{failure}`, and before it, if they are wanted, the parts.
    #[napi(catch_unwind)]
    pub fn action(
        &mut self,
        env: Env,
        name: String,
        params: String,
        settings: String,
        wants_partials: bool,
    ) -> Result<u32> {
        let settings: ActionSettings<Milliseconds> = read(&settings)?;
        let mut call = settings.call(self.client()?, &name, read(&params)?);
        Ok(self.wait(env, |reporter| -> Task {
            if wants_partials {
                let report = move |part: &str| reporter.report(Inbound::Partial, part.to_owned());
                call = call.on_partial(report);
            }
            Box::pin(async move { outcome(call.await) })
        }))
    }

    /// Fetches the schemas of the actions; the outcome has them as its data.
    #[napi(catch_unwind)]
    pub fn action_schemas(&mut self, env: Env) -> Result<u32> {
        let client = self.client()?.clone();
        Ok(self.wait(env, |_| {
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
}

/// The outcome of each operation of a batch, given the batch's data: an array of `{data}` and `{failure}`.
#[napi(catch_unwind)]
pub fn action_results(data: String) -> String {
    let batch = ActionAnswer {
        data,
        metadata: String::new(),
        partials: Vec::new(),
    };
    let one = |result: std::result::Result<String, ActionCallError>| match result {
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
    let said = |code| Failure::new(code, failure);
    let said = match failure {
        ActionFailure::Request(why) => Failure::of_request(why),
        ActionFailure::Answered(error) => Failure::new("ERR_MCP_ACTION", &error.message)
            .with("type", &error.spelling)
            .with("kind", &error.kind().map(ErrorType::name))
            .with("details", &error.details.as_deref().and_then(raw))
            .with("actionCode", &error.code)
            .with("helpUrl", &error.help_url)
            .with("metadata", &raw(error.metadata())),
        ActionFailure::BreakerOpen => said("ERR_MCP_BREAKER_OPEN"),
        ActionFailure::Invalid(_) => said("ERR_MCP_INVALID_PARAMS"),
        // The data do not fit.
        _ => said("ERR_MCP_BAD_ANSWER"),
    };
    let retry_after = failure.retry_after();
    let said = said
        .with("forPeople", &failure.for_people())
        .with("isTransient", &failure.is_transient())
        .with(
            "retryAfterMs",
            &retry_after.map(|wait| wait.as_secs_f64() * 1000.0),
        );
    json!({ "failure": said }).to_string()
}
