//! Calls that need somebody's approval.

use std::fmt;
use std::future::Future;
use std::pin::Pin;

use super::super::middleware::{
    ChainAnswer, ChainRequest, Middleware, NextHop, RelayDirection, refusal,
};
use super::super::params::json_text;
use crate::error::RequestError;
use crate::json::reader;
use crate::mcp::Method;
use crate::mcp::code::INVALID_PARAMS;

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
        }
    }

    /// Approval by the user of the client, who is asked by elicitation and sees the name of the tool and its arguments. Calls of
    /// clients without elicitation are refused. A call that goes on after questions of its server is not asked about again.
    pub fn by_client(needs: impl Fn(&str) -> bool + Send + Sync + 'static) -> Self {
        Self {
            needs: Box::new(needs),
            by: By::Client,
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
                    By::Client => ask(&tool, &request, &next).await?,
                    By::Program(approve) => approve(request.clone()).await.map_err(|why| {
                        refusal(
                            INVALID_PARAMS,
                            format!("the call of {tool:?} was not approved: {why}"),
                        )
                    })?,
                }
                next.run(request).await
            }),
        }
    }
}

async fn ask(tool: &str, request: &ChainRequest, next: &NextHop<'_>) -> Result<(), RequestError> {
    // The server has asked something in the call, so the call was approved.
    if reader::find(request.params(), "requestState").is_some() {
        return Ok(());
    }
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
