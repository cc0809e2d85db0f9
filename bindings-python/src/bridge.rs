//! Passes operations from the engine's threads to Python's.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use mcpbolt::connection::{
    Answer, Batch, Call, CallKey, Disposition, Handle, IncomingRequest, Operation, RequestSource,
    StreamId,
};
use mcpbolt::handler::{Executor, Head};
use mcpbolt::mcp::{Era, ErrorKind, Method};
use mcpbolt::message::MessageRef;
use mcpbolt::server::{Registry, ServerHost, Snapshot, SnapshotCache};

use crate::hub::{Ending, Event, Hub};
use crate::kernel::{self, KernelEvent};
use crate::panics::{self, caught};
use crate::session::{Session, Work};
use crate::target::{LISTS, Lane, Target, Targets};
use crate::worker::{self, Duty};
use crate::workers::{NOBODY, Tag};

/// The executor of one connection: hands its operations to Python's threads. Runs on the engine's thread
/// and never attaches to the interpreter.
pub struct Bridge {
    session: Arc<Session>,
    view: SnapshotCache<Targets>,
    /// The source of the requests, and the tag that the workers know it by.
    source: RequestSource,
    tag: Tag,
    _ending: Option<Ending>,
}

impl Bridge {
    /// Makes the bridge for the connection of `handle`.
    pub fn new(hub: &Arc<Hub>, handle: Handle) -> Self {
        Self {
            view: SnapshotCache::new(&hub.served.live),
            session: Session::new(hub.clone(), handle),
            source: RequestSource::Unknown,
            tag: NOBODY,
            _ending: None,
        }
    }

    /// Makes the host for the connection of `handle`.
    pub fn host(hub: &Arc<Hub>, handle: Handle) -> ServerHost<Self> {
        let bridge = Self::new(hub, handle.clone());
        ServerHost::shared(hub.served.live.clone(), handle, Box::new(bridge))
    }

    /// Passes an event to the kernel, if there is one; returns whether there is.
    fn tell(&self, event: impl FnOnce() -> KernelEvent) -> bool {
        let hub = &self.session.hub;
        if hub.served.kernel.is_some() {
            hub.announce(vec![Event::Kernel(self.session.clone(), event())]);
        }
        hub.served.kernel.is_some()
    }

    /// Has the server end with this connection.
    pub fn ends(&mut self, ending: Ending) {
        self._ending = Some(ending);
    }
}

