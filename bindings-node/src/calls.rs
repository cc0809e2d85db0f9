//! Calls of the peer that JavaScript is handling, and their questions to it.

use std::sync::Arc;

use hashbrown::HashMap;
use mcpbolt::connection::{Call, Operation, Principal, Progress, Replies, ReplyTo};
use mcpbolt::handler::Head;
use mcpbolt::mcp::{Era, ErrorKind};
use mcpbolt::message::Field;
use mcpbolt::server::{Context, Registry, StateSigner, TaskCall};
use serde_json::json;

use crate::caller::{CallId, Caller};
use crate::client::introduction;
use crate::delegate::Whose;
use crate::inbox::Inbox;
use crate::panics::Panicked;
use crate::slots::Slots;
use crate::tasks::GivenUp;

/// A call on its way to JavaScript; boxed because it moves from queue to queue.
#[derive(Debug)]
pub struct Arrived {
    pub call: Box<Call>,
    caller: Caller,
    /// The context for rounds of questions or for a task, if the call may need one.
    context: Option<Box<Context>>,
    /// The head of the HTTP request that brought it, if a delegate wants it.
    head: Option<Arc<Head>>,
}

impl Arrived {
    /// Prepares a call that has arrived; starts a task if its client asked for one. `None` if the call was
    /// refused, which answers it.
    pub fn new(
        call: Call,
        caller: &Caller,
        seal: Option<&StateSigner>,
        registry: &Arc<Registry>,
    ) -> Option<Self> {
        let tool = match call.operation {
            Operation::CallTool(number) => Some(number),
            _ => None,
        };
        let tool = tool.filter(|number| registry.supports_tasks(*number));
        if Whose::of(call.operation).is_some() || tool.is_none() && !takes_rounds(&call) {
            return Some(Self {
                call: Box::new(call),
                caller: caller.clone(),
                context: None,
                head: None,
            });
        }
        let mut context = match Context::new(caller.handle.clone(), &call, seal) {
            Ok(context) => context,
            Err(why) => return refuse(caller, &call, ErrorKind::InvalidParams, why),
        };
        if let Some(number) = tool {
            context = context.with_task(registry, number, &call);
        }
        // R-TSK-06
        let mut asked = context.task().filter(|task| task.is_asked());
        if asked.take_if(|task| !task.begin()).is_some() {
            return refuse(caller, &call, ErrorKind::Overloaded, "too many tasks");
        }
        Some(Self {
            call: Box::new(call),
            caller: caller.clone(),
            context: Some(Box::new(context)),
            head: None,
        })
    }

    /// Adds the head of the HTTP request that brought it.
    pub fn with_head(self, head: Option<Arc<Head>>) -> Self {
        Self { head, ..self }
    }

    /// Answers it with a panic.
    pub fn fail(&self, panic: &Panicked) {
        panic.answer_now(&self.caller.handle, &self.call.reply);
    }

    /// Whether its caller has cancelled it.
    pub fn is_cancelled(&self) -> bool {
        self.call.cancel.is_cancelled()
    }
}

fn refuse(caller: &Caller, call: &Call, kind: ErrorKind, why: &str) -> Option<Arrived> {
    let mut replies = caller.handle.replies();
    replies.error(&call.reply, kind, why, None);
    None
}

/// Whether the client is asked by the answer to its call, which it then repeats.
fn takes_rounds(call: &Call) -> bool {
    let declared = |call: &Call| {
        let declared = call.message.as_ref().raw(Field::ClientCapabilities);
        declared.is_some_and(|declared| declared != "{}")
    };
    call.reply.revision().era() == Era::Stateless && declared(call)
}

/// All calls in progress: JavaScript identifies them by number, clients by id.
#[derive(Default)]
pub struct Calls {
    slots: Slots<Underway>,
    numbers: HashMap<CallId, u32>,
}

impl Calls {
    /// The number that the next call gets.
    pub fn vacant(&self) -> u32 {
        self.slots.vacant()
    }

    /// Adds a call.
    pub fn insert(&mut self, call: Underway) {
        let id = call.id();
        self.numbers.insert(id, self.slots.insert(call));
    }

    /// The number of a call, as long as it is in progress.
    pub fn number(&self, id: CallId) -> Option<u32> {
        self.numbers.get(&id).copied()
    }

    pub fn get(&self, number: u32) -> Option<&Underway> {
        self.slots.get(number)
    }

    pub fn get_mut(&mut self, number: u32) -> Option<&mut Underway> {
        self.slots.get_mut(number)
    }

