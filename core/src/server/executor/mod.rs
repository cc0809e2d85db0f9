//! Runs the operations of one connection with a program's handlers.

mod handler_call;
mod handlers;
mod layers;
mod reply;
mod reply_guard;

use std::collections::HashMap;
use std::sync::Arc;

pub use self::handler_call::{HandlerCall, Next};
pub(super) use self::handlers::{Completing, Handlers, ToolHandler};
pub(super) use self::layers::{Coverage, Layer, Place};
pub use self::reply::Reply;
pub(super) use self::reply::Service;
use self::reply::panicked;
use self::reply_guard::ReplyGuard;
use super::call::{Attended, Context, StateSigner};
use super::extract::SessionValues;
use super::snapshot::{SharedRegistry, Snapshot, SnapshotCache};
use crate::connection::{
    Answer, Batch, Call, Disposition, Handle, IncomingRequest, Operation, RequestSource, StreamId,
};
use crate::handler::guarded::guarded;
use crate::handler::scoped::{scoped, within};
use crate::handler::{Executor, Head, Job, Spawner};
use crate::limits::CHECK_HERE_BYTES;
use crate::mcp::ErrorKind;
use crate::panics::contain;

/// Runs handlers on a [`Spawner`], and inline tools on the driver's thread.
pub(super) struct HandlerExecutor {
    snapshots: SnapshotCache<Handlers>,
    signer: Option<StateSigner>,
    handle: Handle,
    timers: Option<Handle>,
    spawner: Arc<dyn Spawner>,
    source: RequestSource,
    /// The heads of HTTP requests by stream, if a handler takes them.
    heads: Arc<HashMap<StreamId, Arc<Head>>>,
    /// The values of the session, once a handler may need them.
    session_values: Option<Arc<SessionValues>>,
}

impl HandlerExecutor {
    /// Creates the executor for the connection of `handle`. Handlers sleep by the timers of
    /// `timers`, a connection that outlives their own.
    pub fn new(
        shared: &Arc<SharedRegistry<Handlers>>,
        signer: Option<StateSigner>,
        handle: Handle,
        timers: Option<Handle>,
        spawner: Arc<dyn Spawner>,
    ) -> Self {
        Self {
            snapshots: SnapshotCache::new(shared),
            signer,
            handle,
            timers,
            spawner,
            source: RequestSource::Unknown,
            heads: Arc::default(),
            session_values: None,
        }
    }
}

impl Executor for HandlerExecutor {
    fn sent_from(&mut self, source: &RequestSource) {
        self.source.clone_from(source);
    }

    fn carried(&mut self, stream: StreamId, head: Option<Arc<Head>>) {
        let heads = Arc::make_mut(&mut self.heads);
        match head {
            Some(head) => heads.insert(stream, head),
            None => heads.remove(&stream),
        };
    }

    fn inline<'a>(
        &mut self,
        operation: Operation,
        request: IncomingRequest<'_>,
        answer: Answer<'a>,
    ) -> Result<Disposition, Answer<'a>> {
        let Operation::CallTool(number) = operation else {
            return Err(answer);
        };
        let snapshot = self.snapshots.get();
        let mut layers = snapshot.handlers.layers_of(operation, &request.message);
        if layers.next().is_some() {
            return Err(answer);
        }
        let Some(ToolHandler::Inline(handler, _)) = snapshot.handlers.tools.get(number) else {
            return Err(answer);
        };
        let arguments = request.message.arguments().unwrap_or("{}");
        let outcome = contain("an inline tool", || {
            within(answer.scope(), || handler(arguments))
        });
        let result = match outcome.flatten().unwrap_or_else(|| Ok(panicked())) {
            Ok(result) => result,
            Err(error) => {
                return Ok(answer.error(error.kind(), &error.to_string(), error.data()));
            }
        };
        snapshot.registry.notice(number, &result);
        Ok(match snapshot.registry.check_result(number, &result) {
            Ok(()) => answer.result(|writer| result.write(writer)),
            Err(why) => answer.error(ErrorKind::Internal, &why, None),
        })
    }

    fn checks_arguments(&mut self, operation: Operation, len: usize) -> bool {
        let Operation::CallTool(number) = operation else {
            return false;
        };
        if len <= CHECK_HERE_BYTES {
            return false;
        }
        let handler = self.snapshots.get().handlers.tools.get(number);
        !matches!(handler, None | Some(ToolHandler::Inline(..)))
    }

    fn spawn(&mut self, job: Job) {
        self.spawner.spawn(job);
    }

    fn initialized(&mut self) {
        if let Some(hook) = &self.snapshots.get().handlers.initialized {
            contain("a hook", || hook(&self.handle));
        }
    }

    fn roots_changed(&mut self) {
        if let Some(hook) = &self.snapshots.get().handlers.roots_changed {
            contain("a hook", || hook(&self.handle));
        }
    }

    fn notification(&mut self, method: &str, params: &str) {
        if let Some(hook) = self.snapshots.get().handlers.notices.get(method) {
            contain("a hook", || hook(params, &self.handle));
        }
    }

    fn closed(&mut self) {
        if let Some(hook) = &self.snapshots.get().handlers.closed {
            contain("a hook", || hook(&self.handle));
        }
    }

    fn renew(&mut self) -> bool {
        if !self.heads.is_empty() {
            self.heads = Arc::default();
        }
        self.session_values = None;
        self.snapshots.get().handlers.closed.is_none()
    }

    fn run(&mut self, mut batch: Batch) {
        let (snapshot, handle) = (self.snapshots.get().clone(), self.handle.clone());
        let (signer, timers) = (self.signer.clone(), self.timers.clone());
        let heads = self.heads.clone();
        if snapshot.handlers.session_values {
            self.session_values.get_or_insert_default();
        }
        let session_values = self.session_values.clone();
        let blocking = snapshot.handlers.blocking.iter();
        let blocking = blocking.flat_map(|number| batch.take(Operation::CallTool(*number)));
        let blocking: Vec<_> = blocking.collect();
        let job = move |call: Call| -> Option<Job> {
            match Context::new(handle.clone(), &call, signer.as_ref()) {
                Ok(context) => {
                    // The timers of an HTTP exchange stop while its client does not read.
                    let context = context.sleeping_by(timers.clone());
                    let head = heads.get(&call.reply.key().stream());
                    let context = context.equipped(&snapshot.handlers.states, head);
                    let context = context.in_session(session_values.as_ref());
                    let context = match call.operation {
                        Operation::CallTool(number) if snapshot.registry.has_tasks() => {
                            context.with_task(&snapshot.registry, number, &call)
                        }
                        _ => context,
                    };
                    let scope = call.scope.clone();
                    let carried = carry_out(snapshot.clone(), call, context);
                    Some(match scope {
                        None => Box::pin(carried),
                        Some(scope) => Box::pin(scoped(scope, carried)),
                    })
                }
                Err(why) => {
                    let mut replies = handle.replies();
                    replies.error(&call.reply, ErrorKind::InvalidParams, why, None);
                    None
                }
            }
        };
        for job in blocking.into_iter().filter_map(&job) {
            self.spawner.spawn_blocking(job);
        }
        if !batch.is_empty() {
            let jobs = batch.into_calls().filter_map(job);
            self.spawner.spawn_batch_of(&self.source, Box::new(jobs));
        }
    }
}

