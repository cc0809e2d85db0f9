//! An open connection to the server.

use std::sync::{Arc, Weak};

use super::places::Use;
use super::routes::Routes;
use crate::client::Client;
use crate::connection::{Caller, Callers, Handle};
use crate::json::reader;
use crate::mcp::Revision;

/// An open connection to the server.
#[derive(Clone)]
pub(super) struct Far {
    pub client: Client,
    pub revision: Revision,
    /// Dropped after the client.
    used: Use,
}

impl Far {
    /// A connection in use; `None` if no revision was agreed.
    pub fn new(client: Client, used: Use) -> Option<Self> {
        let revision = client.revision()?;
        Some(Self {
            client,
            revision,
            used,
        })
    }

    /// Whether anything but its lane holds it.
    pub fn is_held(&self) -> bool {
        self.used.count() > 1
    }

    pub fn handle(&self) -> &Handle {
        self.client.handle()
    }

    /// A number that no other connection of this process has.
    pub fn number(&self) -> u64 {
        self.routes().connection
    }

    /// The calls that it carries.
    pub fn routes(&self) -> &Arc<Routes> {
        self.used.routes()
    }

    pub fn capabilities(&self) -> &str {
        self.handle().peer().map_or("{}", |peer| &peer.capabilities)
    }

    /// Whether the server has a capability.
    pub fn offers(&self, capability: &str) -> bool {
        reader::find(self.capabilities(), capability).is_some()
    }

    pub fn implementation(&self) -> &str {
        self.handle().peer().map_or("", |peer| &peer.implementation)
    }
}

impl Callers for Weak<Routes> {
    fn caller(&self, request: u64) -> Caller {
        let route = self.upgrade().and_then(|routes| routes.find(request));
        route.map_or(Caller::Nobody, |route| Caller::Is(route.principal.clone()))
    }

    fn are_many(&self) -> bool {
        self.upgrade().is_some_and(|routes| routes.is_shared())
    }
}
