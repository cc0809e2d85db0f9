//! The context of a call, as its handler sees it.

use std::sync::{Arc, OnceLock};
use std::task::Waker;

use super::round_trips::RoundTrips;
use super::state_signer::StateSigner;
use crate::connection::{Call, Handle, Principal, Progress, Replies, ReplyTo};
use crate::correlate::CancelToken;
use crate::handler::{Extensions, Head};
use crate::json::reader;
use crate::mcp::{
    Era, ErrorKind, LogLevel, Method, Revision, TraceContext, extension, trace_context,
};
use crate::message::{Dialect, Field, Message, MessageRef};
use crate::server::extract::{SessionValues, States};
use crate::server::registry::Registry;
use crate::server::tasks::TaskCall;

/// A running call: progress, log messages, cancellation and questions to the client. Cheap to
/// clone.
#[derive(Clone, Debug)]
pub struct Context {
    call: Arc<Inner>,
    /// The name of the next question.
    pub(super) question: Option<Arc<str>>,
}

/// The state that all clones share.
#[derive(Clone, Debug)]
struct Inner {
    handle: Handle,
    /// The connection whose timers [`Context::sleep`] uses, if not the call's own connection.
    timers: Option<Handle>,
    reply: ReplyTo,
    cancel: CancelToken,
    /// The multi round-trip state, for clients that take no requests from the server.
    round_trips: Option<Arc<RoundTrips>>,
    /// The request; `None` if the context never reads from it.
    message: Option<Message>,
    /// The trace context, if the call carries one. Parsed on first use.
    trace: OnceLock<Option<Box<TraceContext>>>,
    /// The task side of the call, for a tool that opted in.
    task: Option<Arc<TaskCall>>,
    /// The values that the server was built with, if there are any.
    states: Option<Arc<States>>,
    /// The values of the session, if a handler needs them.
    session_values: Option<Arc<SessionValues>>,
    /// The HTTP request, if a handler takes it.
    head: Option<Arc<Head>>,
    /// The values beside the call, if there are any.
    extensions: Option<Box<Extensions>>,
}

