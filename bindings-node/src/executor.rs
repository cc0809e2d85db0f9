//! Operations, on their way to JavaScript's handlers.

use std::sync::Arc;

use mcpbolt::connection::{Answer, Batch, Call, CallKey, Disposition, Incoming, StreamId};
use mcpbolt::error::ConnectionError;
use mcpbolt::handler::{Executor, Head};
use mcpbolt::mcp::Method;
use mcpbolt::server::{Seal, View};

use crate::caller::Caller;
use crate::calls::Arrived;
use crate::delegate::Delegate;
use crate::drain::quote;
use crate::inbox::{Event, Farewell, Inbox};
use crate::offer::{Served, Templates};

/// Hands operations over to JavaScript, a turn's at once.
pub struct Handlers {
    inbox: Arc<Inbox>,
    caller: Caller,
    view: View<Templates>,
    /// Signs what clients keep between the rounds of a call.
    seal: Option<Seal>,
    /// Another library's server, which is asked instead of the registry.
    delegate: Option<Arc<Delegate>>,
    /// What brings the requests of streams, where that is wanted.
    heads: Vec<(StreamId, Arc<Head>)>,
    /// Dropped last, where the thread has nothing else to say.
    _farewell: Option<Farewell>,
}

impl Executor for Handlers {
    fn first<'a>(
        &mut self,
        request: &Incoming<'_>,
        answer: Answer<'a>,
    ) -> std::result::Result<Disposition, Answer<'a>> {
        match &self.delegate {
            // What a client listens to from 2026-07-28 on is told from here.
            Some(delegate) if request.method != Some(Method::Listen) => {
                Ok(delegate.first(request, answer))
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
        delegate.is_some_and(|delegate| delegate.opens)
    }

    fn run(&mut self, batch: Batch) {
        let registry = self.view.offer().registry.clone();
        let (caller, seal, heads) = (&self.caller, self.seal.as_ref(), &self.heads);
        let arrived = |call: Call| {
            let stream = call.reply.key().stream();
            let head = heads.iter().find(|(of, _)| *of == stream);
            let arrived = Arrived::new(call, caller, seal, &registry)?;
            Some(arrived.with_head(head.map(|(_, head)| head.clone())))
        };
        let calls = batch.calls().filter_map(arrived);
        self.inbox.push_calls(calls);
    }

    fn cancelled(&mut self, key: CallKey, reason: Option<&str>) {
        self.inbox.cancel(self.caller.call(key), reason);
    }

    fn initialized(&mut self) {
        self.tell(Event::Initialized);
    }

    fn roots_changed(&mut self) {
        self.tell(Event::RootsChanged);
    }

    fn notification(&mut self, method: &str, params: &str) {
        if self.delegate.is_none() {
            return;
        }
        let mut json = format!("{{\"connection\":{},\"method\":", self.caller.number);
        quote(&mut json, method);
        json.push_str(",\"params\":");
        json.push_str(params);
        json.push('}');
        self.inbox.push(Event::Notification(json));
    }

    /// JavaScript knows nothing of whose connection is no more than a request.
    fn renew(&mut self) -> bool {
        self.heads.clear();
        self.caller.stands_alone && self._farewell.is_none()
    }

    fn closed(&mut self) {
        let reason = self.caller.handle.close_reason().cloned();
        let reason = reason.unwrap_or(ConnectionError::ClosedLocally);
        self.tell(|caller| Event::Left(caller, reason));
    }
}

impl Handlers {
    /// Those of what is served, for one client.
    pub fn new(served: &Served, caller: Caller, inbox: Arc<Inbox>) -> Self {
        Self {
            inbox,
            caller,
            view: View::of(&served.live),
            seal: served.seal.clone(),
            delegate: served.delegate.clone(),
            heads: Vec::new(),
            _farewell: None,
        }
    }

    /// When they are dropped, JavaScript is told that the engine's thread has ended.
    pub fn with(mut self, farewell: Farewell) -> Self {
        self._farewell = Some(farewell);
        self
    }

    /// What becomes of a connection, unless that is no more than of its request.
    fn tell(&self, event: impl FnOnce(Caller) -> Event) {
        if !self.caller.stands_alone {
            self.inbox.push(event(self.caller.clone()));
        }
    }
}
