//! The operations of a handler for its call: questions to the client, tasks, and facts about the call.

use std::task::Waker;
use std::time::Duration;

use mcpbolt::connection::{Handle, RequestOptions};
use mcpbolt::error::RequestError;
use mcpbolt::mcp::{Method, Side as Role};
use mcpbolt::model::{Elicitation, Sampling};
use mcpbolt::server::Context;
use napi::{Either, Env, JsString};
use napi_derive::napi;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::calls::Underway;
use crate::error::{self, Result, error};
use crate::json::{self, duration};
use crate::link::Link;
use crate::requests::{Reporter, Way};
use crate::telemetry::sending;

/// The timeout of requests that another library's server sends. It has deadlines of its own, which are shorter.
const LIBRARY_TIMEOUT: Duration = Duration::from_secs(7 * 24 * 3600);

/// A question, as the TypeScript side writes it.
#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Question {
    /// Asks the client's model.
    Sample(Box<Sampling>),
    /// Asks the user to fill in a form.
    Form { message: String, schema: Value },
    /// Asks the user to visit a page.
    Page {
        message: String,
        url: String,
        id: String,
    },
    /// Asks for the client's roots.
    Roots {},
}

async fn ask(context: Context, question: String) -> std::result::Result<String, RequestError> {
    let question = serde_json::from_str(&question);
    match question.map_err(|_| RequestError::Misuse("the question has a member of another type"))? {
        Question::Sample(sampling) => json::result(&context.sample(*sampling).await?),
        Question::Form { message, schema } => {
            let elicited = context.elicit(Elicitation::form(message, schema)).await?;
            Ok(elicited.to_json(true).to_string())
        }
        Question::Page { message, url, id } => {
            let elicited = context.elicit(Elicitation::url(message, url, id)).await?;
            Ok(elicited.to_json(false).to_string())
        }
        Question::Roots {} => json::result(&context.roots().await?),
    }
}

impl Link {
    fn client_handle(&self, client: f64) -> Result<&Handle> {
        let gone = || error("ERR_MCP_CLOSED", "the client is gone");
        let caller = self.clients.get(&(client as u64)).ok_or_else(gone)?;
        Ok(&caller.handle)
    }
}

#[napi]
impl Link {
    /// Asks the client on behalf of a call. `name` is the question's name for clients of 2026-07-28. Returns
    /// the number under which the answer will come, or the answer if it is available at once; `None` when the
    /// call is over.
    #[napi(catch_unwind)]
    pub fn ask(
        &mut self,
        env: Env,
        call: u32,
        question: String,
        name: Option<String>,
    ) -> Option<Either<u32, String>> {
        let context = self.calls.get_mut(call)?.context();
        let context = match name {
            None => context.clone(),
            Some(name) => context.named(&name),
        };
        let task = Box::pin(ask(context, question));
        let asked = sending(env, 0, || self.requests.try_wait(task, &self.inbox));
        Some(match asked {
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

    /// The names of the arguments of a call whose texts its row left aside, each followed by its text.
    #[napi(catch_unwind)]
    pub fn aside<'e>(&mut self, env: &'e Env, call: u32) -> Result<Vec<JsString<'e>>> {
        let Some(call) = self.calls.get_mut(call) else {
            return Ok(Vec::new());
        };
        let aside = call.take_aside();
        let pairs = aside.iter().flat_map(|aside| {
            let name = env.create_string(&aside.name);
            [name, aside.string(env, call.arguments())]
        });
        pairs.collect::<napi::Result<_>>().map_err(error::internal)
    }

    /// The arguments of a call, as JSON.
    #[napi(catch_unwind)]
    pub fn arguments(&self, call: u32) -> String {
        let call = self.calls.get(call);
        call.map_or("{}", Underway::arguments).to_owned()
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

    /// Ends the round of a call if the handler needs an answer of the client to continue: the call is
    /// answered with the questions, and is over. Returns whether it was ended.
    #[napi(catch_unwind)]
    pub fn end_round(&mut self, call: u32) -> bool {
        let Some(underway) = self.calls.get_mut(call) else {
            return false;
        };
        let mut replies = underway.caller().handle.replies();
        let context = underway.context();
        if !context.is_round_over(Waker::noop()) {
            return false;
        }
        context.end_round(&mut replies);
        self.calls.remove(call);
        true
    }

    /// Tells a client that its user has completed a page, if the revision has a notification for it
    /// (R-ELI-10).
    #[napi(catch_unwind)]
    pub fn page_done(&self, client: f64, id: String) {
        let (handle, done) = (self.client_handle(client), Method::ElicitationComplete);
        if let Ok(handle) = handle
            && let Some(revision) = handle.revision()
            && done.defined(revision, Role::Server)
        {
            let params = json!({ "elicitationId": id }).to_string();
            // Valid: the params are an object.
            let _ = handle.notify(done.name(), Some(&params));
        }
    }

    /// Turns a call of the peer into a task; returns whether it is one.
    #[napi(catch_unwind)]
    pub fn begin_task(&mut self, call: u32) -> bool {
        let underway = self.calls.get_mut(call);
        underway.is_some_and(|underway| underway.begin_task(&self.inbox))
    }

    /// Whether a call has become a task.
    #[napi(catch_unwind)]
    pub fn is_task(&self, call: u32) -> bool {
        let underway = self.calls.get(call);
        underway.is_some_and(|call| call.task().is_some())
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

    /// The head of the HTTP request that brought a call, as JSON; `None` without HTTP, or when the call is
    /// over.
    #[napi(catch_unwind)]
    pub fn head(&self, call: u32) -> Option<String> {
        self.calls.get(call)?.head()
    }

    /// Sends a request to a client, on the stream of that client's call while the call is in progress;
    /// returns the number under which its answer will come.
    #[napi(catch_unwind)]
    pub fn ask_client(
        &mut self,
        client: f64,
        call: Option<u32>,
        method: String,
        params: Option<String>,
        wants_progress: bool,
    ) -> Result<u32> {
        let within = call.and_then(|call| self.calls.get(call));
        let within = within.map(|call| call.reply().key());
        let number = self.requests.reserve();
        let options = RequestOptions {
            timeout: Some(LIBRARY_TIMEOUT),
            max_timeout: Some(LIBRARY_TIMEOUT),
            progress: wants_progress.then(|| Reporter::new(&self.inbox, number).progress()),
            within,
            ..RequestOptions::default()
        };
        let handle = match call.and_then(|call| self.calls.get(call)) {
            Some(call) => Ok(&call.caller().handle),
            None => self.client_handle(client),
        };
        let sent = handle.and_then(|handle| {
            let sent = handle.request(&method, params.as_deref(), options);
            sent.map_err(error::request)
        });
        match sent {
            Ok(response) => {
                self.requests.wait(number, Way::Peer(response), &self.inbox);
                Ok(number)
            }
            Err(why) => {
                self.requests.forget(number);
                Err(why)
            }
        }
    }

    /// Sends a notification to a client, outside of any call.
    #[napi(catch_unwind)]
    pub fn tell_client(&self, client: f64, method: String, params: Option<String>) -> Result<()> {
        let told = self
            .client_handle(client)?
            .notify(&method, params.as_deref());
        told.map_err(error::request)
    }
}
