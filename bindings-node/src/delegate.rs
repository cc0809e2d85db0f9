//! A server that another library implements: a delegate. Requests that the protocol layer does not answer
//! itself go to JavaScript as whole messages, except plain calls of tools that have a number. Answers that
//! stay the same until JavaScript reports a change, which are lists, are cached and sent from here.

use std::sync::{Arc, PoisonError, RwLock};

use hashbrown::HashMap;
use mcpbolt::connection::Operation;
use mcpbolt::connection::{Answer, Config, Disposition, IncomingRequest};
use mcpbolt::json::reader;
use mcpbolt::mcp::{Era, Method, Revision, Revisions};
use mcpbolt::message::{Field, MessageRef};
use mcpbolt::server::Change;
use napi_derive::napi;

use crate::error::{Result, error};
use crate::offer::Offer;

/// The other library's description of its server.
#[napi(object)]
pub struct DelegateOptions {
    /// Its name, version and more, as a JSON object.
    pub implementation: String,
    /// Its capabilities, as a JSON object.
    pub capabilities: String,
    /// The eras that it supports: `handshake`, `stateless` or `both`.
    pub eras: String,
    /// Whether it answers the handshake itself.
    pub opens: bool,
}

/// The native state of a delegate.
#[derive(Default)]
pub struct Delegate {
    /// Cached answers: the members of result objects.
    kept: RwLock<Vec<(Method, Revision, Arc<str>)>>,
    /// The numbers of tools, by name.
    tools: RwLock<HashMap<Box<str>, u32>>,
    /// Whether it answers handshakes, pings and discovery itself.
    pub opens: bool,
}

/// How a request is passed to a delegate.
pub enum Whose {
    /// As a whole message.
    Whole,
    /// In parts: a call of the tool with that number.
    Tool(u32),
}

impl Whose {
    fn operation(&self) -> Operation {
        match self {
            Self::Whole => Operation::Own(0),
            Self::Tool(number) => Operation::Own(number + 1),
        }
    }

    /// How a request with that operation is passed, if a delegate took it.
    pub fn of(operation: Operation) -> Option<Self> {
        match operation {
            Operation::Own(0) => Some(Self::Whole),
            Operation::Own(number) => Some(Self::Tool(number - 1)),
            _ => None,
        }
    }
}

/// Maximum number of tools with a number; calls of others are passed as whole messages.
const MAX_TOOLS: u32 = 10_000;

impl Delegate {
    /// Answers from the cache, and defers everything else to JavaScript.
    pub fn first(&self, request: &IncomingRequest<'_>, answer: Answer<'_>) -> Disposition {
        let found = request.method.and_then(|method| self.find(method, request));
        if let Some(members) = found {
            return answer.result(|result| result.members(&members));
        }
        let whose = match request.method {
            Some(Method::CallTool) => self.whose(&request.message),
            _ => Whose::Whole,
        };
        Disposition::Deferred(whose.operation())
    }

    /// How a call of a tool is passed.
    fn whose(&self, message: &MessageRef<'_>) -> Whose {
        let tools = self.tools.read().unwrap_or_else(PoisonError::into_inner);
        let known = message.name().and_then(|name| tools.get(&*name).copied());
        match known.filter(|_| is_plain(message)) {
            Some(number) => Whose::Tool(number),
            None => Whose::Whole,
        }
    }

    fn find(&self, method: Method, request: &IncomingRequest<'_>) -> Option<Arc<str>> {
        if request.message.raw(Field::Cursor).is_some() {
            return None;
        }
        let kept = self.kept.read().unwrap_or_else(PoisonError::into_inner);
        let mut kept = kept.iter();
        let found =
            kept.find(|(what, revision, _)| (*what, *revision) == (method, request.revision));
        found.map(|(_, _, members)| members.clone())
    }

    fn keep(&self, method: Method, revision: Revision, result: &str) {
        let members = result
            .trim()
            .strip_prefix('{')
            .and_then(|rest| rest.strip_suffix('}'));
        let Some(members) = members else { return };
        let mut kept = self.kept.write().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|(what, of, _)| (*what, *of) != (method, revision));
        kept.push((method, revision, members.into()));
    }

    fn forget(&self, method: Method) {
        let mut kept = self.kept.write().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|(what, _, _)| *what != method);
    }
}

