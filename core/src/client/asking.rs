//! A sent request, with the rounds it may take.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use super::rounds::Repeatable;
use super::{Client, complete, shapes};
use crate::connection::{RequestOptions, Response};
use crate::error::RequestError;
use crate::handler::guarded::Made;
use crate::json::reader;
use crate::mcp::{Era, Method, Revision};
use crate::message::Message;

/// A sent request. If the server answers with questions (2026-07-28), the client's handlers answer
/// them while this future is awaited, and the request is repeated (R-MRT-01). If the server turns a
/// tool call into a task, the future waits for the task's result.
///
/// # Cancel safety
/// Dropping it cancels the request and notifies the server.
pub struct Asking {
    way: Way,
    /// What is needed to repeat the request.
    again: Option<Repeatable>,
    /// Return a task itself instead of waiting for its result.
    hands_over: bool,
    /// The method against whose shape the result is checked.
    checked: Option<Method>,
}

enum Way {
    First(Response),
    /// The server asked questions, or made a task of the call.
    Rounds(Made<Result<Message, RequestError>>),
}

impl std::fmt::Debug for Asking {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Asking").finish_non_exhaustive()
    }
}

impl Client {
    /// Sends a request with any method. `params` is a JSON object.
    ///
    /// # Errors
    /// When it cannot be sent: the connection has ended, too many requests wait, or the params
    /// are no JSON object.
    pub fn request(
        &self,
        method: &str,
        params: Option<&str>,
        options: RequestOptions,
    ) -> Result<Asking, RequestError> {
        let response = self.handle().request(method, params, options.clone())?;
        let method = Method::parse(method);
        let checked = method.filter(|_| self.checks);
        let method = method.filter(|method| method.may_ask());
        let stateless = self.revision().map(Revision::era) == Some(Era::Stateless);
        let again = method.filter(|_| stateless).map(|method| Repeatable {
            client: self.clone(),
            method,
            params: params.unwrap_or("{}").to_owned(),
            options,
        });
        let way = Way::First(response);
        Ok(Asking {
            way,
            again,
            hands_over: false,
            checked,
        })
    }
}

impl Asking {
    /// Cancels the request and tells the server why.
    pub fn cancel(self, reason: Option<&str>) {
        if let Way::First(response) = self.way {
            response.cancel(reason);
        }
    }

    /// Returns a task itself, for the caller to follow, instead of waiting for its result: see
    /// [`Client::task`].
    pub fn hand_over(&mut self) {
        self.hands_over = true;
    }

    fn poll_message(&mut self, cx: &mut Context<'_>) -> Poll<Result<Message, RequestError>> {
        if let Way::First(response) = &mut self.way {
            let message = std::task::ready!(Pin::new(response).poll(cx))?;
            let kind = message.as_ref().result_type();
            let goes_on = matches!(kind.as_deref(), Some("input_required" | "task"));
            let Some(again) = self.again.take().filter(|_| goes_on) else {
                return Poll::Ready(Ok(message));
            };
            let is_call = again.method == Method::CallTool;
            let follows = (is_call && !self.hands_over).then(|| again.client.clone());
            self.way = Way::Rounds(Box::pin(async move {
                let message = again.follow(message).await?;
                match follows {
                    Some(client) => client.follow_task(message).await,
                    None => Ok(message),
                }
            }));
        }
        match &mut self.way {
            Way::Rounds(rounds) => rounds.as_mut().poll(cx),
            Way::First(response) => Pin::new(response).poll(cx),
        }
    }
}

/// Resolves to the complete answer.
impl Future for Asking {
    type Output = Result<Message, RequestError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let message = std::task::ready!(self.poll_message(cx))?;
        let answer = message.as_ref();
        // A task in the form of the newest revision: by `resultType`.
        let is_task = self.hands_over && answer.result_type().as_deref() == Some("task");
        if !is_task {
            complete(&message)?;
        }
        if let Some(method) = self.checked {
            let result = answer.result().unwrap_or("{}");
            // A task in the form of 2025-11-25: by the member `task`.
            let is_task = is_task || self.hands_over && reader::find(result, "task").is_some();
            if !is_task {
                shapes::check(method, result)?;
            }
        }
        Poll::Ready(Ok(message))
    }
}
