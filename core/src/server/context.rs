//! What a handler knows of its call.

use std::sync::{Arc, OnceLock};
use std::task::Waker;

use super::registry::Registry;
use super::rounds::Rounds;
use super::seal::Seal;
use super::tasks::TaskCall;
use crate::connection::{Call, Handle, Principal, Progress, Replies, ReplyTo};
use crate::correlate::CancelToken;
use crate::json::reader;
use crate::mcp::{
    Era, ErrorKind, LogLevel, Method, Revision, TraceContext, extension, trace_context,
};
use crate::message::{Dialect, Field, Message, MessageRef};

/// A call under way: progress, log messages, cancellation. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Context {
    call: Arc<Inner>,
    /// What the next question is called.
    pub(super) question: Option<Arc<str>>,
}

/// What all clones have in common.
#[derive(Clone, Debug)]
struct Inner {
    handle: Handle,
    /// Whose timers it sleeps by, where not its connection's.
    timers: Option<Handle>,
    reply: ReplyTo,
    cancel: CancelToken,
    /// How the client is asked where it cannot be sent requests.
    rounds: Option<Arc<Rounds>>,
    /// What was asked; `None` of a call that nothing is to be read from.
    message: Option<Message>,
    /// Where the call stands in a trace, if it says so. Read when it is first asked for.
    trace: OnceLock<Option<Box<TraceContext>>>,
    /// For a tool that opted in.
    task: Option<Arc<TaskCall>>,
}

