//! Questions of a handler to the client.

use mcpbolt::error::RequestError;
use mcpbolt::mcp::{Elicitation, Sampling};
use mcpbolt::server::Context;
use napi::Either;
use napi_derive::napi;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::caller::CallerHandle;
use crate::error::Result;
use crate::link::{Link, duration};
use crate::requests::Task;

/// The kind of a question, in the order of `face/questions.ts`.
enum Question {
    Sample,
    Form,
    Page,
    Roots,
}

type Told<T> = std::result::Result<T, RequestError>;

#[derive(Deserialize)]
struct Form {
    message: String,
    schema: Value,
}

#[derive(Deserialize)]
struct Page {
    message: String,
    url: String,
    id: String,
}

/// The future of a question. The TypeScript side builds `json`.
fn question(context: Context, what: &Question, json: String) -> Task {
    match what {
        Question::Sample => Box::pin(async move {
            let sampling: Sampling = read(&json)?;
            write(&context.sample(sampling).await?)
        }),
        Question::Form => Box::pin(async move {
            let Form { message, schema } = read(&json)?;
            let told = context.elicit(Elicitation::form(message, schema)).await?;
            Ok(told.to_json(true).to_string())
        }),
        Question::Page => Box::pin(async move {
            let Page { message, url, id } = read(&json)?;
            let told = context.elicit(Elicitation::url(message, url, id)).await?;
            Ok(told.to_json(false).to_string())
        }),
        Question::Roots => Box::pin(async move { write(&context.roots().await?) }),
    }
}

fn read<'a, T: Deserialize<'a>>(json: &'a str) -> Told<T> {
    serde_json::from_str(json).map_err(|_| RequestError::Misuse("the question is not well formed"))
}

fn write(value: &impl serde::Serialize) -> Told<String> {
    serde_json::to_string(value).map_err(|_| RequestError::Misuse("this cannot be JSON"))
}

#[napi]
impl Link {
    /// Asks the client on behalf of a call: 0 asks its model, 1 its user by a form, 2 its user by a page, 3
    /// for its roots. `name` is the question's name for clients of 2026-07-28. Returns the number under which
    /// the answer will come, or the answer if it is available at once; `None` when the call is over.
    #[napi(catch_unwind)]
    pub fn ask(
        &mut self,
        call: u32,
        what: u32,
        json: String,
        name: Option<String>,
    ) -> Option<Either<u32, String>> {
        let what = match what {
            0 => Question::Sample,
            1 => Question::Form,
            2 => Question::Page,
            _ => Question::Roots,
        };
        let context = self.calls.get_mut(call)?.context();
        let context = match name {
            None => context.clone(),
            Some(name) => context.named(&name),
        };
        let task = question(context, &what, json);
        Some(match self.requests.try_wait(task, &self.inbox) {
            Ok(answer) => Either::B(answer),
            Err(number) => Either::A(number),
        })
    }

    /// Closes the event stream of a call; the client reconnects after `retry_ms` (R-SSE-07).
    #[napi(catch_unwind)]
    pub fn release_stream(&mut self, call: u32, retry_ms: f64) -> Result<()> {
        let retry = duration(retry_ms)?;
        if let Some(call) = self.calls.get_mut(call) {
            call.context().release_stream(retry);
        }
        Ok(())
    }

    /// The settings that the client declared for an extension with a call, as JSON.
    #[napi(catch_unwind)]
    pub fn extension(&mut self, call: u32, id: String) -> Option<String> {
        let context = self.calls.get_mut(call)?.context();
        context.extension(&id).map(str::to_owned)
    }

    /// The description of itself by the client of a call, as JSON; `None` when the call is over.
    #[napi(catch_unwind)]
    pub fn introduction(&self, call: u32) -> Option<String> {
        let call = self.calls.get(call)?;
        Some(call.client())
    }

    /// The `_meta` of a call's request, as JSON.
    #[napi(catch_unwind)]
    pub fn meta(&self, call: u32) -> String {
        let call = self.calls.get(call);
        call.map_or("{}", |call| call.meta()).to_owned()
    }

    /// `None` if the client of a call declared the capability at `path`; otherwise the error to answer with,
    /// message and data as JSON (R-ERR-16).
    #[napi(catch_unwind)]
    pub fn missing(&mut self, call: u32, path: Vec<String>) -> Option<String> {
        let path: Vec<_> = path.iter().map(|name| &**name).collect();
        let context = self.calls.get_mut(call)?.context();
        let why = context.require(&path).err()?;
        let data: Option<Value> = why.data().and_then(|data| serde_json::from_str(data).ok());
        Some(json!({ "message": why.to_string(), "data": data }).to_string())
    }

    /// A handle to the client of a call, which may outlive the call; `None` when the call is over.
    #[napi(catch_unwind)]
    pub fn caller(&self, call: u32) -> Option<CallerHandle> {
        let call = self.calls.get(call)?;
        Some(CallerHandle(call.caller.clone()))
    }

    /// Ends the round of a call if the handler needs an answer of the client to continue: the call is
    /// answered with the questions, and is over. Returns whether it was ended.
    #[napi(catch_unwind)]
    pub fn end_round(&mut self, call: u32) -> bool {
        let Some(underway) = self.calls.get_mut(call) else {
            return false;
        };
        let mut replies = underway.caller.handle.replies();
        let context = underway.context();
        if !context.is_round_over(std::task::Waker::noop()) {
            return false;
        }
        context.end_round(&mut replies);
        self.calls.remove(call);
        true
    }
}
