//! An open connection to the server.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use super::parts::Parts;
use super::routes::Routes;
use crate::client::Client;
use crate::connection::{Caller, Callers, Handle};
use crate::error::RequestError;
use crate::json::reader;
use crate::mcp::Revision;

/// An open connection to the server.
#[derive(Clone)]
pub(super) struct Far {
    pub client: Client,
    pub revision: Revision,
    /// Dropped after the client.
    place: Arc<Place>,
}

impl Far {
    /// A connection in its place; `None` if no revision was agreed.
    pub fn new(client: Client, place: Arc<Place>) -> Option<Self> {
        let revision = client.revision()?;
        Some(Self {
            client,
            revision,
            place,
        })
    }

    /// Whether anything but its lane holds it.
    pub fn is_held(&self) -> bool {
        Arc::strong_count(&self.place) > 1
    }

    pub fn handle(&self) -> &Handle {
        self.client.handle()
    }

    /// A number that no other connection of this process has.
    pub fn number(&self) -> u64 {
        self.place.routes.connection
    }

    /// The calls that it carries.
    pub fn routes(&self) -> &Arc<Routes> {
        &self.place.routes
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

/// The place of one of the connections to a server that may be open at a time.
pub(super) struct Place {
    parts: Arc<Parts>,
    pub routes: Arc<Routes>,
}

impl Place {
    /// The place of a connection that one client has for itself, or that clients share.
    ///
    /// # Errors
    /// [`RequestError::Overloaded`] when there are too many.
    pub fn take(parts: &Arc<Parts>, is_of_one: bool) -> Result<Arc<Self>, RequestError> {
        static CONNECTIONS: AtomicU64 = AtomicU64::new(0);
        let number = CONNECTIONS.fetch_add(1, Ordering::Relaxed);
        let place = Self {
            parts: parts.clone(),
            routes: Arc::new(Routes::new(number, is_of_one)),
        };
        // Counted back when dropped.
        match parts.open.fetch_add(1, Ordering::AcqRel) < parts.external.max_connections {
            true => Ok(Arc::new(place)),
            false => Err(RequestError::Overloaded),
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.parts.open.fetch_sub(1, Ordering::AcqRel);
        self.parts.connection_ended(self.routes.connection);
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
