//! A sent request, with the rounds it may take.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use super::core::{ClientCore, require_complete};
use super::rounds::Repeatable;
use super::shapes;
use super::tasks::follow_task;
use crate::connection::{RequestOptions, Response};
use crate::error::RequestError;
use crate::handler::guarded::Made;
use crate::json::reader;
use crate::mcp::Method;
use crate::message::Message;

/// A sent request. If the server answers with questions (2026-07-28), the client's handlers answer
/// them while this future is awaited, and the request is repeated (R-MRT-01). If the server turns a
/// tool call into a task, the future waits for the task's result.
///
/// # Cancel safety
/// Dropping it cancels the request and notifies the server.
pub struct PendingRequest {
    state: RequestState,
    /// The parts needed to repeat the request.
    again: Option<Repeatable>,
    /// Return a task itself instead of waiting for its result.
    returns_task: bool,
    /// The method against whose shape the result is checked.
    checked: Option<Method>,
}

enum RequestState {
    Sent(Response),
    /// The server asked questions, or made a task of the call.
    Rounds(Made<Result<Message, RequestError>>),
}

impl std::fmt::Debug for PendingRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PendingRequest").finish_non_exhaustive()
    }
}

impl PendingRequest {
    /// Sends a request with any method.
    ///
    /// # Errors
    /// When it cannot be sent.
    pub(super) fn send(
        client: &ClientCore,
        method: &str,
        params: Option<&str>,
        options: RequestOptions,
    ) -> Result<Self, RequestError> {
        let response = client.handle.request(method, params, options.clone())?;
        let method = Method::parse(method);
        let may_ask = |method: &Method| method.may_ask() && client.is_stateless();
        let again = method.filter(may_ask).map(|method| Repeatable {
            client: client.clone(),
            method,
            params: params.unwrap_or("{}").to_owned(),
            options,
        });
        Ok(Self {
            state: RequestState::Sent(response),
            again,
            returns_task: false,
            checked: method.filter(|_| client.checks),
        })
    }

    /// Cancels the request and tells the server why.
    pub fn cancel(self, reason: Option<&str>) {
        if let RequestState::Sent(response) = self.state {
            response.cancel(reason);
        }
    }

    /// Returns a task itself, for the caller to follow, instead of waiting for its result: see
    /// [`Client::task`](super::Client::task).
    pub fn return_task(&mut self) {
        self.returns_task = true;
    }

    fn poll_message(&mut self, cx: &mut Context<'_>) -> Poll<Result<Message, RequestError>> {
        if let RequestState::Sent(response) = &mut self.state {
            let message = std::task::ready!(Pin::new(response).poll(cx))?;
            let kind = message.as_ref().result_type();
            let goes_on = matches!(kind.as_deref(), Some("input_required" | "task"));
            let Some(again) = self.again.take().filter(|_| goes_on) else {
                return Poll::Ready(Ok(message));
            };
            let is_call = again.method == Method::CallTool;
            let follows = (is_call && !self.returns_task).then(|| again.client.clone());
            self.state = RequestState::Rounds(Box::pin(async move {
                let message = again.follow(message).await?;
                match follows {
                    Some(client) => follow_task(&client, message).await,
                    None => Ok(message),
                }
            }));
        }
        match &mut self.state {
            RequestState::Rounds(rounds) => rounds.as_mut().poll(cx),
            RequestState::Sent(response) => Pin::new(response).poll(cx),
        }
    }
}

/// Resolves to the complete answer.
impl Future for PendingRequest {
    type Output = Result<Message, RequestError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let message = std::task::ready!(self.poll_message(cx))?;
        let answer = message.as_ref();
        // A task in the form of the newest revision: by `resultType`.
        let is_task = self.returns_task && answer.result_type().as_deref() == Some("task");
        if !is_task {
            require_complete(&message)?;
        }
        if let Some(method) = self.checked {
            let result = answer.result().unwrap_or("{}");
            // A task in the form of 2025-11-25: by the member `task`.
            let is_task = is_task || self.returns_task && reader::find(result, "task").is_some();
            if !is_task {
                shapes::check(method, result)?;
            }
        }
        Poll::Ready(Ok(message))
    }
}