impl Executor for Bridge {
    fn first<'a>(
        &mut self,
        request: &IncomingRequest<'_>,
        answer: Answer<'a>,
    ) -> Result<Disposition, Answer<'a>> {
        let Some(kernel) = &self.session.hub.served.kernel else {
            let offer = self.view.get();
            let is_list = |method| offer.registry.has_list(method);
            return match request.method.is_some_and(is_list) {
                true if offer.handlers.get(LISTS).is_some() => Ok(Disposition::Deferred(LISTS)),
                _ => Err(answer),
            };
        };
        let kernels = Disposition::Deferred(kernel::OPERATION);
        let is_open = self.session.is_open.load(Ordering::Acquire);
        if !is_open && request.revision.era() == Era::Handshake {
            return Ok(kernels);
        }
        Ok(kernel.natives.take(request, answer).unwrap_or(kernels))
    }

    fn carried(&mut self, stream: StreamId, head: Option<Arc<Head>>) {
        if self.session.hub.served.kernel.is_some() {
            self.session.carried(stream, head);
        }
    }

    fn sent_from(&mut self, source: &RequestSource) {
        if self.source == *source {
            return;
        }
        self.source.clone_from(source);
        self.tag = match source {
            RequestSource::Unknown => NOBODY,
            source => self.session.hub.workers.tag(source),
        };
        self.session.set_tag(self.tag);
    }

    fn opens(&self, method: Method) -> bool {
        let kernel = &self.session.hub.served.kernel;
        kernel.as_ref().is_some_and(|kernel| kernel.opens(method))
    }

    fn hear(&mut self, message: MessageRef<'_>) -> bool {
        let params = || message.params().map(str::to_owned);
        self.tell(|| KernelEvent::Notice(message.method().unwrap_or_default().into(), params()))
    }

    fn draining(&mut self) {
        self.tell(|| KernelEvent::Draining);
    }

    fn closed(&mut self) {
        self.tell(|| KernelEvent::Closed);
    }

    /// Refuses reuse while Python holds anything of this connection.
    fn renew(&mut self) -> bool {
        let session = Arc::get_mut(&mut self.session);
        self._ending.is_none() && session.is_some_and(|session| session.is_idle())
    }

    fn checks_arguments(&mut self, operation: Operation, _len: usize) -> bool {
        let target = self.view.get().handlers.get(operation);
        target.is_some_and(|target| target.prepare.is_some())
    }

    fn run(&mut self, batch: Batch) {
        let (session, offer) = (&self.session, self.view.get());
        let hub = &session.hub;
        let (mut work, mut events) = (Vec::new(), Vec::new());
        let mut sort = |call| match sorted(session, offer, call) {
            Some(Event::Call(one)) if one.target.lane == Lane::Worker => {
                work.push(Duty::Call(one));
            }
            event => events.extend(event),
        };
        for (index, call) in batch.calls().enumerate() {
            if let Err(panic) = caught(|| sort(call))
                && let Some(call) = batch.call(index)
            {
                panic.answer_now(&session.handle, &call.reply);
            }
        }
        if !work.is_empty() {
            let invite = hub.crew.get().map(|crew| || worker::invite(hub, &**crew));
            hub.workers
                .push(self.tag, work, invite, || worker::spawn(hub));
        }
        hub.announce(events);
    }

    fn cancelled(&mut self, key: CallKey, _reason: Option<&str>) {
        let hub = &self.session.hub;
        if hub.served.needs_loop {
            hub.inbox.push(Event::Cancelled(self.session.clone(), key));
        }
    }

    fn initialized(&mut self) {
        let hub = &self.session.hub;
        if hub.served.on_initialized.is_some() {
            hub.inbox.push(Event::Initialized(self.session.clone()));
        }
    }

    fn roots_changed(&mut self) {
        let hub = &self.session.hub;
        if hub.served.on_roots_changed.is_some() {
            hub.inbox.push(Event::RootsChanged(self.session.clone()));
        }
    }
}

/// Decides who carries out a call; `None` if it is answered here.
fn sorted(session: &Arc<Session>, offer: &Snapshot<Targets>, call: Call) -> Option<Event> {
    panics::point("bridge");
    let kernel = &session.hub.served.kernel;
    let native = match (kernel, call.operation) {
        (Some(_), kernel::OPERATION) => {
            return Some(Event::Kernel(session.clone(), KernelEvent::Request(call)));
        }
        (Some(kernel), Operation::CallTool(number)) => kernel.natives.target(number),
        _ => None,
    };
    let targets = &offer.handlers;
    let Some(target) = native.as_ref().or_else(|| targets.get(call.operation)) else {
        // The entry was removed after the registry had found it.
        let mut replies = session.handle.replies();
        let gone = "it is offered no longer";
        replies.error(&call.reply, ErrorKind::InvalidParams, gone, None);
        return None;
    };
    begin(session, &offer.registry, target, call).map(Event::Call)
}

/// Makes the work item for a call; `None` if it is answered here. A call that the client wants as an MCP
/// task becomes one now (R-TSK-06).
fn begin(
    session: &Arc<Session>,
    registry: &Arc<Registry>,
    target: &Arc<Target>,
    call: Call,
) -> Option<Work> {
    let mut context = None;
    if let (Operation::CallTool(number), true) = (call.operation, target.takes_tasks) {
        let made = session.context(&call)?.with_task(registry, number, &call);
        if made.task().is_some_and(|task| task.is_asked()) && !made.begin_task() {
            let mut replies = session.handle.replies();
            replies.error(&call.reply, ErrorKind::Overloaded, "too many tasks", None);
            return None;
        }
        context = Some(Box::new(made));
    }
    let alone = || Session::new(session.hub.clone(), session.handle.clone());
    Some(Work {
        own: session.handle.is_of_many().then(alone),
        session: session.clone(),
        target: target.clone(),
        call,
        context,
        is_straight: AtomicBool::new(false),
    })
}
