//! The clients of a server.

use mcpbolt::connection::{CallKey, Handle};

use crate::describe::Introduction;
use crate::json;

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

    /// The number of its connection, unless the connection carries a single request.
    pub fn connection(&self) -> Option<u64> {
        (!self.stands_alone).then_some(self.number)
    }

    /// The client's description of itself from when it connected, as JSON; `None` without one.
    pub fn introduction(&self) -> Option<String> {
        let (revision, peer) = (self.handle.revision()?, self.handle.peer()?);
        let (info, capabilities) = (&peer.implementation, &peer.capabilities);
        let said = Introduction::new(revision, self.connection(), info, capabilities);
        Some(json::text(&said))
    }
}
