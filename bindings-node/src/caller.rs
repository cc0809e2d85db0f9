//! The client at the other end of one connection of a server.

use mcpbolt::connection::{CallKey, Handle};
use mcpbolt::mcp::{Method, Side};
use napi_derive::napi;
use serde_json::json;

use crate::client::introduction;

/// A client, identified by its connection. Its calls and events refer to it.
#[derive(Clone, Debug)]
pub struct Caller {
    /// Unique within the server.
    pub number: u64,
    pub handle: Handle,
    /// Whether the connection carries a single request.
    pub stands_alone: bool,
}

/// Identifies a call among those of all connections of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CallId {
    caller: u64,
    key: CallKey,
}

impl Caller {
    /// The client of the only connection.
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

    /// The client's description of itself from when it connected, as JSON; `None` without one.
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

/// A [`Caller`] for JavaScript, which may hold it longer than the call.
#[napi]
pub struct CallerHandle(pub(crate) Caller);

#[napi]
impl CallerHandle {
    /// Tells the client that the user has completed a page, if the revision has a notification for it
    /// (R-ELI-10).
    #[napi(catch_unwind)]
    pub fn page_done(&self, id: String) {
        let (handle, done) = (&self.0.handle, Method::ElicitationComplete);
        let revision = handle.revision();
        if revision.is_some_and(|revision| done.defined(revision, Side::Server)) {
            let params = json!({ "elicitationId": id }).to_string();
            // Valid: the params are an object.
            let _ = handle.notify(done.name(), Some(&params));
        }
    }
}
