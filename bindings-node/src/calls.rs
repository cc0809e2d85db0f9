//! Calls of the peer under way in JavaScript, and what they ask of it.

use std::sync::Arc;

use hashbrown::HashMap;
use mcpbolt::connection::{Call, Principal, Progress, Replies, ReplyTo};
use mcpbolt::handler::{Head, Operation};
use mcpbolt::mcp::{Era, ErrorKind};
use mcpbolt::message::Field;
use mcpbolt::server::{Context, Registry, Seal, TaskCall};
use serde_json::json;

use crate::caller::{CallId, Caller};
use crate::client::introduction;
use crate::delegate::Whose;
use crate::inbox::Inbox;
use crate::slots::Slots;
use crate::tasks::GivenUp;

/// A call on its way to JavaScript: boxed, since it is handed on from queue to queue.
#[derive(Debug)]
pub struct Arrived {
    pub call: Box<Call>,
    caller: Caller,
    /// What it takes rounds by, where its client may be asked in that way, or goes on by as a task.
    context: Option<Box<Context>>,
    /// What brought it, where that is wanted.
    head: Option<Arc<Head>>,
}

impl Arrived {
    /// A call as it came. What its client wants to be a task becomes one. `None` when it is not to
    /// be carried out: then it is answered.
    pub fn new(
        call: Call,
        caller: &Caller,
        seal: Option<&Seal>,
        registry: &Arc<Registry>,
    ) -> Option<Self> {
        let tool = match Operation::from_target(call.target) {
            Operation::CallTool(number) => Some(number),
            _ => None,
        };
        let tool = tool.filter(|number| registry.supports_tasks(*number));
        if Whose::of(call.target).is_some() || tool.is_none() && !takes_rounds(&call) {
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

    /// The same, brought by that.
    pub fn with_head(self, head: Option<Arc<Head>>) -> Self {
        Self { head, ..self }
    }

    /// Whether its caller has given it up.
    pub fn is_cancelled(&self) -> bool {
        self.call.cancel.is_cancelled()
    }
}

fn refuse(caller: &Caller, call: &Call, kind: ErrorKind, why: &str) -> Option<Arrived> {
    let mut replies = caller.handle.replies();
    replies.error(&call.reply, kind, why, None);
    None
}

/// Whether the client may be asked by an answer: it repeats the call then.
fn takes_rounds(call: &Call) -> bool {
    let declared = |call: &Call| {
        let declared = call.message.as_ref().raw(Field::ClientCapabilities);
        declared.is_some_and(|declared| declared != "{}")
    };
    call.reply.revision().era() == Era::Stateless && declared(call)
}

/// All that are under way: JavaScript knows them by numbers, and clients by ids.
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

    /// The number of a call, as long as it is under way.
    pub fn number(&self, id: CallId) -> Option<u32> {
        self.numbers.get(&id).copied()
    }

    pub fn get(&self, number: u32) -> Option<&Underway> {
        self.slots.get(number)
    }

    pub fn get_mut(&mut self, number: u32) -> Option<&mut Underway> {
        self.slots.get_mut(number)
    }

    /// Takes a call out; its number is free again.
    pub fn remove(&mut self, number: u32) -> Option<Underway> {
        let call = self.slots.remove(number)?;
        self.numbers.remove(&call.id());
        Some(call)
    }
}

/// What is needed to answer a call, and to ask on its behalf.
#[derive(Debug)]
pub struct Underway {
    pub caller: Caller,
    call: Box<Call>,
    context: Option<Box<Context>>,
    head: Option<Arc<Head>>,
    given_up: Option<GivenUp>,
}

impl Underway {
    /// A call that JavaScript begins now.
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

    /// By which it asks; made when it asks first.
    pub fn context(&mut self) -> &Context {
        self.context.get_or_insert_with(|| {
            let (reply, cancel) = (self.call.reply.clone(), self.call.cancel.clone());
            let handle = self.caller.handle.clone();
            Box::new(Context::without_rounds(handle, reply, cancel))
        })
    }

    /// What its client said of itself: with it, where each request says it anew (R-MET-08), or
    /// when the connection opened.
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

    /// Who makes it, as somebody has verified.
    pub fn principal(&self) -> Option<&Principal> {
        let own = self.call.reply.principal();
        own.or_else(|| self.caller.handle.verified())
    }

    /// The process or state that it belongs to, where it is an action and says so.
    pub fn action_context(&self) -> Option<String> {
        mcpbolt::action::context_of(&self.call.message.as_ref()).map(Into::into)
    }

    /// What brought it over HTTP, as JSON.
    pub fn head(&self) -> Option<String> {
        let head = self.head.as_ref()?;
        // As Node and the web have them: a byte is a character.
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

    /// The task that it has become.
    pub fn task(&self) -> Option<&Arc<TaskCall>> {
        let task = self.context.as_ref()?.task()?;
        task.is_task().then_some(task)
    }

    /// Has it go on as a task, where it may. Whether it does.
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

    /// Tells how far it is.
    pub fn progress(&self, replies: &mut Replies, progress: Progress<'_>) {
        match self.context.as_ref().filter(|own| own.is_task()) {
            None => replies.progress(&self.call.reply, progress),
            Some(task) => task.progress(progress.progress, progress.total, progress.message),
        }
    }
}
