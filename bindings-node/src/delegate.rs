//! A server that another library implements: a delegate. Requests that the protocol layer does not answer
//! itself go to JavaScript as whole messages, except plain calls of tools that have a number. Answers that
//! stay the same until JavaScript reports a change, which are lists, are cached and sent from here.

use std::sync::{Arc, PoisonError, RwLock};

use hashbrown::HashMap;
use mcpbolt::connection::{Answer, Config, Disposition, IncomingRequest};
use mcpbolt::json::reader;
use mcpbolt::mcp::{Era, Method, Revision, Revisions};
use mcpbolt::message::{Field, MessageRef};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::operation::Delegated;

/// The other library's description of its server, besides its name and version.
#[derive(Deserialize)]
pub struct DelegateSettings {
    capabilities: Box<RawValue>,
    eras: Eras,
    /// Whether it answers the handshake itself.
    pub opens: bool,
}

/// The eras that a delegate supports.
#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Eras {
    Handshake,
    Stateless,
    Both,
}

/// The native state of a delegate.
#[derive(Default)]
pub struct Delegate {
    /// Cached answers: the members of result objects.
    kept: RwLock<Vec<(Method, Revision, Arc<str>)>>,
    /// The numbers of tools, by name.
    tools: RwLock<HashMap<Box<str>, u32>>,
    /// Whether it answers handshakes, pings and discovery itself.
    opens: bool,
}

/// Maximum number of tools with a number; calls of others are passed as whole messages.
const MAX_TOOLS: u32 = 10_000;

impl Delegate {
    pub fn new(opens: bool) -> Self {
        Self {
            opens,
            ..Self::default()
        }
    }

    pub fn opens(&self) -> bool {
        self.opens
    }

    /// Answers from the cache, and defers everything else to JavaScript.
    pub fn first(&self, request: &IncomingRequest<'_>, answer: Answer<'_>) -> Disposition {
        let found = request.method.and_then(|method| self.find(method, request));
        if let Some(members) = found {
            return answer.result(|result| result.members(&members));
        }
        let delegated = match request.method {
            Some(Method::CallTool) => self.split(&request.message),
            _ => Delegated::Whole,
        };
        Disposition::Deferred(delegated.operation())
    }

    /// How a call of a tool is passed.
    fn split(&self, message: &MessageRef<'_>) -> Delegated {
        let tools = self.tools.read().unwrap_or_else(PoisonError::into_inner);
        let known = message.name().and_then(|name| tools.get(&*name).copied());
        match known.filter(|_| is_plain(message)) {
            Some(number) => Delegated::Tool(number),
            None => Delegated::Whole,
        }
    }

    /// Passes calls of these tools, and of no others, by number from now on.
    pub fn number_tools(&self, numbered: impl Iterator<Item = (Box<str>, u32)>) {
        let mut tools = self.tools.write().unwrap_or_else(PoisonError::into_inner);
        *tools = numbered.filter(|(_, number)| *number < MAX_TOOLS).collect();
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

    /// Answers a list without a cursor with this result from now on, in that revision.
    pub fn keep(&self, method: Method, revision: Revision, result: &str) {
        let members = result
            .trim()
            .strip_prefix('{')
            .and_then(|rest| rest.strip_suffix('}'));
        let Some(members) = members else { return };
        let mut kept = self.kept.write().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|(what, of, _)| (*what, *of) != (method, revision));
        kept.push((method, revision, members.into()));
    }

    /// Drops a cached list: JavaScript is asked for it again.
    pub fn forget(&self, method: Method) {
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

impl DelegateSettings {
    /// Makes connections introduce the other library's server.
    pub fn apply(&self, config: &mut Config) {
        config.capabilities = Revision::ALL.map(|_| self.capabilities.get().into());
        let is_served = |revision: &Revision| match self.eras {
            Eras::Handshake => revision.era() == Era::Handshake,
            Eras::Stateless => revision.era() == Era::Stateless,
            Eras::Both => true,
        };
        let served = Revision::ALL.into_iter().filter(is_served);
        config.revisions = served.collect::<Revisions>();
    }
}