impl Context {
    /// That of a call: for an [`Executor`](crate::handler::Executor) of one's own. `seal` is the
    /// server's; without one, clients that take no requests are not asked anything.
    ///
    /// # Errors
    /// A sentence for the client, when what it brings from an earlier round is not what it should
    /// be (R-MRT-08, R-MRT-10, R-MRT-13): invalid params.
    pub fn new(handle: Handle, call: &Call, seal: Option<&Seal>) -> Result<Self, &'static str> {
        let who = call.reply.principal().map(Principal::as_str);
        let who = who.or_else(|| handle.principal());
        let rounds = seal.map(|seal| Rounds::begin(call, seal, who));
        let rounds = rounds.transpose()?.flatten();
        Ok(Self::of(Inner {
            handle,
            timers: None,
            reply: call.reply.clone(),
            cancel: call.cancel.clone(),
            rounds,
            message: Some(call.message.clone()),
            trace: OnceLock::new(),
            task: None,
        }))
    }

    /// That of a call which takes no rounds: its client is sent requests, or cannot be asked.
    pub fn without_rounds(handle: Handle, reply: ReplyTo, cancel: CancelToken) -> Self {
        Self::of(Inner {
            handle,
            timers: None,
            reply,
            cancel,
            rounds: None,
            message: None,
            trace: OnceLock::new(),
            task: None,
        })
    }

    fn of(inner: Inner) -> Self {
        Self {
            call: Arc::new(inner),
            question: None,
        }
    }

    /// The same for a call of tool `number`, which may go on as a task if the tool opted in. For
    /// an executor of one's own, which ends the task through [`task`](Self::task).
    #[must_use]
    pub fn with_task(mut self, registry: &Arc<Registry>, number: u32, call: &Call) -> Self {
        let task = TaskCall::new(registry, number, &self.call.handle, call);
        Arc::make_mut(&mut self.call).task = task;
        self
    }

    /// Sleeps by the timers of another connection from now on: one that lasts longer.
    pub(super) fn sleeping_by(mut self, timers: Option<Handle>) -> Self {
        Arc::make_mut(&mut self.call).timers = timers;
        self
    }

    /// Whether something was asked that the client has to be told first: then the handler is
    /// given up, and [`end_round`](Self::end_round) answers the call. `waker` is woken when it
    /// comes to that.
    pub fn is_round_over(&self, waker: &Waker) -> bool {
        let rounds = self.call.rounds.as_ref();
        rounds.is_some_and(|rounds| rounds.is_over(waker))
    }

    /// Answers the call with what was asked. The call counts as cancelled from then on.
    pub fn end_round(&self, replies: &mut Replies) {
        let Some(rounds) = &self.call.rounds else {
            return;
        };
        match rounds.fault() {
            None => replies.result(&self.call.reply, |result| rounds.write(result)),
            Some(key) => {
                // R-MRT-10
                let why = format!("the answer {key} is not what was asked for");
                replies.error(&self.call.reply, ErrorKind::InvalidParams, &why, None);
            }
        }
        self.call.cancel.cancel(None);
    }

    /// Reports progress, if the client asked for it. `progress` must increase from call to call
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
        // The call is answered; in the core form its token goes on with the task (R-TSK-18).
        if let Some(task) = &self.call.task
            && let (Some(meta), Some(token)) = (task.related(), self.call.reply.progress_token())
        {
            let params = progress.to_params(token, &meta);
            // The params are an object.
            let _ = self
                .call
                .handle
                .notify(Method::Progress.name(), Some(&params));
        }
    }

    /// Sends a log message, if the client wants messages of that level. `data` is JSON; the values
    /// of members whose names speak of secrets are masked (R-LOG-05). Not from a task: its call is
    /// answered.
    pub fn log(&self, level: LogLevel, logger: Option<&str>, data: &serde_json::Value) {
        self.call
            .handle
            .replies()
            .log(&self.call.reply, level, logger, &data.to_string());
    }

    /// Whether the client gave up, or went away. What the handler gives back then is discarded.
    pub fn is_cancelled(&self) -> bool {
        self.call.cancel.is_cancelled()
    }

    /// The call's token: to wait for its end, or to make children of.
    pub fn cancel_token(&self) -> &CancelToken {
        &self.call.cancel
    }

    /// Ends the stream of events on which this call is answered, where it has one in a session of
    /// 2025-11-25: the client comes back after `retry` for what is said from now on, and meanwhile
    /// costs no connection (R-SSE-07). Elsewhere nothing happens.
    pub fn release_stream(&self, retry: std::time::Duration) {
        if self.revision().rules().primes_streams {
            self.call.handle.release(self.call.reply.key(), retry);
        }
    }

    /// Ends after `duration`, on the engine's timers; needs no runtime.
    pub fn sleep(&self, duration: std::time::Duration) -> crate::connection::Sleep {
        self.call
            .timers
            .as_ref()
            .unwrap_or(&self.call.handle)
            .sleep(duration)
    }

    /// Who calls, as the carrier or a [verifier](crate::policy::Policy::verifier) has verified;
    /// `None` where nobody knows, as on a pipe. Bind to it what is kept for somebody, such as the
    /// errand of a page (R-ELI-12).
    pub fn principal(&self) -> Option<&str> {
        self.verified().map(Principal::as_str)
    }

    /// The same, with what was granted to it: to filter what it may see.
    pub fn verified(&self) -> Option<&Principal> {
        let own = self.call.reply.principal();
        own.or_else(|| self.call.handle.verified())
    }

    /// The revision that the call is served in.
    pub fn revision(&self) -> Revision {
        self.call.reply.revision()
    }

    /// The `_meta` of the call, raw JSON, where the client says more there than the protocol needs:
    /// members of its own, which nothing vouches for, and the trace.
    pub fn meta(&self) -> Option<&str> {
        beyond_the_protocol(self.message()?)
    }

    /// Where the call stands in a distributed trace, if the client says so in good form: to be
    /// handed on with what the handler asks of others (R-MET-09).
    pub fn trace(&self) -> Option<&TraceContext> {
        let trace = &self.call.trace;
        let traced = trace.get_or_init(|| self.message().and_then(traced).map(Box::new));
        traced.as_deref()
    }

    /// The connection that the call came on.
    pub fn connection(&self) -> &Handle {
        &self.call.handle
    }

    /// Has a call of a tool that [opted in](super::Tool::task_support) go on as a task: the client
    /// is answered that it is one, and finds the result there. Whether it is one; `false` when the
    /// client cannot follow it, or there is no room for it: the call goes on as before.
    ///
    /// What is asked of the client before is answered in rounds, what is asked after through the
    /// task. In 2025-11-25, where the client asks for tasks, nothing is left to do here.
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

    /// Whether the call has become a task.
    pub fn is_task(&self) -> bool {
        self.call.task.as_ref().is_some_and(|task| task.is_task())
    }

    /// Says in a sentence how far the task is, to who looks or listens: its status message. Does
    /// nothing where the call is no task.
    pub fn task_message(&self, message: &str) {
        if let Some(task) = &self.call.task {
            task.say(message);
        }
    }

    /// The settings that the client declared on this request for an extension, a JSON object;
    /// `None` when it did not declare it (R-EXT-03).
    pub fn extension(&self, id: &str) -> Option<&str> {
        let rounds = self
            .call
            .rounds
            .as_ref()
            .map(|rounds| rounds.capabilities());
        extension::declared(rounds.or_else(|| self.declared())?, id)
    }

    /// What may become of the call beside an answer, if the tool opted in and the client can
    /// follow: for an executor of one's own.
    pub fn task(&self) -> Option<&Arc<TaskCall>> {
        self.call.task.as_ref()
    }

    /// The same, as if that was asked.
    pub(super) fn with_message(&self, message: Message) -> Self {
        let call = Inner {
            message: Some(message),
            ..Inner::clone(&self.call)
        };
        Self {
            call: Arc::new(call),
            question: self.question.clone(),
        }
    }

    /// What was asked, where something is to be read from it.
    pub(super) fn message(&self) -> Option<MessageRef<'_>> {
        self.call.message.as_ref().map(Message::as_ref)
    }

    /// What the client declares on the call itself, where each call says it.
    fn declared(&self) -> Option<&str> {
        match self.revision().era() {
            Era::Handshake => None,
            Era::Stateless => self.message()?.raw(Field::ClientCapabilities),
        }
    }

    pub(super) fn rounds(&self) -> Option<&Arc<Rounds>> {
        self.call.rounds.as_ref()
    }

    /// The process or state that an action belongs to, as its client names it: its `context`.
    pub fn action_context(&self) -> Option<std::borrow::Cow<'_, str>> {
        crate::action::context_of(&self.message()?)
    }

    /// Hands on a part of the result that is there already, JSON, to a client of the action
    /// dialect that reads the answer as a stream; nothing happens for others, who get the whole
    /// (R-ACT-24). Delivered in order and before the answer.
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

    /// Where the call's answer goes.
    pub fn reply_to(&self) -> &ReplyTo {
        &self.call.reply
    }
}

/// The `_meta` of a call, where it has members that are not the protocol's own.
fn beyond_the_protocol(message: MessageRef<'_>) -> Option<&str> {
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

/// What a call says of its trace. A broken parent is no parent, and then the rest counts for
/// nothing (W3C Trace Context, 3.3).
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
