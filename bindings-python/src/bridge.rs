//! Operations on their way from the engine's threads to Python's.

use std::sync::Arc;

use mcpbolt::connection::{Batch, Call, CallKey, Handle};
use mcpbolt::handler::{Executor, Operation};
use mcpbolt::mcp::ErrorKind;
use mcpbolt::server::{Registry, ServerHost, View};

use crate::hub::{Ending, Event, Hub};
use crate::session::{Session, Work};
use crate::target::{Lane, Target, Targets};
use crate::worker;

/// Carries operations of one connection out by handing them to Python's threads. Runs on the
/// engine's thread and never takes the interpreter.
pub struct Bridge {
    session: Arc<Session>,
    view: View<Targets>,
    _ending: Option<Ending>,
}

impl Bridge {
    /// That of the connection of `handle`.
    pub fn new(hub: &Arc<Hub>, handle: Handle) -> Self {
        Self {
            view: View::of(&hub.catalog.live),
            session: Session::new(hub.clone(), handle),
            _ending: None,
        }
    }

    /// The host of that connection.
    pub fn host(hub: &Arc<Hub>, handle: Handle) -> ServerHost<Self> {
        let bridge = Self::new(hub, handle.clone());
        ServerHost::live(hub.catalog.live.clone(), handle, bridge)
    }

    /// The server ends with this connection.
    pub fn ends(&mut self, ending: Ending) {
        self._ending = Some(ending);
    }
}

impl Executor for Bridge {
    /// Not while Python has anything of what was served here.
    fn renew(&mut self) -> bool {
        let session = Arc::get_mut(&mut self.session);
        self._ending.is_none() && session.is_some_and(|session| session.is_idle())
    }

    fn run(&mut self, batch: Batch) {
        let (session, offer) = (&self.session, self.view.offer());
        let hub = &session.hub;
        let (registry, targets) = (&offer.registry, &offer.handlers);
        let (mut work, mut events) = (Vec::new(), Vec::new());
        for call in batch.calls() {
            let Some(target) = targets.get(call.target) else {
                // It was removed after the registry had found it.
                let mut replies = session.handle.replies();
                let gone = "it is offered no longer";
                replies.error(&call.reply, ErrorKind::InvalidParams, gone, None);
                continue;
            };
            let Some(one) = begin(session, registry, target, call) else {
                continue;
            };
            match one.target.lane {
                Lane::Worker => work.push(one),
                Lane::Inline | Lane::Task => events.push(Event::Call(one)),
            }
        }
        if !work.is_empty() {
            let invite = hub.crew.get().map(|crew| || worker::invite(hub, &**crew));
            hub.workers.push(work, invite, || worker::spawn(hub));
        }
        hub.announce(events);
    }

    fn cancelled(&mut self, key: CallKey, _reason: Option<&str>) {
        let hub = &self.session.hub;
        if hub.catalog.needs_loop {
            hub.inbox.push(Event::Cancelled(self.session.clone(), key));
        }
    }

    fn initialized(&mut self) {
        let hub = &self.session.hub;
        if hub.catalog.on_initialized.is_some() {
            hub.inbox.push(Event::Initialized(self.session.clone()));
        }
    }

    fn roots_changed(&mut self) {
        let hub = &self.session.hub;
        if hub.catalog.on_roots_changed.is_some() {
            hub.inbox.push(Event::RootsChanged(self.session.clone()));
        }
    }
}

/// A call on its way to its function; `None` when it is answered here. One that the client wants
/// as a task of the protocol becomes it now (R-TSK-06).
fn begin(
    session: &Arc<Session>,
    registry: &Arc<Registry>,
    target: &Arc<Target>,
    call: Call,
) -> Option<Work> {
    let mut context = None;
    if let (Operation::CallTool(number), true) =
        (Operation::from_target(call.target), target.takes_tasks)
    {
        let made = session.context(&call)?.with_task(registry, number, &call);
        if made.task().is_some_and(|task| task.is_asked()) && !made.begin_task() {
            let mut replies = session.handle.replies();
            replies.error(&call.reply, ErrorKind::Overloaded, "too many tasks", None);
            return None;
        }
        context = Some(Box::new(made));
    }
    Some(Work {
        session: session.clone(),
        target: target.clone(),
        call,
        context,
    })
}
