//! What a handler asks of the client: one function for each kind of question.

use mcpbolt::error::RequestError;
use mcpbolt::mcp::{Elicitation, Method, Sampling, Side};
use mcpbolt::server::Context;
use napi::Either;
use napi_derive::napi;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::link::Link;
use crate::requests::Task;

/// What is asked, as the face counts it.
enum Question {
    Sample,
    Form,
    Page,
    Roots,
}

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

/// The future of a question. The face writes `json` itself.
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

fn read<'a, T: Deserialize<'a>>(json: &'a str) -> Result<T, RequestError> {
    serde_json::from_str(json).map_err(|_| RequestError::Misuse("the question is not well formed"))
}

fn write(value: &impl serde::Serialize) -> Result<String, RequestError> {
    serde_json::to_string(value).map_err(|_| RequestError::Misuse("this cannot be JSON"))
}

#[napi]
impl Link {
    /// Asks the client on behalf of a call: 0 its model, 1 its user by a form, 2 by a page, 3 its
    /// roots. Gives the number under which the answer will come, or the answer if it is there;
    /// nothing when the call is over.
    #[napi]
    pub fn ask(&mut self, call: u32, what: u32, json: String) -> Option<Either<u32, String>> {
        let what = match what {
            0 => Question::Sample,
            1 => Question::Form,
            2 => Question::Page,
            _ => Question::Roots,
        };
        let context = self.calls.get_mut(call)?.context(&self.handle).clone();
        let task = question(context, &what, json);
        Some(match self.requests.try_wait(task, &self.inbox) {
            Ok(answer) => Either::B(answer),
            Err(number) => Either::A(number),
        })
    }

    /// The settings that the client declared for an extension with a call, as JSON.
    #[napi]
    pub fn extension(&mut self, call: u32, id: String) -> Option<String> {
        let context = self.calls.get_mut(call)?.context(&self.handle);
        context.extension(&id).map(str::to_owned)
    }

    /// What the client of a call said of itself, as JSON; nothing when the call is over.
    #[napi]
    pub fn introduction(&self, call: u32) -> Option<String> {
        let call = self.calls.get(call)?;
        Some(call.client(&self.handle))
    }

    /// The `_meta` of a call's request, as JSON.
    #[napi]
    pub fn meta(&self, call: u32) -> String {
        let call = self.calls.get(call);
        call.map_or("{}", |call| call.meta()).to_owned()
    }

    /// Nothing when the client of a call declared the capability at `path`; else what it is to be
    /// told, message and data as JSON (R-ERR-16).
    #[napi]
    pub fn missing(&mut self, call: u32, path: Vec<String>) -> Option<String> {
        let path: Vec<_> = path.iter().map(|name| &**name).collect();
        let context = self.calls.get_mut(call)?.context(&self.handle);
        let why = context.require(&path).err()?;
        let data: Option<Value> = why.data().and_then(|data| serde_json::from_str(data).ok());
        Some(json!({ "message": why.to_string(), "data": data }).to_string())
    }

    /// Tells the client that the user has done what a page asked for, where the revision has a
    /// word for it (R-ELI-10).
    #[napi]
    pub fn page_done(&self, id: String) {
        let done = Method::ElicitationComplete;
        let revision = self.handle.revision();
        if revision.is_some_and(|revision| done.defined(revision, Side::Server)) {
            let params = json!({ "elicitationId": id }).to_string();
            // The params are an object.
            let _ = self.handle.notify(done.name(), Some(&params));
        }
    }

    /// Ends the round of a call if it is over: something was asked that the client has to be told
    /// first. The call is answered with that, and is over.
    #[napi]
    pub fn end_round(&mut self, call: u32) -> bool {
        let Some(underway) = self.calls.get_mut(call) else {
            return false;
        };
        let context = underway.context(&self.handle);
        if !context.is_round_over(std::task::Waker::noop()) {
            return false;
        }
        context.end_round(&mut self.handle.replies());
        self.calls.remove(call);
        true
    }
}
