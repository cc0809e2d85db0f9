//! A server that another library carries out. What the protocol layer does not answer itself
//! comes to JavaScript as the whole message, but for plain calls of tools that it knows by number;
//! answers that stay what they are until JavaScript says otherwise, those of lists, are kept here
//! and given from here.

use std::sync::{Arc, PoisonError, RwLock};

use hashbrown::HashMap;
use mcpbolt::connection::{Answer, Config, Disposition, Incoming};
use mcpbolt::handler::Operation;
use mcpbolt::json::reader;
use mcpbolt::mcp::{Era, Method, Revision, Revisions};
use mcpbolt::message::{Field, MessageRef};
use mcpbolt::server::Change;
use napi_derive::napi;

use crate::error::{Result, error};
use crate::offer::Offer;

/// What the other library says of its server.
#[napi(object)]
pub struct DelegateOptions {
    /// Its name, version and more, as a JSON object.
    pub implementation: String,
    /// Its capabilities, as a JSON object.
    pub capabilities: String,
    /// The eras that it serves: `handshake`, `stateless` or `both`.
    pub eras: String,
    /// It answers the handshake itself.
    pub opens: bool,
}

/// What of it is known here.
#[derive(Default)]
pub struct Delegate {
    /// Answers: the members of result objects.
    kept: RwLock<Vec<(Method, Revision, Arc<str>)>>,
    /// Tools by name.
    tools: RwLock<HashMap<Box<str>, u32>>,
    /// It answers handshakes, pings and discovery itself.
    pub opens: bool,
}

/// How a request is handed over that belongs to a delegate.
pub enum Whose {
    /// Whole.
    Whole,
    /// In pieces: a call of the tool of that number.
    Tool(u32),
}

impl Whose {
    /// As the number that marks it; no method of an extension has so high a one.
    fn to_target(&self) -> u32 {
        let number = match self {
            Self::Whole => Operation::MAX_NUMBER,
            Self::Tool(number) => FIRST_TOOL + number,
        };
        Operation::Extension(number).to_target()
    }

    /// From that number, if it is one.
    pub fn of(target: u32) -> Option<Self> {
        match Operation::from_target(target) {
            Operation::Extension(Operation::MAX_NUMBER) => Some(Self::Whole),
            Operation::Extension(number) => number.checked_sub(FIRST_TOOL).map(Self::Tool),
            _ => None,
        }
    }
}

/// Numbers of extensions' methods from here on are a delegate's tools.
const FIRST_TOOL: u32 = Operation::MAX_NUMBER - MAX_TOOLS;
/// Tools that are known by number; calls of further ones are handed over whole.
const MAX_TOOLS: u32 = 10_000;

impl Delegate {
    /// Answers what is kept, and defers the rest.
    pub fn first(&self, request: &Incoming<'_>, answer: Answer<'_>) -> Disposition {
        let found = request.method.and_then(|method| self.find(method, request));
        if let Some(members) = found {
            return answer.result(|result| result.members(&members));
        }
        let whose = match request.method {
            Some(Method::CallTool) => self.whose(&request.message),
            _ => Whose::Whole,
        };
        Disposition::Deferred(whose.to_target())
    }

    /// That of a call of a tool.
    fn whose(&self, message: &MessageRef<'_>) -> Whose {
        let tools = self.tools.read().unwrap_or_else(PoisonError::into_inner);
        let known = message.name().and_then(|name| tools.get(&*name).copied());
        match known.filter(|_| is_plain(message)) {
            Some(number) => Whose::Tool(number),
            None => Whose::Whole,
        }
    }

    fn find(&self, method: Method, request: &Incoming<'_>) -> Option<Arc<str>> {
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

/// Whether a call has a name, arguments that are an object, and a `_meta` that asks for nothing of
/// the ordinary, and nothing besides: then it can be put together again from these.
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
    // A brace, then the members with a comma or a brace behind each: no byte is left for more.
    if params.len() == said + 1 {
        return true;
    }
    let known = ["name", "arguments", "_meta"];
    reader::members(params).all(|(name, _)| known.contains(&name.raw()))
}

/// What a call says that belongs to a task.
const RELATED_TASK: &str = "related-task";

impl DelegateOptions {
    /// The delegate that these are of.
    pub fn begin(self) -> (Self, Arc<Delegate>) {
        let opens = self.opens;
        let delegate = Delegate {
            opens,
            ..Delegate::default()
        };
        (self, Arc::new(delegate))
    }

    /// Has connections introduce that server instead of one of ours.
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
    /// From now on a list without a cursor is answered with this result, in that revision.
    #[napi]
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

    /// From now on calls of these tools, and of no others, are handed over by their numbers, which
    /// are below 10,000.
    #[napi]
    pub fn number_tools(&self, names: Vec<String>, numbers: Vec<u32>) {
        let Some(delegate) = self.delegate() else {
            return;
        };
        let small = numbers.into_iter().filter(|number| *number < MAX_TOOLS);
        let named = names.into_iter().map(String::into_boxed_str).zip(small);
        let mut tools = delegate
            .tools
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        *tools = named.collect();
    }

    /// Tells who listens of a list that is another now: the name of the notification.
    #[napi]
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

    /// A list is another one now: JavaScript is asked for it again.
    #[napi]
    pub fn forget(&self, method: String) {
        if let (Some(method), Some(delegate)) = (Method::parse(&method), self.delegate()) {
            delegate.forget(method);
        }
    }
}