impl Context {
    /// Creates the context of a call, for a custom [`Executor`](crate::handler::Executor). `signer`
    /// is the server's; without one, clients that take no requests cannot be asked anything.
    ///
    /// # Errors
    /// A sentence for the client, to be sent as invalid params, if the `requestState` or the
    /// answers that the call brings from an earlier round are not valid (R-MRT-08, R-MRT-10,
    /// R-MRT-13).
    pub fn new(
        handle: Handle,
        call: &Call,
        signer: Option<&StateSigner>,
    ) -> Result<Self, &'static str> {
        let who = call.reply.principal().map(Principal::as_str);
        let who = who.or_else(|| handle.principal());
        let round_trips = signer.map(|signer| RoundTrips::begin(call, signer, who));
        let mut context = Self::without_rounds(handle, call.reply.clone(), call.cancel.clone());
        let inner = Arc::make_mut(&mut context.call);
        inner.round_trips = round_trips.transpose()?.flatten();
        inner.message = Some(call.message.clone());
        Ok(context)
    }

    /// Creates the context of a call without rounds: its client takes requests, or cannot be asked.
    pub fn without_rounds(handle: Handle, reply: ReplyTo, cancel: CancelToken) -> Self {
        let inner = Inner {
            handle,
            timers: None,
            reply,
            cancel,
            round_trips: None,
            message: None,
            trace: OnceLock::new(),
            task: None,
            states: None,
            session_values: None,
            head: None,
            extensions: None,
        };
        Self {
            call: Arc::new(inner),
            question: None,
        }
    }

    /// Lets a call of tool `number` continue as a task if the tool opted in. For a custom executor,
    /// which ends the task through [`task`](Self::task).
    #[must_use]
    pub fn with_task(mut self, registry: &Arc<Registry>, number: u32, call: &Call) -> Self {
        let task = TaskCall::new(registry, number, &self.call.handle, call);
        Arc::make_mut(&mut self.call).task = task;
        self
    }

    /// Makes [`sleep`](Self::sleep) use the timers of another connection, one that lasts longer.
    pub(in crate::server) fn sleeping_by(mut self, timers: Option<Handle>) -> Self {
        Arc::make_mut(&mut self.call).timers = timers;
        self
    }

    /// Gives the handler the values that its server was built with, and the head of its HTTP request.
    pub(in crate::server) fn equipped(
        mut self,
        states: &Option<Arc<States>>,
        head: Option<&Arc<Head>>,
    ) -> Self {
        if states.is_some() || head.is_some() {
            let inner = Arc::make_mut(&mut self.call);
            inner.states.clone_from(states);
            inner.head = head.cloned();
            inner.extensions = head.map(|head| Box::new(head.extensions.clone()));
        }
        self
    }

    /// Gives the handler the values of its session.
    pub(in crate::server) fn in_session(mut self, values: Option<&Arc<SessionValues>>) -> Self {
        if values.is_some() {
            Arc::make_mut(&mut self.call).session_values = values.cloned();
        }
        self
    }

    pub(in crate::server) fn session_values(&self) -> Option<&SessionValues> {
        self.call.session_values.as_deref()
    }

    /// The head of the HTTP request that carried the call. Only if the server asks for
    /// [heads](crate::server::Builder::request_heads), since each costs a copy of the headers.
    pub fn head(&self) -> Option<&Arc<Head>> {
        self.call.head.as_ref()
    }

    /// The value of type `T` that the server was built with: see
    /// [`Builder::state`](crate::server::Builder::state).
    pub fn state<T: Send + Sync + 'static>(&self) -> Option<Arc<T>> {
        self.call.states.as_ref()?.get()
    }

    /// The values that layers and HTTP middleware put beside the call: see
    /// [`Extension`](crate::server::Extension). Those of middleware only if the server asks for
    /// [heads](crate::server::Builder::request_heads).
    pub fn extensions(&self) -> &Extensions {
        static NONE: Extensions = Extensions::NONE;
        self.call.extensions.as_deref().unwrap_or(&NONE)
    }

    pub(in crate::server) fn extensions_mut(&mut self) -> &mut Extensions {
        let call = Arc::make_mut(&mut self.call);
        call.extensions.get_or_insert_default()
    }

    /// Returns whether the handler asked a question that the call must end with. The caller then
    /// drops the handler and answers the call with [`end_round`](Self::end_round). If not yet,
    /// `waker` is woken when such a question is asked.
    pub fn is_round_over(&self, waker: &Waker) -> bool {
        let round_trips = self.call.round_trips.as_ref();
        round_trips.is_some_and(|round_trips| round_trips.is_over(waker))
    }

    /// Answers the call with the open questions. The call counts as cancelled from then on.
    pub fn end_round(&self, replies: &mut Replies) {
        let Some(round_trips) = &self.call.round_trips else {
            return;
        };
        // R-MRT-10
        let state = match round_trips.fault() {
            None => round_trips.signed().map_err(str::to_owned),
            Some(key) => Err(format!("the answer {key} is not what was asked for")),
        };
        match state {
            Ok(state) => {
                replies.result(&self.call.reply, |result| round_trips.write(result, &state));
            }
            Err(why) => replies.error(&self.call.reply, ErrorKind::InvalidParams, &why, None),
        }
        self.call.cancel.cancel(None);
    }

    /// Reports progress, if the client asked for it. `progress` must increase with every report
    /// (R-PRG-02). Delivered in order and before the answer.
    pub fn progress(&self, progress: f64, total: Option<f64>, message: Option<&str>) {
        if !self.call.reply.wants_progress() {
            return;
        }
        let progress = Progress {
            progress,
            total,
            message,
        };
        if !self.is_task() {
            return self
                .call
                .handle
                .replies()
                .progress(&self.call.reply, progress);
        }
        // The call is answered; in the core form of tasks its progress token stays valid for the
        // task (R-TSK-18).
        if let Some(task) = &self.call.task
            && let (Some(meta), Some(token)) = (task.related(), self.call.reply.progress_token())
        {
            let params = progress.to_params(token, &meta);
            // Cannot fail for its params: they are an object.
            let _ = self
                .call
                .handle
                .notify(Method::Progress.name(), Some(&params));
        }
    }

    /// Sends a log message, if the client wants messages of this level. `data` is JSON; the values
    /// of members with names that suggest secrets are masked (R-LOG-05). Not sent from a task,
    /// because its call is already answered.
    pub fn log(&self, level: LogLevel, logger: Option<&str>, data: &serde_json::Value) {
        self.call
            .handle
            .replies()
            .log(&self.call.reply, level, logger, &data.to_string());
    }

    /// Returns whether the client cancelled the call or disconnected. The handler's result is then
    /// discarded.
    pub fn is_cancelled(&self) -> bool {
        self.call.cancel.is_cancelled()
    }

    /// The call's cancellation token, to await or to derive child tokens from.
    pub fn cancel_token(&self) -> &CancelToken {
        &self.call.cancel
    }

    /// Closes the SSE stream that this call is answered on, in an HTTP session of 2025-11-25, so
    /// that the client holds no connection open. The client reconnects after `retry` and then
    /// receives the messages sent from now on (R-SSE-07). Elsewhere does nothing.
    pub fn release_stream(&self, retry: std::time::Duration) {
        if self.revision().rules().primes_streams {
            self.call.handle.release(self.call.reply.key(), retry);
        }
    }

    /// Sleeps for `duration` on the engine's timers; needs no async runtime.
    pub fn sleep(&self, duration: std::time::Duration) -> crate::connection::Sleep {
        let own = &self.call.handle;
        match (&self.call.timers, own.timers()) {
            (Some(lasting), _) => lasting.sleep(duration),
            (None, lasting) => lasting.as_ref().unwrap_or(own).sleep(duration),
        }
    }

    /// The caller, as the transport or a [verifier](crate::policy::Policy::verifier) has verified
    /// it; `None` where nobody verifies callers, as on a pipe. Bind per-user state to it, such as
    /// the pending flow of a URL-mode elicitation (R-ELI-12).
    pub fn principal(&self) -> Option<&str> {
        self.verified().map(Principal::as_str)
    }

    /// The verified caller with its grants, to filter what it may see.
    pub fn verified(&self) -> Option<&Principal> {
        let own = self.call.reply.principal();
        own.or_else(|| self.call.handle.verified())
    }

    /// The revision that the call is served in.
    pub fn revision(&self) -> Revision {
        self.call.reply.revision()
    }

    /// The `_meta` of the call, raw JSON, if it has members beyond those the protocol defines: the
    /// client's own members, which are unverified, and the trace context.
    pub fn meta(&self) -> Option<&str> {
        own_meta(self.message()?)
    }

    /// The W3C trace context of the call, if the client sent a valid one, to be passed on with the
    /// handler's own outgoing requests (R-MET-09).
    pub fn trace(&self) -> Option<&TraceContext> {
        let trace = &self.call.trace;
        let traced = trace.get_or_init(|| self.message().and_then(traced).map(Box::new));
        traced.as_deref()
    }

    /// The connection that the call came on.
    pub fn connection(&self) -> &Handle {
        &self.call.handle
    }

    /// Continues this call as a task, for a tool that [opted in](crate::model::Tool::task_support): the
    /// client is answered with the task and later fetches the result from it. Returns whether the
    /// call is now a task; `false` if the client cannot follow tasks or the task limits are
    /// reached, and then the call continues as before.
    ///
    /// Questions asked before this call go to the client in rounds, questions asked after it go
    /// through the task. In 2025-11-25 the client decides about tasks and this has no effect.
    ///
    /// ```
    /// use mcpbolt::mcp::TaskSupport;
    /// use mcpbolt::server::{Arguments, Context, Server, Tool};
    /// use std::time::Duration;
    ///
    /// let render = Tool::new("render").task_support(TaskSupport::Optional);
    /// let server = Server::builder("films", "1.0.0")
    ///     .tool(render, |_: Arguments, context: Context| async move {
    ///         context.begin_task();
    ///         context.sleep(Duration::from_secs(3600)).await;
    ///         "rendered"
    ///     })
    ///     .build()?;
    /// # Ok::<(), mcpbolt::server::RegistryError>(())
    /// ```
    pub fn begin_task(&self) -> bool {
        self.call.task.as_ref().is_some_and(|task| task.begin())
    }

    /// Returns whether the call has become a task.
    pub fn is_task(&self) -> bool {
        self.call.task.as_ref().is_some_and(|task| task.is_task())
    }

    /// Sets the task's status message: its progress in one sentence, for clients that poll or
    /// listen. Does nothing if the call is no task.
    pub fn task_message(&self, message: &str) {
        if let Some(task) = &self.call.task {
            task.say(message);
        }
    }

    /// The settings that the client declared for an extension on this request, a JSON object;
    /// `None` if it did not declare the extension (R-EXT-03).
    pub fn extension(&self, id: &str) -> Option<&str> {
        let round_trips = self
            .call
            .round_trips
            .as_ref()
            .map(|round_trips| round_trips.capabilities());
        extension::declared(round_trips.or_else(|| self.declared())?, id)
    }

    /// The task side of the call, if the tool opted in and the client can follow tasks. For a
    /// custom executor.
    pub fn task(&self) -> Option<&Arc<TaskCall>> {
        self.call.task.as_ref()
    }

    /// Returns this context with another request message.
    pub(in crate::server) fn with_message(&self, message: Message) -> Self {
        let call = Inner {
            message: Some(message),
            ..Inner::clone(&self.call)
        };
        Self {
            call: Arc::new(call),
            question: self.question.clone(),
        }
    }

    /// The request, if the context has one.
    pub(in crate::server) fn message(&self) -> Option<MessageRef<'_>> {
        self.call.message.as_ref().map(Message::as_ref)
    }

    /// The capabilities that the client declares on each request, in revisions that have this.
    fn declared(&self) -> Option<&str> {
        match self.revision().era() {
            Era::Handshake => None,
            Era::Stateless => self.message()?.raw(Field::ClientCapabilities),
        }
    }

    pub(in crate::server) fn round_trips(&self) -> Option<&Arc<RoundTrips>> {
        self.call.round_trips.as_ref()
    }

    /// The `context` member of an action: the process or state that its client names.
    pub fn action_context(&self) -> Option<std::borrow::Cow<'_, str>> {
        crate::action::context_of(&self.message()?)
    }

    /// Sends a part of the result, JSON, ahead of the answer to a client of the action dialect that
    /// reads the answer as a stream (R-ACT-24). Does nothing for other clients, which get the whole
    /// result. Delivered in order and before the answer.
    ///
    /// ```
    /// use mcpbolt::server::{Arguments, Context, Json, Server, Tool};
    /// use serde_json::json;
    ///
    /// let server = Server::builder("story", "1.0.0")
    ///     .tool(Tool::new("llm.generate"), |_: Arguments, context: Context| async move {
    ///         let words = ["Once", " upon", " a", " time"];
    ///         words.iter().for_each(|token| context.partial(&json!({ "token": token })));
    ///         Json(json!({ "full_text": words.concat() }))
    ///     })
    ///     .build()?;
    /// # Ok::<(), mcpbolt::server::RegistryError>(())
    /// ```
    pub fn partial(&self, data: &serde_json::Value) {
        let to = &self.call.reply;
        if to.dialect() == Dialect::ActionStream {
            let mut replies = self.call.handle.replies();
            replies.partial(to, &data.to_string());
        }
    }

    /// The address of the call's answer.
    pub fn reply_to(&self) -> &ReplyTo {
        &self.call.reply
    }
}

/// The `_meta` of a call, if it has members that the protocol does not define.
fn own_meta(message: MessageRef<'_>) -> Option<&str> {
    const OWN: [Field; 5] = [
        Field::ProgressToken,
        Field::ProtocolVersion,
        Field::ClientCapabilities,
        Field::ClientInfo,
        Field::LogLevel,
    ];
    let meta = message.raw(Field::Meta)?;
    let own = OWN.iter().filter(|field| message.raw(**field).is_some());
    (reader::members(meta).count() > own.count()).then_some(meta)
}

/// The trace context of a call. Without a valid `traceparent` the rest is ignored (W3C Trace
/// Context, 3.3).
fn traced(message: MessageRef<'_>) -> Option<TraceContext> {
    let said = |field, key| {
        let value = message.decoded(field)?.into_owned();
        trace_context::is_valid(key, &value).then_some(value)
    };
    Some(TraceContext {
        parent: said(Field::Traceparent, "traceparent")?,
        state: said(Field::Tracestate, "tracestate"),
        baggage: said(Field::Baggage, "baggage"),
    })
}
