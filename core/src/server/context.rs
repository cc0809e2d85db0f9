//! What a handler knows of its call.

use std::sync::Arc;
use std::task::Waker;

use super::registry::Registry;
use super::rounds::Rounds;
use super::seal::Seal;
use super::tasks::TaskCall;
use crate::connection::{Call, Handle, Progress, Replies, ReplyTo};
use crate::correlate::CancelToken;
use crate::json::reader;
use crate::mcp::{
    Era, ErrorKind, LogLevel, Method, Revision, TraceContext, extension, trace_context,
};
use crate::message::Field;

/// A call under way: progress, log messages, cancellation. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Context {
    handle: Handle,
    /// Whose timers it sleeps by, where not its connection's.
    timers: Option<Handle>,
    reply: ReplyTo,
    cancel: CancelToken,
    /// How the client is asked where it cannot be sent requests.
    rounds: Option<Arc<Rounds>>,
    /// What the client declared on a call that takes no rounds, where each call says it.
    declared: Option<Arc<str>>,
    /// Its `_meta`, if that says more than the engine reads.
    meta: Option<Arc<str>>,
    /// Where the call stands in a trace, if it says so.
    trace: Option<Arc<TraceContext>>,
    /// For a tool that opted in.
    task: Option<Arc<TaskCall>>,
    /// What the next question is called.
    pub(super) question: Option<Arc<str>>,
}

