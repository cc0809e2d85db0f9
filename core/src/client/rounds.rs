//! Multi round-trip calls (2026-07-28): answers the server's questions and repeats the call.

use super::core::{ClientCore, result};
use crate::connection::{RequestOptions, Response};
use crate::correlate::CancelToken;
use crate::error::RequestError;
use crate::handler::guarded::{Outcome, guarded};
use crate::json::reader;
use crate::mcp::{Method, Revision};
use crate::message::Message;

/// Maximum number of rounds of one call (R-MRT-12).
const MAX_ROUNDS: usize = 10;

/// A call that can be repeated.
#[derive(Debug)]
pub(super) struct Repeatable {
    pub client: ClientCore,
    pub method: Method,
    /// A JSON object.
    pub params: String,
    pub options: RequestOptions,
}

impl Repeatable {
    /// Sends the call, with its own params or those of a later round.
    ///
    /// # Errors
    /// When it cannot be sent.
    pub fn send(&self, params: &str) -> Result<Response, RequestError> {
        let (name, options) = (self.method.name(), self.options.clone());
        self.client.handle.request(name, Some(params), options)
    }

    /// Answers questions and repeats the call until the answer is complete.
    ///
    /// # Errors
    /// When the server asks what this client does not offer, or asks in too many rounds; when a
    /// handler fails, which cancels the call (R-MRT-15); or as the repeated call.
    pub async fn follow(self, mut answer: Message) -> Result<Message, RequestError> {
        let mut rounds = 0;
        while answer.as_ref().result_type().as_deref() == Some("input_required") {
            rounds += 1;
            if rounds > MAX_ROUNDS {
                return Err(RequestError::BadAnswer("the server asks again and again"));
            }
            let params = self.next_params(result(&answer)).await?;
            answer = self.send(&params)?.await?;
        }
        Ok(answer)
    }

    /// Returns the params of the call with the answers and the unchanged state (R-MRT-05,
    /// R-MRT-06).
    async fn next_params(&self, result: &str) -> Result<String, RequestError> {
        let own = self.params.trim();
        let own = own.strip_prefix('{').and_then(|own| own.strip_suffix('}'));
        let own = own.unwrap_or_default().trim().to_owned();
        let mut members = vec![own];
        members.retain(|own| !own.is_empty());
        members.extend(input_responses(&self.client, result, |_| true).await?);
        if let Some(state) = reader::find(result, "requestState") {
            members.push(format!("\"requestState\":{state}"));
        }
        Ok(format!("{{{}}}", members.join(",")))
    }
}

/// Lets the handlers answer those questions of an answer whose keys are `wanted`: the member
/// `inputResponses`; `None` if there are no such questions.
///
/// # Errors
/// When no handler exists for a question, or a handler fails.
pub(super) async fn input_responses(
    client: &ClientCore,
    result: &str,
    mut wanted: impl FnMut(&str) -> bool + Send,
) -> Result<Option<String>, RequestError> {
    let mut responses = Vec::new();
    let questions = reader::find(result, "inputRequests").unwrap_or("{}");
    for (key, question) in reader::members(questions) {
        if wanted(key.raw()) {
            let response = respond(client, question).await?;
            responses.push(format!("\"{}\":{response}", key.raw()));
        }
    }
    let all = format!("\"inputResponses\":{{{}}}", responses.join(","));
    Ok((!responses.is_empty()).then_some(all))
}

/// Lets the handlers answer a question, `{method, params}`.
///
/// # Errors
/// When no handler exists for the question, or the handler fails.
async fn respond(client: &ClientCore, question: &str) -> Result<String, RequestError> {
    let method = reader::find(question, "method").and_then(reader::as_str);
    let method = method.as_deref().and_then(Method::parse);
    let method = method.filter(|method| client.responder.offers(*method));
    let refused = RequestError::BadAnswer("the server asks for what this client does not offer");
    let method = method.ok_or(refused)?;
    let params = reader::find(question, "params").unwrap_or("{}").to_owned();
    let revision = client.revision().unwrap_or(Revision::NEWEST);
    let cancel = CancelToken::new();
    let responder = client.responder.clone();
    let make = || responder.answer((method, params), client.clone(), revision, cancel.clone());
    match guarded(cancel.cancelled(), make).await {
        Outcome::Made(Ok(response)) => Ok(response),
        Outcome::Made(Err(error)) => Err(given_up(&error.to_string())),
        Outcome::Panicked => Err(given_up("the handler failed unexpectedly")),
        Outcome::Cancelled => Err(given_up("the handler was cancelled")),
    }
}

fn given_up(why: &str) -> RequestError {
    RequestError::Cancelled(Some(why.into()))
}
