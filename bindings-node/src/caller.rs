//! Who calls: the client at the other end of one connection of a server.

use mcpbolt::connection::{CallKey, Handle};
use mcpbolt::mcp::{Method, Side};
use napi_derive::napi;
use serde_json::json;

use crate::client::introduction;

/// A client, by its connection. Its calls and what is told of it name it.
#[derive(Clone, Debug)]
pub struct Caller {
    /// Not given twice.
    pub number: u64,
    pub handle: Handle,
    /// The connection is that of one request.
    pub stands_alone: bool,
}

/// One call, among those of all connections of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CallId {
    caller: u64,
    key: CallKey,
}

impl Caller {
    /// That of the only connection there is.
    pub fn only(handle: Handle) -> Self {
        Self {
            number: 0,
            handle,
            stands_alone: false,
        }
    }

    pub fn call(&self, key: CallKey) -> CallId {
        CallId {
            caller: self.number,
            key,
        }
    }

    /// What it said of itself when it connected, if it did, as JSON.
    pub fn introduction(&self) -> Option<String> {
        let (revision, peer) = (self.handle.revision()?, self.handle.peer()?);
        let connection = (!self.stands_alone).then_some(self.number);
        let said = introduction(
            revision,
            connection,
            &peer.implementation,
            &peer.capabilities,
        );
        Some(said)
    }
}

/// The same for JavaScript, which may hold it for longer than the call.
#[napi]
pub struct CallerHandle(pub(crate) Caller);

#[napi]
impl CallerHandle {
    /// Tells it that the user has done what a page asked for, where the revision has a word for
    /// it (R-ELI-10).
    #[napi]
    pub fn page_done(&self, id: String) {
        let (handle, done) = (&self.0.handle, Method::ElicitationComplete);
        let revision = handle.revision();
        if revision.is_some_and(|revision| done.defined(revision, Side::Server)) {
            let params = json!({ "elicitationId": id }).to_string();
            // The params are an object.
            let _ = handle.notify(done.name(), Some(&params));
        }
    }
}