/// Runs one operation and answers it. A cancelled operation is not answered.
fn carry_out(
    snapshot: Snapshot<Handlers>,
    call: Call,
    context: Context,
) -> impl Future<Output = ()> + Send {
    #[cfg(feature = "tracing")]
    let span = span(&call);
    // Created here, so that an answer is sent even if the future is never polled.
    let handled = handle_call(snapshot, call, ReplyGuard::new(context));
    #[cfg(feature = "tracing")]
    let handled = tracing::Instrument::instrument(handled, span);
    handled
}

/// The span around a handler: the method, the name of the tool or prompt or the URI, and the id of the
/// request.
#[cfg(feature = "tracing")]
fn span(call: &Call) -> tracing::Span {
    let span = tracing::info_span!(
        "handler",
        method = tracing::field::Empty,
        name = tracing::field::Empty,
        id = tracing::field::Empty
    );
    if !span.is_disabled() {
        let message = call.message.as_ref();
        span.record("method", &*message.method().unwrap_or_default());
        let name = message.name().or_else(|| message.uri());
        span.record("name", &*name.unwrap_or_default());
        if let Some(id) = message.id() {
            span.record("id", tracing::field::display(id));
        }
    }
    span
}

async fn handle_call(snapshot: Snapshot<Handlers>, call: Call, mut guard: ReplyGuard) {
    let Snapshot { registry, handlers } = &snapshot;
    let operation = call.operation;
    let Some(service) = handlers.service(operation, &call.message.as_ref()) else {
        return guard.refuse(ErrorKind::MethodNotFound, "this is not offered any more");
    };
    if let Some(trips) = guard.context().round_trips().cloned()
        && let Err((kind, why)) = trips.spend_state().await
    {
        return guard.refuse(kind, why);
    }
    if let Operation::CallTool(number) = operation {
        let message = call.message.as_ref();
        let arguments = message.arguments().unwrap_or("{}");
        if arguments.len() > CHECK_HERE_BYTES
            && let Err(why) = registry.check_arguments(number, arguments)
        {
            return guard.refuse_arguments(why);
        }
        // R-TSK-06
        if let Some(task) = guard.context().task()
            && task.is_asked()
            && !task.begin()
        {
            return guard.refuse(ErrorKind::Overloaded, "too many tasks");
        }
    }
    let layered = handlers
        .layers_of(operation, &call.message.as_ref())
        .rev()
        .fold(None, |next: Option<Service>, layer| {
            let next = next.unwrap_or_else(|| service.clone());
            Some(layer.around(next, registry))
        });
    let context = guard.context().clone();
    let service = layered.as_ref().unwrap_or(service);
    let attended = Attended {
        handler: guarded(context.cancel_token().cancelled(), || {
            service(call, context)
        }),
        round_trips: guard.context().round_trips().cloned(),
    };
    let outcome = attended.await;
    guard.settle(registry, operation, outcome);
}
