//! Passes operations to JavaScript's handlers.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use mcpbolt::connection::{Answer, Batch, Call, CallKey, Disposition, IncomingRequest, StreamId};
use mcpbolt::error::ConnectionError;
use mcpbolt::handler::{Executor, Head};
use mcpbolt::mcp::Method;
use mcpbolt::server::{SnapshotCache, StateSigner};

use crate::arrived::Arrived;
use crate::caller::Caller;
use crate::delegate::Delegate;
use crate::describe;
use crate::inbox::{EndReport, Event, Inbox};
use crate::kinds::Inbound;
use crate::link::introduction;
use crate::operation::LISTS;
use crate::panics::{self, caught};
use crate::served::{Served, Templates};

/// Passes operations to JavaScript, all of a turn at once.
pub struct Handlers {
    inbox: Arc<Inbox>,
    caller: Caller,
    view: SnapshotCache<Templates>,
    /// Signs the state that clients hold between the rounds of a call.
    signer: Option<StateSigner>,
    /// Whether JavaScript answers requests for lists.
    passes_lists: Arc<AtomicBool>,
    /// Another library's server, which answers instead of the registry.
    delegate: Option<Arc<Delegate>>,
    /// The heads of the HTTP requests of streams, if a delegate wants them.
    heads: Vec<(StreamId, Arc<Head>)>,
    /// Reports the end of the thread when it is dropped, if nothing else does.
    end_report: Option<EndReport>,
}

impl Executor for Handlers {
    fn first<'a>(
        &mut self,
        request: &IncomingRequest<'_>,
        answer: Answer<'a>,
    ) -> std::result::Result<Disposition, Answer<'a>> {
        match &self.delegate {
            // The engine itself answers `subscriptions/listen` (2026-07-28), and sends the notifications.
            Some(delegate) if request.method != Some(Method::Listen) => {
                Ok(delegate.first(request, answer))
            }
            None if self.passes_lists.load(Ordering::Relaxed) => {
                let registry = &self.view.get().registry;
                match request
                    .method
                    .is_some_and(|method| registry.has_list(method))
                {
                    true => Ok(Disposition::Deferred(LISTS)),
                    false => Err(answer),
                }
            }
            _ => Err(answer),
        }
    }

    fn carried(&mut self, stream: StreamId, head: Option<Arc<Head>>) {
        self.heads.retain(|(of, _)| *of != stream);
        self.heads.extend(head.map(|head| (stream, head)));
    }

    fn opens(&self, _: Method) -> bool {
        let delegate = self.delegate.as_ref();
        delegate.is_some_and(|delegate| delegate.opens())
    }

    fn run(&mut self, batch: Batch) {
        let registry = self.view.get().registry.clone();
        let (caller, signer, heads) = (&self.caller, self.signer.as_ref(), &self.heads);
        let arrived = |call: Call| {
            panics::point("run");
            let stream = call.reply.key().stream();
            let head = heads.iter().find(|(of, _)| *of == stream);
            let head = head.map(|(_, head)| head.clone());
            Arrived::new(call, caller, signer, &registry, head)
        };
        let guarded = |(index, call)| match caught(|| arrived(call)) {
            Ok(arrived) => arrived,
            Err(panic) => {
                if let Some(call) = batch.call(index) {
                    panic.answer_now(&caller.handle, &call.reply);
                }
                None
            }
        };
        let calls = batch.calls().enumerate().filter_map(guarded);
        self.inbox.push_calls(calls);
    }

    fn cancelled(&mut self, key: CallKey, reason: Option<&str>) {
        self.inbox.cancel(self.caller.call(key), reason);
    }

    fn initialized(&mut self) {
        self.tell(Event::Initialized);
    }

    fn roots_changed(&mut self) {
        self.tell(|caller| Event::text(Inbound::RootsChanged, introduction(&caller)));
    }

    fn notification(&mut self, method: &str, params: &str) {
        if self.delegate.is_some() {
            let json = describe::notification(method, Some(params));
            self.inbox.push(Event::text(Inbound::Notification, json));
        }
    }

    /// Reusable if JavaScript does not know of the connection, because it carries a single request.
    fn renew(&mut self) -> bool {
        self.heads.clear();
        self.caller.stands_alone && self.end_report.is_none()
    }

    fn closed(&mut self) {
        let reason = self.caller.handle.close_reason().cloned();
        let reason = reason.unwrap_or(ConnectionError::ClosedLocally);
        self.tell(|caller| Event::Left(caller, reason));
    }
}

impl Handlers {
    /// The handlers of one client.
    pub fn new(served: &Served, caller: Caller, inbox: Arc<Inbox>) -> Self {
        Self {
            inbox,
            caller,
            view: SnapshotCache::new(&served.live),
            signer: served.signer.clone(),
            passes_lists: served.passes_lists.clone(),
            delegate: served.delegate.clone(),
            heads: Vec::new(),
            end_report: None,
        }
    }

    /// Reports to JavaScript that the engine's thread has ended, when they are dropped.
    pub fn with(mut self, report: EndReport) -> Self {
        self.end_report = Some(report);
        self
    }

    /// Reports an event of the connection, unless the connection carries a single request.
    fn tell(&self, event: impl FnOnce(Caller) -> Event) {
        if !self.caller.stands_alone {
            self.inbox.push(event(self.caller.clone()));
        }
    }
}
