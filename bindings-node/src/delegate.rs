//! A server that another library carries out. What the protocol layer does not answer itself
//! comes to JavaScript as the whole message; answers that stay what they are until JavaScript
//! says otherwise, those of lists, are kept here and given from here.

use std::sync::{Arc, PoisonError, RwLock};

use mcpbolt::connection::{Answer, Config, Disposition, Incoming};
use mcpbolt::handler::Operation;
use mcpbolt::mcp::{Era, Method, Revision, Revisions};
use mcpbolt::message::Field;
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
    /// Whether it serves revisions without a handshake, too.
    pub stateless: bool,
}

/// The kept answers: the members of result objects.
#[derive(Default)]
pub struct Delegate {
    kept: RwLock<Vec<(Method, Revision, Arc<str>)>>,
}

impl Delegate {
    /// Answers what is kept, and defers the rest.
    pub fn first(&self, request: &Incoming<'_>, answer: Answer<'_>) -> Disposition {
        match request.method.and_then(|method| self.find(method, request)) {
            Some(members) => answer.result(|result| result.members(&members)),
            None => Disposition::Deferred(target()),
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

/// By which calls are told that are handed over whole.
pub fn target() -> u32 {
    Operation::Extension(Operation::MAX_NUMBER).to_target()
}

impl DelegateOptions {
    /// Has connections introduce that server instead of one of ours.
    pub fn apply(&self, config: &mut Config) {
        config.implementation = self.implementation.as_str().into();
        config.capabilities = Revision::ALL.map(|_| self.capabilities.as_str().into());
        if !self.stateless {
            let handshake = |revision: &Revision| revision.era() == Era::Handshake;
            config.revisions = Revision::ALL
                .into_iter()
                .filter(handshake)
                .collect::<Revisions>();
        }
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

    /// A list is another one now: JavaScript is asked for it again.
    #[napi]
    pub fn forget(&self, method: String) {
        if let (Some(method), Some(delegate)) = (Method::parse(&method), self.delegate()) {
            delegate.forget(method);
        }
    }
}