impl Context {
    /// That of a call: for an [`Executor`](crate::handler::Executor) of one's own. `seal` is the
    /// server's; without one, clients that take no requests are not asked anything.
    ///
    /// # Errors
    /// A sentence for the client, when what it brings from an earlier round is not what it should
    /// be (R-MRT-08, R-MRT-10, R-MRT-13): invalid params.
    pub fn new(handle: Handle, call: &Call, seal: Option<&Seal>) -> Result<Self, &'static str> {
        let rounds = seal.map(|seal| Rounds::begin(call, seal, handle.principal()));
        let rounds = rounds.transpose()?.flatten();
        let says = match call.reply.revision().era() {
            Era::Handshake => None,
            Era::Stateless => call.message.as_ref().raw(Field::ClientCapabilities),
        };
        Ok(Self {
            declared: says
                .filter(|says| rounds.is_none() && *says != "{}")
                .map(Into::into),
            handle,
            timers: None,
            reply: call.reply.clone(),
            cancel: call.cancel.clone(),
            rounds,
            meta: beyond_the_protocol(call).map(Into::into),
            trace: traced(call).map(Arc::new),
            task: None,
            question: None,
        })
    }

    /// That of a call which takes no rounds: its client is sent requests, or cannot be asked.
    pub fn without_rounds(handle: Handle, reply: ReplyTo, cancel: CancelToken) -> Self {
        Self {
            handle,
            timers: None,
            reply,
            cancel,
            rounds: None,
            declared: None,
            meta: None,
            trace: None,
            task: None,
            question: None,
        }
    }

    /// The same for a call of tool `number`, which may go on as a task if the tool opted in. For
    /// an executor of one's own, which ends the task through [`task`](Self::task).
    #[must_use]
    pub fn with_task(mut self, registry: &Arc<Registry>, number: u32, call: &Call) -> Self {
        self.task = TaskCall::new(registry, number, &self.handle, call);
        self
    }

    /// Sleeps by the timers of another connection from now on: one that lasts longer.
    pub(super) fn sleeping_by(mut self, timers: Option<Handle>) -> Self {
        self.timers = timers;
        self
    }

    /// Whether something was asked that the client has to be told first: then the handler is
    /// given up, and [`end_round`](Self::end_round) answers the call. `waker` is woken when it
    /// comes to that.
    pub fn is_round_over(&self, waker: &Waker) -> bool {
        let rounds = self.rounds.as_ref();
        rounds.is_some_and(|rounds| rounds.is_over(waker))
    }

    /// Answers the call with what was asked. The call counts as cancelled from then on.
    pub fn end_round(&self, replies: &mut Replies) {
        let Some(rounds) = &self.rounds else { return };
        match rounds.fault() {
            None => replies.result(&self.reply, |result| rounds.write(result)),
            Some(key) => {
                // R-MRT-10
                let why = format!("the answer {key} is not what was asked for");
                replies.error(&self.reply, ErrorKind::InvalidParams, &why, None);
            }
        }
        self.cancel.cancel(None);
    }

    /// Reports progress, if the client asked for it. `progress` must increase from call to call
    /// (R-PRG-02). Delivered in order and before the answer.
    pub fn progress(&self, progress: f64, total: Option<f64>, message: Option<&str>) {
        if !self.reply.wants_progress() {
            return;
        }
        let progress = Progress {
            progress,
            total,
            message,
        };
        if !self.is_task() {
            return self.handle.replies().progress(&self.reply, progress);
        }
        // The call is answered; in the core form its token goes on with the task (R-TSK-18).
        if let Some(task) = &self.task
            && let (Some(meta), Some(token)) = (task.related(), self.reply.progress_token())
        {
            let params = progress.to_params(token, &meta);
            // The params are an object.
            let _ = self.handle.notify(Method::Progress.name(), Some(&params));
        }
    }

    /// Sends a log message, if the client wants messages of that level. `data` is JSON; the values
    /// of members whose names speak of secrets are masked (R-LOG-05). Not from a task: its call is
    /// answered.
    pub fn log(&self, level: LogLevel, logger: Option<&str>, data: &serde_json::Value) {
        self.handle
            .replies()
            .log(&self.reply, level, logger, &data.to_string());
    }

    /// Whether the client gave up, or went away. What the handler gives back then is discarded.
    pub fn is_cancelled(&self) -> bool {
        self.cancel.is_cancelled()
    }

    /// The call's token: to wait for its end, or to make children of.
    pub fn cancel_token(&self) -> &CancelToken {
        &self.cancel
    }

    /// Ends the stream of events on which this call is answered, where it has one in a session of
    /// 2025-11-25: the client comes back after `retry` for what is said from now on, and meanwhile
    /// costs no connection (R-SSE-07). Elsewhere nothing happens.
    pub fn release_stream(&self, retry: std::time::Duration) {
        if self.revision().rules().primes_streams {
            self.handle.release(self.reply.key(), retry);
        }
    }

    /// Ends after `duration`, on the engine's timers; needs no runtime.
    pub fn sleep(&self, duration: std::time::Duration) -> crate::connection::Sleep {
        self.timers.as_ref().unwrap_or(&self.handle).sleep(duration)
    }

    /// Who calls, as the carrier has verified; `None` where it cannot know, as on a pipe. Bind to
    /// it what is kept for somebody, such as the errand of a page (R-ELI-12).
    pub fn principal(&self) -> Option<&str> {
        self.handle.principal()
    }

    /// The revision that the call is served in.
    pub fn revision(&self) -> Revision {
        self.reply.revision()
    }

    /// The `_meta` of the call, raw JSON, where the client says more there than the protocol needs:
    /// members of its own, which nothing vouches for, and the trace.
    pub fn meta(&self) -> Option<&str> {
        self.meta.as_deref()
    }

    /// Where the call stands in a distributed trace, if the client says so in good form: to be
    /// handed on with what the handler asks of others (R-MET-09).
    pub fn trace(&self) -> Option<&TraceContext> {
        self.trace.as_deref()
    }

    /// The connection that the call came on.
    pub fn connection(&self) -> &Handle {
        &self.handle
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
        self.task.as_ref().is_some_and(|task| task.begin())
    }

    /// Whether the call has become a task.
    pub fn is_task(&self) -> bool {
        self.task.as_ref().is_some_and(|task| task.is_task())
    }

    /// Says in a sentence how far the task is, to who looks or listens: its status message. Does
    /// nothing where the call is no task.
    pub fn task_message(&self, message: &str) {
        if let Some(task) = &self.task {
            task.say(message);
        }
    }

    /// The settings that the client declared on this request for an extension, a JSON object;
    /// `None` when it did not declare it (R-EXT-03).
    pub fn extension(&self, id: &str) -> Option<&str> {
        let rounds = self.rounds.as_ref().map(|rounds| rounds.capabilities());
        extension::declared(rounds.or(self.declared.as_deref())?, id)
    }

    /// What may become of the call beside an answer, if the tool opted in and the client can
    /// follow: for an executor of one's own.
    pub fn task(&self) -> Option<&Arc<TaskCall>> {
        self.task.as_ref()
    }

    pub(super) fn rounds(&self) -> Option<&Arc<Rounds>> {
        self.rounds.as_ref()
    }

    /// Where the call's answer goes.
    pub fn reply_to(&self) -> &ReplyTo {
        &self.reply
    }
}

/// The `_meta` of a call, where it has members that are not the protocol's own.
fn beyond_the_protocol(call: &Call) -> Option<&str> {
    const OWN: [Field; 5] = [
        Field::ProgressToken,
        Field::ProtocolVersion,
        Field::ClientCapabilities,
        Field::ClientInfo,
        Field::LogLevel,
    ];
    let message = call.message.as_ref();
    let meta = message.raw(Field::Meta)?;
    let own = OWN.iter().filter(|field| message.raw(**field).is_some());
    (reader::members(meta).count() > own.count()).then_some(meta)
}

/// What a call says of its trace. A broken parent is no parent, and then the rest counts for
/// nothing (W3C Trace Context, 3.3).
fn traced(call: &Call) -> Option<TraceContext> {
    let message = call.message.as_ref();
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
