//! Operations on their way from the engine's thread to Python's.

use std::sync::Arc;

use mcpbolt::connection::{Batch, Call, CallKey};
use mcpbolt::handler::{Executor, Operation};
use mcpbolt::mcp::ErrorKind;
use mcpbolt::server::{Registry, ServerHost, View};

use crate::session::{Event, Session, Work};
use crate::target::{Lane, Target, Targets};
use crate::worker;

/// Carries operations out by handing them to Python's threads. Runs on the engine's thread and
/// never takes the interpreter.
pub struct Bridge {
    session: Arc<Session>,
    view: View<Targets>,
}

impl Bridge {
    pub fn new(session: Arc<Session>) -> Self {
        let view = View::of(&session.catalog.live);
        Self { session, view }
    }

    /// The host of the session's connection.
    pub fn host(session: Arc<Session>) -> ServerHost<Self> {
        let (live, handle) = (session.catalog.live.clone(), session.handle.clone());
        ServerHost::live(live, handle, Self::new(session))
    }
}

impl Executor for Bridge {
    fn run(&mut self, batch: Batch) {
        let (session, offer) = (&self.session, self.view.offer());
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
            session.workers.push(work, || worker::spawn(session));
        }
        session.inbox.extend(events);
    }

    fn cancelled(&mut self, key: CallKey, _reason: Option<&str>) {
        if self.session.catalog.needs_loop {
            self.session.inbox.push(Event::Cancelled(key));
        }
    }

    fn initialized(&mut self) {
        self.session.inbox.push(Event::Initialized);
    }

    fn roots_changed(&mut self) {
        self.session.inbox.push(Event::RootsChanged);
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
    let target = target.clone();
    Some(Work {
        call,
        target,
        context,
    })
}

/// However the engine's thread ends, the interpreter learns it.
impl Drop for Bridge {
    fn drop(&mut self) {
        self.session.inbox.push(Event::Ended);
    }
}
