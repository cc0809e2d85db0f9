//! Calls of the peer that JavaScript is handling, and their questions to it.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as Polling, Poll, Wake, Waker};

use mcpbolt::connection::{Principal, Progress, Replies, ReplyTo};
use mcpbolt::correlate::{CancelToken, Cancelled};
use mcpbolt::mcp::Era;
use mcpbolt::message::Field;
use mcpbolt::server::{Context, TaskCall};
use serde_json::json;

use crate::arrived::Arrived;
use crate::aside::Aside;
use crate::caller::{CallId, Caller};
use crate::describe::Introduction;
use crate::inbox::{Event, Inbox};
use crate::json;
use crate::slots::Slots;

/// All calls in progress: JavaScript identifies them by number, clients by id.
pub type Calls = Slots<CallId, Underway>;

/// A call in progress, with the state needed to answer it and to ask on its behalf.
#[derive(Debug)]
pub struct Underway {
    arrived: Arrived,
    /// Texts of its arguments, until JavaScript takes them.
    aside: Vec<Aside>,
    cancelled_task: Option<CancelledTask>,
}

impl Underway {
    /// A call that JavaScript starts now.
    pub fn new(arrived: Arrived, aside: Vec<Aside>, inbox: &Arc<Inbox>) -> Self {
        let mut underway = Self {
            arrived,
            aside,
            cancelled_task: None,
        };
        underway.watch(inbox);
        underway
    }

    pub fn caller(&self) -> &Caller {
        &self.arrived.caller
    }

    pub fn id(&self) -> CallId {
        self.caller().call(self.reply().key())
    }

    /// Takes the texts that its row left aside.
    pub fn take_aside(&mut self) -> Vec<Aside> {
        std::mem::take(&mut self.aside)
    }

    /// Its arguments: an object.
    pub fn arguments(&self) -> &str {
        let arguments = self.arrived.call.message.as_ref().arguments();
        arguments.unwrap_or("{}")
    }

    /// Where its answer goes.
    pub fn reply(&self) -> &ReplyTo {
        &self.arrived.call.reply
    }

    /// The context for its questions; created with the first one.
    pub fn context(&mut self) -> &Context {
        let Arrived {
            call,
            caller,
            context,
            ..
        } = &mut self.arrived;
        context.get_or_insert_with(|| {
            let (reply, cancel) = (call.reply.clone(), call.cancel.clone());
            Box::new(Context::without_rounds(
                caller.handle.clone(),
                reply,
                cancel,
            ))
        })
    }

    /// Its client's description of itself: from this request in revisions where each request has it
    /// (R-MET-08), otherwise from when the connection opened.
    pub fn client(&self) -> String {
        let (revision, request) = (self.reply().revision(), self.arrived.call.message.as_ref());
        let connected = match revision.era() {
            Era::Handshake => self.caller().introduction(),
            Era::Stateless => None,
        };
        connected.unwrap_or_else(|| {
            let said = |field| request.raw(field).unwrap_or_default();
            let (info, capabilities) = (said(Field::ClientInfo), said(Field::ClientCapabilities));
            let connection = self.caller().connection();
            json::text(&Introduction::new(revision, connection, info, capabilities))
        })
    }

    /// The `_meta` of the request: an object.
    pub fn meta(&self) -> &str {
        let request = self.arrived.call.message.as_ref();
        request.raw(Field::Meta).unwrap_or("{}")
    }

    /// Its caller, if verified.
    pub fn principal(&self) -> Option<&Principal> {
        let own = self.reply().principal();
        own.or_else(|| self.caller().handle.verified())
    }

    /// The process or state that it belongs to, if it is an action that names one.
    pub fn action_context(&self) -> Option<String> {
        mcpbolt::action::context_of(&self.arrived.call.message.as_ref()).map(Into::into)
    }

    /// The head of the HTTP request that brought it, as JSON.
    pub fn head(&self) -> Option<String> {
        let head = self.arrived.head.as_ref()?;
        // As in Node and on the web, each byte becomes a character.
        let text = |bytes: &[u8]| bytes.iter().copied().map(char::from).collect::<String>();
        let headers = head.headers.iter();
        let headers: Vec<_> = headers.map(|(name, value)| (name, text(value))).collect();
        let mut said = json!({ "method": head.method, "target": head.target, "headers": headers });
        if let Some(id) = &head.session {
            said["session"] = id.to_string().into();
        }
        Some(said.to_string())
    }

    /// The task that it has become, if any.
    pub fn task(&self) -> Option<&Arc<TaskCall>> {
        let task = self.arrived.context.as_ref()?.task()?;
        task.is_task().then_some(task)
    }

    /// Turns it into a task, if possible; returns whether it is one.
    pub fn begin_task(&mut self, inbox: &Arc<Inbox>) -> bool {
        let context = self.arrived.context.as_ref();
        let begun = context.is_some_and(|own| own.begin_task());
        self.watch(inbox);
        begun
    }

    fn watch(&mut self, inbox: &Arc<Inbox>) {
        if self.cancelled_task.is_none() && self.task().is_some() {
            let token = &self.arrived.call.cancel;
            self.cancelled_task = Some(CancelledTask::watch(inbox, self.id(), token));
        }
    }

    /// Reports progress.
    pub fn progress(&self, replies: &mut Replies, progress: Progress<'_>) {
        match self.arrived.context.as_ref().filter(|own| own.is_task()) {
            None => replies.progress(self.reply(), progress),
            Some(task) => task.progress(progress.progress, progress.total, progress.message),
        }
    }
}

/// Tells JavaScript when a task is cancelled. The call was answered long ago, so no message of its connection
/// reports that.
#[derive(Debug)]
struct CancelledTask(#[expect(dead_code, reason = "it holds the waker")] Pin<Box<Cancelled>>);

struct Tell {
    inbox: Arc<Inbox>,
    call: CallId,
}

impl Wake for Tell {
    fn wake(self: Arc<Self>) {
        self.inbox.push(Event::Cancelled(self.call, None));
    }
}

impl CancelledTask {
    fn watch(inbox: &Arc<Inbox>, call: CallId, token: &CancelToken) -> Self {
        let inbox = inbox.clone();
        let waker = Waker::from(Arc::new(Tell { inbox, call }));
        let mut cancelled = Box::pin(token.cancelled());
        if let Poll::Ready(()) = cancelled.as_mut().poll(&mut Polling::from_waker(&waker)) {
            waker.wake();
        }
        Self(cancelled)
    }
}