/// Whether a call has only a name, an object of arguments, and a `_meta` without special requests: then the
/// message can be rebuilt from these.
fn is_plain(message: &MessageRef<'_>) -> bool {
    let len = |field| message.raw(field).map(str::len);
    let params = message.params().unwrap_or_default();
    let arguments = message.raw(Field::Arguments);
    let meta = message.raw(Field::Meta);
    if arguments.is_some_and(|arguments| !arguments.starts_with('{'))
        || meta.is_some_and(|meta| !meta.starts_with('{') || meta.contains(RELATED_TASK))
    {
        return false;
    }
    let member = |name: &str, len: Option<usize>| len.map_or(0, |len| name.len() + 4 + len);
    let said = member("name", len(Field::Name))
        + member("arguments", len(Field::Arguments))
        + member("_meta", len(Field::Meta));
    // A brace, then each member followed by a comma or a brace: no byte is left for anything else.
    if params.len() == said + 1 {
        return true;
    }
    let known = ["name", "arguments", "_meta"];
    reader::members(params).all(|(name, _)| known.contains(&name.raw()))
}

/// Part of the `_meta` member of a call that belongs to a task.
const RELATED_TASK: &str = "related-task";

impl DelegateOptions {
    /// Creates the delegate for these options.
    pub fn begin(self) -> (Self, Arc<Delegate>) {
        let opens = self.opens;
        let delegate = Delegate {
            opens,
            ..Delegate::default()
        };
        (self, Arc::new(delegate))
    }

    /// Makes connections introduce the other library's server.
    pub fn apply(&self, config: &mut Config) {
        config.implementation = self.implementation.as_str().into();
        config.capabilities = Revision::ALL.map(|_| self.capabilities.as_str().into());
        let served = |revision: &Revision| match self.eras.as_str() {
            "handshake" => revision.era() == Era::Handshake,
            "stateless" => revision.era() == Era::Stateless,
            _ => true,
        };
        let served = Revision::ALL.into_iter().filter(served);
        config.revisions = served.collect::<Revisions>();
    }
}

#[napi]
impl Offer {
    /// From now on, answers a list without a cursor with this result, in that revision.
    #[napi(catch_unwind)]
    pub fn keep(&self, method: String, revision: String, result: String) -> Result<()> {
        let unknown = || error("ERR_MCP_MISUSE", "there is no such list");
        let known = Method::parse(&method).ok_or_else(unknown)?;
        let revision = revision
            .parse()
            .map_err(|why| error("ERR_MCP_MISUSE", why))?;
        if let Some(delegate) = self.delegate() {
            delegate.keep(known, revision, &result);
        }
        Ok(())
    }

    /// From now on, passes calls of these tools, and of no others, by number. Numbers must be below 10,000.
    #[napi(catch_unwind)]
    pub fn number_tools(&self, names: Vec<String>, numbers: Vec<u32>) {
        let Some(delegate) = self.delegate() else {
            return;
        };
        let named = names.into_iter().map(String::into_boxed_str).zip(numbers);
        let small = named.filter(|(_, number)| *number < MAX_TOOLS);
        let mut tools = delegate
            .tools
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        *tools = small.collect();
    }

    /// Notifies the clients that listen to a list that it changed; `notification` is the method's name.
    #[napi(catch_unwind)]
    pub fn tell(&self, notification: String) {
        let change = match Method::parse(&notification) {
            Some(Method::ToolsChanged) => Change::Tools,
            Some(Method::PromptsChanged) => Change::Prompts,
            Some(Method::ResourcesChanged) => Change::Resources,
            _ => return,
        };
        if let Some(live) = self.live() {
            live.offer().registry.tell(change);
        }
    }

    /// Drops a cached list: JavaScript is asked for it again.
    #[napi(catch_unwind)]
    pub fn forget(&self, method: String) {
        if let (Some(method), Some(delegate)) = (Method::parse(&method), self.delegate()) {
            delegate.forget(method);
        }
    }
}