    /// Removes a call; its number is free again.
    pub fn remove(&mut self, number: u32) -> Option<Underway> {
        let call = self.slots.remove(number)?;
        self.numbers.remove(&call.id());
        Some(call)
    }
}

/// The state needed to answer a call, and to ask on its behalf.
#[derive(Debug)]
pub struct Underway {
    pub caller: Caller,
    call: Box<Call>,
    context: Option<Box<Context>>,
    head: Option<Arc<Head>>,
    given_up: Option<GivenUp>,
}

impl Underway {
    /// A call that JavaScript starts now.
    pub fn new(arrived: Arrived, inbox: &Arc<Inbox>) -> Self {
        let Arrived {
            call,
            caller,
            context,
            head,
        } = arrived;
        let mut underway = Self {
            caller,
            call,
            context,
            head,
            given_up: None,
        };
        underway.watch(inbox);
        underway
    }

    pub fn id(&self) -> CallId {
        self.caller.call(self.call.reply.key())
    }

    /// Where its answer goes.
    pub fn reply(&self) -> &ReplyTo {
        &self.call.reply
    }

    /// The context for its questions; created with the first one.
    pub fn context(&mut self) -> &Context {
        self.context.get_or_insert_with(|| {
            let (reply, cancel) = (self.call.reply.clone(), self.call.cancel.clone());
            let handle = self.caller.handle.clone();
            Box::new(Context::without_rounds(handle, reply, cancel))
        })
    }

    /// Its client's description of itself: from this request in revisions where each request has it
    /// (R-MET-08), otherwise from when the connection opened.
    pub fn client(&self) -> String {
        let (revision, request) = (self.call.reply.revision(), self.call.message.as_ref());
        if revision.era() == Era::Handshake
            && let Some(said) = self.caller.introduction()
        {
            return said;
        }
        let said = |field| request.raw(field).unwrap_or_default();
        let (client, capabilities) = (Field::ClientInfo, Field::ClientCapabilities);
        let connection = (!self.caller.stands_alone).then_some(self.caller.number);
        introduction(revision, connection, said(client), said(capabilities))
    }

    /// The `_meta` of the request: an object.
    pub fn meta(&self) -> &str {
        let request = self.call.message.as_ref();
        request.raw(Field::Meta).unwrap_or("{}")
    }

    /// Its caller, if verified.
    pub fn principal(&self) -> Option<&Principal> {
        let own = self.call.reply.principal();
        own.or_else(|| self.caller.handle.verified())
    }

    /// The process or state that it belongs to, if it is an action that names one.
    pub fn action_context(&self) -> Option<String> {
        mcpbolt::action::context_of(&self.call.message.as_ref()).map(Into::into)
    }

    /// The head of the HTTP request that brought it, as JSON.
    pub fn head(&self) -> Option<String> {
        let head = self.head.as_ref()?;
        // As in Node and on the web, each byte becomes a character.
        let text = |bytes: &[u8]| bytes.iter().copied().map(char::from).collect::<String>();
        let headers = head.headers.iter();
        let headers: Vec<_> = headers.map(|(name, value)| (name, text(value))).collect();
        let (method, target, session) = (&head.method, &head.target, &head.session);
        let mut said = json!({ "method": method, "target": target, "headers": headers });
        if let (Some(id), Some(members)) = (session, said.as_object_mut()) {
            members.insert("session".into(), id.to_string().into());
        }
        Some(said.to_string())
    }

    /// The task that it has become, if any.
    pub fn task(&self) -> Option<&Arc<TaskCall>> {
        let task = self.context.as_ref()?.task()?;
        task.is_task().then_some(task)
    }

    /// Turns it into a task, if possible; returns whether it is one.
    pub fn begin_task(&mut self, inbox: &Arc<Inbox>) -> bool {
        let begun = self.context.as_ref().is_some_and(|own| own.begin_task());
        self.watch(inbox);
        begun
    }

    fn watch(&mut self, inbox: &Arc<Inbox>) {
        if self.given_up.is_none() && self.task().is_some() {
            self.given_up = Some(GivenUp::watch(inbox, self.id(), &self.call.cancel));
        }
    }

    /// Reports progress.
    pub fn progress(&self, replies: &mut Replies, progress: Progress<'_>) {
        match self.context.as_ref().filter(|own| own.is_task()) {
            None => replies.progress(&self.call.reply, progress),
            Some(task) => task.progress(progress.progress, progress.total, progress.message),
        }
    }
}
